//! Targets that notifications do not reach.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_api::About;
use webfill_notifications::Event;

use crate::core::context::Context;
use crate::core::notifications::Notifications;
use crate::core::watches::Watches;
use crate::effects::OutgoingMessage;
use crate::frontier::FrontierError;
use crate::frontier::outbox::{self, TargetKey, Undelivered};
use crate::watch_reports;

impl Notifications {
    /// Raises alerts for targets that notifications have not reached for long.
    pub(super) fn raise_overdue_alerts(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let Some(permissions) = &self.permissions else {
            return Ok(());
        };
        let before_ms = now_ms - permissions.config.undelivered_after_ms();
        let overdue = cx
            .frontier
            .run_in_transaction(|db| outbox::list_overdue(db, before_ms))?;
        let dropped = std::mem::take(&mut self.dropped);
        for one in dropped.into_iter().chain(overdue) {
            self.raise_delivery_alert(cx, watches, one, now_ms)?;
        }
        Ok(())
    }

    /// Drops the alerts of targets that were removed from a watch.
    pub(super) fn drop_alerts_of_removed_targets(
        &mut self,
        cx: &mut Context,
        name: &str,
        targets: &BTreeSet<String>,
    ) -> Result<(), FrontierError> {
        let standing = self.undelivered.iter().map(|one| &one.target);
        let taken_out =
            standing.filter(|(watch, target)| watch == name && !targets.contains(target));
        let taken_out: Vec<TargetKey> = taken_out.cloned().collect();
        for target in taken_out {
            self.delete_delivery_alert(cx, &target)?;
        }
        Ok(())
    }

    pub(super) fn raise_delivery_alert(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        one: Undelivered,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let mut standing = self.undelivered.iter();
        let stands = standing.any(|standing| standing.target == one.target);
        if stands || !is_target(watches, &one.target) {
            return Ok(());
        }
        cx.frontier
            .run_in_transaction(|db| outbox::save_undelivered(db, &one))?;
        let (watch, target) = (&one.target.0, outbox::target_for_display(&one.target.1));
        tracing::error!(
            event = "notifications_undelivered",
            watch,
            target,
            why = one.why,
            "notifications do not reach a target"
        );
        let line = format!("notifications do not reach {target}: {}", one.why);
        self.report_delivery_alert(
            cx,
            watches,
            &one.target,
            ("notifications_undelivered", line, alert_json(&one)),
            now_ms,
        )?;
        self.undelivered.push(one);
        Ok(())
    }

    pub(super) fn clear_delivery_alert(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        target: &TargetKey,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let mut standing = self.undelivered.iter();
        let Some(one) = standing.find(|one| one.target == *target).cloned() else {
            return Ok(());
        };
        self.delete_delivery_alert(cx, target)?;
        let (watch, shown) = (&target.0, outbox::target_for_display(&target.1));
        tracing::info!(
            event = "notifications_delivered_again",
            watch,
            target = shown,
            "notifications reach a target again"
        );
        let line = format!("notifications reach {shown} again");
        self.report_delivery_alert(
            cx,
            watches,
            target,
            ("notifications_delivered_again", line, alert_json(&one)),
            now_ms,
        )
    }

    fn delete_delivery_alert(
        &mut self,
        cx: &mut Context,
        target: &TargetKey,
    ) -> Result<(), FrontierError> {
        self.undelivered.retain(|one| one.target != *target);
        cx.frontier
            .run_in_transaction(|db| outbox::delete_undelivered(db, target))
    }

    /// Reports that a target is not reached, or is reached again: to the firehose and to the other targets of the
    /// watch, immediately.
    fn report_delivery_alert(
        &mut self,
        cx: &mut Context,
        watches: &Watches,
        (watch, target): &TargetKey,
        (name, line, detail): (&'static str, String, Value),
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let Some(watched) = watches.by_name.get(watch) else {
            return Ok(());
        };
        let watch = &watched.watch;
        let mut notification = json!({"action": name, "appid": watch.app, "crawlid": watch.name});
        if let (Value::Object(notification), Value::Object(more)) =
            (&mut notification, detail.clone())
        {
            notification.extend(more);
        }
        cx.outgoing.push(OutgoingMessage::Notification {
            app_id: watch.app.clone(),
            notification,
        });
        let event = [Event {
            about: About::Delivery,
            name,
            line,
            detail,
        }];
        let others = watch.notify.iter();
        let others = others.filter(|notify| outbox::target_json(&notify.target) != *target);
        let dropped = cx.frontier.run_in_transaction(|db| {
            watch_reports::enqueue_events(db, watch, others, &event, now_ms)
        })?;
        self.dropped.extend(dropped);
        self.due_at_ms = now_ms;
        Ok(())
    }
}

fn is_target(watches: &Watches, (watch, target): &TargetKey) -> bool {
    let watched = watches.by_name.get(watch);
    let mut targets = watched
        .into_iter()
        .flat_map(|watched| &watched.watch.notify);
    targets.any(|notify| outbox::target_json(&notify.target) == *target)
}

/// The alert as shown to people and programs. Times are seconds since the epoch.
pub(super) fn alert_json(one: &Undelivered) -> Value {
    json!({
        "watch": one.target.0,
        "target": outbox::target_for_display(&one.target.1),
        "since": one.since_ms as f64 / 1_000.0,
        "why": one.why,
    })
}
