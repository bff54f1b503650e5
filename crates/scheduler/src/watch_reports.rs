//! Reports on watches: new events become notifications in the [`outbox`], which are delivered, with retries. Used by
//! the core of a fleet's dispatcher, and by a run on one machine, whose dispatcher has ended by then. Both pass in a
//! connection to the frontier's file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, Result};
use webfill_api::{NotificationTime, Notify, Watch};
use webfill_notifications::{
    Delivery, DeliveryEnd, Event, Facts, Reported, Verdict, compose, retry_wait_ms,
};

use crate::frontier::outbox::{self, TargetKey, Undelivered};

/// The maximum number of simultaneous deliveries.
const MOST_UNDER_WAY: usize = 32;

const TIMES: [NotificationTime; 2] = [NotificationTime::Digest, NotificationTime::AtOnce];

/// The targets of a watch, as the outbox (the stored notifications to be sent) keeps them.
pub fn target_keys(watch: &Watch) -> BTreeSet<String> {
    let targets = watch.notify.iter();
    targets
        .map(|notify| outbox::target_json(&notify.target))
        .collect()
}

/// Begins to report on a watch. Earlier events are not reported to new recipients, who start from the state `fresh`,
/// and former recipients get nothing more. Returns the reported state for each notification time.
pub fn update_reporting(
    db: &Connection,
    watch: &Watch,
    fresh: &Reported,
    now_ms: i64,
) -> Result<BTreeMap<NotificationTime, Reported>> {
    outbox::drop_removed_targets(db, &watch.name, &target_keys(watch), now_ms)?;
    let mut all = BTreeMap::new();
    for time in TIMES {
        if !watch.notify.iter().any(|notify| notify.when == time) {
            outbox::delete_reported(db, &watch.name, time)?;
            continue;
        }
        let reported = match outbox::load_reported(db, &watch.name, time)? {
            Some(reported) => reported,
            None => {
                outbox::save_reported(db, &watch.name, time, fresh)?;
                fresh.clone()
            }
        };
        all.insert(time, reported);
    }
    Ok(all)
}

/// Adds the events since `reported` to the notifications that wait for delivery, for the recipients of this
/// notification time. Returns the new reported state, and the notifications that were dropped to make room. The
/// caller's transaction ensures that this happens once.
pub fn enqueue_news(
    db: &Connection,
    time: NotificationTime,
    reported: &Reported,
    facts: &Facts<'_>,
) -> Result<(Reported, Vec<Undelivered>)> {
    let (events, reported) = reported.find_news(facts);
    let watch = facts.watch;
    let recipients = watch.notify.iter().filter(|notify| notify.when == time);
    let dropped = enqueue_events(db, watch, recipients, &events, facts.now_ms)?;
    outbox::save_reported(db, &watch.name, time, &reported)?;
    Ok((reported, dropped))
}

/// Adds notifications of events for the recipients that want them. Returns the notifications that were dropped to make
/// room.
pub fn enqueue_events<'w>(
    db: &Connection,
    watch: &Watch,
    recipients: impl Iterator<Item = &'w Notify>,
    events: &[Event],
    now_ms: i64,
) -> Result<Vec<Undelivered>> {
    let mut dropped = Vec::new();
    for notify in recipients {
        let notification = compose(watch, notify.when, &notify.about, events, now_ms);
        if let Some(notification) = notification {
            dropped.extend(outbox::enqueue(
                db,
                &watch.name,
                &notify.target,
                &notification,
                now_ms,
            )?);
        }
    }
    Ok(dropped)
}

/// The attempts to deliver notifications: one at a time for each target, at most [`MOST_UNDER_WAY`] in all.
#[derive(Debug, Default)]
pub struct Attempts {
    under_way: BTreeMap<i64, TargetKey>,
    /// The number of consecutive failures to reach each target.
    failures: HashMap<TargetKey, u32>,
}

impl Attempts {
    /// Whether no attempt is in progress.
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Takes the due notifications, and returns when the next ones are due.
    pub fn take_due_deliveries(
        &mut self,
        db: &Connection,
        now_ms: i64,
    ) -> Result<(Vec<Delivery>, Option<i64>)> {
        let free = MOST_UNDER_WAY.saturating_sub(self.under_way.len());
        let is_busy = |key: &TargetKey| self.under_way.values().any(|busy| busy == key);
        let due = outbox::list_due(db, now_ms, free, is_busy)?;
        let next_ms = outbox::next_due_ms(db)?;
        let mut deliveries = Vec::with_capacity(due.len());
        for (target, delivery) in due {
            self.under_way.insert(delivery.id, target);
            deliveries.push(delivery);
        }
        Ok((deliveries, next_ms))
    }

    /// Settles an attempt that has ended. After a failure the target waits, twice as long each time. Returns the
    /// target; `None` if the attempt is unknown.
    pub fn settle(
        &mut self,
        db: &Connection,
        ended: &DeliveryEnd,
        now_ms: i64,
    ) -> Result<Option<TargetKey>> {
        let Some(target) = self.under_way.remove(&ended.id) else {
            return Ok(None);
        };
        let failures = match &ended.verdict {
            Verdict::Delivered => {
                self.failures.remove(&target);
                0
            }
            Verdict::Failed(_) | Verdict::Dropped(_) => {
                let failures = self.failures.entry(target.clone()).or_default();
                *failures = failures.saturating_add(1);
                *failures
            }
        };
        let at = (now_ms, now_ms + retry_wait_ms(failures));
        outbox::record_attempt(db, (ended.id, &target), &ended.verdict, at)?;
        Ok(Some(target))
    }

    /// Forgets the failures of a watch's targets.
    pub fn forget(&mut self, watch: &str) {
        self.failures.retain(|(name, _), _| name != watch);
    }
}
