//! Notices of a watch that is run on this machine: told and delivered when its run has ended, before the
//! command ends. What cannot be delivered in time is said, and tried again when the next run has ended.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_api::{Refusal, Watch};
use webfill_dispatcher::local_notices::{LocalNotices, RunEnded};
use webfill_notices::Rights;
use webfill_notices::blindness::RUNS_JUDGED;
use webfill_startup::Fault;
use webfill_startup::signals::{self, Asked};

use super::run_record::RunFile;
use super::watch::End;
use crate::feeding::now_ms;
use crate::settings::Settings;
use crate::summary::Summary;

/// How long notices may take to be delivered.
const WITHIN: Duration = Duration::from_secs(30);

/// What is needed once a run has ended.
pub struct RunNotices {
    watch: Watch,
    state: PathBuf,
    rights: Rights,
    /// Whether standard error is for people.
    tells: bool,
}

impl RunNotices {
    /// `None` if nobody is to be told.
    pub fn of(watch: &Watch, settings: &Settings, tells: bool) -> Option<RunNotices> {
        (!watch.notify.is_empty()).then(|| RunNotices {
            watch: watch.clone(),
            state: settings.state.clone(),
            rights: Rights::of_user(settings.notices.clone()),
            tells,
        })
    }

    /// Whether the targets can be used at all.
    pub fn check(watch: &Watch, settings: &Settings) -> Result<(), Fault> {
        let rights = Rights::of_user(settings.notices.clone());
        let refused =
            |refusal: Refusal| Fault::usage(format!("{}: {}", refusal.path, refusal.message));
        rights.check(watch, "$").map_err(refused)
    }

    /// Before the run begins: only what comes from now on is told.
    pub fn begin(&self) -> Result<(), Fault> {
        let runs = RunFile::of(&self.state, &self.watch.name).ended(1)?;
        let last = runs.first().map_or(0, |run| run.number);
        LocalNotices::open(&self.state)?.begin(&self.watch, last, now_ms())
    }

    /// Tells what is new, and delivers it. A fault of this does not make the run a failure.
    pub fn deliver(self, ended: &Result<(Summary, End), Fault>) {
        let (name, tells) = (self.watch.name.clone(), self.tells);
        let what = match self.try_deliver(ended) {
            Ok(None) => return,
            Ok(Some((1, why))) => format!(
                "a notice could not be delivered yet, and is tried again after the next run: {why}"
            ),
            Ok(Some((left, why))) => format!(
                "{left} notices could not be delivered yet, and are tried again after the next run: {why}"
            ),
            Err(fault) => fault.message,
        };
        tracing::warn!(event = "notices_left", watch = name, "{what}");
        if tells {
            eprintln!("webfill: {name}: {what}");
        }
    }

    fn try_deliver(
        self,
        ended: &Result<(Summary, End), Fault>,
    ) -> Result<Option<(u64, String)>, Fault> {
        let notices = LocalNotices::open(&self.state)?;
        let runs = RunFile::of(&self.state, &self.watch.name).ended(RUNS_JUDGED)?;
        notices.tell(&RunEnded {
            watch: &self.watch,
            runs: &runs,
            alarms: alarms(ended).as_deref(),
            now_ms: now_ms(),
        })?;
        notices.deliver(self.rights, WITHIN, now_ms, || {
            signals::asked() >= Asked::Stop
        })
    }
}

/// The alarms that stand of the mappings that have read its pages; `None`: they were not looked at.
fn alarms(ended: &Result<(Summary, End), Fault>) -> Option<Vec<Value>> {
    let (summary, _) = ended.as_ref().ok()?;
    let alarms = summary.findings.as_ref()?.alarms.iter();
    let row = alarms.map(|alarm| {
        json!({
            "mapping": alarm.mapping,
            "layout_changed": alarm.raised_at,
            "fields": alarm.names().join(", "),
        })
    });
    Some(row.collect())
}
