//! The state of one mapping: its health, the events to report, and an alert that is held back.

use std::time::Instant;

use webfill_health::{Event, MappingHealth};
use webfill_store::{Cursor, Store, StoreError};

use super::report::{AlertEvent, Owner, Report};
use super::{blocked, pinned};

/// The state of one mapping, with what is not stored or reported yet.
#[derive(Default)]
pub(super) struct JudgedMapping {
    pub(super) health: MappingHealth,
    /// The position after the last page that this state includes. All earlier pages of the mapping are included, too.
    pub(super) cursor: Cursor,
    /// The stored revision; 0 if nothing is stored.
    pub(super) revision: u64,
    pub(super) is_unsaved: bool,
    /// The time of the alert that already has enough kept sample pages.
    pinned: Option<String>,
    /// Reports to send once the state is stored.
    events: Vec<(Owner, Event)>,
    /// Since when the alert has been held back, and when its sites were last checked.
    held_since: Option<Instant>,
    asked_at: Option<Instant>,
}

impl JudgedMapping {
    /// The state of a mapping before its first page is judged.
    pub(super) fn new(name: &str) -> JudgedMapping {
        JudgedMapping {
            health: MappingHealth::new(name),
            ..JudgedMapping::default()
        }
    }

    /// The state as it was stored.
    pub(super) fn from_stored(
        health: MappingHealth,
        cursor: Cursor,
        revision: u64,
    ) -> JudgedMapping {
        JudgedMapping {
            health,
            cursor,
            revision,
            ..JudgedMapping::default()
        }
    }

    /// While an alert stands, keeps texts of pages that show it, until there are enough.
    pub(super) async fn pin_pages(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if let Some(alert) = self.health.alert()
            && self.pinned.as_deref() != Some(&*alert.raised_at)
            && pinned::copy_samples(store, alert).await?
        {
            self.pinned = Some(alert.raised_at.clone());
        }
        Ok(())
    }

    /// Takes over the events of a page. A new alert is held back at first.
    pub(super) fn add_events(&mut self, events: Vec<Event>, owner: &Owner) {
        for event in events {
            match event {
                Event::LayoutChanged => {
                    self.health.hold_alert();
                    self.held_since = Some(Instant::now());
                }
                // An alert that is held back will be reported with all of its fields.
                Event::MoreFell if self.health.holds_alert() => {}
                event => self.events.push((owner.clone(), event)),
            }
        }
    }

    /// Withdraws an alert about pages of blocked sites, and reports one that was held back long enough.
    pub(super) async fn settle_alert(
        &mut self,
        store: &dyn Store,
        is_last: bool,
    ) -> Result<(), StoreError> {
        let is_held = self.health.holds_alert();
        if !is_held && self.health.alert().is_none() {
            return Ok(());
        }
        let is_due = is_last || is_held || !is_within(self.asked_at, blocked::ASK_EVERY);
        if !is_due {
            return Ok(());
        }
        self.asked_at = Some(Instant::now());
        // The previous process may have held the alert back.
        let since = *self.held_since.get_or_insert_with(Instant::now);
        let owner = self.health.evidence().last().map(|page| page.id.clone());
        let owner = Owner::from_page_id(&owner.unwrap_or_default());
        if blocked::check_and_drop_blocked(store, &mut self.health).await? {
            self.is_unsaved = true;
            self.held_since = None;
            let withdrawn = self.health.withdraw_alert();
            self.events.extend(withdrawn.map(|event| (owner, event)));
        } else if is_held && (is_last || !is_within(Some(since), blocked::HOLD)) {
            self.is_unsaved = true;
            self.held_since = None;
            self.health.release_alert();
            self.events.push((owner, Event::LayoutChanged));
        }
        Ok(())
    }

    /// The reports to send. A standing alert is reported only once.
    pub(super) fn take_due_reports(&mut self) -> Vec<Report> {
        let health = &self.health;
        let mut has_standing = false;
        let reports = self.events.drain(..).filter_map(|(owner, event)| {
            if event.concerns_standing_alert() && std::mem::replace(&mut has_standing, true) {
                return None;
            }
            let what = match event {
                // An alert that is already cleared is skipped here; its end is reported.
                Event::LayoutChanged => AlertEvent::Raised(health.alert()?.clone()),
                Event::MoreFell => AlertEvent::MoreFell(health.alert()?.clone()),
                Event::Cleared(alert) => AlertEvent::Cleared(alert),
                Event::Warned(warning) => AlertEvent::Warned(warning),
            };
            Some(Report { owner, what })
        });
        reports.collect()
    }
}

fn is_within(since: Option<Instant>, time: std::time::Duration) -> bool {
    since.is_some_and(|since| since.elapsed() < time)
}
