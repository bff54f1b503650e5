//! The supervisor process: one loop passes messages and the time to [`Supervisor`], which makes the decisions, and
//! sends the resulting messages. It also starts and watches the worker processes.
//!
//! On the first SIGTERM or SIGINT the supervisor drains and says goodbye to the dispatcher; on the second it exits
//! immediately. If it dies, its workers die with it.

mod reporting;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use webfill_service::boot_clock::boot_ms;
use webfill_service::service_manager::ServiceManager;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault};
use webfill_wire::codec::{self, CodecError, OLDEST_VERSION};
use webfill_wire::counts;
use webfill_wire::handshake::{self, Refusal, Versions};
use webfill_wire::socket::{ArrivedFrame, Outbox, Pattern, SocketName, SocketSpec, Sockets};
use webfill_wire::{Credit, RefusalLog, SupervisorToDispatcher, WorkerToSupervisor};
use webfill_worker::Now;

use crate::claim::Claim;
use crate::config::{DispatcherSockets, SupervisorSetup};
use crate::following::Following;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::own_report::OwnReports;
use crate::readiness::Readiness;
use crate::supervisor::{OutgoingMessage, Supervisor, Terms};
use crate::worker_process::{ProcessChange, WorkerProcess};

const TASKS: SocketName = 1;
const OUTCOMES: SocketName = 2;
const WORKER_OUTCOMES: SocketName = 3;

/// How often the worker processes, signals and timers are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a supervisor until it was asked to drain, and has drained.
pub fn run(setup: SupervisorSetup) -> Result<ExitStatus, Fault> {
    let service_manager = match setup.is_local {
        true => ServiceManager::disabled(),
        false => ServiceManager::from_environment(),
    };
    let metrics = Metrics::start(&setup);
    let health = Health::new();
    if let Some(address) = setup.probes {
        health.serve(address);
    }
    let (inbox, arrived) = mpsc::channel();
    let sockets = Sockets::start(socket_specs(&setup), move |frame| {
        // Sending fails only while both the sockets and the loop end, and then no message matters.
        let _ = inbox.send(frame);
    })
    .map_err(Fault::error)?;
    let mut process = Process {
        supervisor: Supervisor::new(build_terms(&setup)),
        workers: (0..setup.workers).map(WorkerProcess::new).collect(),
        claim: Claim::new(setup.claim.clone()),
        following: Following::new(setup.dispatchers.len(), boot_ms()),
        setup,
        outbox: sockets.outbox(),
        last_check: Instant::now(),
        refusals: RefusalLog::default(),
        version: OLDEST_VERSION,
        readiness: Readiness::new(),
        service_manager,
        health,
        refused: None,
        last_death: None,
        worker_deaths: 0,
        metrics,
        own_reports: OwnReports::default(),
    };
    process.read_claim();
    process.start_workers()?;
    process.send_due_messages();
    if process.setup.is_local {
        process.readiness.print_readiness(None);
    }
    loop {
        match arrived.recv_timeout(process.next_check_in()) {
            Ok(frame) => process.handle_all(frame, &arrived),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::error("the socket thread has stopped"));
            }
        }
        process.check_health()?;
        if process.is_drained() {
            process.warn_of_lost_outcomes();
            process.supervisor.send_goodbye();
            process.send_outgoing();
            drop(sockets);
            return Ok(ExitStatus::Done);
        }
    }
}

fn build_terms(setup: &SupervisorSetup) -> Terms {
    Terms {
        id: setup.id.clone(),
        instance: setup.instance,
        lane: setup.lane,
        workers: setup.workers,
        longest_request_ms: setup.longest_request_ms,
        limit: Credit {
            tasks: setup.queue.into(),
            url_bytes: setup.queue_url_bytes,
        },
    }
}

fn socket_specs(setup: &SupervisorSetup) -> Vec<SocketSpec> {
    let workers = webfill_worker::outcomes_endpoint(&setup.sockets);
    let first = dispatcher_specs(setup, &setup.dispatchers[0]);
    let own = SocketSpec::bind(WORKER_OUTCOMES, Pattern::Pull, workers);
    first.into_iter().chain([own]).collect()
}

fn dispatcher_specs(setup: &SupervisorSetup, dispatcher: &DispatcherSockets) -> [SocketSpec; 2] {
    let keys = setup.keys.as_ref();
    [
        SocketSpec::connect(TASKS, Pattern::Dealer, &dispatcher.tasks).call(keys),
        SocketSpec::connect(OUTCOMES, Pattern::Push, &dispatcher.outcomes).call(keys),
    ]
}

/// The supervisor with its sockets and its worker processes.
struct Process {
    supervisor: Supervisor,
    workers: Vec<WorkerProcess>,
    claim: Claim,
    following: Following,
    setup: SupervisorSetup,
    outbox: Outbox,
    last_check: Instant,
    refusals: RefusalLog,
    /// The protocol version of the dispatcher's last message, which messages to the dispatcher use as well.
    version: u8,
    readiness: Readiness,
    service_manager: ServiceManager,
    health: Health,
    /// Why the dispatcher last refused a hello, in words: the two have no common protocol version.
    refused: Option<String>,
    /// How a worker process last died, in words.
    last_death: Option<String>,
    worker_deaths: u64,
    metrics: Metrics,
    own_reports: OwnReports,
}

impl Process {
    fn next_check_in(&self) -> Duration {
        CHECK_INTERVAL.saturating_sub(self.last_check.elapsed())
    }

    /// Handles all messages that have arrived, and then sends all answers.
    fn handle_all(&mut self, first: ArrivedFrame, arrived: &mpsc::Receiver<ArrivedFrame>) {
        self.handle_frame(&first);
        while let Ok(frame) = arrived.try_recv() {
            self.handle_frame(&frame);
        }
        self.supervisor.send_report();
        self.send_outgoing();
    }

    fn handle_frame(&mut self, arrived: &ArrivedFrame) {
        let now_ms = boot_ms();
        let read = match arrived.socket {
            TASKS => self.handle_dispatcher_message(&arrived.frame, now_ms),
            _ => match counts::read(&arrived.frame) {
                Some(read) => read.map(|counts| self.metrics.record(counts)),
                None => {
                    codec::decode(&arrived.frame).map(|message| self.handle_worker_message(message))
                }
            },
        };
        if let Err(error) = read
            && self
                .refusals
                .record_if_new(&format!("unreadable {:?}", arrived.socket))
        {
            tracing::error!(event = "unreadable_message", %error, "a message was dropped");
        }
    }

    fn handle_dispatcher_message(&mut self, frame: &[u8], now_ms: u64) -> Result<(), CodecError> {
        self.following.note_heard(now_ms);
        if let Some(refusal) = handshake::decode_refusal(frame) {
            self.note_refusal(refusal);
            return Ok(());
        }
        let (version, message) = codec::decode_with_version(frame)?;
        self.version = version;
        self.refused = None;
        self.supervisor.handle_dispatcher_message(message, now_ms);
        Ok(())
    }

    fn note_refusal(&mut self, refusal: Refusal) {
        let (ours, theirs) = (Versions::OURS, refusal.versions);
        let older = Versions::older_role(theirs, ours);
        self.refused = Some(format!(
            "it speaks wire versions {} to {}, this supervisor {} to {}: upgrade webfill at the {older}",
            theirs.oldest, theirs.newest, ours.oldest, ours.newest,
        ));
        if self.refusals.record_if_new("no common version") {
            tracing::error!(
                event = "no_common_version",
                oldest = theirs.oldest,
                newest = theirs.newest,
                "the dispatcher shares no wire version with this supervisor, which speaks {} to {}: upgrade webfill at the {older}",
                ours.oldest,
                ours.newest,
            );
        }
    }

    fn handle_worker_message(&mut self, message: WorkerToSupervisor) {
        if let Some(worker) = self.workers.get_mut(usize::from(message.worker_index))
            && worker.incarnation == message.incarnation
        {
            worker.note_message(message.ready);
        }
        self.supervisor.handle_worker_message(message);
    }

    fn send_outgoing(&mut self) {
        for message in self.supervisor.take_outgoing() {
            match message {
                OutgoingMessage::ToDispatcherNow(SupervisorToDispatcher::Hello(hello)) => {
                    let frame = handshake::encode_hello(&hello);
                    self.outbox.send_now(TASKS, frame);
                }
                OutgoingMessage::ToDispatcher(message) => {
                    let frame = codec::encode_in_version(self.version, &message);
                    self.outbox.send(TASKS, frame);
                }
                OutgoingMessage::ToDispatcherNow(message) => {
                    // Without a lease, the dispatcher may have been replaced by an older version, which must understand
                    // this message.
                    let version = match self.supervisor.has_lease(boot_ms()) {
                        true => self.version,
                        false => OLDEST_VERSION,
                    };
                    let frame = codec::encode_in_version(version, &message);
                    self.outbox.send_now(TASKS, frame);
                }
                OutgoingMessage::Outcomes(outcomes) => {
                    let frame = codec::encode_in_version(self.version, &*outcomes);
                    self.outbox.send(OUTCOMES, frame);
                }
                OutgoingMessage::ToWorker(worker_index, message) => {
                    let socket = self.workers[usize::from(worker_index)].socket();
                    self.outbox.send(socket, codec::encode(&message));
                }
            }
        }
    }

    /// Checks the signals, the worker processes, and the timers.
    fn check_health(&mut self) -> Result<(), Fault> {
        if self.last_check.elapsed() < CHECK_INTERVAL {
            return Ok(());
        }
        self.last_check = Instant::now();
        for worker_index in 0..self.workers.len() {
            self.check_worker(worker_index)?;
        }
        self.start_workers()?;
        if signals::received_request() >= SignalRequest::Drain {
            self.supervisor.drain();
        }
        if signals::received_request() == SignalRequest::Stop {
            return Err(Fault::error("stopped immediately"));
        }
        let low_disk = self.setup.disks.check_shortage().map(ToString::to_string);
        self.read_claim();
        let lapsed = self.claim.lapse_reason(boot_ms());
        self.supervisor
            .set_paused(low_disk.is_some() || lapsed.is_some());
        self.follow_next_if_silent()?;
        self.send_due_messages();
        if !self.readiness.is_ready() && !self.supervisor.is_draining() {
            self.readiness.print_readiness(self.wait_reason());
            if self.readiness.is_ready() {
                self.service_manager.notify_ready();
            }
        }
        self.publish_metrics(low_disk.is_some());
        self.report_to_dispatcher(low_disk.as_deref().or(lapsed));
        self.report_state(low_disk);
        Ok(())
    }

    /// Connects to the next dispatcher, if there are several and the current one is silent. Outcomes that the current
    /// one has not acknowledged are sent to the next one.
    fn follow_next_if_silent(&mut self) -> Result<(), Fault> {
        let lease_ms = self.supervisor.lease_ms();
        let Some(next) = self.following.advance_if_silent(lease_ms, boot_ms()) else {
            return Ok(());
        };
        for spec in dispatcher_specs(&self.setup, &self.setup.dispatchers[next]) {
            self.outbox.close(spec.name);
            self.outbox.open(spec).map_err(Fault::error)?;
        }
        Ok(())
    }

    fn send_due_messages(&mut self) {
        self.supervisor.send_if_due(boot_ms(), Now::read().wall_ms);
        self.send_outgoing();
    }

    fn read_claim(&mut self) {
        if let Some(until_ms) = self.claim.read() {
            self.supervisor.set_claimed_until(until_ms);
        }
    }

    fn start_workers(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        for worker_index in 0..self.workers.len() {
            if self.workers[worker_index].is_due_to_start(now) && !self.supervisor.is_draining() {
                self.start_worker(worker_index)?;
            }
        }
        Ok(())
    }

    fn start_worker(&mut self, worker_index: usize) -> Result<(), Fault> {
        let worker = &mut self.workers[worker_index];
        worker.incarnation += 1;
        let endpoint = webfill_worker::tasks_endpoint(
            &self.setup.sockets,
            worker.worker_index,
            worker.incarnation,
        );
        self.outbox.close(worker.socket());
        self.outbox
            .open(SocketSpec::bind(worker.socket(), Pattern::Push, endpoint))
            .map_err(Fault::error)?;
        // Read the crash marker of the dead process before the new process overwrites the file.
        let blamed = self.crash_marker_of(worker_index);
        let worker = &mut self.workers[worker_index];
        worker
            .start(&self.setup.config_file, self.setup.is_local)
            .map_err(|error| Fault::error(format!("cannot start a worker: {error}")))?;
        tracing::info!(
            event = "worker_started",
            slot = worker_index,
            incarnation = worker.incarnation,
            "worker started"
        );
        // The tasks of the dead process are given back only now, so that its last messages have had time to arrive.
        self.supervisor
            .note_worker_start(worker.worker_index, worker.incarnation, blamed);
        Ok(())
    }

    /// The task that a dead worker's crash marker names: the one with the page that the worker was extracting.
    fn crash_marker_of(&self, worker_index: usize) -> Option<u64> {
        let path = webfill_worker::crash_marker_path(&self.setup.sockets, worker_index as u16);
        webfill_worker::read_crash_marker(&path)
    }

    fn check_worker(&mut self, worker_index: usize) -> Result<(), Fault> {
        if self.workers[worker_index].kill_if_silent(Instant::now()) {
            tracing::error!(
                event = "worker_hangs",
                slot = worker_index,
                "a worker sent nothing for too long and is killed"
            );
        }
        match self.workers[worker_index].poll() {
            ProcessChange::Unchanged => {}
            ProcessChange::Drained if self.supervisor.is_draining() => {
                tracing::info!(
                    event = "worker_drained",
                    slot = worker_index,
                    "worker drained"
                );
            }
            ProcessChange::Drained => {
                return Err(Fault::error(format!(
                    "worker {worker_index} ended unexpectedly"
                )));
            }
            ProcessChange::Died { how } => self.note_death(worker_index, &how),
            ProcessChange::Broken(fault) => return Err(fault),
        }
        Ok(())
    }

    fn note_death(&mut self, worker_index: usize, how: &str) {
        tracing::error!(
            event = "worker_died",
            slot = worker_index,
            how,
            "worker died and is restarted"
        );
        self.last_death = Some(how.to_owned());
        self.worker_deaths += 1;
        self.supervisor.note_worker_death(worker_index as u16);
        if self.supervisor.is_draining() {
            // This worker is not restarted, so its tasks are given back now.
            let blamed = self.crash_marker_of(worker_index);
            self.supervisor
                .give_back_tasks_of_dead_worker(worker_index as u16, blamed);
        }
    }

    fn is_drained(&mut self) -> bool {
        let running = self.workers.iter().any(WorkerProcess::is_running);
        !running && self.supervisor.is_drained(boot_ms())
    }

    /// Warns how many pages will be fetched again, because no dispatcher has acknowledged their outcomes.
    fn warn_of_lost_outcomes(&self) {
        let pages = self.supervisor.unacknowledged_pages();
        if pages > 0 {
            tracing::warn!(
                event = "outcomes_not_acknowledged",
                pages,
                "drained, but no dispatcher has acknowledged the last outcomes: their pages will be fetched again"
            );
        }
    }
}
