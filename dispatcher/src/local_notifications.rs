//! The notifications of a watch on one machine. When its run has ended there is no dispatcher any more, so the
//! process of the run itself tells what is new, and delivers it, out of the file that the dispatcher had.
//! What cannot be delivered in time is tried again at the next run.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use webfill_api::{About, NotificationTime, Watch, WatchRun};
use webfill_notifications::{
    Courier, Ended, Facts, Permissions, ReadChanges, Reported, Standing, Verdict, compose, wait_ms,
};
use webfill_scheduler::frontier::open_file;
use webfill_scheduler::frontier::outbox::{self, TargetKey};
use webfill_service::Fault;

/// How often it is looked whether more is due.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What was begun in time is waited for: a command may take a minute.
const UNDER_WAY: Duration = Duration::from_secs(70);

/// So many notifications are under way at once.
const MOST_UNDER_WAY: usize = 32;

/// What is known when a run has ended.
pub struct RunEnded<'a> {
    pub watch: &'a Watch,
    /// Those that have ended, the latest first.
    pub runs: &'a [WatchRun],
    /// What stands of its mappings; `None`: that was not looked at.
    pub standing: Option<&'a Standing>,
    /// What has changed after each of the [positions](LocalNotifications::positions).
    pub changes: &'a [ReadChanges],
    pub now_ms: i64,
}

/// What was before a run.
pub struct Before {
    /// The number of the last run that had ended, and of the last change of a page.
    pub last_run: u64,
    pub last_change: u64,
}

/// The outbox of a watch on one machine.
pub struct LocalNotifications {
    db: Connection,
}

impl LocalNotifications {
    /// Opens the outbox in a state folder, which no dispatcher has.
    pub fn open(state: &Path) -> Result<LocalNotifications, Fault> {
        let db = open_file(state).map_err(Fault::error)?;
        Ok(LocalNotifications { db })
    }

    /// Before a run: what was before is not told to who asks only now, and nothing more to who does not ask
    /// any more.
    pub fn begin(&self, watch: &Watch, before: &Before, now_ms: i64) -> Result<(), Fault> {
        let targets = watch.notify.iter();
        let targets = targets.map(|notify| outbox::target_json(&notify.target));
        let begun = outbox::withdraw(&self.db, &watch.name, &targets.collect(), now_ms);
        begun
            .and_then(|()| self.begin_telling(watch, before))
            .map_err(fault)
    }

    fn begin_telling(&self, watch: &Watch, before: &Before) -> rusqlite::Result<()> {
        for time in [NotificationTime::Digest, NotificationTime::AtOnce] {
            let mut asking = watch.notify.iter().filter(|notify| notify.when == time);
            if asking.clone().next().is_none() {
                outbox::forget_reported(&self.db, &watch.name, time)?;
                continue;
            }
            let wants_changes = asking.any(|notify| notify.about.contains(&About::Changes));
            let told = outbox::reported(&self.db, &watch.name, time)?;
            let told = told.unwrap_or_else(|| Reported {
                run: before.last_run,
                ..Reported::default()
            });
            let changes_to = told.changes_to.unwrap_or(before.last_change);
            let told = Reported {
                changes_to: wants_changes.then_some(changes_to),
                ..told
            };
            outbox::keep_reported(&self.db, &watch.name, time, &told)?;
        }
        Ok(())
    }

    /// The numbers of changes after which somebody is told; none: nobody is told of changes.
    pub fn positions(&self, watch: &Watch) -> Result<BTreeSet<u64>, Fault> {
        let of = |time| outbox::reported(&self.db, &watch.name, time).map_err(fault);
        let told = [of(NotificationTime::Digest)?, of(NotificationTime::AtOnce)?];
        let told = told.into_iter().flatten();
        Ok(told.filter_map(|told| told.changes_to).collect())
    }

    /// Puts what is new into the outbox, once.
    pub fn tell(&self, ended: &RunEnded<'_>) -> Result<(), Fault> {
        self.told(ended).map_err(fault)
    }

    fn told(&self, ended: &RunEnded<'_>) -> rusqlite::Result<()> {
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        let times: BTreeSet<NotificationTime> = ended
            .watch
            .notify
            .iter()
            .map(|notify| notify.when)
            .collect();
        for time in times {
            self.tell_at(time, ended)
                .inspect_err(|_| drop(self.db.execute_batch("ROLLBACK")))?;
        }
        self.db.execute_batch("COMMIT")
    }

    fn tell_at(&self, time: NotificationTime, ended: &RunEnded<'_>) -> rusqlite::Result<()> {
        let (db, watch, now_ms) = (&self.db, ended.watch, ended.now_ms);
        let told = outbox::reported(db, &watch.name, time)?.unwrap_or_default();
        let sites = outbox::sites_in_trouble(db, (&watch.app, &watch.name), now_ms)?;
        let is_asked = |read: &&ReadChanges| told.changes_to == Some(read.after);
        let (events, told) = told.news(&Facts {
            watch,
            runs: ended.runs,
            standing: ended.standing,
            sites: &sites,
            changes: ended.changes.iter().find(is_asked),
            held: None,
            now_ms,
        });
        for notify in watch.notify.iter().filter(|notify| notify.when == time) {
            if let Some(notification) = compose(watch, time, &notify.about, &events, now_ms) {
                outbox::put(db, &watch.name, &notify.target, &notification, now_ms)?;
            }
        }
        outbox::keep_reported(db, &watch.name, time, &told)
    }

    /// Delivers what waits, for at most `within` and what was begun by then to its end, and returns how many
    /// notifications are left or given up, with the reason of one. `give_up` ends it early.
    pub fn deliver(
        &self,
        permissions: Permissions,
        within: Duration,
        now_ms: impl Fn() -> i64,
        give_up: impl Fn() -> bool,
    ) -> Result<Option<(u64, String)>, Fault> {
        let until = Instant::now() + within;
        outbox::begin(&self.db, now_ms()).map_err(fault)?;
        if outbox::next_due_ms(&self.db).map_err(fault)?.is_none() {
            return Ok(None);
        }
        let (tell, told) = mpsc::channel();
        let courier = Courier::start(permissions, None, move |ended| drop(tell.send(ended)))?;
        let mut round = Round {
            notifications: self,
            courier,
            under_way: HashMap::new(),
            failures: HashMap::new(),
        };
        while !give_up() && Instant::now() < until + UNDER_WAY {
            let is_over = match Instant::now() < until {
                true => round.order(now_ms()).map_err(fault)?,
                false => round.under_way.is_empty(),
            };
            if is_over {
                break;
            }
            if let Ok(ended) = told.recv_timeout(LOOK_EVERY) {
                round.settle(&ended, now_ms()).map_err(fault)?;
            }
        }
        let dropped = outbox::sweep(&self.db, now_ms()).map_err(fault)?;
        match (outbox::left(&self.db).map_err(fault)?, dropped.first()) {
            (None, Some(one)) => Ok(Some((dropped.len() as u64, one.why.clone()))),
            (left, _) => Ok(left),
        }
    }
}

/// Deliveries under way.
struct Round<'a> {
    notifications: &'a LocalNotifications,
    courier: Courier,
    under_way: HashMap<i64, TargetKey>,
    failures: HashMap<TargetKey, u32>,
}

impl Round<'_> {
    /// Begins what is due, and returns whether nothing waits any more.
    fn order(&mut self, now_ms: i64) -> rusqlite::Result<bool> {
        let db = &self.notifications.db;
        let free = MOST_UNDER_WAY.saturating_sub(self.under_way.len());
        let is_busy = |key: &TargetKey| self.under_way.values().any(|busy| busy == key);
        let due = outbox::due(db, now_ms, free, is_busy)?;
        for (target, delivery) in due {
            self.under_way.insert(delivery.id, target);
            self.courier.deliver(delivery);
        }
        Ok(self.under_way.is_empty() && outbox::next_due_ms(db)?.is_none())
    }

    fn settle(&mut self, ended: &Ended, now_ms: i64) -> rusqlite::Result<()> {
        let Some(target) = self.under_way.remove(&ended.id) else {
            return Ok(());
        };
        let failures = self.failures.entry(target.clone()).or_default();
        *failures = match &ended.verdict {
            Verdict::Delivered => 0,
            Verdict::Failed(_) | Verdict::Dropped(_) => *failures + 1,
        };
        let at = (now_ms, now_ms + wait_ms(*failures));
        outbox::settle(
            &self.notifications.db,
            (ended.id, &target),
            &ended.verdict,
            at,
        )
    }
}

fn fault(error: rusqlite::Error) -> Fault {
    Fault::error(format!(
        "the outbox of notifications cannot be used: {error}"
    ))
}
