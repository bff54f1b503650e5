//! Collects the changes of pages for notifications. The core does not read the store: it asks ([`ChangesRequest`]), and
//! another thread answers, sooner or later. Until then, no changes are reported. After a crash the core asks again.
//!
//! A position ([`Reported::changes_to`]) shows which changes were reported: all up to it. The position is stored in the
//! commit of the notification. An answer that was read from another position is not used.

use std::collections::BTreeMap;

use webfill_api::{About, NotificationTime, WatchRun};
use webfill_changes::{PageCheck, Verdict};
use webfill_notifications::{ReadChanges, Reported};
use webfill_store::CrawlId;

use crate::core::context::Context;
use crate::core::notifications::Notifications;
use crate::core::watches::WatchEntry;
use crate::core::watches::Watches;
use crate::effects::{ChangesAnswer, ChangesQuestion, ChangesRequest, ChangesResult};
use crate::frontier::{FrontierError, outbox};

/// The known changes of a watch, and its questions that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct ChangesReader {
    is_position_asked: bool,
    is_after_asked: bool,
    /// Whether there may be changes that were not read yet.
    is_stale: bool,
    /// The run for whose findings the store was asked, if it has not answered yet.
    run: Option<u64>,
    /// Whether the end of this run is reported only after the store's answer.
    holds_run: bool,
    /// The changes to report, by when their recipients want them: at once, or in a digest.
    read: BTreeMap<NotificationTime, ReadChanges>,
}

impl Notifications {
    /// After a start, asks again for the findings of the last run if they may not have been reported.
    pub(super) fn request_unreported_run(&mut self, watches: &Watches, name: &str) {
        let Some(watched) = watches.by_name.get(name) else {
            return;
        };
        let Some(run) = watched.last_run().filter(|run| run.ended_ms.is_some()) else {
            return;
        };
        let reported = self.reported.iter();
        let mut reported = reported.filter(|((watch, _), _)| watch == name);
        let is_reported = reported.all(|(_, reported)| reported.run >= run.number);
        let digest = (name.to_owned(), NotificationTime::Digest);
        let digest = self.reported.get(&digest);
        // Ask for the run's changes again also if one notification had no room for all, or if some were judged later.
        let reports_changes = digest.is_some_and(|reported| reported.changes_to.is_some());
        if !is_reported || reports_changes || !run.counts.contains_key("changes") {
            self.request_run_changes(watches, name);
        }
    }

    /// Asks for the findings of the last run of a watch. If a question about an earlier run is open, the new question
    /// is asked after the answer to it.
    pub(in crate::core) fn request_run_changes(&mut self, watches: &Watches, name: &str) {
        if self.permissions.is_none() {
            return;
        }
        let Some(watched) = watches.by_name.get(name) else {
            return;
        };
        let run = watched.last_run();
        let Some(run) = run.filter(|run| run.ended_ms.is_some() && detects_changes(watched, run))
        else {
            return;
        };
        let reading = self.reading.entry(name.to_owned()).or_default();
        if reading.holds_run {
            return;
        }
        (reading.run, reading.holds_run) = (Some(run.number), true);
        let digest = self
            .reported
            .get(&(name.to_owned(), NotificationTime::Digest));
        let question = ChangesQuestion::Run {
            number: run.number,
            began_ms: run.started_ms,
            after: digest.and_then(|reported| reported.changes_to),
        };
        let asked = changes_request(watched, question);
        self.asked.push(asked);
    }

    /// Whether the report on the end of the last run waits for the run's findings.
    pub(super) fn is_run_held(&self, name: &str) -> bool {
        let reading = self.reading.get(name);
        reading.is_some_and(|reading| reading.holds_run)
    }

    /// Starts or stops reporting changes to the recipients of a watch. Changes before the start are not reported. The
    /// time of the start is kept until the store has reported the number of the last change before it. That may take
    /// long if the store is away.
    pub(super) fn start_or_stop_change_reports(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        name: &str,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let wall_ms = cx.wall_ms(now_ms);
        let Some(watched) = watches.by_name.get(name) else {
            return Ok(());
        };
        let reading = self.reading.entry(name.to_owned()).or_default();
        reading.is_stale = true;
        let mut asked_ms = None;
        for time in [NotificationTime::Digest, NotificationTime::AtOnce] {
            let key = (name.to_owned(), time);
            let Some(reported) = self.reported.get_mut(&key) else {
                continue;
            };
            let before = reported.clone();
            match (wants_changes(watched, time), reported.changes_to) {
                (true, None) => {
                    let since_ms = *reported.changes_since_ms.get_or_insert(wall_ms);
                    let earliest_ms = asked_ms.map_or(since_ms, |asked: i64| asked.min(since_ms));
                    asked_ms = Some(earliest_ms);
                }
                (true, Some(_)) => {}
                (false, _) => (reported.changes_to, reported.changes_since_ms) = (None, None),
            }
            if before != *reported {
                cx.frontier
                    .run_in_transaction(|db| outbox::save_reported(db, name, time, reported))?;
            }
        }
        if let Some(asked_ms) = asked_ms
            && !std::mem::replace(&mut reading.is_position_asked, true)
        {
            self.asked.push(changes_request(
                watched,
                ChangesQuestion::Position { asked_ms },
            ));
        }
        Ok(())
    }

    /// Notes that pages of a watch have changed, so that changes to report immediately are read.
    pub(in crate::core) fn mark_changes_stale(&mut self, watches: &Watches, checks: &[PageCheck]) {
        for check in checks {
            let is_of_crawl = |watched: &WatchEntry| watched.watch.app == check.app_id;
            let watched = watches.by_name.get(&check.crawl_id);
            if check.verdict == Verdict::Unchanged || !watched.is_some_and(is_of_crawl) {
                continue;
            }
            if let Some(reading) = self.reading.get_mut(&check.crawl_id) {
                reading.is_stale = true;
            }
        }
    }

    /// Asks for changes that are to be reported immediately, if there may be any.
    pub(super) fn request_changes(&mut self, watches: &Watches, name: &str) {
        let key = (name.to_owned(), NotificationTime::AtOnce);
        let after = self
            .reported
            .get(&key)
            .and_then(|reported| reported.changes_to);
        let (Some(after), Some(watched)) = (after, watches.by_name.get(name)) else {
            return;
        };
        let Some(reading) = self.reading.get_mut(name) else {
            return;
        };
        let waits = reading.read.get(&NotificationTime::AtOnce);
        let is_waiting = waits.is_some_and(|read| read.after == after);
        if reading.is_stale && !reading.is_after_asked && !is_waiting {
            (reading.is_stale, reading.is_after_asked) = (false, true);
            let question = ChangesQuestion::After(after);
            self.asked.push(changes_request(watched, question));
        }
    }

    /// The changes to report now. Changes for a digest wait for the end of their run.
    pub(super) fn changes_to_report(
        &self,
        (name, time): (&str, NotificationTime),
        reported: &Reported,
        is_counted: bool,
    ) -> Option<&ReadChanges> {
        let read = self.reading.get(name)?.read.get(&time)?;
        let may_report = is_counted || time == NotificationTime::AtOnce;
        (may_report && reported.changes_to == Some(read.after)).then_some(read)
    }

    /// Drops changes that were reported. If there may be more, asks for them.
    pub(super) fn drop_reported_changes(
        &mut self,
        watches: &Watches,
        name: &str,
        time: NotificationTime,
    ) {
        let Some(reading) = self.reading.get_mut(name) else {
            return;
        };
        let has_more = reading.read.remove(&time).is_some_and(|read| read.is_full);
        match time {
            NotificationTime::AtOnce => reading.is_stale |= has_more,
            NotificationTime::Digest if has_more => self.request_run_changes(watches, name),
            NotificationTime::Digest => {}
        }
    }

    /// Applies an answer to a question about changes.
    pub(in crate::core) fn on_changes_answered(
        &mut self,
        cx: &mut Context,
        watches: &mut Watches,
        answer: ChangesAnswer,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let name = answer.asked.watch.as_str();
        let Some(reading) = self.reading.get_mut(name) else {
            return Ok(());
        };
        self.check_at_ms = now_ms;
        match (answer.found, answer.asked.question) {
            (ChangesResult::Position(last), _) => {
                reading.is_position_asked = false;
                self.set_start_position(cx, watches, name, last)
            }
            (ChangesResult::Changes(read), _) => {
                reading.is_after_asked = false;
                let key = (name.to_owned(), NotificationTime::AtOnce);
                let reported = self.reported.get(&key);
                if reported.is_none_or(|reported| reported.changes_to != Some(read.after)) {
                    // More changes were reported since the question, so the answer starts at an old position: ask
                    // again.
                    reading.is_stale = true;
                } else if read.has_news() {
                    reading.read.insert(NotificationTime::AtOnce, read);
                }
                Ok(())
            }
            (ChangesResult::Late, ChangesQuestion::Run { number, .. })
                if reading.run == Some(number) =>
            {
                reading.holds_run = false;
                self.request_later_run_changes(watches, name, number);
                Ok(())
            }
            (ChangesResult::Run { counts, changes }, ChangesQuestion::Run { number, .. })
                if reading.run == Some(number) =>
            {
                (reading.run, reading.holds_run, reading.is_stale) = (None, false, true);
                if let Some(read) = changes.filter(ReadChanges::has_news) {
                    reading.read.insert(NotificationTime::Digest, read);
                }
                watches.add_run_counts(cx, name, number, counts)?;
                self.request_later_run_changes(watches, name, number);
                Ok(())
            }
            // The open question is about another run by now.
            _ => Ok(()),
        }
    }

    fn request_later_run_changes(&mut self, watches: &Watches, name: &str, number: u64) {
        let watched = watches.by_name.get(name);
        if watched.is_some_and(|watched| watched.last_ended_number() > number) {
            self.request_run_changes(watches, name);
        }
    }

    fn set_start_position(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        name: &str,
        last: u64,
    ) -> Result<(), FrontierError> {
        let Some(watched) = watches.by_name.get(name) else {
            return Ok(());
        };
        for time in [NotificationTime::Digest, NotificationTime::AtOnce] {
            let reported = self.reported.get_mut(&(name.to_owned(), time));
            let wants = wants_changes(watched, time);
            let Some(reported) = reported.filter(|reported| wants && reported.changes_to.is_none())
            else {
                continue;
            };
            (reported.changes_to, reported.changes_since_ms) = (Some(last), None);
            cx.frontier
                .run_in_transaction(|db| outbox::save_reported(db, name, time, reported))?;
        }
        Ok(())
    }
}

fn changes_request(watched: &WatchEntry, question: ChangesQuestion) -> ChangesRequest {
    let watch = &watched.watch;
    ChangesRequest {
        watch: watch.name.clone(),
        crawl: CrawlId::new(&watch.app, &watch.name),
        question,
    }
}

/// Whether the watch detects changes of its pages, and the run had a crawl at all.
fn detects_changes(watched: &WatchEntry, run: &WatchRun) -> bool {
    watched.watch.detects_changes() && !run.counts.is_empty()
}

fn wants_changes(watched: &WatchEntry, time: NotificationTime) -> bool {
    let mut notify = watched.watch.notify.iter();
    notify.any(|notify| notify.when == time && notify.about.contains(&About::Changes))
}
