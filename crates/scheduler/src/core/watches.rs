//! Watches: crawls that run repeatedly. This module decides, by the time that the caller passes in, when a run begins
//! and when it is over; a watch has one run at a time. Each check compares due times with the wall clock, even if that
//! was set meanwhile. The window of a run also ends by the caller's clock, which is never set back. Another process
//! reads the seeds of a run; the caller starts it on request ([`FeederOrder`]).
//!
//! A run, its record and its crawl start in one transaction. After a crash an unfinished run continues, including its
//! feeder. If runs were missed while nothing ran, one run makes up for all of them.

mod feeding;
mod orders;
mod runs;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use webfill_api::{RunEnd, Watch, WatchRun};
use webfill_changes::PageCheck;
use webfill_wire::CrawlKey;

use crate::core::context::Context;
use crate::core::notifications::Notifications;
use crate::core::requests::closing::ClosingCrawls;
use crate::effects::FeederOrder;
use crate::frontier::{FrontierError, RunContinuation, StoredWatch, ignore_pruned};
use crate::watch_sources::WatchSources;

/// How often watches with a current run are checked.
const CHECK_EVERY_MS: i64 = 200;

/// How often the wall clock is checked.
const CHECK_CLOCK_EVERY_MS: i64 = 1_000;

/// The wait after a failed run. It doubles with each further failure.
const SHORTEST_WAIT_MS: i64 = 60_000;
const LONGEST_WAIT_MS: i64 = 3_600_000;

/// From this number of consecutive failed runs on, the wait does not grow any more.
const MOST_FAILURES: u64 = 7;

/// All watches of this dispatcher, and the orders to start their feeders.
#[derive(Debug, Default)]
pub(super) struct Watches {
    pub(super) by_name: BTreeMap<String, WatchEntry>,
    /// When to check the watches next.
    check_at_ms: i64,
    /// Orders to start feeders, for the caller.
    pub(super) feeders: Vec<FeederOrder>,
    /// The watches whose last feeder has not ended: it must not feed another run.
    pub(super) fed: BTreeSet<String>,
    /// Whether this dispatcher may have watches; the dispatcher of `webfill crawl` has none.
    are_attended: bool,
    /// The sources that watches may read.
    sources: WatchSources,
}

#[derive(Debug)]
pub(super) struct WatchEntry {
    /// The latest version of the watch. The next run begins with this version.
    pub(super) watch: Watch,
    paused: bool,
    since_ms: i64,
    /// The last run, ended or current.
    last: Option<WatchRun>,
    under_way: Option<CurrentRun>,
    /// The number of consecutive failed runs at the end.
    failures: u64,
    /// When the next run is due; only meaningful without a current run.
    next_due_ms: Option<i64>,
    /// Whether a run is requested now, regardless of the schedule.
    is_asked: bool,
}

/// The current run of a watch.
#[derive(Debug, Clone)]
struct CurrentRun {
    crawl: CrawlKey,
    /// The version of the watch at the start of the run.
    watch: Watch,
    /// How the run ends once none of its tasks is leased; `None`: it continues.
    ending: Option<(RunEnd, Option<String>)>,
    /// When the run's time window was over, if that was before the start of this dispatcher. The run counts as ended at
    /// that time.
    over_ms: Option<i64>,
    /// When the run's time window is over, by the caller's clock.
    window_over_ms: Option<i64>,
}

impl CurrentRun {
    fn to_continuation(&self) -> RunContinuation {
        RunContinuation {
            watch: self.watch.json.clone(),
            ending: self.ending.clone(),
        }
    }
}

impl WatchEntry {
    /// Creates the entry of a stored watch. `runs`: its latest runs, newest first.
    fn new(watch: Watch, kept: &StoredWatch, runs: Vec<WatchRun>) -> WatchEntry {
        let failed = runs
            .iter()
            .take_while(|run| run.how == Some(RunEnd::Failed));
        let failures = failed.count() as u64;
        let mut watched = WatchEntry {
            watch,
            paused: kept.paused,
            since_ms: kept.since_ms,
            last: runs.into_iter().next(),
            under_way: None,
            failures,
            next_due_ms: None,
            is_asked: kept.asked,
        };
        watched.plan_next_run();
        watched
    }

    /// Computes when the next run is due.
    fn plan_next_run(&mut self) {
        let last = self.last.as_ref().and_then(WatchRun::times);
        let due_ms = self
            .watch
            .schedule
            .next_due_ms(last.as_ref(), self.since_ms);
        let wait_ms = match self.failures {
            0 => 0,
            failures => SHORTEST_WAIT_MS << (failures - 1).min(MOST_FAILURES),
        };
        let wait_ms = wait_ms.min(LONGEST_WAIT_MS);
        let not_before_ms = last.map_or(i64::MIN, |last| last.ended_ms + wait_ms);
        self.next_due_ms = match wait_ms {
            0 => due_ms,
            _ => due_ms.map(|due_ms| due_ms.max(not_before_ms)),
        };
    }

    /// Notes how the last run has ended, and computes when the next one is due.
    fn set_ended_run(&mut self, run: WatchRun) {
        self.failures = match run.how {
            Some(RunEnd::Failed) => (self.failures + 1).min(MOST_FAILURES),
            _ => 0,
        };
        self.last = Some(run);
        self.plan_next_run();
    }

    /// The number of the last ended run; 0 if there is none.
    pub(super) fn last_ended_number(&self) -> u64 {
        match &self.last {
            Some(run) if run.ended_ms.is_some() => run.number,
            Some(run) => run.number - 1,
            None => 0,
        }
    }

    pub(super) fn has_current_run(&self) -> bool {
        self.under_way.is_some()
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// The last run, ended or current.
    pub(super) fn last_run(&self) -> Option<&WatchRun> {
        self.last.as_ref()
    }

    /// The due time of a run that has not begun, if it is before `before_ms`.
    pub(super) fn overdue_since_ms(&self, before_ms: i64) -> Option<i64> {
        let is_held = self.under_way.is_none() && !self.paused;
        self.next_due_ms
            .filter(|due_ms| is_held && *due_ms <= before_ms)
    }

    fn is_due(&self, now_ms: i64) -> bool {
        let by_schedule = self.next_due_ms.is_some_and(|due_ms| due_ms <= now_ms);
        self.under_way.is_none() && (self.is_asked || (by_schedule && !self.paused))
    }

    fn to_stored(&self) -> StoredWatch {
        StoredWatch {
            json: self.watch.json.to_string(),
            paused: self.paused,
            since_ms: self.since_ms,
            asked: self.is_asked,
        }
    }
}

impl Watches {
    /// Restores the watches, and continues unfinished runs.
    pub(super) fn start_watches(
        &mut self,
        cx: &mut Context,
        sources: WatchSources,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.are_attended = true;
        self.sources = sources;
        for (name, kept) in cx.frontier.watches().all()? {
            let watch = serde_json::from_str(&kept.json).ok();
            let watch = watch.and_then(|watch| Watch::parse(watch).ok());
            let Some(watch) = watch else {
                // The content is not logged, because it may hold a password.
                tracing::error!(
                    event = "watch_unreadable",
                    watch = name,
                    "a watch of another version cannot be read: add it again, or remove it"
                );
                continue;
            };
            let runs = cx.frontier.watches().list_runs(&name, MOST_FAILURES)?;
            let is_under_way = runs.first().is_some_and(|run| run.ended_ms.is_none());
            let watched = WatchEntry::new(watch, &kept, runs);
            self.by_name.insert(name.clone(), watched);
            if is_under_way {
                self.resume_run(cx, &name, now_ms)?;
            }
        }
        Ok(())
    }

    /// Begins the runs that are due, and ends those that are over.
    pub(super) fn advance_watches(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        closing: &ClosingCrawls,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        if now_ms < self.check_at_ms {
            return Ok(());
        }
        let wall_ms = cx.wall_ms(now_ms);
        let may_begin = !cx.draining && cx.surroundings.low_disk.is_none();
        let names: Vec<String> = self.by_name.keys().cloned().collect();
        for name in names {
            let watched = &self.by_name[&name];
            if watched.under_way.is_some() {
                ignore_pruned(
                    self.end_or_hold_run(cx, notifications, closing, &name, now_ms),
                    (),
                )?;
            } else if may_begin && watched.is_due(wall_ms) && !self.fed.contains(&name) {
                ignore_pruned(self.begin_run(cx, &name, now_ms), ())?;
            }
        }
        self.check_at_ms = self.next_check_ms(now_ms, cx.wall_ahead_ms);
        Ok(())
    }

    /// Counts the results of checks of watches' pages. Their times are wall clock times.
    pub(super) fn on_pages_checked(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        checks: &[PageCheck],
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        notifications.mark_changes_stale(self, checks);
        let wall_ms = cx.wall_ms(now_ms);
        cx.frontier.runs().count_checks(checks, wall_ms)
    }

    /// When the watches are checked next.
    pub(super) fn next_watch_check_ms(&self) -> Option<i64> {
        (!self.by_name.is_empty()).then_some(self.check_at_ms)
    }
}

impl Watches {
    /// The crawls of the current runs.
    pub(super) fn crawls_under_way(&self) -> impl Iterator<Item = CrawlKey> + '_ {
        let under_way = self.by_name.values();
        under_way.filter_map(|watched| Some(watched.under_way.as_ref()?.crawl))
    }

    fn current_run(&self, name: &str) -> Option<CurrentRun> {
        self.by_name.get(name)?.under_way.clone()
    }

    fn next_check_ms(&self, now_ms: i64, wall_ahead_ms: i64) -> i64 {
        let soon_ms = now_ms + CHECK_EVERY_MS;
        let due_ms = self.by_name.values().map(|watched| {
            if watched.under_way.is_some() || watched.is_asked {
                return soon_ms;
            }
            match watched.next_due_ms {
                Some(due_ms) if !watched.paused => (due_ms - wall_ahead_ms).max(soon_ms),
                _ => i64::MAX,
            }
        });
        let due_ms = due_ms.min().unwrap_or(i64::MAX);
        due_ms.min(now_ms + CHECK_CLOCK_EVERY_MS)
    }
}
