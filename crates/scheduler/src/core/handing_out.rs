//! Hands out tasks: those of due sites are leased and sent to the owners of the sites. [`hand_out`] shows all steps.

mod sending;

use super::{recalls, window};
use crate::core::context::Context;
use crate::dispatch::Grant;
use crate::frontier::{FrontierError, LeaseBatch, WokenSite};

/// A grant permits to hand out tasks of one site. After this many grants that yielded no task, handing out stops for
/// this turn of the loop, so that other work is not delayed.
const MOST_EMPTY_GRANTS: usize = 1_000;

/// Hands out tasks of due sites to supervisors that have credit. Ends after [`MOST_EMPTY_GRANTS`] or at the turn's
/// end, and continues in the next turn of the loop.
pub(super) fn hand_out(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    // Apply changes in the frontier: crawls that continue, due retries, and new site rules.
    apply_frontier_changes(cx, now_ms)?;
    cx.window.has_more = false;
    if cx.draining || cx.surroundings.low_disk.is_some() {
        return Ok(());
    }
    // Load due sites from the disk into memory.
    window::refill(cx, now_ms)?;
    let mut empty_grants = 0;
    // Choose the next site, the supervisor for its tasks, their number and the start time.
    while let Some(grant) = cx.dispatch.next_grant(now_ms) {
        if let Some(clock) = &grant.new_owner {
            // Stored in the commit of the leases, so that after a restart the leases of a site belong to its owner.
            cx.frontier.sites().save_clock(grant.site, clock)?;
        }
        // Choose the crawl that is next at the site, and its tasks to hand out.
        let batch = cx
            .frontier
            .tasks()
            .lease(grant.site, grant.tasks, grant.lane, now_ms)?;
        cx.dispatch.record_grant(&grant, &batch);
        put_off_if_empty(cx, &grant, &batch, now_ms);
        // A backoff that has just begun must be in force before the site is chosen again.
        apply_changed_sites(cx, now_ms)?;
        empty_grants += usize::from(batch.tasks.is_empty());
        cx.counters.handed_out += batch.tasks.len() as u64;
        sending::send_tasks(cx, &grant, batch.tasks)?;
        if empty_grants >= MOST_EMPTY_GRANTS || cx.surroundings.turn_end.is_over() {
            cx.window.has_more = true;
            break;
        }
    }
    window::evict_sites(cx, now_ms)
}

/// Applies pending changes in the frontier: crawls that continue after they were held back, due retries, and new site
/// rules.
fn apply_frontier_changes(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    cx.frontier.releases().queue_application_releases(now_ms);
    if cx.frontier.has_crawls_to_release() {
        let woken = cx.frontier.releases().release_next(now_ms)?;
        wake_sites(cx, woken);
        cx.window.next_site_ms = Some(now_ms);
    }
    if cx
        .frontier
        .next_retry_ms()
        .is_some_and(|at_ms| at_ms <= now_ms)
    {
        let woken = cx.frontier.tasks().requeue_due_retries(now_ms)?;
        wake_sites(cx, woken);
        cx.window.next_site_ms = Some(now_ms);
    }
    apply_changed_sites(cx, now_ms)
}

fn apply_changed_sites(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let forgotten = cx.frontier.sites().take_reset_sites();
    for site in cx.frontier.sites().take_changed_sites()? {
        let is_forgotten = forgotten.contains(&site.id);
        cx.dispatch.schedule.apply_rule(&site, is_forgotten);
        cx.window.next_site_ms = Some(now_ms);
    }
    Ok(())
}

/// Notes that sites in memory have got tasks to hand out. Recalls leased tasks of a lower priority, so that the new
/// tasks go first.
pub(super) fn wake_sites(cx: &mut Context, woken: Vec<WokenSite>) {
    for woken in woken {
        if let Some((owner, scope)) = cx.dispatch.wake(woken) {
            recalls::recall_from(cx, &owner, &scope);
        }
    }
}

/// Defers a site that was chosen but had nothing to hand out, so that other sites need not wait for it.
fn put_off_if_empty(cx: &mut Context, grant: &Grant, batch: &LeaseBatch, now_ms: i64) {
    let Some(why) = batch.nothing else {
        return;
    };
    let Some(aside) = cx.dispatch.put_off(grant, why, batch.next, now_ms) else {
        return;
    };
    *cx.counters.set_aside.entry(why).or_default() += 1;
    if aside.times > 1 {
        tracing::warn!(
            event = "site_set_aside",
            site = cx.dispatch.schedule.site_name(grant.site),
            reason = why.as_str(),
            queued = batch.left,
            times = aside.times,
            again_in_ms = aside.for_ms,
            "a site had nothing to hand out in its turn and is set aside; other sites continue"
        );
    }
}

/// When [`hand_out`] next has to apply changes in the frontier or to continue an interrupted turn.
pub(super) fn next_frontier_event_ms(cx: &Context, last_tick_ms: i64) -> Option<i64> {
    if cx.frontier.has_crawls_to_release() || cx.window.has_more {
        return Some(last_tick_ms);
    }
    let (retry_ms, room_ms) = (cx.frontier.next_retry_ms(), cx.frontier.next_allowance_ms());
    retry_ms.into_iter().chain(room_ms).min()
}
