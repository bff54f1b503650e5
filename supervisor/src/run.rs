//! The supervisor process: one loop over what arrives, the workers' health, and time.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use webfill_startup::boot_clock::boot_ms;
use webfill_startup::signals::{self, Asked};
use webfill_startup::{ExitStatus, Fault};
use webfill_wire::socket::{Arrived, Outbox, Pattern, SocketName, SocketSpec, Sockets};
use webfill_wire::{Credit, WorkerToSupervisor, codec};

use crate::config::SupervisorSetup;
use crate::supervisor::{OutgoingMessage, Supervisor, Terms};
use crate::workers::{Sight, Worker};

const TASKS: SocketName = 1;
const OUTCOMES: SocketName = 2;
const WORKER_OUTCOMES: SocketName = 3;

/// How often the workers' processes are looked after.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a supervisor until it is told to drain, and has drained.
pub fn run(setup: SupervisorSetup) -> Result<ExitStatus, Fault> {
    let (inbox, arrived) = mpsc::channel();
    let sockets = Sockets::start(socket_specs(&setup), move |frame| {
        // The loop below outlives the sockets; a send fails only while both end.
        let _ = inbox.send(frame);
    })
    .map_err(Fault::error)?;
    let mut process = Process {
        supervisor: Supervisor::new(terms(&setup)),
        workers: (0..setup.workers).map(Worker::new).collect(),
        setup,
        outbox: sockets.outbox(),
        last_look: Instant::now(),
    };
    process.start_workers()?;
    process.keep_time();
    eprintln!("ready");
    loop {
        match arrived.recv_timeout(process.next_look_in()) {
            Ok(frame) => process.take_all(frame, &arrived),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::error("the socket thread has stopped"));
            }
        }
        process.look_after()?;
        if process.is_drained() {
            process.supervisor.say_goodbye();
            process.send();
            drop(sockets);
            return Ok(ExitStatus::Done);
        }
    }
}

fn terms(setup: &SupervisorSetup) -> Terms {
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
    let keys = setup.keys.as_ref();
    let workers = webfill_worker::outcomes_endpoint(&setup.sockets);
    vec![
        SocketSpec::connect(TASKS, Pattern::Dealer, &setup.tasks_endpoint).call(keys),
        SocketSpec::connect(OUTCOMES, Pattern::Push, &setup.outcomes_endpoint).call(keys),
        SocketSpec::bind(WORKER_OUTCOMES, Pattern::Pull, workers),
    ]
}

/// The supervisor with its sockets and its worker processes.
struct Process {
    supervisor: Supervisor,
    workers: Vec<Worker>,
    setup: SupervisorSetup,
    outbox: Outbox,
    last_look: Instant,
}

impl Process {
    fn next_look_in(&self) -> Duration {
        LOOK.saturating_sub(self.last_look.elapsed())
    }

    /// Takes what has arrived, and answers it together.
    fn take_all(&mut self, first: Arrived, arrived: &mpsc::Receiver<Arrived>) {
        self.take(&first);
        while let Ok(frame) = arrived.try_recv() {
            self.take(&frame);
        }
        self.supervisor.report();
        self.send();
    }

    fn take(&mut self, arrived: &Arrived) {
        let now_ms = boot_ms();
        let read = match arrived.socket {
            TASKS => codec::decode(&arrived.frame)
                .map(|message| self.supervisor.take_from_dispatcher(message, now_ms)),
            _ => codec::decode(&arrived.frame).map(|message| self.take_from_worker(message)),
        };
        if let Err(error) = read {
            tracing::error!(event = "unreadable_message", %error, "a message was dropped");
        }
    }

    fn take_from_worker(&mut self, message: WorkerToSupervisor) {
        if let Some(worker) = self.workers.get_mut(usize::from(message.slot))
            && worker.incarnation == message.incarnation
        {
            worker.heard(message.ready);
        }
        self.supervisor.take_from_worker(message);
    }

    fn send(&mut self) {
        for message in self.supervisor.take_outgoing() {
            match message {
                OutgoingMessage::ToDispatcher(message) => {
                    self.outbox.send(TASKS, codec::encode(&message))
                }
                OutgoingMessage::ToDispatcherNow(message) => {
                    self.outbox.send_now(TASKS, codec::encode(&message));
                }
                OutgoingMessage::Outcomes(outcomes) => {
                    self.outbox.send(OUTCOMES, codec::encode(&*outcomes));
                }
                OutgoingMessage::ToWorker(slot, message) => {
                    let socket = self.workers[usize::from(slot)].socket();
                    self.outbox.send(socket, codec::encode(&message));
                }
            }
        }
    }

    /// Workers' health, heartbeats, signals: what happens without a message.
    fn look_after(&mut self) -> Result<(), Fault> {
        if self.last_look.elapsed() < LOOK {
            return Ok(());
        }
        self.last_look = Instant::now();
        for slot in 0..self.workers.len() {
            self.look_at_worker(slot)?;
        }
        self.start_workers()?;
        if signals::asked() >= Asked::Drain {
            self.supervisor.drain();
        }
        if signals::asked() == Asked::Stop {
            return Err(Fault::error("stopped at once"));
        }
        self.keep_time();
        Ok(())
    }

    fn keep_time(&mut self) {
        self.supervisor.keep_time(boot_ms());
        self.send();
    }

    fn start_workers(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        for slot in 0..self.workers.len() {
            if self.workers[slot].is_to_start(now) && !self.supervisor.is_draining() {
                self.start_worker(slot)?;
            }
        }
        Ok(())
    }

    fn start_worker(&mut self, slot: usize) -> Result<(), Fault> {
        let worker = &mut self.workers[slot];
        worker.incarnation += 1;
        let endpoint =
            webfill_worker::tasks_endpoint(&self.setup.sockets, worker.slot, worker.incarnation);
        self.outbox.close(worker.socket());
        self.outbox
            .open(SocketSpec::bind(worker.socket(), Pattern::Push, endpoint))
            .map_err(Fault::error)?;
        // Read before the next process begins to write it.
        let blamed = self.blamed(slot);
        let worker = &mut self.workers[slot];
        worker
            .start(&self.setup.config_file)
            .map_err(|error| Fault::error(format!("cannot start a worker: {error}")))?;
        tracing::info!(
            event = "worker_started",
            slot,
            incarnation = worker.incarnation,
            "worker started"
        );
        // The death of the incarnation before is accounted for only now, after its last words.
        self.supervisor
            .worker_started(worker.slot, worker.incarnation, blamed);
        Ok(())
    }

    /// The page that a slot's worker worked on.
    fn blamed(&self, slot: usize) -> Option<u64> {
        let path = webfill_worker::suspect_path(&self.setup.sockets, slot as u16);
        webfill_worker::read_suspect(&path)
    }

    fn look_at_worker(&mut self, slot: usize) -> Result<(), Fault> {
        if self.workers[slot].end_if_silent(Instant::now()) {
            tracing::error!(
                event = "worker_hangs",
                slot,
                "a worker was not heard of for too long and is ended"
            );
        }
        match self.workers[slot].look() {
            Sight::Unchanged => {}
            Sight::Drained if self.supervisor.is_draining() => {
                tracing::info!(event = "worker_drained", slot, "worker drained");
            }
            Sight::Drained => {
                return Err(Fault::error(format!(
                    "worker {slot} ended without being told to"
                )));
            }
            Sight::Died { how } => self.note_death(slot, &how),
            Sight::Broken(fault) => return Err(fault),
        }
        Ok(())
    }

    fn note_death(&mut self, slot: usize, how: &str) {
        tracing::error!(
            event = "worker_died",
            slot,
            how,
            "worker died, it is started again"
        );
        self.supervisor.worker_died(slot as u16);
        if self.supervisor.is_draining() {
            // It is not started again, so this is the moment.
            let blamed = self.blamed(slot);
            self.supervisor.account_for_death(slot as u16, blamed);
        }
    }

    fn is_drained(&self) -> bool {
        let running = self.workers.iter().any(Worker::is_running);
        !running && self.supervisor.is_drained()
    }
}
