//! Leasing: decides which crawl is next at a site, and which of its tasks are handed out.
//!
//! The tasks of the highest priority at a site go first, whichever crawl they belong to. Crawls with tasks of the
//! same priority take turns, the one that has waited longest first, so that a crawl's long queue delays only that
//! crawl. [`queue_order`](super::queue_order) decides which of a crawl's tasks goes first.

use rusqlite::{Connection, Result, params};
use webfill_wire::{CrawlKey, Delivery, Lane, Outcome};

use super::backoff::Leasable;
use super::closing::end_tasks_at;
use super::context::Context;
use super::crawl::Crawl;
use super::model::{LeaseBatch, Leased, NextCrawl, NothingHandedOut, SiteId, TaskId, Turn};
use super::parts::Tasks;
use super::queue_order::{QueuedTask, first_queued_tasks, first_ranked_tasks, least_tried_task};
use super::schema::LEASED;
use super::{
    FrontierError, attempts, closing, crawl_rows, lanes, rechecking, releasing, sites, tries,
    turns, unreachable,
};

/// The maximum number of tasks of ended crawls that one call closes, together with the skipped crawls, which have no
/// tasks to hand out. It bounds the duration of a call.
const MOST_PASSED: usize = 1_000;

/// The maximum number of crawls at a site that are looked up at a time, in the order of their turns.
pub(super) const MOST_CRAWLS: usize = 16;

/// The progress of one call of [`Tasks::lease`].
pub(super) struct LeaseRun {
    pub(super) handed_out: Vec<Leased>,
    /// The number of tasks that have ended instead of being handed out, because their crawls are over or their sites
    /// are excluded.
    pub(super) closed: usize,
    /// The number of crawls that the site skips from now on.
    pub(super) held: usize,
    /// The number of crawls that had nothing to hand out.
    pub(super) passed: usize,
    /// Whether the next crawl needs a supervisor of another lane than the one that gets the tasks.
    pub(super) is_another_lanes_turn: bool,
    /// The crawl whose page goes first after a backoff, if it needs another lane.
    probe_of_another_lane: Option<NextCrawl>,
    /// Whether the site is unreachable and none of its older tasks can end now.
    pub(super) has_visited_all: bool,
    leasable: Leasable,
}

impl LeaseRun {
    fn new(leasable: Leasable) -> LeaseRun {
        LeaseRun {
            handed_out: Vec::new(),
            closed: 0,
            held: 0,
            passed: 0,
            is_another_lanes_turn: false,
            probe_of_another_lane: None,
            has_visited_all: false,
            leasable,
        }
    }

    pub(super) fn can_continue(&self, limit: usize) -> bool {
        let passed = self.closed + self.held + self.passed;
        let wants_more = self.handed_out.len() < limit && passed < MOST_PASSED;
        let is_done = match self.leasable {
            Leasable::None => true,
            Leasable::Probe => !self.handed_out.is_empty(),
            Leasable::All | Leasable::Unreachable => false,
        };
        wants_more && !self.is_another_lanes_turn && !is_done
    }

    pub(super) fn closings_left(&self) -> usize {
        MOST_PASSED.saturating_sub(self.closed).max(1)
    }

    /// The number of tasks that have left the queue.
    pub(super) fn count_dequeued(&self) -> usize {
        self.handed_out.len() + self.closed
    }

    /// The reason that nothing was handed out although a crawl is next; `None` if a task was handed out, or no crawl is
    /// next.
    fn no_handout_reason(&self, next: Option<Turn>) -> Option<NothingHandedOut> {
        if next.is_none() || !self.handed_out.is_empty() {
            return None;
        }
        let passes = self.leasable == Leasable::Unreachable || self.held > 0;
        Some(match self.leasable {
            Leasable::None => NothingHandedOut::BackingOff,
            _ if self.has_visited_all => NothingHandedOut::BackoffBegins,
            _ if self.closed > 0 => NothingHandedOut::CrawlsOver,
            _ if passes => NothingHandedOut::CrawlsHeld,
            _ if self.is_another_lanes_turn => NothingHandedOut::OtherLane,
            _ => NothingHandedOut::NotFound,
        })
    }
}

impl Tasks<'_> {
    /// Leases up to `limit` queued tasks of a site to a supervisor of a lane. Tasks of crawls that are over end with
    /// `expired` or `stopped` instead, and tasks of excluded sites with `stopped`. Tasks of crawls that are held back
    /// stay queued. The call ends early when the next crawl needs a lane that the supervisor does not serve.
    pub fn lease(
        &mut self,
        site: SiteId,
        limit: usize,
        lane: Lane,
        now_ms: i64,
    ) -> std::result::Result<LeaseBatch, FrontierError> {
        self.0.run("hand out tasks", |cx| {
            let limit = cx.holding.cap_by_page_limit(site, limit);
            let mut run = LeaseRun::new(attempts::leasable_tasks(cx, site, now_ms)?);
            match run.leasable {
                #[cfg(feature = "former-faults")]
                Leasable::Unreachable if cx.backoff.unreachable_go_by_turns => {
                    super::former_faults::lease_unreachable_with_former_fault(
                        cx, site, limit, lane, now_ms, &mut run,
                    )?;
                }
                Leasable::Unreachable => {
                    unreachable::lease_unreachable(cx, site, limit, now_ms, &mut run)?
                }
                _ => lease_by_turns(cx, site, limit, lane, now_ms, &mut run)?,
            }
            releasing::spend_site_pages(cx, site, &run.handed_out)?;
            let taken = run.count_dequeued() as u64;
            let (left, next) = sites::subtract_queued(&cx.db, site, taken)?;
            // If the page that goes first after a backoff needs another lane, its crawl is next, whatever else would
            // be.
            let next = next.map(|next| run.probe_of_another_lane.unwrap_or(next));
            let next = next
                .map(|next| turns::turn_with_lane(cx, site, next))
                .transpose()?;
            run.has_visited_all &= next.is_some();
            if run.has_visited_all {
                unreachable::back_off_for_new_tasks(cx, site, now_ms)?;
            }
            Ok(LeaseBatch {
                nothing: run.no_handout_reason(next),
                tasks: run.handed_out,
                left: if next.is_some() { left } else { 0 },
                next,
            })
        })
    }
}

/// Leases tasks at a site: of the highest priority first and, within it, of one crawl after the other.
fn lease_by_turns(
    cx: &mut Context,
    site: SiteId,
    limit: usize,
    lane: Lane,
    now_ms: i64,
    run: &mut LeaseRun,
) -> Result<()> {
    while run.can_continue(limit) {
        let left = limit - run.handed_out.len();
        let turns = match run.leasable {
            Leasable::Probe => turns_for_probe(cx, site)?,
            _ => sites::next_turns(&cx.db, site, left.min(MOST_CRAWLS))?,
        };
        if turns.is_empty() {
            break;
        }
        let share = left.div_ceil(turns.len());
        for turn in turns {
            if !run.can_continue(limit) {
                break;
            }
            let left = limit - run.handed_out.len();
            lease_turn(cx, site, turn, share.min(left), lane, now_ms, run)?;
        }
    }
    Ok(())
}

/// The crawls at a site in the order of their turns to have a task go first after a backoff, whatever their priority
/// and lane. The crawl with the least-tried task comes first; of several such crawls, the one that has waited longest.
/// So pages that always fail do not make another crawl's pages fail.
fn turns_for_probe(cx: &mut Context, site: SiteId) -> Result<Vec<NextCrawl>> {
    let mut turns = Vec::new();
    for turn in sites::turns_by_waiting_time(&cx.db, site, MOST_CRAWLS)? {
        let least = least_tried_task(&cx.db, site, turn)?;
        turns.push((least.map(|(tried, _)| tried), turn));
    }
    turns.sort_by_key(|(tried, _)| *tried);
    Ok(turns.into_iter().map(|(_, turn)| turn).collect())
}

/// Leases tasks of the crawl that is next at a site.
fn lease_turn(
    cx: &mut Context,
    site: SiteId,
    turn: NextCrawl,
    share: usize,
    lane: Lane,
    now_ms: i64,
    run: &mut LeaseRun,
) -> Result<()> {
    if share == 0 {
        return Ok(());
    }
    let wall_ms = cx.wall_ms(now_ms);
    let crawl = crawl_rows::load_known_crawl(cx, turn.crawl)?;
    if let Some(outcome) = crawl.ending_outcome(wall_ms) {
        let most = run.closings_left();
        run.closed += end_tasks_at(cx, site, turn.crawl, outcome, most, now_ms)?;
        return Ok(());
    }
    let room = allowance_or_hold_at(cx, site, turn.crawl, now_ms)?;
    if room == 0 {
        run.held += 1;
        return sites::hold_crawl_at(&cx.db, site, turn.crawl);
    }
    let of_crawl = crawl_rows::load_known_crawl(cx, turn.crawl)?.spec.lane;
    if !lanes::can_serve(lane, cx.lanes.lane_needed_at(site, of_crawl)) {
        run.is_another_lanes_turn = true;
        run.probe_of_another_lane = (run.leasable == Leasable::Probe).then_some(turn);
        return Ok(());
    }
    let mut queued = select_tasks_of_turn(cx, site, turn, share.min(room), run.leasable)?;
    let excluded = end_excluded_tasks(cx, site, turn.crawl, &mut queued, now_ms)?;
    run.closed += excluded;
    let taken = queued.len() as u64;
    for task in queued {
        let leased = lease_task(cx, task, site, turn.crawl, None)?;
        run.handed_out.push(leased);
    }
    // If no task was found, the crawl's stored priority was too high; it is corrected below.
    run.passed += usize::from(taken == 0 && excluded == 0);
    cx.last_turn += 1;
    sites::subtract_from_crawl_share(&cx.db, site, turn.crawl, taken, Some(cx.last_turn))
}

/// How many tasks of a crawl may be handed out at a site. If none, notes the reason.
pub(super) fn allowance_or_hold_at(
    cx: &mut Context,
    site: SiteId,
    crawl: CrawlKey,
    now_ms: i64,
) -> Result<usize> {
    let room = releasing::allowance_or_hold(cx, site, crawl, now_ms)?;
    let room = room.min(rechecking::run_allowance_at(cx, site, crawl)?);
    Ok(usize::try_from(room).unwrap_or(usize::MAX))
}

/// Ends the tasks whose sites were excluded after they were queued, and returns their number. The caller must update
/// the site's count.
pub(super) fn end_excluded_tasks(
    cx: &mut Context,
    site: SiteId,
    crawl: CrawlKey,
    queued: &mut Vec<QueuedTask>,
    now_ms: i64,
) -> Result<usize> {
    let excluded = queued.extract_if(.., |task| cx.excluded.excludes_url(&task.url));
    let excluded: Vec<QueuedTask> = excluded.collect();
    for task in &excluded {
        closing::end_queued_task(cx, crawl, task.id, task.priority, Outcome::Stopped, now_ms)?;
    }
    if !excluded.is_empty() {
        sites::subtract_from_crawl_share(&cx.db, site, crawl, excluded.len() as u64, None)?;
    }
    Ok(excluded.len())
}

/// Selects the tasks that a crawl hands out when it is next at a site.
fn select_tasks_of_turn(
    cx: &mut Context,
    site: SiteId,
    turn: NextCrawl,
    most: usize,
    leasable: Leasable,
) -> Result<Vec<QueuedTask>> {
    let is_ranked = crawl_rows::load_known_crawl(cx, turn.crawl)?
        .spec
        .run_began_ms
        .is_some();
    match leasable {
        Leasable::Probe => {
            let least = least_tried_task(&cx.db, site, turn)?;
            Ok(least.into_iter().map(|(_, task)| task).collect())
        }
        _ if is_ranked => first_ranked_tasks(&cx.db, site, turn.crawl, most),
        _ => first_queued_tasks(&cx.db, site, turn, most),
    }
}

pub(super) fn lease_task(
    cx: &mut Context,
    task: QueuedTask,
    site: SiteId,
    crawl: CrawlKey,
    unreachable: Option<Outcome>,
) -> Result<Leased> {
    let sql = "UPDATE task_rows SET state = ?2, attempt = ?3, epoch = ?4 WHERE id = ?1";
    let delivery = Delivery::new(cx.epoch.number, task.deliveries + 1);
    let values = params![task.id as i64, LEASED, delivery.number, cx.epoch.id];
    cx.db.prepare_cached(sql)?.execute(values)?;
    let mut failed_attempts = Vec::new();
    if task.deliveries > 0 {
        // Records that were added since the last delivery (hand-out) are sent with the task now, so they need no
        // backfill any more.
        let sql = "UPDATE task_records SET late = 0 WHERE task = ?1 AND late = 1";
        cx.db.prepare_cached(sql)?.execute([task.id as i64])?;
        failed_attempts = tries::failed_attempts(&cx.db, task.id)?;
    }
    let counted: &mut Crawl = crawl_rows::load_known_crawl(cx, crawl)?;
    counted.count_unqueued(task.priority);
    counted.status.leased += 1;
    let counted = cx.crawls.get(&crawl);
    if let Some(counted) = counted {
        cx.limited_applications
            .note_handed_out(&counted.spec.app_id, site);
    }
    Ok(Leased {
        task: task.id,
        delivery,
        crawl,
        url: task.url,
        depth: task.depth,
        priority: task.priority,
        parent: task.parent,
        records: record_names(&cx.db, task.id)?,
        deaths: task.deaths,
        attrs: task.attrs,
        failed_attempts,
        unreachable,
    })
}

fn record_names(db: &Connection, task: TaskId) -> Result<Vec<String>> {
    let sql =
        "SELECT name FROM task_records, records WHERE task = ?1 AND id = record ORDER BY record";
    db.prepare_cached(sql)?
        .query_map([task as i64], |row| row.get(0))?
        .collect()
}
