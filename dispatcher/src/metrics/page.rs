//! The dispatcher's page of metrics. Every possible label of a series is present from the start, so that rates
//! include the first event of each kind. No label comes from the web.

use webfill_scheduler::core::Deliveries;
use webfill_scheduler::frontier::NothingHandedOut;
use webfill_service::last_backup::last_backup_ms;
use webfill_service::metrics::{
    Exposition, ReportedProcess, add_build, add_disk_low, add_disks, add_loop_age, add_messages,
    add_processes, add_starts,
};
use webfill_wire::{BackoffReason, Outcome};

use super::counts::Counts;
use super::waiting::{WaitReason, WaitTotals};
use super::{LoopMetrics, Shared, lock};

const SITE_STATES: [&str; 6] = [
    "in_window",
    "waiting",
    "parked",
    "backing_off",
    "unreachable",
    "idle",
];

impl Shared {
    pub(super) fn page(&self) -> String {
        let mut page = Exposition::default();
        add_build(&mut page);
        let own = ReportedProcess {
            pid: std::process::id(),
            labels: vec![("process", "dispatcher")],
        };
        add_processes(&mut page, &[own]);
        add_starts(&mut page, self.starts);
        add_disks(&mut page, &self.folders);
        page.gauge(
            "webfill_last_backup_timestamp_seconds",
            "When the last complete backup was begun, in seconds since the epoch; 0: none was made.",
        )
        .value(last_backup_ms(&self.state).unwrap_or(0) as f64 / 1_000.0);
        let (is_store_away, answers) = self.health.store_state();
        page.gauge("webfill_store_up", "Whether the store answers.")
            .value(u8::from(!is_store_away));
        page.histogram(
            "webfill_store_write_duration_seconds",
            "Writes of the dispatcher to the store, and checks of a store that is not written to.",
            &answers,
        );
        // The loop takes the locks, too, so nothing is written while holding them.
        let of_loop = lock(&self.loop_metrics).clone();
        if let Some(of_loop) = of_loop {
            of_loop.add_to(&mut page);
        }
        let counts = lock(&self.counts).clone();
        counts.add_to(&mut page, self.clock.now_ms());
        page.finish()
    }
}

impl LoopMetrics {
    fn add_to(&self, page: &mut Exposition) {
        add_loop_age(page, self.at);
        page.histogram(
            "webfill_turn_duration_seconds",
            "Turns of the dispatcher's loop, including their commit.",
            &self.turns,
        );
        add_messages(page, self.traffic.iter().map(|(socket, n)| (*socket, *n)));
        self.add_tasks_to(page);
        self.add_fleet_to(page);
        self.add_watches_to(page);
    }

    fn add_tasks_to(&self, page: &mut Exposition) {
        let counters = &self.core.counters;
        let mut ended = page.counter(
            "webfill_tasks_ended_total",
            "Tasks that have ended, by outcome.",
        );
        for outcome in Outcome::ALL {
            let count = self.core.ended.get(outcome).copied().unwrap_or(0);
            ended.add_series(&[("outcome", outcome.as_str())], count);
        }
        for (name, help, count) in [
            (
                "webfill_tasks_accepted_total",
                "URLs that became tasks.",
                counters.accepted,
            ),
            (
                "webfill_tasks_handed_out_total",
                "Tasks handed out to supervisors.",
                counters.handed_out,
            ),
            (
                "webfill_tasks_returned_total",
                "Tasks that came back without an outcome.",
                counters.returned,
            ),
            (
                "webfill_tasks_retried_total",
                "Outcomes that lead to a retry of the task.",
                counters.retried,
            ),
            (
                "webfill_outcomes_stale_total",
                "Outcomes that came too late and changed nothing.",
                counters.stale,
            ),
        ] {
            page.counter(name, help).value(count);
        }
        self.add_queue_to(page);
        let mut backoff = page.counter(
            "webfill_site_backoffs_total",
            "Backoffs of sites that have begun, by reason.",
        );
        for reason in BackoffReason::ALL {
            let count = counters.backoff.get(reason).copied().unwrap_or(0);
            backoff.add_series(&[("reason", reason.as_str())], count);
        }
        self.add_set_aside_to(page);
    }

    /// Adds the present state: leases, and the window of sites.
    fn add_queue_to(&self, page: &mut Exposition) {
        page.gauge("webfill_leases", "Tasks that supervisors hold.")
            .value(self.core.leases);
        page.gauge(
            "webfill_oldest_due_seconds",
            "How long the site that waits longest has been fetchable; 0: none waits.",
        )
        .value(self.core.oldest_due_ms as f64 / 1_000.0);
        page.gauge("webfill_window_sites", "Sites in the window.")
            .value(self.core.sites_in_window);
        page.gauge(
            "webfill_window_sites_limit",
            "Maximum number of sites in the window.",
        )
        .value(self.core.window_sites);
    }

    fn add_set_aside_to(&self, page: &mut Exposition) {
        page.gauge(
            "webfill_sites_set_aside",
            "Sites that are set aside because they repeatedly had nothing to hand out in their turn.",
        )
        .value(self.core.sites_set_aside);
        let mut set_aside = page.counter(
            "webfill_sites_set_aside_total",
            "Turns of sites that handed out nothing and changed nothing, by reason.",
        );
        for reason in NothingHandedOut::UNEXPECTED {
            let count = self
                .core
                .counters
                .set_aside
                .get(&reason)
                .copied()
                .unwrap_or(0);
            set_aside.add_series(&[("reason", reason.as_str())], count);
        }
    }

    fn add_fleet_to(&self, page: &mut Exposition) {
        let mut supervisors = page.gauge("webfill_supervisors", "Supervisors, by state.");
        for (state, count) in [
            ("connected", self.core.fleet.connected),
            ("silent", self.core.fleet.silent),
            ("draining", self.core.fleet.draining),
            ("awaited", self.core.fleet.awaited),
        ] {
            supervisors.add_series(&[("state", state)], count);
        }
        page.counter(
            "webfill_supervisors_lost_total",
            "Supervisors that were declared lost.",
        )
        .value(self.core.counters.supervisors_lost);
        page.gauge(
            "webfill_clock_skew_seconds",
            "Largest difference of a supervisor's clock from the dispatcher's.",
        )
        .value(self.core.fleet.clock_skew_ms as f64 / 1_000.0);
        add_disk_low(page, self.core.is_disk_low);
        page.gauge("webfill_draining", "Whether the dispatcher drains.")
            .value(u8::from(self.core.is_draining));
    }

    fn add_watches_to(&self, page: &mut Exposition) {
        let mut watches = page.gauge("webfill_watches", "Watches, by what they do.");
        for (state, count) in [
            ("running", self.core.watches.running),
            ("paused", self.core.watches.paused),
            ("waiting", self.core.watches.waiting),
        ] {
            watches.add_series(&[("state", state)], count);
        }
        page.gauge(
            "webfill_watches_silent",
            "Silent watches: without their usual results, or not running; only watches with recipients.",
        )
        .value(self.core.watches.silent);
        if let Some(alerts) = self.core.extraction_alerts {
            page.gauge(
                "webfill_extraction_alerts",
                "Mappings in force whose pages no longer yield their earlier values.",
            )
            .value(alerts);
        }
        page.gauge(
            "webfill_notification_targets_unreached",
            "Targets of watches that notifications do not reach.",
        )
        .value(self.core.targets_unreached);
        let Deliveries {
            delivered,
            failed,
            dropped,
        } = self.core.counters.deliveries;
        let mut tries = page.counter(
            "webfill_notification_deliveries_total",
            "Attempts to deliver notifications, by their result.",
        );
        tries.add_series(&[("result", "delivered")], delivered);
        tries.add_series(&[("result", "failed")], failed);
        tries.add_series(&[("result", "dropped")], dropped);
    }
}

impl Counts {
    fn add_to(&self, page: &mut Exposition, now_ms: i64) {
        if let Some(waits) = &self.waits {
            add_waits(page, waits, now_ms);
        }
        self.add_crawls_to(page);
        self.add_sites_to(page);
        if let Some(records) = self.records {
            let missing = records.records.saturating_sub(records.resolved);
            let mut states = page.gauge("webfill_records", "Records, by state.");
            states.add_series(&[("state", "resolved")], records.resolved);
            states.add_series(&[("state", "missing")], missing);
        }
        self.add_notifications_to(page, now_ms);
        if let Some(counted) = self.counted {
            page.gauge(
                "webfill_counts_age_seconds",
                "How long ago tasks, sites and records were counted.",
            )
            .value(counted.elapsed().as_secs_f64());
        }
    }

    fn add_crawls_to(&self, page: &mut Exposition) {
        let Some(crawls) = self.crawls else {
            return;
        };
        let mut tasks = page.gauge("webfill_tasks", "Tasks, by state.");
        tasks.add_series(&[("state", "queued")], crawls.queued);
        tasks.add_series(&[("state", "leased")], crawls.leased);
        tasks.add_series(&[("state", "done")], crawls.done);
        page.gauge("webfill_crawls", "Crawls that are known.")
            .value(crawls.crawls);
        page.gauge(
            "webfill_crawls_unfinished",
            "Crawls with tasks that are queued or handed out.",
        )
        .value(crawls.unfinished);
        page.gauge("webfill_crawls_paused", "Crawls that are paused.")
            .value(crawls.paused);
    }

    fn add_sites_to(&self, page: &mut Exposition) {
        let Some(sites) = &self.sites else {
            return;
        };
        let mut states = page.gauge("webfill_sites", "Sites, by state.");
        for state in SITE_STATES {
            let count = sites.by_state.get(state).copied().unwrap_or(0);
            states.add_series(&[("state", state)], count);
        }
        let mut backing_off = page.gauge(
            "webfill_sites_backing_off",
            "Sites that are backing off, by reason.",
        );
        for reason in BackoffReason::ALL {
            let count = sites.backing_off.get(reason.as_str()).copied().unwrap_or(0);
            backing_off.add_series(&[("reason", reason.as_str())], count);
        }
    }

    fn add_notifications_to(&self, page: &mut Exposition, now_ms: i64) {
        let Some(notifications) = self.notifications else {
            return;
        };
        page.gauge(
            "webfill_notifications_waiting",
            "Notifications that wait for delivery.",
        )
        .value(notifications.waiting);
        let age_ms = notifications
            .oldest_made_ms
            .map_or(0, |ms| (now_ms - ms).max(0));
        page.gauge(
            "webfill_notifications_oldest_seconds",
            "The age of the oldest notification that waits; 0: none does.",
        )
        .value(age_ms as f64 / 1_000.0);
    }
}

fn add_waits(page: &mut Exposition, waits: &WaitTotals, now_ms: i64) {
    let mut tasks = page.gauge(
        "webfill_queued_tasks",
        "Queued tasks, by the reason they wait.",
    );
    for waits_for in WaitReason::ALL {
        tasks.add_series(
            &[("waits_for", waits_for.as_str())],
            waits.for_reason(waits_for).tasks,
        );
    }
    let mut oldest = page.gauge(
        "webfill_queued_oldest_due_seconds",
        "How long the task that has waited longest could have been fetched, were it not for this reason; 0: none waits.",
    );
    for waits_for in WaitReason::ALL {
        let since_ms = waits.for_reason(waits_for).since_ms;
        let age_ms = since_ms.map_or(0, |since_ms| (now_ms - since_ms).max(0));
        oldest.add_series(
            &[("waits_for", waits_for.as_str())],
            age_ms as f64 / 1_000.0,
        );
    }
}
