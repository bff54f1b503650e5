//! Turns new events of watches into notifications.

use serde_json::Value;
use webfill_api::{NotificationTime, WatchRun};
use webfill_notifications::silence::{LATE_MS, RUNS_JUDGED};
use webfill_notifications::{Facts, Reported, Standing};

use crate::core::context::Context;
use crate::core::notifications::Notifications;
use crate::core::watches::WatchEntry;
use crate::core::watches::Watches;
use crate::frontier::FrontierError;
use crate::frontier::outbox;
use crate::watch_reports;

impl Notifications {
    /// Starts reports to new recipients, about later events only, and stops reports to removed recipients.
    pub(in crate::core) fn update_reporting(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        name: &str,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let Some(watched) = watches.by_name.get(name) else {
            return Ok(());
        };
        let fresh = Reported {
            run: watched.last_ended_number(),
            ..Reported::default()
        };
        let fresh = fresh.with_standing(&standing_extractions_of(cx, watched).unwrap_or_default());
        let watch = &watched.watch;
        let reported = cx
            .frontier
            .run_in_transaction(|db| watch_reports::update_reporting(db, watch, &fresh, now_ms))?;
        self.drop_alerts_of_removed_targets(cx, name, &watch_reports::target_keys(watch))?;
        self.reported.retain(|(watch, _), _| watch != name);
        let reported = reported.into_iter();
        self.reported
            .extend(reported.map(|(time, reported)| ((name.to_owned(), time), reported)));
        self.start_or_stop_change_reports(cx, watches, name, now_ms)
    }

    /// Stops reporting on a watch.
    pub(in crate::core) fn stop_reporting(
        &mut self,
        cx: &mut Context,
        name: &str,
    ) -> Result<(), FrontierError> {
        self.reported.retain(|(watch, _), _| watch != name);
        self.reading.remove(name);
        self.undelivered.retain(|one| one.target.0 != name);
        self.attempts.forget(name);
        cx.frontier
            .run_in_transaction(|db| outbox::delete_watch_notifications(db, name))
    }

    pub(super) fn report_new_events(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let reported: Vec<(String, NotificationTime)> = self.reported.keys().cloned().collect();
        for (name, time) in reported {
            self.report_watch(cx, watches, &name, time, now_ms)?;
            if time == NotificationTime::AtOnce {
                // Changes are now reported up to a later position, so ask for those after it.
                self.request_changes(watches, &name);
            }
        }
        Ok(())
    }

    /// Reports new events of a watch, if there may be any.
    fn report_watch(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        name: &str,
        time: NotificationTime,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let key = (name.to_owned(), time);
        let (Some(watched), Some(reported)) = (watches.by_name.get(name), self.reported.get(&key))
        else {
            return Ok(());
        };
        // A run is reported once the counts of its feeder and of its page checks have been added.
        let is_counted = !watches.fed.contains(name) && !self.is_run_held(name);
        let has_new_run = is_counted && watched.last_ended_number() > reported.run;
        let held = late_run_reason(cx, watches, name, watched, now_ms);
        let standing = standing_extractions_of(cx, watched);
        let is_alerting = time == NotificationTime::AtOnce
            && standing.as_ref().is_some_and(|now| !reported.matches(now));
        let changes = self.changes_to_report((name, time), reported, is_counted);
        if !has_new_run
            && !is_alerting
            && changes.is_none()
            && held.is_some() == reported.has_reported_missed_start()
        {
            return Ok(());
        }
        let (watch, reported, changes) =
            (watched.watch.clone(), reported.clone(), changes.cloned());
        let runs = match has_new_run {
            true => cx.frontier.watches().list_runs(name, RUNS_JUDGED)?,
            false => Vec::new(),
        };
        let runs: Vec<WatchRun> = runs
            .into_iter()
            .filter(|run| run.ended_ms.is_some())
            .collect();
        let crawl = (&*watch.app, &*watch.name);
        let sites = cx
            .frontier
            .run_in_transaction(|db| outbox::sites_in_trouble(db, crawl, now_ms))?;
        let held = held.as_ref().map(|(due_ms, why)| (*due_ms, why.as_str()));
        let facts = Facts {
            watch: &watch,
            runs: &runs,
            standing: standing.as_ref().filter(|_| has_new_run || is_alerting),
            sites: &sites,
            changes: changes.as_ref(),
            held,
            now_ms,
        };
        let (reported, dropped) = cx
            .frontier
            .run_in_transaction(|db| watch_reports::enqueue_news(db, time, &reported, &facts))?;
        self.dropped.extend(dropped);
        self.reported.insert(key, reported);
        if changes.is_some() {
            self.drop_reported_changes(watches, name, time);
        }
        self.due_at_ms = now_ms;
        Ok(())
    }
}

/// If a due run has not begun for long: since when, and why.
fn late_run_reason(
    cx: &Context,
    watches: &Watches,
    name: &str,
    watched: &WatchEntry,
    now_ms: i64,
) -> Option<(i64, String)> {
    let due_ms = watched.overdue_since_ms(now_ms - LATE_MS)?;
    let why = match (&cx.surroundings.low_disk, watches.fed.contains(name)) {
        (Some(shortage), _) => shortage.clone(),
        (None, true) => "the process that feeds the last run has not ended".into(),
        (None, false) => "the dispatcher is about to end".into(),
    };
    Some((due_ms, why))
}

/// The extraction alerts of a watch's pages; `None`: not known yet, as after a start.
fn standing_extractions_of(cx: &Context, watched: &WatchEntry) -> Option<Standing> {
    let standing = cx.surroundings.standing.as_ref()?;
    let crawl = format!("{}/{}", watched.watch.app, watched.watch.name);
    let is_of_watch = |row: &&Value| {
        let crawls = row["crawls"].as_array();
        crawls.into_iter().flatten().any(|one| *one == *crawl)
    };
    let of_watch = |rows: &[Value]| rows.iter().filter(is_of_watch).cloned().collect();
    Some(Standing {
        alerts: of_watch(&standing.alerts),
        warnings: of_watch(&standing.warnings),
    })
}
