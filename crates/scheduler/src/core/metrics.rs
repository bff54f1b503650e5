//! The core's metrics for Prometheus: counters that only grow during the life of the process, and current values. All
//! of them are in memory, and their cost is bounded by the window of sites. Another thread of the process counts
//! whatever must be read from the file.

use std::collections::{BTreeMap, BTreeSet};

use webfill_wire::{Lane, Outcome};

use crate::core::context::Context;
use crate::core::counters::Counters;
use crate::core::notifications::Notifications;
use crate::core::watches::Watches;
use crate::core::{Core, window};
use crate::dispatch::{FleetMetrics, count_due_sites};

/// The core's metrics, as they are published for Prometheus.
#[derive(Debug, Clone, Default)]
pub struct CoreMetrics {
    pub counters: Counters,
    /// Tasks that have ended since the start.
    pub ended: BTreeMap<Outcome, u64>,
    pub fleet: FleetMetrics,
    pub leases: usize,
    pub sites_in_window: usize,
    pub window_sites: usize,
    pub sites_set_aside: usize,
    /// The longest time that a due site has waited although its tasks could be handed out.
    pub oldest_due_ms: i64,
    /// How many sites in memory could be fetched from at once, by the lane of their next tasks.
    pub due_sites: BTreeMap<Lane, usize>,
    pub watches: WatchMetrics,
    /// The number of targets that notifications do not reach.
    pub targets_unreached: usize,
    /// The number of current extraction alerts; `None`: not known yet.
    pub extraction_alerts: Option<usize>,
    pub is_disk_low: bool,
    pub is_draining: bool,
    /// The core's conditions that hold back tasks. The process adds the conditions of the store.
    pub conditions: HoldConditions,
}

/// Conditions that hold back queued tasks and are not stored in the frontier's file.
#[derive(Debug, Clone, Default)]
pub struct HoldConditions {
    /// Whether a connected supervisor fetches pages of the lane `http`.
    pub serves_http: bool,
    pub serves_browser: bool,
    /// Whether nothing at all is handed out.
    pub is_held: bool,
    pub is_store_away: bool,
    /// Applications whose page limit is used up, so that their crawls wait.
    pub spent: BTreeSet<String>,
    /// Applications whose crawls wait for the pace of the application, or for one of its sites to finish.
    pub paced: BTreeSet<String>,
}

impl HoldConditions {
    pub fn serves(&self, lane: Lane) -> bool {
        self.serves_browser || (lane == Lane::Http && self.serves_http)
    }
}

/// The number of watches, by state.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchMetrics {
    pub running: usize,
    pub paused: usize,
    pub waiting: usize,
    /// The number of watches, in any state, that are silent: they have no results or runs when some are expected. Only
    /// watches with recipients are judged.
    pub silent: usize,
}

impl Core {
    pub fn metrics(&mut self, now_ms: i64) -> CoreMetrics {
        CoreMetrics {
            counters: self.cx.counters.clone(),
            ended: self.cx.frontier.ended_tasks_by_outcome().clone(),
            fleet: self.cx.dispatch.fleet.metrics(),
            leases: self.cx.dispatch.leases.count(),
            sites_in_window: self.cx.dispatch.schedule.count_sites_in_window(),
            window_sites: self.cx.settings.window_sites,
            sites_set_aside: self.cx.dispatch.schedule.count_set_aside_sites(),
            oldest_due_ms: window::longest_overdue_ms(&mut self.cx, now_ms),
            due_sites: count_due_sites(&self.cx.dispatch, now_ms),
            watches: watch_metrics(&self.watches, &self.notifications),
            targets_unreached: self.notifications.count_unreached_targets(),
            extraction_alerts: self
                .cx
                .surroundings
                .standing
                .as_ref()
                .map(|now| now.alerts.len()),
            is_disk_low: self.cx.surroundings.low_disk.is_some(),
            is_draining: self.cx.draining,
            conditions: hold_conditions(&self.cx, now_ms),
        }
    }
}

fn hold_conditions(cx: &Context, now_ms: i64) -> HoldConditions {
    let (spent, paced) = cx.frontier.apps_waiting_at_limits();
    HoldConditions {
        serves_http: cx.dispatch.fleet.connected_lanes().next().is_some(),
        serves_browser: cx.frontier.has_browsers(),
        is_held: cx.hold_reason(now_ms).is_some(),
        is_store_away: false,
        spent,
        paced,
    }
}

fn watch_metrics(watches: &Watches, notifications: &Notifications) -> WatchMetrics {
    let mut metrics = WatchMetrics::default();
    for watched in watches.by_name.values() {
        *match (watched.has_current_run(), watched.is_paused()) {
            (true, _) => &mut metrics.running,
            (false, true) => &mut metrics.paused,
            (false, false) => &mut metrics.waiting,
        } += 1;
    }
    metrics.silent = notifications.count_silent_watches();
    metrics
}
