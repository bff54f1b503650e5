//! How an attempt affects its site and its task ([`backoff`](super::backoff)).

use super::site_states::{backoff_until_ms, has_answered, site_name};
use crate::site_state::Verdict;
use rusqlite::{OptionalExtension, Result, params};
use webfill_wire::{BackoffReason, Evidence, TaskDone};

use super::backoff::{Disposition, Leasable};
use super::context::Context;
use super::model::{BackoffBegun, NextCrawl, SiteId, TaskId, Turn};
use super::parts::SiteStates;
use super::site_states::StoredState;
use super::task_rows::HeldTask;
use super::{
    crawl_rows, local_patience, releasing, retries, retrying, sites, state_changes, tries, turns,
};
use crate::dispatch::LOOKAHEAD_MS;
use crate::patience::Patience;
use crate::site_state::{AttemptSign, MOST_SUSPECTS, Phase, SiteState};

/// Changes the state of a site after an attempt at one of its pages, and decides about the task.
pub(super) fn apply_attempt(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    now_ms: i64,
) -> Result<Disposition> {
    if cx.backoff.ending.remove(&report.task) {
        return Ok(Disposition::Ends);
    }
    match AttemptSign::from_task(report) {
        AttemptSign::Nothing => Ok(Disposition::Own),
        AttemptSign::Answered => {
            if cx.backoff.known.contains(&task.site) {
                apply_answer(cx, task.site, now_ms)?;
            }
            Ok(Disposition::Own)
        }
        AttemptSign::Failed { reason, certain } => {
            apply_failure(cx, task, report, reason, certain, now_ms)
        }
    }
}

pub(super) fn apply_answer(cx: &mut Context, site: SiteId, now_ms: i64) -> Result<()> {
    let mut stored = state_changes::site_state(cx, site)?;
    // An open site may still have the evidence of a page that failed while its site answered other requests.
    if !stored.state.on_answer(now_ms) && !stored.state.is_default() {
        return Ok(());
    }
    stored.suspects.clear();
    state_changes::propagate_phase(cx, site, stored.state.phase)?;
    if stored.state.is_default() {
        return state_changes::delete_state(cx, site);
    }
    state_changes::update_state(cx, site, &stored)
}

pub(super) fn apply_failure(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    reason: BackoffReason,
    certain: bool,
    now_ms: i64,
) -> Result<Disposition> {
    if cx.backoff.table.backoff_seconds(reason).is_empty() {
        return Ok(Disposition::Own);
    }
    let site = task.site;
    let mut stored = state_changes::site_state(cx, site)?;
    let before = stored.state;
    let has_answered = has_answered(&cx.db, site)?;
    let table = &cx.backoff.table;
    let mut verdict = stored
        .state
        .on_failure(reason, certain, has_answered, table, now_ms);
    if stored.state != before {
        let goes_on = before.is_failing_for(reason);
        if !goes_on {
            stored.since_ms = now_ms;
            stored.suspects.clear();
        }
        verdict = local_patience::limit_by_patience(
            cx,
            task,
            report,
            before,
            &mut stored,
            verdict,
            now_ms,
        )?;
        let is_last = match verdict {
            Verdict::Unreachable => true,
            Verdict::SiteBackoffs => is_exhausted(cx, reason, report)?,
            Verdict::OwnFailure | Verdict::TaskWaits => false,
        };
        if is_last && is_fault_of_one_page(cx, task, report, &stored, now_ms)? {
            stored.state = SiteState {
                reason,
                ..SiteState::default()
            };
            verdict = Verdict::Unreachable;
        }
        store_failure(cx, task, report, before.phase, &mut stored)?;
    }
    apply_verdict(cx, task, report, reason, verdict, now_ms)
}

/// Whether a single page has caused its site's backoffs, and this is its last failure. Then only this page ends, and
/// the site is open: other pages, which are held back or found later, may be fetched successfully. Only for sites that
/// have answered.
pub(super) fn is_fault_of_one_page(
    cx: &Context,
    task: &HeldTask,
    report: &TaskDone,
    stored: &StoredState,
    now_ms: i64,
) -> Result<bool> {
    let may_be = match stored.state.reason {
        BackoffReason::Busy => true,
        BackoffReason::Unreachable | BackoffReason::Tls => has_answered(&cx.db, task.site)?,
        BackoffReason::Robots | BackoffReason::Dns | BackoffReason::Blocked => false,
    };
    let tries = tries::count_used_retries(&cx.db, report.task)? as u32 + 1;
    // Whether the wait that the server demands is longer than the patience (the maximum time to wait for a failing
    // site).
    let asks_too_much =
        |patience: Patience| patience.is_exceeded_by(report.clock, Some(tries), now_ms, now_ms);
    if !may_be || cx.backoff.patience.is_some_and(asks_too_much) {
        return Ok(false);
    }
    for failed in &stored.suspects {
        let sql = "SELECT url = ?2 FROM tasks WHERE id = ?1";
        let mut select = cx.db.prepare_cached(sql)?;
        let is_the_same = select
            .query_row(params![*failed as i64, task.url], |row| row.get(0))
            .optional()?;
        if !is_the_same.unwrap_or(false) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stores a site's state after a failure, with the evidence.
pub(super) fn store_failure(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    before: Phase,
    stored: &mut StoredState,
) -> Result<()> {
    let evidence = evidence_of(task, report);
    let site = task.site;
    match stored.state.phase {
        Phase::Open => {
            stored.suspects.truncate(MOST_SUSPECTS - 1);
            stored.suspects.push(report.task);
        }
        Phase::BackingOff { .. } => {
            if before == Phase::Open {
                cx.backoff.suspects.extend(&stored.suspects);
            }
            if !stored.suspects.contains(&report.task) {
                stored.suspects.truncate(MOST_SUSPECTS - 1);
                stored.suspects.push(report.task);
            }
        }
        Phase::Unreachable => stored.suspects.clear(),
    }
    state_changes::insert_state(cx, site, stored, &evidence)?;
    if stored.state.phase == before {
        return Ok(());
    }
    state_changes::propagate_phase(cx, site, stored.state.phase)?;
    let until_ms = match stored.state.phase {
        Phase::Open => return Ok(()),
        Phase::BackingOff { until_ms } => Some(until_ms),
        Phase::Unreachable => {
            local_patience::make_retries_due(cx, site)?;
            None
        }
    };
    cx.backoff.begun.push(BackoffBegun {
        site,
        name: site_name(&cx.db, site)?,
        crawl: task.crawl,
        reason: stored.state.reason,
        until_ms,
        evidence,
    });
    Ok(())
}

/// Carries out the decision about a task that has failed: whether it ends, is retried, or waits for its site.
pub(super) fn apply_verdict(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    reason: BackoffReason,
    verdict: Verdict,
    now_ms: i64,
) -> Result<Disposition> {
    match verdict {
        Verdict::OwnFailure => return Ok(Disposition::Own),
        Verdict::Unreachable => return Ok(Disposition::Ends),
        Verdict::SiteBackoffs | Verdict::TaskWaits => {}
    }
    let wall_ms = cx.wall_ms(now_ms);
    if crawl_rows::load_known_crawl(cx, task.crawl)?
        .ending_outcome(wall_ms)
        .is_some()
    {
        return Ok(Disposition::Ends);
    }
    if verdict == Verdict::SiteBackoffs {
        // This page fails again and again, while other pages of its site are answered.
        if is_exhausted(cx, reason, report)?
            && !state_changes::is_backed_off_until_woken(cx, task.site)?
        {
            return Ok(Disposition::Ends);
        }
        note_try(cx, report, now_ms)?;
        return queue_at_backing_off_site(cx, task, report.task).map(Disposition::SiteBackoffs);
    }
    let used = tries::count_used_retries(&cx.db, report.task)?;
    let Some(wait_ms) = cx.backoff.wait_ms(reason, report, used) else {
        return Ok(Disposition::Ends);
    };
    note_try(cx, report, now_ms)?;
    retrying::requeue_leased(
        cx,
        task,
        report.task,
        task.priority,
        now_ms + wait_ms.max(1),
    )?;
    Ok(Disposition::Waits)
}

/// Whether a page has failed so often that it is not retried any more.
pub(super) fn is_exhausted(cx: &Context, reason: BackoffReason, report: &TaskDone) -> Result<bool> {
    let used = tries::count_used_retries(&cx.db, report.task)?;
    if used < retries::max_retries_if_limited(report) {
        return Ok(false);
    }
    let backoff = cx.backoff.table.backoff_seconds(reason);
    let has_wait = |used| cx.backoff.wait_ms(reason, report, used).is_some();
    Ok(used > backoff.len() || (used > 0 && !has_wait(used - 1)))
}

pub(super) fn note_try(cx: &Context, report: &TaskDone, now_ms: i64) -> Result<()> {
    let (outcome, status_code) = (report.outcome, report.status_code);
    tries::note_try(&cx.db, report.task, now_ms, outcome, status_code)
}

pub(super) fn queue_at_backing_off_site(
    cx: &mut Context,
    task: &HeldTask,
    id: TaskId,
) -> Result<Turn> {
    let priority = task.priority;
    let sql = "UPDATE task_rows SET state = 0 WHERE id = ?1";
    cx.db.prepare_cached(sql)?.execute([id as i64])?;
    let crawl = crawl_rows::load_known_crawl(cx, task.crawl)?;
    crawl.status.leased -= 1;
    crawl.count_queued(priority, 1);
    sites::add_to_crawl_share(&cx.db, task.site, task.crawl, 1, priority)?;
    sites::add_queued(&cx.db, task.site, 1, priority)?;
    releasing::note_lease_end(cx, task.crawl, task.site, false);
    let crawl = task.crawl;
    turns::turn_with_lane(cx, task.site, NextCrawl { priority, crawl })
}

/// Which tasks of a site may be handed out.
pub(super) fn leasable_tasks(cx: &Context, site: SiteId, now_ms: i64) -> Result<Leasable> {
    if cx.backoff.unreachable.contains_key(&site) {
        return Ok(Leasable::Unreachable);
    }
    if !cx.backoff.known.contains(&site) {
        return Ok(Leasable::All);
    }
    Ok(match backoff_until_ms(&cx.db, site)? {
        0 => Leasable::All,
        until_ms if until_ms - LOOKAHEAD_MS > now_ms => Leasable::None,
        _ => Leasable::Probe,
    })
}

/// The evidence of a failure as its worker saw it, or else made from the outcome.
pub(super) fn evidence_of(task: &HeldTask, report: &TaskDone) -> Evidence {
    report.evidence.clone().unwrap_or_else(|| Evidence {
        url: task.url.clone(),
        status_code: report.status_code,
        sign: report.outcome.to_string(),
        no_route: false,
    })
}

impl SiteStates<'_> {
    /// Takes the backoffs that have begun since the last call.
    pub fn take_begun_backoffs(&mut self) -> Vec<BackoffBegun> {
        std::mem::take(&mut self.0.cx.backoff.begun)
    }

    /// Takes the tasks whose failures turned out to be their site's fault since the last call. Those that have ended
    /// are to be reopened.
    pub fn take_suspects(&mut self) -> Vec<TaskId> {
        std::mem::take(&mut self.0.cx.backoff.suspects)
    }
}
