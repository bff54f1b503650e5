//! Counts why queued tasks wait, and since when, in the frontier (the file of tasks), crawl by crawl. It does not
//! disturb the loop.
//!
//! A crawl that is held as a whole costs one row. For any other crawl, each of its sites is read: all queued tasks of
//! the crawl at a site count for the reason that holds the site. Conditions that are not in the file (which lanes are
//! served, which applications are at a limit) come from the values that the loop published last.

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::frontier::{FILE_NAME, Frontier, FrontierConfig};

    const NOW_MS: i64 = 100_000;

    fn frontier_database(rows: &str) -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        Frontier::open(folder.path(), FrontierConfig::default(), 0).unwrap();
        let db = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        db.execute_batch(rows).unwrap();
        (folder, db)
    }

    fn conditions_with_http() -> HoldConditions {
        HoldConditions {
            serves_http: true,
            ..HoldConditions::default()
        }
    }

    /// Makes one complete walk through all crawls.
    fn count_all_waits(
        db: &Connection,
        conditions: &HoldConditions,
        before: &WaitStarts,
        now_ms: i64,
    ) -> WaitTotals {
        let counter = WaitCounter {
            db,
            conditions,
            before,
            now_ms,
        };
        let (mut sum, mut after) = (WaitTotals::default(), (0, 0));
        while let Some(next) = counter.count_slice(after, &mut sum).unwrap() {
            assert!(next > after, "it continues");
            after = next;
        }
        sum
    }

    /// The number of tasks that wait for each reason. Reasons without tasks are left out.
    fn nonzero_waits(sum: &WaitTotals) -> Vec<(&'static str, u64)> {
        let all = WaitReason::ALL.into_iter();
        all.map(|waits_for| (waits_for.as_str(), sum.total_for_reason(waits_for).tasks))
            .filter(|(_, tasks)| *tasks > 0)
            .collect()
    }

    /// The crawl has 3 tasks at one site. Each case changes one condition.
    #[test]
    fn each_queued_task_is_counted_by_what_holds_it() {
        let spent = HoldConditions {
            spent: BTreeSet::from(["a".into()]),
            ..conditions_with_http()
        };
        let paced = HoldConditions {
            paced: BTreeSet::from(["a".into()]),
            ..conditions_with_http()
        };
        let held = HoldConditions {
            is_held: true,
            ..conditions_with_http()
        };
        let away = HoldConditions {
            is_store_away: true,
            ..conditions_with_http()
        };
        let browser = HoldConditions {
            serves_browser: true,
            ..HoldConditions::default()
        };
        let retried = "UPDATE crawl_sites SET top_priority = 0;
             INSERT INTO task_rows (crawl, site, priority, depth, rank, url, not_before_ms)
                 VALUES (1, 1, 50, 0, 0, 'u', 200000);";
        let leased = "UPDATE sites SET in_window = 1;
             INSERT INTO task_rows (crawl, site, priority, depth, rank, url, state)
                 VALUES (1, 1, 50, 0, 0, 'u', 1);";
        let scripts = "UPDATE crawls SET spec = '{\"lane\": \"browser\"}'";
        let limited = "UPDATE crawls SET spec = '{\"max_pages\": 5}', pages = 4, leased = 1";
        let backing_off = "UPDATE sites SET backoff_until_ms = 100001;
             INSERT INTO site_states (site, reason, failures, backoff_index, since_ms, url, sign)
                 VALUES (1, 'dns', 0, 0, 40000, '', '');";
        for (change, conditions, expected) in [
            ("", conditions_with_http(), "turn"),
            ("", away.clone(), "store"),
            ("", spent.clone(), "limit"),
            ("", paced, "delay"),
            ("", held, "pause"),
            ("", HoldConditions::default(), "lane"),
            ("", browser.clone(), "turn"),
            (scripts, conditions_with_http(), "lane"),
            (scripts, browser, "turn"),
            (
                "UPDATE crawls SET paused = 1",
                conditions_with_http(),
                "pause",
            ),
            (
                "UPDATE crawls SET ended = 'stopped'",
                conditions_with_http(),
                "",
            ),
            (limited, conditions_with_http(), "limit"),
            (
                "UPDATE sites SET pages_left = 0",
                conditions_with_http(),
                "limit",
            ),
            (
                "UPDATE sites SET pages_left = 1",
                conditions_with_http(),
                "turn",
            ),
            (
                "UPDATE sites SET block_until_ms = 100001",
                conditions_with_http(),
                "pause",
            ),
            (
                "UPDATE sites SET block_until_ms = 100000",
                conditions_with_http(),
                "turn",
            ),
            (backing_off, away, "backoff"),
            (retried, conditions_with_http(), "backoff"),
            (
                "UPDATE sites SET due_at_ms = 100001",
                conditions_with_http(),
                "delay",
            ),
            (leased, conditions_with_http(), "delay"),
        ] {
            let (_folder, db) = frontier_database(
                "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES ('a', '1', '{}', 3);
                 INSERT INTO sites (id, name, top_priority, queued) VALUES (1, 'a', 50, 3);
                 INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES (1, 1, 3, 3, 50);",
            );
            db.execute_batch(change).unwrap();
            let sum = count_all_waits(&db, &conditions, &WaitStarts::new(), NOW_MS);
            let expected: Vec<_> = [(expected, 3)]
                .into_iter()
                .filter(|(name, _)| !name.is_empty())
                .collect();
            assert_eq!(nonzero_waits(&sum), expected, "{change}, {conditions:?}");
        }
    }

    #[test]
    fn the_age_is_that_of_the_crawl_that_has_waited_longest_without_a_pause() {
        let (_folder, db) = frontier_database(
            "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES
                 ('a', '1', '{\"lane\": \"browser\"}', 3), ('a', '2', '{}', 1);
             INSERT INTO sites (id, name, top_priority, queued) VALUES (1, 'a', 50, 1);
             INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES (2, 1, 1, 1, 50);",
        );
        let mut since = WaitStarts::new();
        let mut next = |conditions: &HoldConditions, now_ms: i64| {
            let mut sum = count_all_waits(&db, conditions, &since, now_ms);
            since = sum.take_starts();
            let since_ms = |waits_for| sum.total_for_reason(waits_for).since_ms;
            (since_ms(WaitReason::Lane), since_ms(WaitReason::Turn))
        };
        assert_eq!(
            next(&conditions_with_http(), 1_000),
            (Some(1_000), Some(1_000))
        );
        assert_eq!(
            next(&conditions_with_http(), 9_000),
            (Some(1_000), Some(1_000))
        );
        let browser = HoldConditions {
            serves_browser: true,
            ..conditions_with_http()
        };
        assert_eq!(next(&browser, 10_000).0, None, "somebody serves it");
        assert_eq!(
            next(&conditions_with_http(), 20_000).0,
            Some(20_000),
            "it begins anew"
        );
        db.execute_batch("UPDATE sites SET due_at_ms = 25000")
            .unwrap();
        assert_eq!(
            next(&conditions_with_http(), 30_000),
            (Some(20_000), Some(25_000))
        );
    }

    /// The crawl has a task at each of five sites. One site waits outside memory. Two have nothing to hand out, and one
    /// of them is parked. One is parked and not due. One is parked because its task is retried later.
    #[test]
    fn sites_of_an_unserved_lane_are_counted_if_they_are_due() {
        let (_folder, db) = frontier_database(
            "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES ('a', '1', '{\"lane\": \"browser\"}', 4);
             INSERT INTO sites (id, name, top_priority, queued, in_window, due_at_ms) VALUES
                 (1, 'a', 50, 1, 0, 0), (2, 'b', 0, 1, 2, 100000), (3, 'c', 0, 1, 2, 100001), (4, 'd', 0, 1, 2, 0),
                 (5, 'e', 0, 1, 0, 0);
             INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES
                 (1, 1, 1, 1, 50), (1, 2, 1, 1, 0), (1, 3, 1, 1, 0), (1, 4, 1, 1, 0), (1, 5, 1, 1, 0);
             INSERT INTO task_rows (crawl, site, priority, depth, rank, url, not_before_ms) VALUES
                 (1, 1, 50, 0, 0, 'u', 0), (1, 2, 50, 0, 0, 'u', 0), (1, 3, 50, 0, 0, 'u', 0), (1, 4, 50, 0, 0, 'u', 1),
                 (1, 5, 50, 0, 0, 'u', 0);",
        );
        let unserved = |conditions: &HoldConditions| {
            count_all_waits(&db, conditions, &WaitStarts::new(), NOW_MS).unserved_sites
        };
        assert_eq!(unserved(&conditions_with_http()), 2);
        let browser = HoldConditions {
            serves_browser: true,
            ..HoldConditions::default()
        };
        assert_eq!(unserved(&browser), 0);
    }

    #[test]
    fn a_crawl_with_many_sites_is_counted_in_slices() {
        let (_folder, db) = frontier_database(
            "INSERT INTO crawls (app_id, crawl_id, spec, queued) VALUES ('a', '1', '{}', 12001), ('a', '2', '{}', 1);
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 12001)
                 INSERT INTO sites (id, name, top_priority, queued) SELECT n, n, 50, 1 FROM n;
             INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) SELECT 1, id, 1, 1, 50 FROM sites;
             INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority) VALUES (2, 7, 1, 1, 50);",
        );
        let sum = count_all_waits(&db, &conditions_with_http(), &WaitStarts::new(), NOW_MS);
        assert_eq!(nonzero_waits(&sum), [("turn", 12_002)]);
    }
}
