//! What the core tells of itself, for Prometheus: counters that only grow while the process lives, and how
//! things are now. Everything is in memory, and its cost is bounded by the window of sites; what must be read
//! from the file is counted by a thread of the process.

use std::collections::{BTreeMap, BTreeSet};

use webfill_notifications::Verdict;
use webfill_wire::{BackoffReason, Lane, Outcome};

use crate::core::{Context, Core, Notifications, Watches};
use crate::dispatch::FleetFigures;
use crate::frontier::NothingHandedOut;

/// What has happened since the start.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    pub messages: Messages,
    pub accepted: u64,
    pub handed_out: u64,
    /// Given back without an outcome.
    pub returned: u64,
    /// Outcomes that were followed by another try.
    pub retried: u64,
    /// Outcomes that came too late.
    pub stale: u64,
    pub backoff: BTreeMap<BackoffReason, u64>,
    /// Sites that had nothing to hand out in their turn.
    pub set_aside: BTreeMap<NothingHandedOut, u64>,
    pub supervisors_lost: u64,
    pub deliveries: Deliveries,
}

/// How many messages have come from supervisors and gone to them since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Messages {
    pub received: u64,
    pub sent: u64,
}

/// What has become of tries to deliver notifications.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deliveries {
    pub delivered: u64,
    pub failed: u64,
    pub dropped: u64,
}

impl Deliveries {
    pub(super) fn count(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Delivered => &mut self.delivered,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::Dropped(_) => &mut self.dropped,
        } += 1;
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct CoreFigures {
    pub counters: Counters,
    /// Tasks that have ended since the start.
    pub ended: BTreeMap<Outcome, u64>,
    pub fleet: FleetFigures,
    pub leases: usize,
    pub sites_in_window: usize,
    pub window_sites: usize,
    pub sites_set_aside: usize,
    /// For how long the site that waits longest could have been fetched from.
    pub oldest_due_ms: i64,
    pub watches: WatchFigures,
    /// Targets that notifications do not reach.
    pub targets_unreached: usize,
    /// `None`: they are not known yet.
    pub extraction_alerts: Option<usize>,
    pub is_disk_low: bool,
    pub is_draining: bool,
    /// For what is counted in the file; without what the store does.
    pub conditions: Conditions,
}

/// Why queued tasks may have to wait, as far as the file does not say it.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// Lanes whose pages a connected supervisor fetches.
    pub serves_http: bool,
    pub serves_browser: bool,
    /// Nothing is handed out at all.
    pub is_held: bool,
    pub is_store_away: bool,
    /// Applications whose crawls wait because all their pages are spent.
    pub spent: BTreeSet<String>,
    /// Applications whose crawls wait for their pace, or for one of their sites.
    pub paced: BTreeSet<String>,
}

impl Conditions {
    pub fn serves(&self, lane: Lane) -> bool {
        self.serves_browser || (lane == Lane::Http && self.serves_http)
    }
}

/// Watches, by what they do.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchFigures {
    pub running: usize,
    pub paused: usize,
    pub waiting: usize,
    /// Of all of these; only watches that somebody is told of are judged.
    pub silent: usize,
}

impl Core {
    pub fn figures(&mut self, now_ms: i64) -> CoreFigures {
        CoreFigures {
            counters: self.cx.counters.clone(),
            ended: self.cx.frontier.ended().clone(),
            fleet: self.cx.dispatch.fleet.figures(),
            leases: self.cx.dispatch.leases.count(),
            sites_in_window: self.cx.dispatch.schedule.sites_in_window(),
            window_sites: self.cx.settings.window_sites,
            sites_set_aside: self.cx.dispatch.schedule.sites_set_aside(),
            oldest_due_ms: oldest_due_ms(&mut self.cx, now_ms),
            watches: watch_figures(&self.watches, &self.notifications),
            targets_unreached: self.notifications.unreached_targets(),
            extraction_alerts: self
                .cx
                .surroundings
                .standing
                .as_ref()
                .map(|now| now.alerts.len()),
            is_disk_low: self.cx.surroundings.low_disk.is_some(),
            is_draining: self.cx.draining,
            conditions: conditions(&self.cx, now_ms),
        }
    }
}

fn conditions(cx: &Context, now_ms: i64) -> Conditions {
    let (spent, paced) = cx.frontier.waiting_applications();
    Conditions {
        serves_http: cx.dispatch.fleet.present_lanes().next().is_some(),
        serves_browser: cx.frontier.has_browsers(),
        is_held: cx.holds(now_ms).is_some(),
        is_store_away: false,
        spent,
        paced,
    }
}

/// Inside the window each site is looked at; of those outside, the one that is due first stands for
/// all. When the window is to be filled again (`next_site_ms`) says nothing of whether a site waits.
pub(in crate::core) fn oldest_due_ms(cx: &mut Context, now_ms: i64) -> i64 {
    let inside_ms = {
        let dispatch = &mut cx.dispatch;
        dispatch.overdue.oldest_due_ms(&dispatch.schedule, now_ms)
    };
    // A frontier that has failed ends the process at its next turn.
    let first_ms = cx.frontier.sites().next_due_ms().ok().flatten();
    let Some(first_ms) = first_ms.filter(|due_ms| *due_ms <= now_ms) else {
        cx.window.outside_due_since_ms = None;
        return inside_ms;
    };
    let since_ms = *cx.window.outside_due_since_ms.get_or_insert(now_ms);
    inside_ms.max(now_ms - since_ms.max(first_ms))
}

fn watch_figures(watches: &Watches, notifications: &Notifications) -> WatchFigures {
    let mut figures = WatchFigures::default();
    for watched in watches.by_name.values() {
        *match (watched.is_under_way(), watched.is_paused()) {
            (true, _) => &mut figures.running,
            (false, true) => &mut figures.paused,
            (false, false) => &mut figures.waiting,
        } += 1;
    }
    figures.silent = notifications.silent_watches();
    figures
}
