//! Unreachable sites: the tasks that are queued when a site becomes unreachable end without a request, and later ones
//! wait for a backoff.
//!
//! Because nothing is requested, these tasks may end in any order and in any lane. The crawls at the site are visited
//! one after the other, and each ends all of its older tasks, whatever the priorities of its newer ones. Crawls that
//! are held back are skipped. Once a visit to all crawls has found nothing to end, the site backs off for the other
//! tasks; older tasks that were held back wait with it. So the site is never ready without tasks to hand out.
//!
//! The progress of the visits is kept in memory only: after a restart they begin again.

use rusqlite::{Connection, OptionalExtension, Result, params};
use webfill_wire::{CrawlKey, Outcome};

use super::backoff::Unreachable;
use super::context::Context;
use super::lease::LeaseRun;
use super::model::SiteId;
use super::queue_order::{QueuedTask, tasks_up_to};
use super::{closing, crawl_rows, lease, sites, state_changes};

/// Hands out up to `limit` tasks of an unreachable site, to end without a request.
pub(super) fn lease_unreachable(
    cx: &mut Context,
    site: SiteId,
    limit: usize,
    now_ms: i64,
    run: &mut LeaseRun,
) -> Result<()> {
    while run.can_continue(limit)
        && let Some(unreachable) = cx.backoff.unreachable.get(&site).copied()
    {
        let Some(crawl) = next_crawl_after(&cx.db, site, unreachable.visited)? else {
            // Tasks may have come back at crawls that were visited already. The next round of visits finds them.
            run.has_visited_all = !unreachable.has_ended_tasks;
            let (last, outcome) = (unreachable.last, unreachable.outcome);
            cx.backoff
                .unreachable
                .insert(site, Unreachable::new(last, outcome));
            if run.has_visited_all {
                return Ok(());
            }
            continue;
        };
        let before = run.count_dequeued();
        let has_more = end_older_tasks(cx, site, crawl, unreachable, limit, now_ms, run)?;
        if let Some(unreachable) = cx.backoff.unreachable.get_mut(&site) {
            unreachable.has_ended_tasks |= run.count_dequeued() > before;
            if !has_more {
                unreachable.visited = crawl;
            }
        }
    }
    Ok(())
}

/// Ends at most `limit` tasks of a crawl that were queued before its site became unreachable. Returns whether there
/// may be more such tasks.
fn end_older_tasks(
    cx: &mut Context,
    site: SiteId,
    crawl: CrawlKey,
    unreachable: Unreachable,
    limit: usize,
    now_ms: i64,
    run: &mut LeaseRun,
) -> Result<bool> {
    let wall_ms = cx.wall_ms(now_ms);
    if let Some(outcome) = crawl_rows::load_known_crawl(cx, crawl)?.ending_outcome(wall_ms) {
        let most = run.closings_left();
        let closed = closing::end_tasks_at(cx, site, crawl, outcome, most, now_ms)?;
        run.closed += closed;
        return Ok(closed == most);
    }
    let room = lease::allowance_or_hold_at(cx, site, crawl, now_ms)?;
    if room == 0 {
        run.held += 1;
        sites::hold_crawl_at(&cx.db, site, crawl)?;
        return Ok(false);
    }
    let most = room.min(limit - run.handed_out.len());
    let mut older = tasks_up_to(&cx.db, site, crawl, unreachable.last, most)?;
    let has_more = older.len() == most;
    if older.is_empty() {
        run.passed += 1;
        return Ok(false);
    }
    run.closed += lease::end_excluded_tasks(cx, site, crawl, &mut older, now_ms)?;
    hand_out_to_end(cx, site, crawl, older, unreachable.outcome, run)?;
    Ok(has_more)
}

pub(super) fn hand_out_to_end(
    cx: &mut Context,
    site: SiteId,
    crawl: CrawlKey,
    older: Vec<QueuedTask>,
    outcome: Outcome,
    run: &mut LeaseRun,
) -> Result<()> {
    let taken = older.len() as u64;
    for task in older {
        cx.backoff.ending.insert(task.id);
        let leased = lease::lease_task(cx, task, site, crawl, Some(outcome))?;
        run.handed_out.push(leased);
    }
    cx.last_turn += 1;
    sites::subtract_from_crawl_share(&cx.db, site, crawl, taken, Some(cx.last_turn))
}

/// Begins a backoff of an unreachable site that has only later tasks left. With a patience there is no backoff, and
/// the later tasks end as well.
pub(super) fn back_off_for_new_tasks(cx: &mut Context, site: SiteId, now_ms: i64) -> Result<()> {
    if cx.backoff.patience.is_some() {
        return Ok(());
    }
    let mut stored = state_changes::site_state(cx, site)?;
    stored
        .state
        .back_off_for_new_tasks(&cx.backoff.table, now_ms);
    state_changes::propagate_phase(cx, site, stored.state.phase)?;
    state_changes::update_state(cx, site, &stored)?;
    let sql = "UPDATE site_states SET since_ms = ?2 WHERE site = ?1";
    cx.db.prepare_cached(sql)?.execute(params![site, now_ms])?;
    Ok(())
}

/// The next crawl after a given one that has tasks at a site that could be handed out.
fn next_crawl_after(db: &Connection, site: SiteId, after: CrawlKey) -> Result<Option<CrawlKey>> {
    let sql = "SELECT crawl FROM task_rows
               WHERE site = ?1 AND crawl > ?2 AND state = 0 AND not_before_ms = 0
               ORDER BY crawl LIMIT 1";
    let mut select = db.prepare_cached(sql)?;
    select
        .query_row(params![site, after], |row| row.get(0))
        .optional()
}
