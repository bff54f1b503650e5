//! Faults of former versions, which the simulation puts back to test that it finds them. Programs built for use do
//! not contain them.

use rusqlite::{Connection, Result, params};
use webfill_wire::Lane;

use super::context::Context;
use super::lease::{LeaseRun, MOST_CRAWLS};
use super::model::{NextCrawl, SiteId, TaskId};
use super::parts::SiteStates;
use super::queue_order::tasks_up_to;
use super::{closing, crawl_rows, lanes, lease, sites, unreachable};

impl SiteStates<'_> {
    /// From now on, the crawls at an unreachable site are served as at any other site: by the priorities of all their
    /// tasks, each in the lane that it needs. So the site's older tasks wait behind newer ones, and the site stays
    /// ready with nothing to hand out.
    pub fn restore_fault_of_unreachable_turns(&mut self) {
        self.0.cx.backoff.unreachable_go_by_turns = true;
    }
}

pub(super) fn lease_unreachable_with_former_fault(
    cx: &mut Context,
    site: SiteId,
    limit: usize,
    lane: Lane,
    now_ms: i64,
    run: &mut LeaseRun,
) -> Result<()> {
    let last = cx
        .backoff
        .unreachable
        .get(&site)
        .map(|unreachable| unreachable.last);
    run.has_visited_all = !is_older_left(&cx.db, site, last.unwrap_or(0))?;
    while !run.has_visited_all && run.can_continue(limit) {
        let before = run.count_dequeued();
        for turn in sites::next_turns(&cx.db, site, MOST_CRAWLS)? {
            if run.can_continue(limit) {
                let left = limit - run.handed_out.len();
                lease_turn_with_former_fault(cx, site, turn, left, lane, now_ms, run)?;
            }
        }
        if run.count_dequeued() == before {
            break;
        }
    }
    Ok(())
}

fn lease_turn_with_former_fault(
    cx: &mut Context,
    site: SiteId,
    turn: NextCrawl,
    most: usize,
    lane: Lane,
    now_ms: i64,
    run: &mut LeaseRun,
) -> Result<()> {
    let Some(unreachable) = cx.backoff.unreachable.get(&site).copied() else {
        return Ok(());
    };
    let wall_ms = cx.wall_ms(now_ms);
    if let Some(outcome) = crawl_rows::load_known_crawl(cx, turn.crawl)?.ending_outcome(wall_ms) {
        let most = run.closings_left();
        run.closed += closing::end_tasks_at(cx, site, turn.crawl, outcome, most, now_ms)?;
        return Ok(());
    }
    let room = lease::allowance_or_hold_at(cx, site, turn.crawl, now_ms)?;
    if room == 0 {
        run.held += 1;
        return sites::hold_crawl_at(&cx.db, site, turn.crawl);
    }
    let needed = crawl_rows::load_known_crawl(cx, turn.crawl)?.spec.lane;
    if !lanes::can_serve(lane, cx.lanes.lane_needed_at(site, needed)) {
        run.is_another_lanes_turn = true;
        return Ok(());
    }
    let most = room.min(most);
    let mut older = tasks_up_to(&cx.db, site, turn.crawl, unreachable.last, most)?;
    older.retain(|task| task.priority >= turn.priority);
    run.closed += lease::end_excluded_tasks(cx, site, turn.crawl, &mut older, now_ms)?;
    run.passed += usize::from(older.is_empty());
    unreachable::hand_out_to_end(cx, site, turn.crawl, older, unreachable.outcome, run)
}

fn is_older_left(db: &Connection, site: SiteId, last: TaskId) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE site = ?1 AND state = 0
                   AND not_before_ms = 0 AND id <= ?2)";
    db.prepare_cached(sql)?
        .query_row(params![site, last as i64], |row| row.get(0))
}
