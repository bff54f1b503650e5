//! Notifications of a watch that is run on this machine: told and delivered when its run has ended, before the
//! command ends. What cannot be delivered in time is said, and tried again by who waits for the next run, and
//! when that has ended.

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;
use webfill_api::{Refusal, Watch, WatchRun};
use webfill_dispatcher::local_notifications::{Before, LocalNotifications, RunEnded};
use webfill_dispatcher::run_changes;
use webfill_health::{Alert, Warning};
use webfill_notifications::silence::RUNS_JUDGED;
use webfill_notifications::{Permissions, ReadChanges, Standing};
use webfill_service::Fault;
use webfill_service::signals::{self, Asked};
use webfill_store::{CrawlId, Store};

use super::run_record::RunFile;
use super::watch::End;
use crate::feeding::{now_ms, store_fault};
use crate::settings::Settings;
use crate::summary::Summary;

/// How long notifications may take to be delivered.
const WITHIN: Duration = Duration::from_secs(30);

/// What is needed once a run has ended.
pub struct RunNotifications {
    watch: Watch,
    state: PathBuf,
    permissions: Permissions,
    /// Whether standard error is for people.
    tells: bool,
}

impl RunNotifications {
    /// `None` if nobody is to be told.
    pub fn of(watch: &Watch, settings: &Settings, tells: bool) -> Option<RunNotifications> {
        (!watch.notify.is_empty()).then(|| RunNotifications {
            watch: watch.clone(),
            state: settings.state.clone(),
            permissions: Permissions::of_user(settings.notifications.clone()),
            tells,
        })
    }

    /// Whether the targets can be used at all.
    pub fn check(watch: &Watch, settings: &Settings) -> Result<(), Fault> {
        let permissions = Permissions::of_user(settings.notifications.clone());
        let refused =
            |refusal: Refusal| Fault::usage(format!("{}: {}", refusal.path, refusal.message));
        permissions.check(watch, "$").map_err(refused)
    }

    /// Before the run begins: only what comes from now on is told.
    pub fn begin(&self, runtime: &Runtime, store: &dyn Store) -> Result<(), Fault> {
        let runs = RunFile::of(&self.state, &self.watch.name).ended(1)?;
        let last_change = runtime.block_on(run_changes::last_change(store));
        let before = Before {
            last_run: runs.first().map_or(0, |run| run.number),
            last_change: last_change.map_err(store_fault)?,
        };
        LocalNotifications::open(&self.state)?.begin(&self.watch, &before, now_ms())
    }

    /// Puts what is new into the outbox. A fault of this does not make the run a failure.
    pub fn tell(&self, told: &ToldRun<'_>) {
        if let Err(fault) = self.try_tell(told) {
            self.warn(&fault.message);
        }
    }

    /// Delivers what waits in the outbox. A fault of this does not make the run a failure.
    pub fn deliver(self) {
        match self.try_deliver() {
            Ok(None) => {}
            Ok(Some((1, why))) => self.warn(&format!(
                "a notification could not be delivered yet, and is tried again: {why}"
            )),
            Ok(Some((left, why))) => self.warn(&format!(
                "{left} notifications could not be delivered yet, and are tried again: {why}"
            )),
            Err(fault) => self.warn(&fault.message),
        }
    }

    /// Tries to deliver what a run has left, between two runs. Whether something is left still.
    pub fn deliver_left(&self, give_up: impl Fn() -> bool) -> bool {
        let opened = LocalNotifications::open(&self.state);
        let left = opened.and_then(|notifications| {
            notifications.deliver(self.permissions.clone(), WITHIN, now_ms, give_up)
        });
        !matches!(left, Ok(None))
    }

    fn warn(&self, what: &str) {
        let name = &self.watch.name;
        tracing::warn!(event = "notifications_left", watch = name, "{what}");
        if self.tells {
            webfill_service::say!("webfill: {name}: {what}");
        }
    }

    fn try_tell(&self, told: &ToldRun<'_>) -> Result<(), Fault> {
        let notifications = LocalNotifications::open(&self.state)?;
        let ended = RunFile::of(&self.state, &self.watch.name).ended(RUNS_JUDGED)?;
        let mut runs = vec![told.run.clone()];
        runs.extend(ended);
        self.warn_of_late(&notifications, told);
        let standing = standing(told.ended);
        // A notification holds so many changes: there may be several.
        loop {
            let changes = self.changes(&notifications, told);
            notifications.tell(&RunEnded {
                watch: &self.watch,
                runs: &runs,
                standing: standing.as_ref(),
                changes: &changes,
                now_ms: now_ms(),
            })?;
            let has_more = changes.iter().any(|read| read.is_full);
            if !has_more || signals::asked() >= Asked::Stop {
                return Ok(());
            }
        }
    }

    fn try_deliver(&self) -> Result<Option<(u64, String)>, Fault> {
        let notifications = LocalNotifications::open(&self.state)?;
        notifications.deliver(self.permissions.clone(), WITHIN, now_ms, || {
            signals::asked() >= Asked::Stop
        })
    }
}

/// A run that is over, and has to be told before it is recorded as ended: who is killed meanwhile tells it again.
pub struct ToldRun<'a> {
    pub run: &'a WatchRun,
    pub ended: &'a Result<(Summary, End), Fault>,
    pub runtime: &'a Runtime,
    pub store: &'a dyn Store,
}

impl RunNotifications {
    fn warn_of_late(&self, notifications: &LocalNotifications, told: &ToldRun<'_>) {
        let crawl = CrawlId::new(&self.watch.app, &self.watch.name);
        let positions = notifications.positions(&self.watch).unwrap_or_default();
        let is_judged = || {
            told.runtime
                .block_on(run_changes::is_judged(told.store, &crawl))
        };
        if !positions.is_empty() && !is_judged().unwrap_or_default() {
            tracing::warn!(
                event = "changes_late",
                watch = self.watch.name,
                "what the run has changed is not judged yet: it is told after the next run"
            );
        }
    }

    /// What has changed since it was told last. What cannot be read is told after the next run.
    fn changes(&self, notifications: &LocalNotifications, told: &ToldRun<'_>) -> Vec<ReadChanges> {
        let crawl = CrawlId::new(&self.watch.app, &self.watch.name);
        let positions = notifications.positions(&self.watch).unwrap_or_default();
        let mut changes = Vec::new();
        for after in positions {
            let reading = run_changes::read_changes(told.store, &crawl, after);
            match told.runtime.block_on(reading) {
                Ok(read) => changes.push(read),
                Err(error) => tracing::warn!(
                    event = "changes_not_read",
                    %error,
                    "what has changed could not be read, and is told after the next run"
                ),
            }
        }
        changes
    }
}

/// What stands of the mappings that have read its pages; `None`: that was not looked at.
fn standing(ended: &Result<(Summary, End), Fault>) -> Option<Standing> {
    let (summary, _) = ended.as_ref().ok()?;
    let findings = summary.findings.as_ref()?;
    Some(Standing {
        alerts: findings.alerts.iter().map(Alert::row).collect(),
        warnings: findings.warnings.iter().map(Warning::row).collect(),
    })
}
