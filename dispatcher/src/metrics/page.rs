//! The dispatcher's page of metrics. Every possible label of a series is present from the start, so that rates
//! include the first event of each kind. No label comes from the web.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use webfill_scheduler::core::{CoreMetrics, Deliveries};
use webfill_scheduler::counting::{
    CrawlTotals, NotificationTotals, RecordTotals, SiteTotals, WaitReason, WaitTotals,
};
use webfill_scheduler::frontier::NothingHandedOut;
use webfill_scheduler::journal::StandbysReport;
use webfill_service::last_backup::last_backup_ms;
use webfill_service::metrics::{
    Exposition, ReportedProcess, add_build, add_disk_low, add_disks, add_loop_age, add_messages,
    add_processes, add_starts, add_store,
};
use webfill_wire::counts::Histogram;
use webfill_wire::socket::Traffic;
use webfill_wire::{BackoffReason, Lane, Outcome};

use super::counts::Counts;
use super::{LoopMetrics, Shared, lock};
use crate::clock::SteadyClock;
use crate::health::Health;

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
        page.add_gauge(
            "webfill_last_backup_timestamp_seconds",
            "Start of the last complete backup of the state folder, in seconds since the epoch; 0: none was made.",
        )
        .set_value(last_backup_ms(&self.state).unwrap_or(0) as f64 / 1_000.0);
        let (is_store_away, answers) = self.health.store_state();
        add_store(&mut page, is_store_away, &answers);
        // The locks are released before anything is written, because the loop takes them too.
        let of_loop = lock(&self.loop_metrics).clone();
        let counts = lock(&self.counts).clone();
        if let Some(of_loop) = of_loop {
            of_loop.add_to(&mut page);
            add_due_sites(&mut page, &of_loop.core, &counts);
        }
        counts.add_to(&mut page, self.clock.now_ms());
        page.finish()
    }
}

/// A page with all metrics of the dispatcher, as if each had a value. The reference in the manual is made from it.
pub fn sample_page() -> String {
    let of_loop = LoopMetrics {
        at: Instant::now(),
        core: CoreMetrics {
            extraction_alerts: Some(0),
            ..CoreMetrics::default()
        },
        turns: Histogram::default(),
        traffic: BTreeMap::from([("fleet", Traffic::default())]),
        standbys: Some(StandbysReport::default()),
    };
    let counts = Counts {
        crawls: Some(CrawlTotals::default()),
        sites: Some(SiteTotals::default()),
        records: Some(RecordTotals::default()),
        notifications: Some(NotificationTotals::default()),
        waits: Some(WaitTotals::default()),
        counted: Some(Instant::now()),
    };
    let root = PathBuf::from("/");
    let shared = Shared {
        health: Health::new(),
        state: root.clone(),
        starts: 0,
        folders: vec![root],
        clock: SteadyClock::start(),
        loop_metrics: Mutex::new(Some(Arc::new(of_loop))),
        counts: Mutex::new(counts),
    };
    shared.page()
}

impl LoopMetrics {
    fn add_to(&self, page: &mut Exposition) {
        add_loop_age(page, self.at);
        page.add_histogram(
            "webfill_turn_duration_seconds",
            "Turns of the dispatcher's loop, including their commit.",
            &self.turns,
        );
        add_messages(page, self.traffic.iter().map(|(socket, n)| (*socket, *n)));
        self.add_tasks_to(page);
        self.add_fleet_to(page);
        self.add_watches_to(page);
        if let Some(standbys) = &self.standbys {
            add_standbys(page, standbys);
        }
    }

    fn add_tasks_to(&self, page: &mut Exposition) {
        let counters = &self.core.counters;
        let mut ended = page.add_counter(
            "webfill_tasks_ended_total",
            "Ended tasks, by outcome; one that is queued again and ends again counts twice.",
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
                "Outcomes that lead to a retry of the task, because its failure or its site's may be temporary.",
                counters.retried,
            ),
            (
                "webfill_outcomes_stale_total",
                "Outcomes that came too late and changed nothing.",
                counters.stale,
            ),
        ] {
            page.add_counter(name, help).set_value(count);
        }
        self.add_queue_to(page);
        let mut backoff = page.add_counter(
            "webfill_site_backoffs_total",
            "Backoffs that have begun, by reason.",
        );
        for reason in BackoffReason::ALL {
            let count = counters.backoff.get(reason).copied().unwrap_or(0);
            backoff.add_series(&[("reason", reason.as_str())], count);
        }
        self.add_set_aside_to(page);
    }

    /// Adds the present state of the queue: leases, and the sites held in memory.
    fn add_queue_to(&self, page: &mut Exposition) {
        page.add_gauge(
            "webfill_leases",
            "Tasks that supervisors hold, as of this second.",
        )
        .set_value(self.core.leases);
        page.add_gauge(
            "webfill_oldest_due_seconds",
            "How long the longest-waiting site has been due without a supervisor of its lane that accepts tasks; 0: none waits.",
        )
        .set_value(self.core.oldest_due_ms as f64 / 1_000.0);
        page.add_gauge("webfill_window_sites", "Sites in memory.")
            .set_value(self.core.sites_in_window);
        page.add_gauge(
            "webfill_window_sites_limit",
            "Maximum number of sites in memory: `dispatcher.window_sites`.",
        )
        .set_value(self.core.window_sites);
    }

    fn add_set_aside_to(&self, page: &mut Exposition) {
        page.add_gauge(
            "webfill_sites_set_aside",
            "Sites that had nothing to hand out several times in a row although tasks were queued, and are set aside for up to a minute. 0 on a healthy fleet; other sites continue meanwhile.",
        )
        .set_value(self.core.sites_set_aside);
        let mut set_aside = page.add_counter(
            "webfill_sites_set_aside_total",
            "Turns of sites that handed out nothing and changed nothing: `other_lane` (the next crawl needs a supervisor of another lane), `backing_off` (the site is backing off), `not_found` (no task was found).",
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
        let mut supervisors = page.add_gauge("webfill_supervisors", "Supervisors: `connected`, `silent` (not heard of for most of the lease), `draining`, `awaited` (known from before the dispatcher's start).");
        for (state, count) in [
            ("connected", self.core.fleet.connected),
            ("silent", self.core.fleet.silent),
            ("draining", self.core.fleet.draining),
            ("awaited", self.core.fleet.awaited),
        ] {
            supervisors.add_series(&[("state", state)], count);
        }
        page.add_counter(
            "webfill_supervisors_lost_total",
            "Supervisors declared lost.",
        )
        .set_value(self.core.counters.supervisors_lost);
        page.add_gauge(
            "webfill_clock_skew_seconds",
            "The largest difference of a supervisor's clock from the dispatcher's, in either direction.",
        )
        .set_value(self.core.fleet.clock_skew_ms as f64 / 1_000.0);
        add_disk_low(page, self.core.is_disk_low);
        page.add_gauge("webfill_draining", "1: the dispatcher drains.")
            .set_value(u8::from(self.core.is_draining));
    }

    fn add_watches_to(&self, page: &mut Exposition) {
        let mut watches = page.add_gauge(
            "webfill_watches",
            "Watches: `running`, `paused`, `waiting`.",
        );
        for (state, count) in [
            ("running", self.core.watches.running),
            ("paused", self.core.watches.paused),
            ("waiting", self.core.watches.waiting),
        ] {
            watches.add_series(&[("state", state)], count);
        }
        page.add_gauge(
            "webfill_watches_silent",
            "Silent watches: without their usual results, or not running. Watches that nobody is notified of are not judged.",
        )
        .set_value(self.core.watches.silent);
        if let Some(alerts) = self.core.extraction_alerts {
            page.add_gauge(
                "webfill_extraction_alerts",
                "Standing alerts of extractions: mappings in force whose pages no longer yield their earlier values. Absent until the alerts are read from the store.",
            )
            .set_value(alerts);
        }
        page.add_gauge(
            "webfill_notification_targets_unreached",
            "Targets with a standing alert, because notifications do not reach them (`notifications.undelivered_after`).",
        )
        .set_value(self.core.targets_unreached);
        let Deliveries {
            delivered,
            failed,
            dropped,
        } = self.core.counters.deliveries;
        let mut tries = page.add_counter(
            "webfill_notification_deliveries_total",
            "Attempts to deliver notifications: `delivered`, `failed` (retried), `dropped` (not retried).",
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
            let mut states = page.add_gauge("webfill_records", "Records of all crawls that this dispatcher knows: `resolved`, or `missing` a field.");
            states.add_series(&[("state", "resolved")], records.resolved);
            states.add_series(&[("state", "missing")], missing);
        }
        self.add_notifications_to(page, now_ms);
        if let Some(counted) = self.counted {
            page.add_gauge(
                "webfill_counts_age_seconds",
                "Age of the oldest of the counts of tasks, sites and records.",
            )
            .set_value(counted.elapsed().as_secs_f64());
        }
    }

    fn add_crawls_to(&self, page: &mut Exposition) {
        let Some(crawls) = self.crawls else {
            return;
        };
        let mut tasks = page.add_gauge(
            "webfill_tasks",
            "Tasks by state: `queued`, `leased`, `done`; for all crawls that were not pruned.",
        );
        tasks.add_series(&[("state", "queued")], crawls.queued);
        tasks.add_series(&[("state", "leased")], crawls.leased);
        tasks.add_series(&[("state", "done")], crawls.done);
        page.add_gauge("webfill_crawls", "All crawls that were not pruned.")
            .set_value(crawls.crawls);
        page.add_gauge(
            "webfill_crawls_unfinished",
            "Crawls with queued or handed-out tasks.",
        )
        .set_value(crawls.unfinished);
        page.add_gauge("webfill_crawls_paused", "Paused crawls.")
            .set_value(crawls.paused);
    }

    fn add_sites_to(&self, page: &mut Exposition) {
        let Some(sites) = &self.sites else {
            return;
        };
        let mut states = page.add_gauge("webfill_sites", "Sites: `in_window` (in memory), `waiting` (outside it), `parked` (has tasks, but none may be handed out), `backing_off`, `unreachable`, `idle` (has none).");
        for state in SITE_STATES {
            let count = sites.by_state.get(state).copied().unwrap_or(0);
            states.add_series(&[("state", state)], count);
        }
        let mut backing_off = page.add_gauge(
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
        page.add_gauge(
            "webfill_notifications_waiting",
            "Notifications waiting for delivery.",
        )
        .set_value(notifications.waiting);
        let age_ms = notifications
            .oldest_made_ms
            .map_or(0, |ms| (now_ms - ms).max(0));
        page.add_gauge(
            "webfill_notifications_oldest_seconds",
            "Age of the oldest notification that waits; 0: none does.",
        )
        .set_value(age_ms as f64 / 1_000.0);
    }
}

/// Adds the number of due sites: those held in memory, and those that are counted in the file.
fn add_due_sites(page: &mut Exposition, core: &CoreMetrics, counts: &Counts) {
    let (Some(sites), Some(waits)) = (&counts.sites, &counts.waits) else {
        return;
    };
    let mut due = page.add_gauge(
        "webfill_sites_due",
        "Sites that could be fetched from at once, by lane: those with a task at a supervisor, and those that wait for nothing but a supervisor. The number of supervisors can follow it. Absent until it is counted.",
    );
    for lane in [Lane::Http, Lane::Browser] {
        let in_window = core.due_sites.get(&lane).copied().unwrap_or(0) as u64;
        let outside = sites.due.get(&lane).copied().unwrap_or(0);
        let unserved = match lane {
            Lane::Browser => waits.unserved_sites,
            Lane::Http => 0,
        };
        due.add_series(&[("lane", lane.as_str())], in_window + outside + unserved);
    }
}

/// Adds how far the dispatchers that stand by are behind this one, if there is a journal.
fn add_standbys(page: &mut Exposition, report: &StandbysReport) {
    page.add_gauge(
        "webfill_journal_record",
        "Last record of the journal, with `dispatcher.journal`.",
    )
    .set_value(report.record);
    page.add_gauge(
        "webfill_standbys",
        "Dispatchers that stand by and have reported within the last 10 seconds.",
    )
    .set_value(report.present_dispatchers().count());
    page.add_gauge(
        "webfill_standby_behind_records",
        "Records that the most advanced of them had not applied when it last reported.",
    )
    .set_value(
        report
            .least_behind_standby()
            .map_or(0, |one| one.behind_records),
    );
    page.add_gauge(
        "webfill_standby_behind_seconds",
        "How long the oldest of these records had been there.",
    )
    .set_value(
        report
            .least_behind_standby()
            .map_or(0.0, |one| one.behind_ms as f64 / 1_000.0),
    );
}

fn add_waits(page: &mut Exposition, waits: &WaitTotals, now_ms: i64) {
    let mut tasks = page.add_gauge(
        "webfill_queued_tasks",
        "Queued tasks, by the reason they wait.",
    );
    for waits_for in WaitReason::ALL {
        tasks.add_series(
            &[("waits_for", waits_for.as_str())],
            waits.total_for_reason(waits_for).tasks,
        );
    }
    let mut oldest = page.add_gauge(
        "webfill_queued_oldest_due_seconds",
        "How long the longest-waiting task has been waiting only for this reason; 0: none waits.",
    );
    for waits_for in WaitReason::ALL {
        let since_ms = waits.total_for_reason(waits_for).since_ms;
        let age_ms = since_ms.map_or(0, |since_ms| (now_ms - since_ms).max(0));
        oldest.add_series(
            &[("waits_for", waits_for.as_str())],
            age_ms as f64 / 1_000.0,
        );
    }
}
