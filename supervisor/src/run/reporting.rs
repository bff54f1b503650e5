//! The loop's reports: to the dispatcher, to the service manager, to people who wait for the start, and to
//! Prometheus.

use std::time::Instant;

use webfill_service::boot_clock::boot_ms;
use webfill_wire::SupervisorToDispatcher;
use webfill_wire::codec;
use webfill_wire::socket::{SocketName, Traffic};

use super::{OUTCOMES, Process, TASKS, WORKER_OUTCOMES};
use crate::metrics::{State, WorkerRow};
use crate::own_report::ReportFacts;
use crate::worker_process::WorkerProcess;

impl Process {
    /// Reports the supervisor's condition to the dispatcher every few seconds. A lost report does no harm, because the
    /// next one replaces it.
    pub(super) fn report_to_dispatcher(&mut self, why_paused: Option<&str>) {
        if !(self.supervisor.is_welcome() && self.supervisor.has_lease(boot_ms())) {
            return;
        }
        let session = self.supervisor.session_id();
        let mut reports = std::mem::take(&mut self.own_reports);
        let known = || ReportFacts {
            session,
            workers_ready: self.workers.iter().filter(|one| one.is_ready()).count(),
            held: self.supervisor.held_leases(),
            waiting: self.supervisor.waiting_tasks(),
            worker_deaths: self.worker_deaths,
            holds: why_paused.map(str::to_owned).or_else(|| self.wait_reason()),
        };
        let workers = self.workers.iter().filter_map(WorkerProcess::pid);
        let report = reports.next(known, workers, session, Instant::now());
        self.own_reports = reports;
        if let Some(report) = report {
            let message = SupervisorToDispatcher::Report(report);
            let frame = codec::encode_in_version(self.version, &message);
            self.outbox.send_now(TASKS, frame);
        }
    }

    /// Reports the state to the service manager, and records it for probes.
    pub(super) fn report_state(&mut self, low_disk: Option<String>) {
        if self.supervisor.is_draining() {
            self.service_manager.notify_stopping();
        }
        let holds = match (self.wait_reason(), low_disk) {
            _ if self.supervisor.is_draining() => Some("drains".to_owned()),
            (Some(waits_for), _) => Some(format!("waits: {waits_for}")),
            (None, _) if !self.supervisor.has_lease(boot_ms()) => {
                Some("waits: the dispatcher is silent".to_owned())
            }
            (None, low_disk) => low_disk.map(|low_disk| format!("holds: {low_disk}")),
        };
        let workers = self.workers.len();
        let status = holds.clone();
        self.service_manager
            .notify_alive(|| status.unwrap_or_else(|| format!("workers: {workers}")));
        self.health.record_loop_state(holds);
    }

    /// The reason, in words, why the supervisor cannot work yet; `None` if it can.
    pub(super) fn wait_reason(&self) -> Option<String> {
        let dispatcher = &self.setup.dispatchers[self.following.current_dispatcher()].tasks;
        if self.supervisor.is_welcome() {
            let is_ready = self.workers.iter().any(WorkerProcess::is_ready);
            let died = self.last_death.as_deref();
            let died = died.map_or_else(String::new, |how| format!(", the last one ended: {how}"));
            return (!is_ready).then(|| format!("no worker has opened the store yet{died}"));
        }
        let why = match (&self.refused, self.outbox.refusal_reason()) {
            (Some(refused), _) => refused.as_str(),
            (None, _) if self.supervisor.is_name_taken() => {
                "another supervisor has this name: start this one with another --id"
            }
            (None, Some(why)) => why,
            (None, None) => "it does not answer",
        };
        Some(format!("the dispatcher at {dispatcher}: {why}"))
    }

    pub(super) fn publish_metrics(&mut self, is_disk_low: bool) {
        let (workers, supervisor, outbox) = (&self.workers, &self.supervisor, &self.outbox);
        let worker_deaths = self.worker_deaths;
        self.metrics.publish(|| State {
            workers: workers.iter().map(worker_row).collect(),
            worker_deaths,
            has_lease: supervisor.has_lease(boot_ms()),
            is_disk_low,
            held: supervisor.held_leases(),
            traffic: traffic_by_name(outbox.traffic()),
        });
    }
}

fn worker_row(worker: &WorkerProcess) -> WorkerRow {
    WorkerRow {
        pid: worker.pid(),
        is_ready: worker.is_ready(),
    }
}

/// Sums the traffic of sockets by their names in the metrics. The sockets to all workers have one name.
fn traffic_by_name(
    traffic: impl IntoIterator<Item = (SocketName, Traffic)>,
) -> Vec<(&'static str, Traffic)> {
    let names = ["tasks", "outcomes", "worker_outcomes", "worker_tasks"];
    let mut named = names.map(|name| (name, Traffic::default()));
    for (socket, frames) in traffic {
        let place = match socket {
            TASKS => 0,
            OUTCOMES => 1,
            WORKER_OUTCOMES => 2,
            _ => 3,
        };
        named[place].1.received += frames.received;
        named[place].1.sent += frames.sent;
    }
    named.to_vec()
}
