//! Decides which events of watches are reported, and when their notifications are sent. Events and notifications are
//! stored in the same transaction ([`outbox`]). The caller delivers the committed ones
//! ([`Committed`](crate::effects::Committed)) and reports the results. A notification that was being delivered during
//! a crash is delivered again, under the same key.
//!
//! If notifications do not reach a target for some time, that is an alert of its own. It appears in the log, on the
//! firehose, in `status`, and at the other targets of the watch, until a notification arrives.

mod alerts;
mod changes;
mod reporting;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use webfill_api::NotificationTime;
use webfill_notifications::{Delivery, DeliveryEnd, Permissions, Reported, Verdict};

use self::changes::ChangesReader;
use crate::core::context::Context;
use crate::core::watches::Watches;
use crate::effects::ChangesRequest;
use crate::frontier::FrontierError;
use crate::frontier::outbox::{self, TargetKey, Undelivered};
use crate::watch_reports::Attempts;

/// How often watches are checked for events to report.
const CHECK_EVERY_MS: i64 = 500;

/// How often targets are checked for failing deliveries.
const JUDGE_EVERY_MS: i64 = 1_000;

/// For this long after a start, waiting notifications are only tried and raise no alert, because nothing could be
/// delivered while the dispatcher was down.
const FIRST_TRIES_MS: i64 = 60_000;

/// How often old notifications are dropped.
const SWEEP_EVERY_MS: i64 = 3_600_000;

/// The maximum number of recent notifications shown per watch.
const SHOWN: u64 = 10;

/// The state of the notifications that is kept in memory.
#[derive(Default)]
pub(super) struct Notifications {
    /// The resources that notifications may use; `None`: this dispatcher has no watches.
    pub(super) permissions: Option<Permissions>,
    check_at_ms: i64,
    due_at_ms: i64,
    judge_at_ms: i64,
    sweep_at_ms: i64,
    /// How far events of a watch were reported, as stored.
    reported: BTreeMap<(String, NotificationTime), Reported>,
    /// The known changes of each watch, by its name, and the open questions to the store.
    reading: BTreeMap<String, ChangesReader>,
    pub(super) asked: Vec<ChangesRequest>,
    attempts: Attempts,
    pub(super) deliveries: Vec<Delivery>,
    /// The targets that have an alert, because notifications do not reach them.
    undelivered: Vec<Undelivered>,
    /// Notifications that were dropped because they were too old or too many. Each is an alert.
    dropped: Vec<Undelivered>,
}

impl Notifications {
    /// Starts reporting and delivering. All waiting notifications are tried immediately.
    pub(super) fn start_notifications(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        permissions: Permissions,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let grace_ms = permissions
            .config
            .undelivered_after_ms()
            .min(FIRST_TRIES_MS);
        self.judge_at_ms = now_ms + grace_ms;
        self.sweep_at_ms = now_ms + SWEEP_EVERY_MS;
        self.permissions = Some(permissions);
        self.undelivered = cx.frontier.run_in_transaction(|db| {
            outbox::make_all_due(db, now_ms)?;
            outbox::list_undelivered(db)
        })?;
        let names: Vec<String> = watches.by_name.keys().cloned().collect();
        for name in names {
            self.update_reporting(cx, watches, &name, now_ms)?;
            self.request_unreported_run(watches, &name);
        }
        Ok(())
    }

    /// Reports new events, and collects the notifications to deliver.
    pub(super) fn advance_notifications(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        if self.permissions.is_none() || now_ms < self.check_at_ms {
            return Ok(());
        }
        self.check_at_ms = now_ms + CHECK_EVERY_MS;
        self.report_new_events(cx, watches, now_ms)?;
        if now_ms >= self.sweep_at_ms {
            self.sweep_at_ms = now_ms + SWEEP_EVERY_MS;
            let dropped = cx
                .frontier
                .run_in_transaction(|db| outbox::drop_expired(db, now_ms))?;
            self.dropped.extend(dropped);
        }
        // A waiting notification may raise an alert long before its next attempt.
        let has_waiting = self.due_at_ms < i64::MAX || !self.dropped.is_empty();
        if has_waiting && now_ms >= self.judge_at_ms {
            self.judge_at_ms = now_ms + JUDGE_EVERY_MS;
            self.raise_overdue_alerts(cx, watches, now_ms)?;
        }
        if now_ms >= self.due_at_ms {
            self.collect_due_deliveries(cx, now_ms)?;
        }
        Ok(())
    }

    fn collect_due_deliveries(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let attempts = &mut self.attempts;
        let (due, next_ms) = cx
            .frontier
            .run_in_transaction(|db| attempts.take_due_deliveries(db, now_ms))?;
        self.deliveries.extend(due);
        self.due_at_ms = next_ms.map_or(i64::MAX, |ms| ms.max(now_ms + CHECK_EVERY_MS));
        Ok(())
    }

    /// Records the result of a delivery.
    pub(super) fn on_delivery_ended(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        ended: &DeliveryEnd,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let attempts = &mut self.attempts;
        let settled = cx
            .frontier
            .run_in_transaction(|db| attempts.settle(db, ended, now_ms))?;
        let Some(target) = settled else {
            return Ok(());
        };
        cx.counters.deliveries.count_verdict(&ended.verdict);
        log_delivery_end(&target, &ended.verdict);
        self.due_at_ms = now_ms;
        self.check_at_ms = now_ms;
        match &ended.verdict {
            Verdict::Delivered => self.clear_delivery_alert(cx, watches, &target, now_ms),
            Verdict::Dropped(why) => self.raise_delivery_alert(
                cx,
                watches,
                Undelivered {
                    target,
                    since_ms: now_ms,
                    why: why.clone(),
                },
                now_ms,
            ),
            Verdict::Failed(_) => Ok(()),
        }
    }

    /// The status of a watch: its silence, waiting notifications, and recent deliveries.
    pub(super) fn notifications_json(
        &mut self,
        cx: &mut Context,
        watch: &str,
    ) -> Result<Value, FrontierError> {
        let (waiting, last) = cx
            .frontier
            .run_in_transaction(|db| outbox::load_watch_notifications(db, watch, SHOWN))?;
        let reported = self.reported.iter();
        let reported = reported.filter(|((name, _), _)| name == watch);
        let silent: BTreeMap<&String, Value> = reported
            .flat_map(|(_, reported)| &reported.silent)
            .map(|(name, reported)| {
                let since = reported.since_ms as f64 / 1_000.0;
                (
                    name,
                    json!({"silence": name, "since": since, "why": reported.why}),
                )
            })
            .collect();
        let undelivered = self.undelivered.iter();
        let undelivered: Vec<Value> = undelivered
            .filter(|one| one.target.0 == watch)
            .map(alerts::alert_json)
            .collect();
        Ok(json!({
            "silent": silent.into_values().collect::<Vec<_>>(),
            "notifications": {"waiting": waiting, "undelivered": undelivered, "last": last},
        }))
    }

    /// How many watches with recipients are silent.
    pub(super) fn count_silent_watches(&self) -> usize {
        let reported = self.reported.iter();
        let silent = reported.filter(|(_, reported)| !reported.silent.is_empty());
        let silent: BTreeSet<&str> = silent.map(|((watch, _), _)| &**watch).collect();
        silent.len()
    }

    /// The number of targets that notifications do not reach.
    pub(super) fn count_unreached_targets(&self) -> usize {
        self.undelivered.len()
    }

    /// The targets that notifications do not reach, for `status`.
    pub(super) fn undelivered_rows(&self) -> Vec<Value> {
        self.undelivered.iter().map(alerts::alert_json).collect()
    }
}

fn log_delivery_end((watch, target): &TargetKey, verdict: &Verdict) {
    let target = outbox::target_for_display(target);
    match verdict {
        Verdict::Delivered => tracing::debug!(
            event = "notification_delivered",
            watch,
            target,
            "a notification was delivered"
        ),
        Verdict::Failed(why) => tracing::info!(
            event = "notification_failed",
            watch,
            target,
            why,
            "a notification could not be delivered, and is tried again"
        ),
        Verdict::Dropped(why) => tracing::error!(
            event = "notification_dropped",
            watch,
            target,
            why,
            "a notification was dropped"
        ),
    }
}
