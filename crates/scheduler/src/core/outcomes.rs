//! The ends of leases: outcomes and their consequences, tasks that come back without an outcome, and backfills
//! (stored pages that are applied to further records).

use serde_json::json;
use webfill_wire::{
    BackoffReason, CrawlKey, Delivery, Evidence, Outcome, RecallScope, ReturnCause,
    SupervisorOutcomes, TaskDone, TaskReturned,
};

use crate::core::context::Context;
use crate::core::{handing_out, machines, recalls};
use crate::crawl_registry::crashed_page;
use crate::dispatch::LastRequest;
use crate::effects::FinishedPage;
use crate::effects::OutgoingMessage;
use crate::effects::{BackfillWrite, StoreWrite};
use crate::frontier::{
    Backfill, BackoffBegun, Candidate, Completion, FeedTally, FrontierError, ReturnResult, TaskId,
    TaskSketch, Turn, ignore_pruned,
};
use crate::site_state::backoff_end_seconds;

pub(super) mod retraction;
mod steps;

/// Pages that killed their workers are written by the dispatcher itself, after the commit. A crash before the write
/// loses such a page, so after a start all such pages of this period are written again.
const CRASHED_PAGES_REWRITTEN_MS: i64 = 7 * 86_400_000;

pub(super) fn handle_outcomes(
    cx: &mut Context,
    outcomes: SupervisorOutcomes,
    now_ms: i64,
) -> Result<(), FrontierError> {
    cx.counters.messages.received += 1;
    let mut pages = 0;
    for done in &outcomes.done {
        let counts = complete_task(cx, done, now_ms)?;
        pages += u64::from(counts && done.outcome == Outcome::Ok);
    }
    for returned in outcomes.returned {
        handle_returned_task(cx, returned, now_ms)?;
    }
    recalls::confirm_recalls(cx, &outcomes.recalled, &outcomes.supervisor);
    let (session, number) = (outcomes.session, outcomes.number);
    cx.dispatch
        .fleet
        .record_outcomes(&outcomes.supervisor, session, number, pages);
    Ok(())
}

/// Ends a task's lease with an outcome. Returns whether the outcome is final.
fn complete_task(cx: &mut Context, done: &TaskDone, now_ms: i64) -> Result<bool, FrontierError> {
    if machines::return_if_machine_failure(cx, done, now_ms)? {
        return Ok(false);
    }
    let counted = match cx.frontier.tasks().complete(done, now_ms)? {
        Completion::Counted(counted) => {
            steps::log_lease_end(cx, done, "counted", "outcome recorded")?;
            counted
        }
        Completion::WillRetry => {
            cx.counters.retried += 1;
            steps::log_lease_end(cx, done, "will_retry", "failed, will be retried")?;
            end_lease(cx, done, now_ms)?;
            return Ok(false);
        }
        Completion::HandedOn => {
            steps::log_lease_end(
                cx,
                done,
                "handed_on",
                "empty without its scripts, goes to a browser",
            )?;
            end_lease(cx, done, now_ms)?;
            return Ok(false);
        }
        Completion::SiteBackoffs(turn) => {
            cx.counters.retried += 1;
            steps::log_lease_end(cx, done, "put_back", "its site backs off, queued again")?;
            end_lease_at_backing_off_site(cx, done, turn, now_ms)?;
            handle_begun_backoffs(cx, now_ms)?;
            return Ok(false);
        }
        Completion::Stale => {
            count_stale_outcome(cx, done)?;
            return Ok(false);
        }
    };
    end_lease(cx, done, now_ms)?;
    handle_begun_backoffs(cx, now_ms)?;
    for record in counted.backfill_records {
        let page = Backfill {
            task: done.task,
            url: counted.url.clone(),
            depth: counted.depth,
            record,
        };
        queue_backfill(cx, counted.crawl, page)?;
    }
    publish_finished_page(cx, counted.crawl, counted.url)?;
    apply_feed_tally(cx, counted.crawl, counted.links, now_ms)?;
    Ok(true)
}

/// Counts and logs an outcome that arrived when its lease was not in force.
fn count_stale_outcome(cx: &mut Context, done: &TaskDone) -> Result<(), FrontierError> {
    cx.counters.stale += 1;
    let task = cx.frontier.tasks().get(done.task)?;
    let crawl_id = match &task {
        Some(task) => {
            let spec = cx.frontier.crawls().spec(task.crawl);
            ignore_pruned(spec.map(|spec| Some(spec.crawl_id.clone())), None)?
        }
        None => None,
    };
    tracing::info!(
        event = "stale_outcome",
        task = done.task,
        crawl_id,
        url = task.as_ref().map(|task| task.url.as_str()),
        attempt = done.delivery.number,
        "an outcome came too late and changed nothing"
    );
    Ok(())
}

/// Announces on the firehose that a page has its final outcome.
fn publish_finished_page(
    cx: &mut Context,
    crawl: CrawlKey,
    url: String,
) -> Result<(), FrontierError> {
    let spec = cx.frontier.crawls().spec(crawl)?;
    cx.outgoing
        .push(OutgoingMessage::FinishedPage(FinishedPage {
            app_id: spec.app_id.clone(),
            crawl_id: spec.crawl_id.clone(),
            body: spec.body,
            url,
        }));
    Ok(())
}

fn end_lease(cx: &mut Context, done: &TaskDone, now_ms: i64) -> Result<(), FrontierError> {
    let mut reported = done.clock;
    let site = cx.dispatch.leases.site_of_task(done.task);
    if site.is_some_and(|site| cx.frontier.ends_without_requests(site)) {
        // The queued tasks of an unreachable site end without a request, so they need not wait until the next request
        // is allowed. The site's worker and the cache still know that time.
        reported.next_in_ms = 0;
    }
    if let Some((site, clock)) = cx.dispatch.end_lease(done.task, reported, now_ms) {
        cx.frontier.sites().save_clock(site, &clock)?;
    }
    Ok(())
}

/// Ends the lease of a task that was queued again because its site backs off.
fn end_lease_at_backing_off_site(
    cx: &mut Context,
    done: &TaskDone,
    turn: Turn,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let request = LastRequest::Known(done.clock);
    let moved = cx
        .dispatch
        .return_lease(done.task, Some(turn), request, now_ms);
    if let Some((site, clock)) = moved {
        cx.frontier.sites().save_clock(site, &clock)?;
    }
    Ok(())
}

/// Handles sites that have begun to back off: their leased tasks that have not started are recalled. Tasks that
/// failed just before, evidently because of the site, are queued again.
fn handle_begun_backoffs(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let suspects = cx.frontier.site_states().take_suspects();
    if !suspects.is_empty() {
        let woken = cx.frontier.reopening().requeue(&suspects, now_ms)?;
        handing_out::wake_sites(cx, woken);
        cx.window.next_site_ms = Some(now_ms);
    }
    retraction::send_new_retractions(cx, now_ms)?;
    for rest in cx.frontier.site_states().take_begun_backoffs() {
        if rest.until_ms.is_some() {
            *cx.counters.backoff.entry(rest.reason).or_default() += 1;
        }
        if let Some(holder) = cx.dispatch.lease_holder_of(rest.site) {
            let scope = RecallScope {
                site: Some(rest.name.clone()),
                ..RecallScope::default()
            };
            recalls::recall_from(cx, &holder, &scope);
        }
        log_backoff(cx, &rest)?;
    }
    Ok(())
}

/// Logs a backoff. A block is a warning, and the application is notified.
fn log_backoff(cx: &mut Context, rest: &BackoffBegun) -> Result<(), FrontierError> {
    let spec = cx.frontier.crawls().spec(rest.crawl)?;
    let (app_id, crawl_id) = (spec.app_id.clone(), spec.crawl_id.clone());
    let Evidence {
        url,
        status_code,
        sign,
        ..
    } = &rest.evidence;
    let Some(until_ms) = rest.until_ms else {
        tracing::warn!(event = "site_unreachable", site = rest.name, reason = %rest.reason, url, status_code, sign, crawl_id, "a site is unreachable: its URLs end without a request");
        return Ok(());
    };
    if rest.reason != BackoffReason::Blocked {
        tracing::info!(event = "site_backs_off", site = rest.name, reason = %rest.reason, until_ms, url, status_code, sign, crawl_id, "a site backs off");
        return Ok(());
    }
    tracing::warn!(
        event = "site_blocks",
        site = rest.name,
        until_ms,
        url,
        status_code,
        sign,
        crawl_id,
        "a site blocks the crawler and backs off"
    );
    let notification = json!({
        "action": "site_backs_off",
        "appid": app_id,
        "crawlid": crawl_id,
        "site": rest.name,
        "reason": rest.reason,
        "until": backoff_end_seconds(until_ms),
        "evidence": {"url": url, "status_code": status_code, "sign": sign},
    });
    cx.publish_notification(&app_id, &notification);
    Ok(())
}

/// Takes back a lease without an outcome. The task is queued again, unless it has killed three workers or its crawl
/// is over.
pub(super) fn handle_returned_task(
    cx: &mut Context,
    returned: TaskReturned,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let blamed = returned.cause == ReturnCause::KilledWorker;
    let given_back =
        cx.frontier
            .tasks()
            .return_task(returned.task, returned.delivery, blamed, now_ms)?;
    if given_back == ReturnResult::Stale {
        return Ok(());
    }
    cx.counters.returned += 1;
    steps::log_returned_task(cx, &returned, given_back)?;
    if let Some(address) = returned.address {
        cx.dispatch.note_address(returned.task, address);
    }
    let request = match (returned.cause, returned.clock) {
        (ReturnCause::Unstarted, None) => LastRequest::None,
        (ReturnCause::Unstarted | ReturnCause::CutShort, Some(clock)) => LastRequest::Known(clock),
        _ => LastRequest::PossiblyUntilNow,
    };
    let requeued = match given_back {
        ReturnResult::Requeued(turn) => Some(turn),
        _ => None,
    };
    let moved = cx
        .dispatch
        .return_lease(returned.task, requeued, request, now_ms);
    if let Some((site, clock)) = moved {
        cx.frontier.sites().save_clock(site, &clock)?;
    }
    if given_back == ReturnResult::Quarantined {
        store_quarantined_page(cx, &returned, now_ms)?;
    }
    Ok(())
}

/// Stores the page of a quarantined task (it has killed several workers), because no worker is left to save it.
fn store_quarantined_page(
    cx: &mut Context,
    returned: &TaskReturned,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let Some(task) = cx.frontier.tasks().get(returned.task)? else {
        return Ok(());
    };
    tracing::error!(
        event = "quarantined",
        task = returned.task,
        crawl_id = cx.frontier.crawls().spec(task.crawl)?.crawl_id,
        url = task.url,
        attempt = returned.delivery.number,
        "a page has killed three workers and is not fetched again"
    );
    publish_finished_page(cx, task.crawl, task.url.clone())?;
    store_crashed_page(cx, (returned.task, returned.delivery), task, now_ms)
}

/// After a start: writes the recent pages of quarantined tasks to the store again, because the writes may have been
/// lost. Writing a page twice changes nothing.
pub(super) fn store_recent_crashed_pages(
    cx: &mut Context,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let since_ms = now_ms - CRASHED_PAGES_REWRITTEN_MS;
    for (id, delivery, at_ms) in cx.frontier.tasks().list_crashed_since(since_ms)? {
        if let Some(task) = cx.frontier.tasks().get(id)? {
            ignore_pruned(store_crashed_page(cx, (id, delivery), task, at_ms), ())?;
        }
    }
    Ok(())
}

fn store_crashed_page(
    cx: &mut Context,
    lease: (TaskId, Delivery),
    task: TaskSketch,
    at_ms: i64,
) -> Result<(), FrontierError> {
    let spec = cx.frontier.crawls().spec(task.crawl)?;
    let page = crashed_page(spec, lease, task, at_ms);
    cx.store_writes.push(StoreWrite::Page(Box::new(page)));
    Ok(())
}

/// Applies the consequences of a batch of judged URLs, besides its new tasks: wakes the sites that have got tasks, and
/// asks the store for the pending backfills.
pub(in crate::core) fn apply_feed_tally(
    cx: &mut Context,
    crawl: CrawlKey,
    tally: FeedTally,
    now_ms: i64,
) -> Result<(), FrontierError> {
    handing_out::wake_sites(cx, tally.woken);
    cx.counters.accepted += tally.accepted;
    if tally.accepted + tally.requeued > 0 {
        cx.window.next_site_ms = Some(now_ms);
        cx.window.underserved.add(crawl);
    }
    for page in tally.backfills {
        queue_backfill(cx, crawl, page)?;
    }
    Ok(())
}

/// Asks the store to apply a stored page to a further record.
pub(super) fn queue_backfill(
    cx: &mut Context,
    crawl: CrawlKey,
    page: Backfill,
) -> Result<(), FrontierError> {
    let spec = cx.frontier.crawls().spec(crawl)?;
    let backfill = BackfillWrite {
        crawl,
        app_id: spec.app_id.clone(),
        crawl_id: spec.crawl_id.clone(),
        page,
    };
    cx.crawls.on_backfill_queued(crawl);
    cx.store_writes.push(StoreWrite::Backfill(backfill));
    Ok(())
}

/// Notes that the store has applied a page to a record. If the record is complete, its queued tasks are closed;
/// otherwise the page's links are fed for it.
pub(super) fn on_backfill_applied(
    cx: &mut Context,
    backfill: &BackfillWrite,
    resolved: bool,
    links: &[String],
    now_ms: i64,
) -> Result<(), FrontierError> {
    cx.crawls.on_backfill_applied(backfill.crawl);
    let page = &backfill.page;
    cx.frontier
        .records()
        .note_backfill_applied(page.task, &page.record)?;
    if resolved {
        return cx.frontier.records().mark_resolved(&page.record, now_ms);
    }
    let records = std::slice::from_ref(&page.record);
    let candidates: Vec<Candidate<'_>> = links
        .iter()
        .map(|url| Candidate {
            url,
            depth: page.depth.saturating_add(1),
            priority: None,
            parent: Some(page.task),
            records,
            attrs: None,
        })
        .collect();
    ignore_pruned(feed_candidates(cx, backfill.crawl, &candidates, now_ms), ())
}

/// Queues a page again because the store has dropped it and a further record needs it. The record stays attached to the
/// page's task.
pub(super) fn requeue_dropped_page(
    cx: &mut Context,
    backfill: &BackfillWrite,
    now_ms: i64,
) -> Result<(), FrontierError> {
    cx.crawls.on_backfill_applied(backfill.crawl);
    let page = &backfill.page;
    cx.frontier
        .records()
        .note_backfill_applied(page.task, &page.record)?;
    // A page that kills workers is not fetched again unless a person requests it.
    if cx.frontier.reopening().is_quarantined(page.task)? {
        return Ok(());
    }
    let woken = cx.frontier.reopening().requeue(&[page.task], now_ms)?;
    handing_out::wake_sites(cx, woken);
    cx.window.next_site_ms = Some(now_ms);
    cx.window.underserved.add(backfill.crawl);
    Ok(())
}

/// Judges and queues URLs that came neither by a request nor with an outcome.
pub(super) fn feed_candidates(
    cx: &mut Context,
    crawl: CrawlKey,
    candidates: &[Candidate<'_>],
    now_ms: i64,
) -> Result<(), FrontierError> {
    let tally = cx.frontier.tasks().feed(crawl, candidates, now_ms)?;
    apply_feed_tally(cx, crawl, tally, now_ms)
}
