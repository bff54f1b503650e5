//! The notifications of a watch that runs on one machine without a permanent dispatcher. When a run ends, its
//! dispatcher ends too. So the process of the run reports the events and delivers the notifications, using the
//! dispatcher's file. Notifications that cannot be delivered in time are retried after the next run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use webfill_api::{About, NotificationTime, Watch, WatchRun};
use webfill_notifications::{Courier, Facts, Permissions, ReadChanges, Reported, Standing};
use webfill_scheduler::frontier::open_file;
use webfill_scheduler::frontier::outbox;
use webfill_scheduler::watch_reports::{self, Attempts};
use webfill_service::Fault;

/// How often to check for deliveries that have become due.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// How long to wait at the end for deliveries that have begun. A delivery may run a command, for up to a minute.
const UNDER_WAY: Duration = Duration::from_secs(70);

/// What the notifications need to know about a run that has ended.
pub struct RunEnded<'a> {
    pub watch: &'a Watch,
    /// The runs that have ended, the latest first.
    pub runs: &'a [WatchRun],
    /// The standing alerts of the watch's mappings; `None` if they were not checked.
    pub standing: Option<&'a Standing>,
    /// The changes after each of the [positions](LocalNotifications::last_reported_changes).
    pub changes: &'a [ReadChanges],
    pub now_ms: i64,
}

/// The state before a run. New events are counted from this state.
pub struct StartState {
    /// The number of the last run that had ended, and of the last change of a page.
    pub last_run: u64,
    pub last_change: u64,
}

/// The outbox of a watch on one machine.
pub struct LocalNotifications {
    db: Connection,
}

impl LocalNotifications {
    /// Opens the outbox in a state folder that no dispatcher uses.
    pub fn open(state: &Path) -> Result<LocalNotifications, Fault> {
        let db = open_file(state).map_err(Fault::error)?;
        Ok(LocalNotifications { db })
    }

    /// Prepares for a run: only changes from now on are reported, and removed recipients get nothing more.
    pub fn prepare_run(
        &self,
        watch: &Watch,
        before: &StartState,
        now_ms: i64,
    ) -> Result<(), Fault> {
        let fresh = Reported {
            run: before.last_run,
            ..Reported::default()
        };
        watch_reports::update_reporting(&self.db, watch, &fresh, now_ms)
            .and_then(|reported| self.begin_reporting_changes(watch, reported, before.last_change))
            .map_err(outbox_fault)
    }

    fn begin_reporting_changes(
        &self,
        watch: &Watch,
        reported: BTreeMap<NotificationTime, Reported>,
        last_change: u64,
    ) -> rusqlite::Result<()> {
        for (time, mut reported) in reported {
            let mut recipients = watch.notify.iter().filter(|notify| notify.when == time);
            let wants_changes = recipients.any(|notify| notify.about.contains(&About::Changes));
            let changes_to = reported.changes_to.unwrap_or(last_change);
            reported.changes_to = wants_changes.then_some(changes_to);
            outbox::save_reported(&self.db, &watch.name, time, &reported)?;
        }
        Ok(())
    }

    /// The numbers of the last changes that were reported to recipients. Empty if no changes are reported.
    pub fn last_reported_changes(&self, watch: &Watch) -> Result<BTreeSet<u64>, Fault> {
        let of = |time| outbox::load_reported(&self.db, &watch.name, time).map_err(outbox_fault);
        let reported = [of(NotificationTime::Digest)?, of(NotificationTime::AtOnce)?];
        let reported = reported.into_iter().flatten();
        Ok(reported
            .filter_map(|reported| reported.changes_to)
            .collect())
    }

    /// Adds the run's events to the outbox, each once.
    pub fn enqueue_events(&self, ended: &RunEnded<'_>) -> Result<(), Fault> {
        self.enqueue_all_events(ended).map_err(outbox_fault)
    }

    fn enqueue_all_events(&self, ended: &RunEnded<'_>) -> rusqlite::Result<()> {
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        let times: BTreeSet<NotificationTime> = ended
            .watch
            .notify
            .iter()
            .map(|notify| notify.when)
            .collect();
        for time in times {
            self.enqueue_events_at(time, ended)
                .inspect_err(|_| drop(self.db.execute_batch("ROLLBACK")))?;
        }
        self.db.execute_batch("COMMIT")
    }

    fn enqueue_events_at(
        &self,
        time: NotificationTime,
        ended: &RunEnded<'_>,
    ) -> rusqlite::Result<()> {
        let (db, watch, now_ms) = (&self.db, ended.watch, ended.now_ms);
        let reported = outbox::load_reported(db, &watch.name, time)?.unwrap_or_default();
        let sites = outbox::sites_in_trouble(db, (&watch.app, &watch.name), now_ms)?;
        let is_asked = |read: &&ReadChanges| reported.changes_to == Some(read.after);
        let facts = Facts {
            watch,
            runs: ended.runs,
            standing: ended.standing,
            sites: &sites,
            changes: ended.changes.iter().find(is_asked),
            held: None,
            now_ms,
        };
        watch_reports::enqueue_news(db, time, &reported, &facts).map(drop)
    }

    /// Delivers waiting notifications for at most `within`, and finishes deliveries in progress. Returns how many are
    /// left or dropped, with one reason. It stops early if `give_up` returns true.
    pub fn deliver(
        &self,
        permissions: Permissions,
        within: Duration,
        now_ms: impl Fn() -> i64,
        give_up: impl Fn() -> bool,
    ) -> Result<Option<(u64, String)>, Fault> {
        let until = Instant::now() + within;
        outbox::make_all_due(&self.db, now_ms()).map_err(outbox_fault)?;
        if outbox::next_due_ms(&self.db)
            .map_err(outbox_fault)?
            .is_none()
        {
            return Ok(None);
        }
        let (sender, receiver) = mpsc::channel();
        let courier = Courier::start(permissions, None, move |ended| drop(sender.send(ended)))?;
        let mut attempts = Attempts::default();
        while !give_up() && Instant::now() < until + UNDER_WAY {
            let mut has_more = false;
            if Instant::now() < until {
                let due = attempts.take_due_deliveries(&self.db, now_ms());
                let (due, next_ms) = due.map_err(outbox_fault)?;
                due.into_iter()
                    .for_each(|delivery| courier.enqueue(delivery));
                has_more = next_ms.is_some();
            }
            if attempts.is_empty() && !has_more {
                break;
            }
            if let Ok(ended) = receiver.recv_timeout(CHECK_EVERY) {
                let settled = attempts.settle(&self.db, &ended, now_ms());
                settled.map_err(outbox_fault)?;
            }
        }
        let dropped = outbox::drop_expired(&self.db, now_ms()).map_err(outbox_fault)?;
        match (
            outbox::waiting_count_and_reason(&self.db).map_err(outbox_fault)?,
            dropped.first(),
        ) {
            (None, Some(one)) => Ok(Some((dropped.len() as u64, one.why.clone()))),
            (left, _) => Ok(left),
        }
    }
}

fn outbox_fault(error: rusqlite::Error) -> Fault {
    Fault::error(format!(
        "the outbox of notifications cannot be used: {error}"
    ))
}
