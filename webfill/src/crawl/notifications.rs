//! Notifications of a watch that runs on this machine. They are created and delivered between the end of the run and
//! the end of the command. If a delivery fails, this is reported, and retried while the command waits for the next run
//! and after that run.

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;
use webfill_api::{Refusal, Watch, WatchRun};
use webfill_followers::run_changes;
use webfill_health::{Alert, Warning};
use webfill_notifications::silence::RUNS_JUDGED;
use webfill_notifications::{Permissions, ReadChanges, Standing};
use webfill_service::Fault;
use webfill_service::signals::{self, SignalRequest};
use webfill_store::{CrawlId, Store};

use super::local_notifications::{LocalNotifications, RunEnded, StartState};
use super::run_record::RunFile;
use super::watch::End;
use crate::feeding::{now_ms, store_fault};
use crate::settings::Settings;
use crate::summary::Summary;

/// The time limit for delivering notifications after a run.
const WITHIN: Duration = Duration::from_secs(30);

/// The watch whose run has ended, and everything needed to notify its recipients.
pub struct RunNotifications {
    watch: Watch,
    state: PathBuf,
    permissions: Permissions,
    /// Whether messages for people are printed on standard error.
    prints: bool,
}

impl RunNotifications {
    /// Prepares the notifications of a watch; `None` if it has no recipients.
    pub fn from_watch(
        watch: &Watch,
        settings: &Settings,
        prints: bool,
    ) -> Option<RunNotifications> {
        (!watch.notify.is_empty()).then(|| RunNotifications {
            watch: watch.clone(),
            state: settings.state.clone(),
            permissions: Permissions::for_user(settings.notifications.clone()),
            prints,
        })
    }

    /// Checks that the settings permit the targets of the watch.
    pub fn check_targets(watch: &Watch, settings: &Settings) -> Result<(), Fault> {
        let permissions = Permissions::for_user(settings.notifications.clone());
        let refused =
            |refusal: Refusal| Fault::usage(format!("{}: {}", refusal.path, refusal.message));
        permissions.check(watch, "$").map_err(refused)
    }

    /// Notes the last run and the last change of a page before the run, so that only later ones are reported.
    pub fn note_start(&self, runtime: &Runtime, store: &dyn Store) -> Result<(), Fault> {
        let runs = RunFile::new(&self.state, &self.watch.name).latest_ended_runs(1)?;
        let last_change = runtime.block_on(run_changes::load_last_change_number(store));
        let before = StartState {
            last_run: runs.first().map_or(0, |run| run.number),
            last_change: last_change.map_err(store_fault)?,
        };
        LocalNotifications::open(&self.state)?.prepare_run(&self.watch, &before, now_ms())
    }

    /// Puts the notifications about the run into the outbox. An error here is printed, and the run still succeeds.
    pub fn enqueue(&self, run: &EndedRun<'_>) {
        if let Err(fault) = self.try_enqueue(run) {
            self.warn(&fault.message);
        }
    }

    /// Delivers the notifications in the outbox. An error here is printed, and the run still succeeds.
    pub fn deliver(self) {
        match self.try_deliver() {
            Ok(None) => {}
            Ok(Some((1, why))) => self.warn(&format!(
                "a notification is not delivered yet and will be retried: {why}"
            )),
            Ok(Some((left, why))) => self.warn(&format!(
                "{left} notifications are not delivered yet and will be retried: {why}"
            )),
            Err(fault) => self.warn(&fault.message),
        }
    }

    /// Tries between two runs to deliver the remaining notifications. Returns whether any still remain.
    pub fn deliver_remaining(&self, give_up: impl Fn() -> bool) -> bool {
        let opened = LocalNotifications::open(&self.state);
        let left = opened.and_then(|notifications| {
            notifications.deliver(self.permissions.clone(), WITHIN, now_ms, give_up)
        });
        !matches!(left, Ok(None))
    }

    fn warn(&self, what: &str) {
        let name = &self.watch.name;
        tracing::warn!(event = "notifications_left", watch = name, "{what}");
        if self.prints {
            webfill_service::say!("webfill: {name}: {what}");
        }
    }

    fn try_enqueue(&self, run: &EndedRun<'_>) -> Result<(), Fault> {
        let notifications = LocalNotifications::open(&self.state)?;
        let ended = RunFile::new(&self.state, &self.watch.name).latest_ended_runs(RUNS_JUDGED)?;
        let mut runs = vec![run.record.clone()];
        runs.extend(ended);
        self.warn_of_lateness(&notifications, run);
        let standing = standing_alerts(run.result);
        // One notification holds a limited number of changes, so several may be needed.
        loop {
            let changes = self.load_changes(&notifications, run);
            notifications.enqueue_events(&RunEnded {
                watch: &self.watch,
                runs: &runs,
                standing: standing.as_ref(),
                changes: &changes,
                now_ms: now_ms(),
            })?;
            let has_more = changes.iter().any(|read| read.is_full);
            if !has_more || signals::received_request() >= SignalRequest::Stop {
                return Ok(());
            }
        }
    }

    fn try_deliver(&self) -> Result<Option<(u64, String)>, Fault> {
        let notifications = LocalNotifications::open(&self.state)?;
        notifications.deliver(self.permissions.clone(), WITHIN, now_ms, || {
            signals::received_request() >= SignalRequest::Stop
        })
    }
}

/// A run that is over. Its notifications are created before its end is recorded. So if the process is killed in
/// between, they are created again.
pub struct EndedRun<'a> {
    pub record: &'a WatchRun,
    pub result: &'a Result<(Summary, End), Fault>,
    pub runtime: &'a Runtime,
    pub store: &'a dyn Store,
}

impl RunNotifications {
    fn warn_of_lateness(&self, notifications: &LocalNotifications, run: &EndedRun<'_>) {
        let crawl = CrawlId::new(&self.watch.app, &self.watch.name);
        let positions = notifications
            .last_reported_changes(&self.watch)
            .unwrap_or_default();
        let is_judged = || {
            run.runtime
                .block_on(run_changes::is_judged(run.store, &crawl))
        };
        if !positions.is_empty() && !is_judged().unwrap_or_default() {
            tracing::warn!(
                event = "changes_late",
                watch = self.watch.name,
                "the changes of the run are not known yet; they are reported after the next run"
            );
        }
    }

    /// The changes since the last notification. Changes that cannot be read are reported after the next run.
    fn load_changes(
        &self,
        notifications: &LocalNotifications,
        run: &EndedRun<'_>,
    ) -> Vec<ReadChanges> {
        let crawl = CrawlId::new(&self.watch.app, &self.watch.name);
        let positions = notifications
            .last_reported_changes(&self.watch)
            .unwrap_or_default();
        let mut changes = Vec::new();
        for after in positions {
            let reading = run_changes::read_changes(run.store, &crawl, after);
            match run.runtime.block_on(reading) {
                Ok(read) => changes.push(read),
                Err(error) => tracing::warn!(
                    event = "changes_not_read",
                    %error,
                    "cannot read the changes; they are reported after the next run"
                ),
            }
        }
        changes
    }
}

/// The current alerts of the mappings that have read the run's pages; `None` if the mappings were not checked.
fn standing_alerts(ended: &Result<(Summary, End), Fault>) -> Option<Standing> {
    let (summary, _) = ended.as_ref().ok()?;
    let findings = summary.findings.as_ref()?;
    Some(Standing {
        alerts: findings.alerts.iter().map(Alert::row).collect(),
        warnings: findings.warnings.iter().map(Warning::row).collect(),
    })
}
