//! Counts rows in the frontier (the file of tasks), on a thread of its own with a read-only connection. It walks the
//! tables in slices, each in a short transaction, so that the write-ahead log can be checkpointed in between. It works
//! at most a tenth of the time, so its cost is bounded however large the frontier is; the counts of a large one are
//! only older.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Result};
use webfill_scheduler::core::HoldConditions;
use webfill_scheduler::counting::{
    CrawlTotals, NotificationTotals, RecordTotals, SiteTotals, WaitCounter, WaitStarts, WaitTotals,
    count_crawls, count_records, count_sites, count_waiting_notifications,
};
use webfill_scheduler::frontier::FILE_NAME;
use webfill_service::Fault;

use crate::clock::SteadyClock;

/// How long the thread works at a time, and how long it sleeps between.
const WORK: Duration = Duration::from_millis(200);
const EVERY: Duration = Duration::from_secs(2);

/// How long the thread waits for a lock. It needs one only while the file is being opened or closed.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// The results of the last complete walks through the tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counts {
    /// The counts of crawls; `None` if they were not counted yet.
    pub(super) crawls: Option<CrawlTotals>,
    pub(super) sites: Option<SiteTotals>,
    pub(super) records: Option<RecordTotals>,
    pub(super) notifications: Option<NotificationTotals>,
    pub(super) waits: Option<WaitTotals>,
    /// When the oldest of these counts was completed.
    pub(super) counted: Option<Instant>,
}

/// The handle of the counting thread, which ends when the handle is dropped. Drop it before the frontier is closed,
/// because closing checkpoints the write-ahead log only if no other connection is open.
pub(super) struct CountsThread {
    /// Nothing is ever sent: dropping the sender stops the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for CountsThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Starts the counting thread.
pub(super) fn start(
    state: &Path,
    clock: SteadyClock,
    conditions: impl Fn() -> Option<HoldConditions> + Send + 'static,
    publish: impl Fn(&Counts) + Send + 'static,
) -> std::result::Result<CountsThread, Fault> {
    let (stop, stopped) = mpsc::channel();
    let file = state.join(FILE_NAME);
    std::thread::Builder::new()
        .name("counts".into())
        .spawn(move || run_counting(&stopped, &file, clock, conditions, publish))
        .map(|thread| CountsThread {
            stop: Some(stop),
            thread: Some(thread),
        })
        .map_err(|error| {
            Fault::error(format!(
                "cannot start the thread that counts tasks: {error}"
            ))
        })
}

fn run_counting(
    stopped: &Receiver<()>,
    file: &Path,
    clock: SteadyClock,
    conditions: impl Fn() -> Option<HoldConditions>,
    publish: impl Fn(&Counts),
) {
    let mut counting = CountWalks::default();
    let mut has_failed = false;
    loop {
        let counted = open_read_only(file).and_then(|db| {
            // The file is opened for each round, so that no connection is open while the thread sleeps.
            counting.advance_walks(&db, conditions().as_ref(), clock.now_ms(), WORK)
        });
        match counted {
            Ok(()) => has_failed = false,
            Err(error) => {
                // The results of earlier walks stay, and only the failed walk starts from the beginning.
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::warn!(event = "counts_failed", %error, "tasks, sites and records are not counted for now");
                }
            }
        }
        publish(&counting.counts());
        if stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn open_read_only(file: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_timeout(BUSY_WAIT)?;
    // Each row is read only once, so a small cache is enough.
    db.pragma_update(None, "cache_size", -1_024)?;
    Ok(db)
}

/// The walks through the tables, and their results.
#[derive(Debug, Default)]
struct CountWalks {
    crawls: TableWalk<CrawlTotals>,
    sites: TableWalk<SiteTotals>,
    records: TableWalk<RecordTotals>,
    notifications: Option<NotificationTotals>,
    waits: TableWalk<WaitTotals, (i64, i64)>,
    /// Since when crawls have been waiting, as found by the last walk.
    since: WaitStarts,
}

impl CountWalks {
    /// Continues the walks for about `work`. `conditions` are the reasons for waiting that are not in the file; `None`
    /// if the loop has not published them yet.
    fn advance_walks(
        &mut self,
        db: &Connection,
        conditions: Option<&HoldConditions>,
        now_ms: i64,
        work: Duration,
    ) -> Result<()> {
        self.notifications = Some(count_waiting_notifications(db)?);
        // Each walk has an equal share of the time, so that no walk waits for a longer one.
        let share = work / 4;
        if let Some(conditions) = conditions {
            self.count_waits(db, conditions, now_ms, share)?;
        }
        self.crawls
            .advance(share, |after, sum| count_crawls(db, after, sum))?;
        self.sites.advance(share, |after, sum| {
            count_sites(db, after, now_ms, conditions, sum)
        })?;
        self.records
            .advance(share, |after, sum| count_records(db, after, sum))
            .map(drop)
    }

    fn count_waits(
        &mut self,
        db: &Connection,
        conditions: &HoldConditions,
        now_ms: i64,
        share: Duration,
    ) -> Result<()> {
        let counter = WaitCounter {
            db,
            conditions,
            before: &self.since,
            now_ms,
        };
        let is_ended = self
            .waits
            .advance(share, |after, sum| counter.count_slice(after, sum))?;
        if is_ended && let Some(found) = &mut self.waits.found {
            self.since = found.take_starts();
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let walks = [
            self.crawls.ended,
            self.sites.ended,
            self.records.ended,
            self.waits.ended,
        ];
        let counted: Option<Vec<Instant>> = walks.into_iter().collect();
        Counts {
            crawls: self.crawls.found,
            sites: self.sites.found.clone(),
            records: self.records.found,
            notifications: self.notifications,
            waits: self.waits.found.clone(),
            counted: counted.and_then(|ends| ends.into_iter().min()),
        }
    }
}

/// A walk through one table. It starts again when it has reached the end.
#[derive(Debug, Default)]
struct TableWalk<T, P = i64> {
    /// The last row that was counted.
    after: P,
    sum: T,
    /// The sum of the last complete walk.
    found: Option<T>,
    ended: Option<Instant>,
}

impl<T: Default, P: Copy + Default> TableWalk<T, P> {
    /// Counts slices until the end of the table, or until the time is used up. `slice` adds the rows after a position,
    /// and returns the position of the last one, or `None` at the end. Returns whether the end was reached.
    fn advance(
        &mut self,
        time: Duration,
        slice: impl Fn(P, &mut T) -> Result<Option<P>>,
    ) -> Result<bool> {
        let began = Instant::now();
        loop {
            match slice(self.after, &mut self.sum) {
                Err(error) => {
                    // A part of the failed slice may have been added, so the walk starts from the beginning.
                    self.sum = T::default();
                    self.after = P::default();
                    return Err(error);
                }
                Ok(Some(last)) => self.after = last,
                Ok(None) => {
                    self.found = Some(std::mem::take(&mut self.sum));
                    self.ended = Some(Instant::now());
                    self.after = P::default();
                    return Ok(true);
                }
            }
            if began.elapsed() >= time {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use webfill_wire::Lane;

    use super::*;

    fn frontier_database() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let config = webfill_scheduler::frontier::FrontierConfig::default();
        webfill_scheduler::frontier::Frontier::open(folder.path(), config, 0).unwrap();
        let db = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        (folder, db)
    }

    fn count_in_rounds(folder: &tempfile::TempDir, rounds: usize, work: Duration) -> Counts {
        let mut counting = CountWalks::default();
        for _ in 0..rounds {
            let db = open_read_only(&folder.path().join(FILE_NAME)).unwrap();
            let conditions = HoldConditions::default();
            counting
                .advance_walks(&db, Some(&conditions), 1_000, work)
                .unwrap();
        }
        counting.counts()
    }

    #[test]
    fn a_new_frontier_has_nothing() {
        let (folder, _) = frontier_database();
        let counts = count_in_rounds(&folder, 1, WORK);
        assert_eq!(counts.crawls, Some(CrawlTotals::default()));
        assert_eq!(counts.sites, Some(SiteTotals::default()));
        assert_eq!(counts.records, Some(RecordTotals::default()));
        assert_eq!(counts.notifications, Some(NotificationTotals::default()));
        assert!(counts.counted.is_some());
    }

    #[test]
    fn sites_records_crawls_and_notifications_are_counted_by_their_states() {
        let (folder, db) = frontier_database();
        db.execute_batch(
            "INSERT INTO crawls (app_id, crawl_id, spec, queued, leased, done, paused) VALUES
                 ('a', '1', '{}', 5, 1, 7, 0), ('a', '2', '{}', 0, 0, 3, 1);
             INSERT INTO sites (id, name, in_window, top_priority, backoff_until_ms) VALUES
                 (1, 'a', 1, 50, 0), (2, 'b', 0, 50, 0), (3, 'c', 2, 0, 0), (4, 'd', 0, 0, 0),
                 (5, 'e', 0, 50, 1001), (6, 'f', 0, 50, 1000), (70000, 'g', 0, 0, 0);
             INSERT INTO site_states (site, unreachable_to, reason, failures, backoff_index, since_ms, url, sign)
                 VALUES (5, NULL, 'blocked', 0, 0, 0, '', ''), (6, NULL, 'dns', 0, 0, 0, '', ''),
                        (70000, 9, 'dns', 0, 0, 0, '', '');
             UPDATE sites SET due_at_ms = 1000 WHERE id IN (1, 2);
             UPDATE sites SET due_at_ms = 1001 WHERE id = 3;
             UPDATE crawls SET spec = '{\"lane\": \"browser\"}' WHERE id = 1;
             INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority, turn) VALUES
                 (1, 1, 1, 1, 50, 0), (1, 2, 1, 1, 40, 0), (2, 2, 1, 1, 50, 1), (1, 6, 1, 1, 50, 0);
             INSERT INTO records (name, resolved) VALUES ('a', 1), ('b', 0), ('c', 0);
             INSERT INTO notifications (key, watch, target, subject, bytes, made_ms, due_ms) VALUES
                 ('k', 'w', '{}', '', 1, 30, 40), ('l', 'w', '{}', '', 1, 20, 40),
                 ('m', 'w', '{}', '', 1, 10, NULL);",
        )
        .unwrap();
        let counts = count_in_rounds(&folder, 1, WORK);
        let crawls = CrawlTotals {
            crawls: 2,
            unfinished: 1,
            paused: 1,
            queued: 5,
            leased: 1,
            done: 10,
        };
        assert_eq!(counts.crawls, Some(crawls));
        let sites = counts.sites.unwrap();
        let states: Vec<(&str, u64)> = sites
            .by_state
            .iter()
            .map(|(state, n)| (&**state, *n))
            .collect();
        let expected = [
            ("backing_off", 1),
            ("idle", 1),
            ("in_window", 1),
            ("parked", 1),
            ("unreachable", 1),
            ("waiting", 2),
        ];
        assert_eq!(states, expected);
        assert_eq!(sites.backing_off, BTreeMap::from([("blocked".into(), 1)]));
        assert_eq!(sites.due, BTreeMap::from([(Lane::Browser, 2)]));
        let records = counts.records.unwrap();
        assert_eq!((records.records, records.resolved), (3, 1));
        let notifications = counts.notifications.unwrap();
        assert_eq!(
            (notifications.waiting, notifications.oldest_made_ms),
            (2, Some(20))
        );
    }

    #[test]
    fn a_large_table_is_counted_in_slices() {
        let (folder, db) = frontier_database();
        db.execute_batch(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 45000)
             INSERT INTO records (id, name, resolved) SELECT n * 3, n, n % 2 FROM n;",
        )
        .unwrap();
        // Without any time, each call counts one slice.
        assert_eq!(count_in_rounds(&folder, 3, Duration::ZERO).records, None);
        let records = count_in_rounds(&folder, 4, Duration::ZERO).records.unwrap();
        assert_eq!((records.records, records.resolved), (45_000, 22_500));
    }
}
