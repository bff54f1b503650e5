//! What is told of watches, and when notices go out. What is told, and the notices of it, are kept in the same
//! transaction ([`outbox`]); the caller delivers what was committed ([`Core::take_deliveries`]) and says what
//! has become of it. A notice that was under way at a crash is delivered again, under the same key.
//!
//! A target that notices do not reach for some time is an alarm of its own: in the log, on the firehose, in
//! `status`, and told by the other targets of the watch, until a notice arrives.

mod alarms;
mod changes;
mod telling;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};
use webfill_api::NoticeTime;
use webfill_notices::{Delivery, Ended, Permissions, Told, Verdict, wait_ms};

use self::changes::Reading;
pub(crate) use self::changes::{ChangesAnswer, ChangesAsked, ChangesFound, ChangesQuestion};
use super::Core;
use crate::frontier::FrontierError;
use crate::frontier::outbox::{self, TargetKey, Undelivered};

/// How often it is looked whether there is something to tell.
const LOOK_EVERY_MS: i64 = 500;

/// How often it is looked whether a target is not reached.
const JUDGE_EVERY_MS: i64 = 1_000;

/// After a start what waits is tried before it may be an alarm: nobody could deliver it before.
const FIRST_TRIES_MS: i64 = 60_000;

/// How often old notices are dropped.
const SWEEP_EVERY_MS: i64 = 3_600_000;

/// So many notices are under way at once.
const MOST_UNDER_WAY: usize = 32;

/// So many notices of a watch are shown.
const SHOWN: u64 = 10;

/// What of the notices is in memory.
#[derive(Default)]
pub(super) struct Notices {
    /// What they may use; `None`: this dispatcher has no watches.
    pub(super) permissions: Option<Permissions>,
    look_at_ms: i64,
    due_at_ms: i64,
    judge_at_ms: i64,
    sweep_at_ms: i64,
    /// What has been told, as it is kept.
    told: BTreeMap<(String, NoticeTime), Told>,
    /// What is known of watches' changes, by the watch's name, and what is to be asked.
    reading: BTreeMap<String, Reading>,
    asked: Vec<ChangesAsked>,
    under_way: BTreeMap<i64, TargetKey>,
    /// How often in a row notices have not reached a target.
    failures: HashMap<TargetKey, u32>,
    deliveries: Vec<Delivery>,
    /// The targets whose alarm stands.
    undelivered: Vec<Undelivered>,
    /// What was given up without a try, an alarm each.
    given_up: Vec<Undelivered>,
}

impl Core {
    /// Notices are told and delivered from now on; all that waits is tried at once.
    pub(crate) fn attend_notices(
        &mut self,
        permissions: Permissions,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let grace_ms = permissions
            .config
            .undelivered_after_ms()
            .min(FIRST_TRIES_MS);
        self.notices.judge_at_ms = now_ms + grace_ms;
        self.notices.sweep_at_ms = now_ms + SWEEP_EVERY_MS;
        self.notices.permissions = Some(permissions);
        self.notices.undelivered = self.frontier.beside(|db| {
            outbox::begin(db, now_ms)?;
            outbox::undelivered(db)
        })?;
        let names: Vec<String> = self.watches.by_name.keys().cloned().collect();
        for name in names {
            self.begin_telling(&name, now_ms)?;
            self.resume_reading(&name);
        }
        Ok(())
    }

    /// Tells what is new, and finds out what is to be delivered.
    pub(super) fn advance_notices(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        if self.notices.permissions.is_none() || now_ms < self.notices.look_at_ms {
            return Ok(());
        }
        self.notices.look_at_ms = now_ms + LOOK_EVERY_MS;
        self.tell_news(now_ms)?;
        if now_ms >= self.notices.sweep_at_ms {
            self.notices.sweep_at_ms = now_ms + SWEEP_EVERY_MS;
            let given_up = self.frontier.beside(|db| outbox::sweep(db, now_ms))?;
            self.notices.given_up.extend(given_up);
        }
        // What waits may become an alarm long before it is tried again.
        let has_waiting = self.notices.due_at_ms < i64::MAX || !self.notices.given_up.is_empty();
        if has_waiting && now_ms >= self.notices.judge_at_ms {
            self.notices.judge_at_ms = now_ms + JUDGE_EVERY_MS;
            self.judge_undelivered(now_ms)?;
        }
        if now_ms >= self.notices.due_at_ms {
            self.order_deliveries(now_ms)?;
        }
        Ok(())
    }

    fn order_deliveries(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let notices = &mut self.notices;
        let free = MOST_UNDER_WAY.saturating_sub(notices.under_way.len());
        let (due, next_ms) = self.frontier.beside(|db| {
            let is_busy = |key: &TargetKey| notices.under_way.values().any(|busy| busy == key);
            let due = outbox::due(db, now_ms, free, is_busy)?;
            Ok((due, outbox::next_due_ms(db)?))
        })?;
        for (target, delivery) in due {
            notices.under_way.insert(delivery.id, target);
            notices.deliveries.push(delivery);
        }
        notices.due_at_ms = next_ms.map_or(i64::MAX, |ms| ms.max(now_ms + LOOK_EVERY_MS));
        Ok(())
    }

    /// The notices that are to be delivered, once what they tell is committed.
    pub(crate) fn take_deliveries(&mut self) -> Vec<Delivery> {
        std::mem::take(&mut self.notices.deliveries)
    }

    /// Notes what has become of a delivery.
    pub(crate) fn delivery_ended(
        &mut self,
        ended: &Ended,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let Some(target) = self.notices.under_way.remove(&ended.id) else {
            return Ok(());
        };
        self.counters.deliveries.count(&ended.verdict);
        let failures = match &ended.verdict {
            Verdict::Delivered => {
                self.notices.failures.remove(&target);
                0
            }
            Verdict::Failed(_) | Verdict::GivenUp(_) => {
                let failures = self.notices.failures.entry(target.clone()).or_default();
                *failures = failures.saturating_add(1);
                *failures
            }
        };
        let again_ms = now_ms + wait_ms(failures);
        let at = (now_ms, again_ms);
        self.frontier
            .beside(|db| outbox::settle(db, (ended.id, &target), &ended.verdict, at))?;
        log_end(&target, &ended.verdict);
        self.notices.due_at_ms = now_ms;
        self.notices.look_at_ms = now_ms;
        match &ended.verdict {
            Verdict::Delivered => self.clear_undelivered(&target, now_ms),
            Verdict::GivenUp(why) => self.raise_undelivered(
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

    /// What is shown of a watch: blindness that stands, notices that wait or were delivered lately.
    pub(super) fn show_notices(&mut self, watch: &str) -> Result<Value, FrontierError> {
        let (waiting, last) = self
            .frontier
            .beside(|db| outbox::of_watch(db, watch, SHOWN))?;
        let told = self.notices.told.iter();
        let told = told.filter(|((name, _), _)| name == watch);
        let blind: BTreeMap<&String, Value> = told
            .flat_map(|(_, told)| &told.blind)
            .map(|(name, told)| {
                let since = told.since_ms as f64 / 1_000.0;
                (
                    name,
                    json!({"blindness": name, "since": since, "why": told.why}),
                )
            })
            .collect();
        let undelivered = self.notices.undelivered.iter();
        let undelivered: Vec<Value> = undelivered
            .filter(|one| one.target.0 == watch)
            .map(alarms::row)
            .collect();
        Ok(json!({
            "blind": blind.into_values().collect::<Vec<_>>(),
            "notices": {"waiting": waiting, "undelivered": undelivered, "last": last},
        }))
    }

    /// How many watches are blind, of those that somebody is told of.
    pub(super) fn blind_watches(&self) -> usize {
        let told = self.notices.told.iter();
        let blind = told.filter(|(_, told)| !told.blind.is_empty());
        let blind: BTreeSet<&str> = blind.map(|((watch, _), _)| &**watch).collect();
        blind.len()
    }

    /// How many targets notices do not reach.
    pub(super) fn unreached_targets(&self) -> usize {
        self.notices.undelivered.len()
    }

    /// The targets that notices do not reach, for `status`.
    pub(super) fn undelivered_rows(&self) -> Vec<Value> {
        self.notices.undelivered.iter().map(alarms::row).collect()
    }
}

fn log_end((watch, target): &TargetKey, verdict: &Verdict) {
    let target = outbox::shown(target);
    match verdict {
        Verdict::Delivered => tracing::debug!(
            event = "notice_delivered",
            watch,
            target,
            "a notice was delivered"
        ),
        Verdict::Failed(why) => tracing::info!(
            event = "notice_failed",
            watch,
            target,
            why,
            "a notice could not be delivered, and is tried again"
        ),
        Verdict::GivenUp(why) => tracing::error!(
            event = "notice_given_up",
            watch,
            target,
            why,
            "a notice is given up"
        ),
    }
}
