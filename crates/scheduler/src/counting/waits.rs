//! Counts why queued tasks wait, and since when, in the frontier (the file of tasks), crawl by crawl. It does not
//! disturb the loop.
//!
//! A crawl that is held as a whole costs one row. For any other crawl, each of its sites is read: all queued tasks of
//! the crawl at a site count for the reason that holds the site. Conditions that are not in the file (which lanes are
//! served, which applications are at a limit) come from the values that the loop published last.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::Lane;

use super::tables::read_lane;
use crate::core::HoldConditions;

/// The number of sites read in one transaction.
const SLICE: i64 = 5_000;

/// The start of waiting is remembered for at most this many crawls. Other crawls count as waiting since now.
const MOST_REMEMBERED: usize = 20_000;

/// Why a queued task waits. The list is closed; each reason has a label in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// No connected supervisor serves the lane of the task's crawl.
    Lane,
    /// The task's crawl, application or site has reached its page limit.
    Limit,
    /// The task's crawl is paused, its site is blocked by hand, or the dispatcher hands out nothing.
    Pause,
    /// The task's site backs off, or the task has failed and is retried later.
    Backoff,
    /// The delay between two requests to the task's site, or the pace of its application.
    Delay,
    /// The task could be fetched, but the store accepts no writes.
    Store,
    /// The task could be fetched, but no supervisor has room for it yet.
    Turn,
}

impl WaitReason {
    pub const ALL: [WaitReason; 7] = [
        WaitReason::Lane,
        WaitReason::Limit,
        WaitReason::Pause,
        WaitReason::Backoff,
        WaitReason::Delay,
        WaitReason::Store,
        WaitReason::Turn,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            WaitReason::Lane => "lane",
            WaitReason::Limit => "limit",
            WaitReason::Pause => "pause",
            WaitReason::Backoff => "backoff",
            WaitReason::Delay => "delay",
            WaitReason::Store => "store",
            WaitReason::Turn => "turn",
        }
    }
}

/// The number of tasks that wait for one reason, and since when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitTotal {
    pub tasks: u64,
    /// Since when the task that has waited longest for this reason has been waiting.
    pub since_ms: Option<i64>,
}

/// The queued tasks by the reason that they wait for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitTotals {
    by: HashMap<WaitReason, WaitTotal>,
    /// How many sites could be fetched from now if a supervisor with a browser were connected. A site counts once for
    /// each crawl.
    pub unserved_sites: u64,
    /// Since when each crawl has waited for each of its present reasons without interruption.
    since: WaitStarts,
}

pub type WaitStarts = HashMap<(i64, WaitReason), i64>;

impl WaitTotals {
    pub fn total_for_reason(&self, waits_for: WaitReason) -> WaitTotal {
        self.by.get(&waits_for).copied().unwrap_or_default()
    }

    /// Takes out the starts of waiting that this walk has found. The next walk needs them.
    pub fn take_starts(&mut self) -> WaitStarts {
        std::mem::take(&mut self.since)
    }

    /// Adds tasks to a reason. `since_ms` is when only this reason began to hold them; `None` if their wait ends by
    /// itself at a known time.
    fn add(&mut self, waits_for: WaitReason, tasks: u64, since_ms: Option<i64>) {
        let waiting = self.by.entry(waits_for).or_default();
        waiting.tasks += tasks;
        waiting.since_ms = waiting.since_ms.into_iter().chain(since_ms).min();
    }
}

/// Counts the queued tasks of one crawl, or a part of them.
pub struct WaitCounter<'c> {
    pub db: &'c Connection,
    pub conditions: &'c HoldConditions,
    /// Since when crawls have been waiting, as found by the last walk.
    pub before: &'c WaitStarts,
    pub now_ms: i64,
}

/// A crawl with queued tasks.
struct CrawlQueue {
    crawl: i64,
    app: String,
    tasks: u64,
    is_paused: bool,
    /// Whether the crawl was stopped or has expired, so that its queue is being closed.
    is_over: bool,
    lane: Lane,
    is_at_limit: bool,
}

/// The queued tasks of a crawl at a site.
struct SiteQueue {
    site: i64,
    tasks: u64,
    /// Whether all of these tasks have failed and wait for their retry.
    is_retried: bool,
    has_lease: bool,
    due_ms: i64,
    block_until_ms: i64,
    pages_left: Option<i64>,
    backoff_until_ms: i64,
    backoff_since_ms: Option<i64>,
}

impl WaitCounter<'_> {
    /// Counts one slice. `after` is the crawl to continue with, and its site that was counted last. Returns the
    /// position after this slice, or `None` at the end.
    pub fn count_slice(
        &self,
        after: (i64, i64),
        sum: &mut WaitTotals,
    ) -> Result<Option<(i64, i64)>> {
        let Some(queue) = self.next_queue(after.0)? else {
            return Ok(None);
        };
        let is_next = (queue.crawl + 1, 0);
        if queue.is_over || queue.tasks == 0 {
            return Ok(Some(is_next));
        }
        if let Some(waits_for) = self.reason_for_all(&queue) {
            let since_ms = self.record_wait_start(&queue, waits_for, sum);
            sum.add(waits_for, queue.tasks, Some(since_ms));
            if waits_for == WaitReason::Lane && queue.lane == Lane::Browser {
                sum.unserved_sites += self.count_unserved_due_sites(queue.crawl)?;
            }
            return Ok(Some(is_next));
        }
        let last_site = if queue.crawl == after.0 { after.1 } else { 0 };
        let sites = self.sites_of(queue.crawl, last_site)?;
        for site in &sites {
            self.add_site(&queue, site, sum);
        }
        Ok(match sites.last() {
            Some(last) if sites.len() as i64 == SLICE => Some((queue.crawl, last.site)),
            _ => Some(is_next),
        })
    }

    fn next_queue(&self, from: i64) -> Result<Option<CrawlQueue>> {
        let sql = "SELECT id, app_id, queued, paused, ended NOT NULL, json_extract(spec, '$.lane'),
                       coalesce(pages + leased >= json_extract(spec, '$.max_pages'), 0)
                   FROM crawls INDEXED BY crawls_unfinished
                   WHERE queued + leased > 0 AND id >= ?1 ORDER BY id LIMIT 1";
        let read = |row: &Row<'_>| {
            let lane: Option<String> = row.get(5)?;
            Ok(CrawlQueue {
                crawl: row.get(0)?,
                app: row.get(1)?,
                tasks: row.get::<_, i64>(2)? as u64,
                is_paused: row.get(3)?,
                is_over: row.get(4)?,
                lane: read_lane(lane),
                is_at_limit: row.get(6)?,
            })
        };
        let mut select = self.db.prepare_cached(sql)?;
        select.query_row([from], read).optional()
    }

    fn reason_for_all(&self, queue: &CrawlQueue) -> Option<WaitReason> {
        let conditions = self.conditions;
        if queue.is_paused || conditions.is_held {
            Some(WaitReason::Pause)
        } else if !conditions.serves(queue.lane) {
            Some(WaitReason::Lane)
        } else if queue.is_at_limit || conditions.spent.contains(&queue.app) {
            Some(WaitReason::Limit)
        } else if conditions.paced.contains(&queue.app) {
            Some(WaitReason::Delay)
        } else {
            None
        }
    }

    fn sites_of(&self, crawl: i64, after: i64) -> Result<Vec<SiteQueue>> {
        let sql = "SELECT sites.id, crawl_sites.queued, due_at_ms, block_until_ms, pages_left, backoff_until_ms, since_ms,
                       crawl_sites.top_priority = 0 AND EXISTS (
                           SELECT 1 FROM task_rows INDEXED BY tasks_to_retry_at
                           WHERE task_rows.site = sites.id AND task_rows.crawl = ?1
                               AND state = 0 AND not_before_ms > 0),
                       in_window = 1 AND EXISTS (
                           SELECT 1 FROM task_rows INDEXED BY tasks_leased
                           WHERE task_rows.site = sites.id AND state = 1)
                   FROM crawl_sites INDEXED BY crawl_sites_queued
                   JOIN sites ON sites.id = crawl_sites.site
                   LEFT JOIN site_states ON site_states.site = sites.id
                   WHERE crawl_sites.crawl = ?1 AND crawl_sites.queued > 0 AND crawl_sites.site > ?2
                   ORDER BY crawl_sites.site LIMIT ?3";
        let mut select = self.db.prepare_cached(sql)?;
        let sites = select.query_map(params![crawl, after, SLICE], |row| {
            Ok(SiteQueue {
                site: row.get(0)?,
                tasks: row.get::<_, i64>(1)? as u64,
                due_ms: row.get(2)?,
                block_until_ms: row.get(3)?,
                pages_left: row.get(4)?,
                backoff_until_ms: row.get(5)?,
                backoff_since_ms: row.get(6)?,
                is_retried: row.get(7)?,
                has_lease: row.get(8)?,
            })
        })?;
        sites.collect()
    }

    /// Counts the sites where nothing is handed out only because no supervisor serves the lane of this crawl. Sites
    /// that are not due do not count. At most a slice of them is counted.
    fn count_unserved_due_sites(&self, crawl: i64) -> Result<u64> {
        let sql = "SELECT count(*) FROM (
                       SELECT 1 FROM crawl_sites INDEXED BY crawl_sites_held
                       JOIN sites ON sites.id = crawl_sites.site
                       WHERE crawl_sites.crawl = ?1 AND crawl_sites.queued > 0 AND crawl_sites.top_priority = 0
                           AND sites.top_priority = 0 AND in_window <> 1 AND pages_left IS NOT 0
                           AND max(due_at_ms, block_until_ms, backoff_until_ms) <= ?2
                           AND EXISTS (
                               SELECT 1 FROM task_rows INDEXED BY tasks_queued
                               WHERE task_rows.site = sites.id AND task_rows.crawl = ?1
                                   AND state = 0 AND not_before_ms = 0)
                       LIMIT ?3)";
        let mut select = self.db.prepare_cached(sql)?;
        let count: i64 = select.query_row(params![crawl, self.now_ms, SLICE], |row| row.get(0))?;
        Ok(count as u64)
    }

    fn add_site(&self, queue: &CrawlQueue, site: &SiteQueue, sum: &mut WaitTotals) {
        let now_ms = self.now_ms;
        let waits_for = if site.pages_left == Some(0) {
            WaitReason::Limit
        } else if site.block_until_ms > now_ms {
            WaitReason::Pause
        } else if site.backoff_until_ms > now_ms || site.is_retried {
            WaitReason::Backoff
        } else if site.due_ms > now_ms || site.has_lease {
            WaitReason::Delay
        } else if self.conditions.is_store_away {
            WaitReason::Store
        } else {
            WaitReason::Turn
        };
        let since_ms = match waits_for {
            WaitReason::Delay => None,
            WaitReason::Backoff => site.backoff_since_ms,
            // Until the site was due, its delay held the tasks. So the wait for the present reason begins no earlier.
            _ => Some(
                self.record_wait_start(queue, waits_for, sum)
                    .max(site.due_ms),
            ),
        };
        sum.add(waits_for, site.tasks, since_ms);
    }

    /// Records and returns since when a crawl has waited for this reason, as far as this process has observed.
    fn record_wait_start(
        &self,
        queue: &CrawlQueue,
        waits_for: WaitReason,
        sum: &mut WaitTotals,
    ) -> i64 {
        let key = (queue.crawl, waits_for);
        let before_ms = self.before.get(&key).copied().unwrap_or(self.now_ms);
        if sum.since.len() < MOST_REMEMBERED || sum.since.contains_key(&key) {
            return *sum.since.entry(key).or_insert(before_ms);
        }
        before_ms
    }
}
