//! Applies the patience of a local crawl to its sites ([`patience`](crate::patience)): their backoffs are shortened.
//! After the last backoff all tasks of the site end without a request, including tasks that are queued later. The next
//! command has a new patience.

use rusqlite::{Result, params};
use webfill_wire::{BackoffReason, Outcome, TaskDone};

use super::context::Context;
use super::model::SiteId;
use super::parts::SiteStates;
use super::site_states::host_of;
use super::site_states::{StoredState, has_answered};
use super::task_rows::HeldTask;
use super::{FrontierError, retries, state_changes};
use crate::patience::{Patience, is_unknown_host};
use crate::site_state::{Phase, SiteState, Verdict};

/// The maximum number of a site's queued tasks searched for another host.
const TASKS_EXAMINED: usize = 256;

impl SiteStates<'_> {
    /// Gives sites that are in trouble since an earlier command the whole patience of a new command: they are tried
    /// again, one task first. A site that blocks still backs off as long as its table says.
    pub fn renew_patience(&mut self, now_ms: i64) -> std::result::Result<(), FrontierError> {
        let Some(patience) = self.0.cx.backoff.patience else {
            return Ok(());
        };
        self.0.run("try sites in trouble again", |cx| {
            let sql = "SELECT site FROM site_states JOIN sites ON id = site
                       WHERE unreachable_to NOT NULL OR backoff_until_ms > 0";
            let mut select = cx.db.prepare(sql)?;
            let sites = select.query_map([], |row| row.get(0))?;
            let sites: Vec<SiteId> = sites.collect::<Result<_>>()?;
            drop(select);
            for site in sites {
                renew_patience_of_site(cx, site, patience, now_ms)?;
            }
            Ok(())
        })
    }
}

/// Adjusts the decision about a failure to the patience: it may be over, or shorten the site's backoff.
pub(super) fn limit_by_patience(
    cx: &Context,
    task: &HeldTask,
    report: &TaskDone,
    before: SiteState,
    stored: &mut StoredState,
    verdict: Verdict,
    now_ms: i64,
) -> Result<Verdict> {
    let Some(mut patience) = cx.backoff.patience else {
        return Ok(verdict);
    };
    if retries::max_retries_if_limited(report) > 0 {
        let in_a_row = before.failures.max(stored.state.failures) + before.backoff_index;
        patience = patience.extended_by_pace(report.clock, in_a_row);
    }
    let is_over = match stored.state.phase {
        Phase::Unreachable => return Ok(verdict),
        Phase::Open => {
            let failures = Some(stored.state.failures);
            patience.is_exceeded_by(report.clock, failures, stored.since_ms, now_ms)
        }
        Phase::BackingOff { until_ms } => {
            let was_probe = before.phase != Phase::Open;
            let failures = (!was_probe).then_some(before.failures + 1);
            let until_ms = match stored.state.reason {
                // A blocking site is not probed earlier than usual, because that might prolong the block.
                BackoffReason::Blocked => Some(until_ms)
                    .filter(|until_ms| *until_ms <= stored.since_ms.saturating_add(patience.ms)),
                _ => backoff_end_by_patience(patience, stored, until_ms - now_ms, now_ms),
            };
            match until_ms {
                Some(until_ms) => stored.state.phase = Phase::BackingOff { until_ms },
                None => stored.state.phase = Phase::Unreachable,
            }
            stored.state.phase == Phase::Unreachable
                || patience.is_exceeded_by(report.clock, failures, stored.since_ms, now_ms)
                || (was_probe && is_permanently_unreachable(cx, patience, task, report)?)
        }
    };
    if !is_over {
        return Ok(verdict);
    }
    stored.state.phase = Phase::Unreachable;
    Ok(Verdict::Unreachable)
}

/// Whether a second attempt has confirmed that a site's name does not exist or that its certificate is not valid;
/// both rarely change. Only for sites that were never reached, and without queued tasks of another host, which may be
/// healthy.
fn is_permanently_unreachable(
    cx: &Context,
    patience: Patience,
    task: &HeldTask,
    report: &TaskDone,
) -> Result<bool> {
    let is_lasting = is_unknown_host(report) || report.outcome == Outcome::TlsError;
    if !is_lasting
        || !patience.is_shorter_than(&cx.backoff.table.dns)
        || has_answered(&cx.db, task.site)?
    {
        return Ok(false);
    }
    let sql = "SELECT url FROM tasks
               WHERE site = ?1 AND state = 0 AND not_before_ms = 0 LIMIT ?2";
    let mut select = cx.db.prepare_cached(sql)?;
    let mut rows = select.query(params![task.site, TASKS_EXAMINED as i64])?;
    let host = host_of(&task.url);
    while let Some(row) = rows.next()? {
        let url: String = row.get(0)?;
        if host_of(&url) != host {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the retries of an unreachable site's tasks due, because the tasks end without a request.
pub(super) fn make_retries_due(cx: &mut Context, site: SiteId) -> Result<()> {
    if cx.backoff.patience.is_none() {
        return Ok(());
    }
    let sql = "UPDATE task_rows SET not_before_ms = 1
               WHERE site = ?1 AND state = 0 AND not_before_ms > 0";
    let changed = cx.db.prepare_cached(sql)?.execute([site])?;
    if changed > 0 {
        cx.retries.mark_due();
    }
    Ok(())
}

fn renew_patience_of_site(
    cx: &mut Context,
    site: SiteId,
    patience: Patience,
    now_ms: i64,
) -> Result<()> {
    let mut stored = state_changes::site_state(cx, site)?;
    let until_ms = match (stored.state.reason, stored.state.phase) {
        (BackoffReason::Blocked, Phase::BackingOff { until_ms }) => until_ms.max(now_ms),
        (BackoffReason::Blocked, _) => {
            let index = stored.state.backoff_index as usize;
            let backoff_ms = cx.backoff.table.backoff_ms(BackoffReason::Blocked, index);
            // After the end of its list, the site would back off until a person resumes it.
            let backoff_ms = backoff_ms.unwrap_or(i64::MAX);
            stored.since_ms.saturating_add(backoff_ms).max(now_ms)
        }
        _ => now_ms,
    };
    if until_ms > now_ms.saturating_add(patience.ms) {
        stored.state.phase = Phase::Unreachable;
    } else {
        stored.state.phase = Phase::BackingOff { until_ms };
        stored.since_ms = now_ms;
    }
    if stored.state.reason != BackoffReason::Blocked {
        stored.state.backoff_index = 0;
    }
    state_changes::propagate_phase(cx, site, stored.state.phase)?;
    let sql = "UPDATE site_states SET since_ms = ?2 WHERE site = ?1";
    cx.db
        .prepare_cached(sql)?
        .execute(params![site, stored.since_ms])?;
    state_changes::update_state(cx, site, &stored)
}

/// The end of a backoff of `table_ms` by the table, shortened by the patience; `None` if the patience is over.
fn backoff_end_by_patience(
    patience: Patience,
    stored: &StoredState,
    table_ms: i64,
    now_ms: i64,
) -> Option<i64> {
    let index = stored.state.backoff_index as usize;
    let wait_ms = patience.wait_ms(table_ms, index, stored.since_ms, now_ms)?;
    Some(now_ms + wait_ms)
}
