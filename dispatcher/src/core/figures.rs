//! What the core tells of itself, for Prometheus: counters that only grow while the process lives, and how
//! things are now. Everything is in memory, and its cost is bounded by the window of sites; what must be read
//! from the file is counted by another thread ([`crate::metrics`]).

use std::collections::BTreeMap;

use webfill_notifications::Verdict;
use webfill_wire::{BackoffReason, Outcome};

use super::Core;
use crate::dispatch::FleetFigures;
use crate::frontier::NothingHandedOut;
use crate::metrics::Conditions;

/// What has happened since the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: u64,
    pub(crate) handed_out: u64,
    /// Given back without an outcome.
    pub(crate) returned: u64,
    /// Outcomes that were followed by another try.
    pub(crate) retried: u64,
    /// Outcomes that came too late.
    pub(crate) stale: u64,
    pub(crate) backoff: BTreeMap<BackoffReason, u64>,
    /// Sites that had nothing to hand out in their turn.
    pub(crate) set_aside: BTreeMap<NothingHandedOut, u64>,
    pub(crate) supervisors_lost: u64,
    pub(crate) deliveries: Deliveries,
}

/// What has become of tries to deliver notifications.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deliveries {
    pub(crate) delivered: u64,
    pub(crate) failed: u64,
    pub(crate) unreachable: u64,
}

impl Deliveries {
    pub(super) fn count(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Delivered => &mut self.delivered,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::Unreachable(_) => &mut self.unreachable,
        } += 1;
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct CoreFigures {
    pub(crate) counters: Counters,
    /// Tasks that have ended since the start.
    pub(crate) ended: BTreeMap<Outcome, u64>,
    pub(crate) fleet: FleetFigures,
    pub(crate) leases: usize,
    pub(crate) sites_in_window: usize,
    pub(crate) window_sites: usize,
    pub(crate) sites_set_aside: usize,
    /// For how long the site that waits longest could have been fetched from.
    pub(crate) oldest_due_ms: i64,
    pub(crate) watches: WatchFigures,
    /// Targets that notifications do not reach.
    pub(crate) targets_unreached: usize,
    /// `None`: they are not known yet.
    pub(crate) extraction_alerts: Option<usize>,
    pub(crate) is_disk_low: bool,
    pub(crate) is_draining: bool,
    /// For what is counted in the file; without what the store does.
    pub(crate) conditions: Conditions,
}

/// Watches, by what they do.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WatchFigures {
    pub(crate) running: usize,
    pub(crate) paused: usize,
    pub(crate) waiting: usize,
    /// Of all of these; only watches that somebody is told of are judged.
    pub(crate) silent: usize,
}

impl Core {
    pub(crate) fn figures(&mut self, now_ms: i64) -> CoreFigures {
        CoreFigures {
            counters: self.counters.clone(),
            ended: self.frontier.ended().clone(),
            fleet: self.dispatch.fleet_figures(),
            leases: self.dispatch.leases_out(),
            sites_in_window: self.dispatch.sites_in_window(),
            window_sites: self.settings.window_sites,
            sites_set_aside: self.dispatch.sites_set_aside(),
            oldest_due_ms: self.oldest_due_ms(now_ms),
            watches: self.watch_figures(),
            targets_unreached: self.unreached_targets(),
            extraction_alerts: self.standing.as_ref().map(|now| now.alerts.len()),
            is_disk_low: self.low_disk.is_some(),
            is_draining: self.draining,
            conditions: self.conditions(now_ms),
        }
    }

    fn conditions(&self, now_ms: i64) -> Conditions {
        let (spent, paced) = self.frontier.waiting_applications();
        Conditions {
            serves_http: self.dispatch.supervisors().next().is_some(),
            serves_browser: self.frontier.has_browsers(),
            is_held: self.holds(now_ms).is_some(),
            is_store_away: false,
            spent,
            paced,
        }
    }

    /// Inside the window each site is looked at; of those outside, the one that is due first stands for
    /// all. When the window is to be filled again (`next_site_ms`) says nothing of whether a site waits.
    pub(in crate::core) fn oldest_due_ms(&mut self, now_ms: i64) -> i64 {
        let inside_ms = self.dispatch.oldest_due_ms(now_ms);
        // A frontier that has failed ends the process at its next turn.
        let first_ms = self.frontier.next_due_ms().ok().flatten();
        let Some(first_ms) = first_ms.filter(|due_ms| *due_ms <= now_ms) else {
            self.outside_due_since_ms = None;
            return inside_ms;
        };
        let since_ms = *self.outside_due_since_ms.get_or_insert(now_ms);
        inside_ms.max(now_ms - since_ms.max(first_ms))
    }

    fn watch_figures(&self) -> WatchFigures {
        let mut figures = WatchFigures::default();
        for watched in self.watches.by_name.values() {
            *match (watched.is_under_way(), watched.is_paused()) {
                (true, _) => &mut figures.running,
                (false, true) => &mut figures.paused,
                (false, false) => &mut figures.waiting,
            } += 1;
        }
        figures.silent = self.silent_watches();
        figures
    }
}
