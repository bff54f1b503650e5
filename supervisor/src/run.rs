//! The supervisor process: one loop over what arrives, the workers' health, and time.

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use webfill_startup::signals::{self, Asked};
use webfill_startup::{ExitStatus, Fault};
use webfill_wire::socket::{Arrived, Outbox, Pattern, Place, SocketName, SocketSpec, Sockets};
use webfill_wire::{
    CrawlKey, CrawlSettings, Credit, DispatcherToSupervisor, MappingSource, ReturnCause,
    SupervisorOutcomes, SupervisorToDispatcher, SupervisorToWorker, Task, TaskReturned,
    WorkerToSupervisor, codec,
};

use crate::config::SupervisorSetup;
use crate::queue::{Queue, slot_of};
use crate::workers::{Sight, Worker};

const TASKS: SocketName = 1;
const OUTCOMES: SocketName = 2;
const WORKER_OUTCOMES: SocketName = 3;

/// How often the dispatcher hears from us at least.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How often the workers' processes are looked after.
const LOOK: Duration = Duration::from_millis(100);

/// A dispatcher unheard of for this long is reported.
const DISPATCHER_SILENT: Duration = Duration::from_secs(10);

/// Runs a supervisor until it is told to drain, and has drained.
pub fn run(setup: SupervisorSetup) -> Result<ExitStatus, Fault> {
    let (inbox, arrived) = mpsc::channel();
    let sockets = Sockets::start(socket_specs(&setup), move |frame| {
        // The loop below outlives the sockets; a send fails only while both end.
        let _ = inbox.send(frame);
    })
    .map_err(Fault::error)?;
    let mut supervisor = Supervisor::new(setup, sockets.outbox());
    supervisor.start_workers()?;
    supervisor.say_hello();
    eprintln!("ready");
    loop {
        match arrived.recv_timeout(LOOK) {
            Ok(frame) => {
                supervisor.take(frame)?;
                while let Ok(frame) = arrived.try_recv() {
                    supervisor.take(frame)?;
                }
                supervisor.report();
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Fault::error("the socket thread has stopped"));
            }
        }
        supervisor.look_after()?;
        if supervisor.is_drained() {
            supervisor.say(&SupervisorToDispatcher::Goodbye);
            drop(sockets);
            return Ok(ExitStatus::Done);
        }
    }
}

struct Supervisor {
    setup: SupervisorSetup,
    outbox: Outbox,
    workers: Vec<Worker>,
    queue: Queue,
    crawls: HashMap<CrawlKey, CrawlSettings>,
    mappings: Option<Vec<MappingSource>>,
    /// Collected for the dispatcher until the next report.
    outcomes: SupervisorOutcomes,
    told_credit: Credit,
    draining: bool,
    last_look: Instant,
    last_heartbeat: Instant,
    heard: Instant,
    dispatcher_silent: bool,
}

fn socket_specs(setup: &SupervisorSetup) -> Vec<SocketSpec> {
    let spec = |name, pattern, place| SocketSpec {
        name,
        pattern,
        place,
        identity: (pattern == Pattern::Dealer).then(|| setup.id.clone().into_bytes()),
    };
    let connect = |endpoint: &String| Place::Connect(endpoint.clone());
    let workers = webfill_worker::outcomes_endpoint(&setup.sockets);
    vec![
        spec(TASKS, Pattern::Dealer, connect(&setup.tasks_endpoint)),
        spec(OUTCOMES, Pattern::Push, connect(&setup.outcomes_endpoint)),
        spec(WORKER_OUTCOMES, Pattern::Pull, Place::Bind(workers)),
    ]
}

impl Supervisor {
    fn new(setup: SupervisorSetup, outbox: Outbox) -> Supervisor {
        let limit = Credit {
            tasks: setup.queue.into(),
            url_bytes: setup.queue_url_bytes,
        };
        let now = Instant::now();
        Supervisor {
            workers: (0..setup.workers).map(Worker::new).collect(),
            queue: Queue::new(limit),
            crawls: HashMap::new(),
            mappings: None,
            outcomes: no_outcomes(&setup.id),
            told_credit: limit,
            draining: false,
            last_look: now,
            last_heartbeat: now,
            heard: now,
            dispatcher_silent: false,
            setup,
            outbox,
        }
    }

    fn say(&self, message: &SupervisorToDispatcher) {
        self.outbox.send(TASKS, codec::encode(message));
    }

    fn say_hello(&mut self) {
        let credit = self.queue.fresh_credit();
        self.told_credit = credit;
        self.say(&SupervisorToDispatcher::Hello {
            supervisor: self.setup.id.clone(),
            workers: self.setup.workers,
            credit,
            held: self.queue.leases(),
        });
    }

    fn take(&mut self, arrived: Arrived) -> Result<(), Fault> {
        let read = match arrived.socket {
            TASKS => {
                codec::decode(&arrived.frame).map(|message| self.take_from_dispatcher(message))
            }
            _ => codec::decode(&arrived.frame).map(|message| {
                self.take_from_worker(message);
            }),
        };
        if let Err(error) = read {
            tracing::error!(event = "unreadable_message", %error, "a message was dropped");
        }
        Ok(())
    }

    fn take_from_dispatcher(&mut self, message: DispatcherToSupervisor) {
        self.heard = Instant::now();
        match message {
            DispatcherToSupervisor::Welcome { mappings } => {
                if self.mappings.as_ref() != Some(&mappings) {
                    self.mappings = Some(mappings);
                    self.tell_mappings();
                }
            }
            DispatcherToSupervisor::Crawl(crawl) => self.learn_crawl(crawl),
            DispatcherToSupervisor::Tasks(tasks) => self.queue_tasks(tasks),
            DispatcherToSupervisor::Heartbeat => {}
            DispatcherToSupervisor::SayHello => self.say_hello(),
            DispatcherToSupervisor::Drain => self.drain(),
        }
    }

    /// A crawl's settings may change when it is resumed; workers are told anew.
    fn learn_crawl(&mut self, crawl: CrawlSettings) {
        for worker in &mut self.workers {
            worker.crawls.retain(|key| *key != crawl.key);
        }
        self.crawls.insert(crawl.key, crawl);
    }

    fn queue_tasks(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            let slot = slot_of(&task.site, self.setup.workers);
            self.queue.hold(&task, slot, false);
            self.workers[usize::from(slot)].waiting.push(task);
        }
        if self.draining {
            self.return_waiting();
        }
        for slot in 0..self.workers.len() {
            self.feed(slot);
        }
    }

    /// Sends a ready worker what waits for it.
    fn feed(&mut self, slot: usize) {
        let worker = &mut self.workers[slot];
        if !worker.ready || worker.waiting.is_empty() {
            return;
        }
        let tasks = std::mem::take(&mut worker.waiting);
        for task in &tasks {
            self.queue.mark_sent(task.task);
            if !worker.crawls.contains(&task.crawl)
                && let Some(crawl) = self.crawls.get(&task.crawl)
            {
                worker.crawls.push(task.crawl);
                let message = SupervisorToWorker::Crawl(crawl.clone());
                self.outbox.send(worker.socket(), codec::encode(&message));
            }
        }
        let message = SupervisorToWorker::Tasks(tasks);
        self.outbox.send(worker.socket(), codec::encode(&message));
    }

    fn tell_mappings(&mut self) {
        for slot in 0..self.workers.len() {
            self.tell_mappings_to(slot);
        }
    }

    fn tell_mappings_to(&self, slot: usize) {
        let worker = &self.workers[slot];
        if let (true, Some(mappings)) = (worker.ready, &self.mappings) {
            let message = SupervisorToWorker::Mappings(mappings.clone());
            self.outbox.send(worker.socket(), codec::encode(&message));
        }
    }

    fn take_from_worker(&mut self, message: WorkerToSupervisor) {
        let slot = usize::from(message.slot);
        let Some(worker) = self.workers.get_mut(slot) else {
            return;
        };
        if worker.incarnation == message.incarnation {
            worker.heard();
        }
        if message.ready && worker.incarnation == message.incarnation {
            worker.ready = true;
            if self.draining {
                let drain = codec::encode(&SupervisorToWorker::Drain);
                self.outbox.send(worker.socket(), drain);
            }
            self.tell_mappings_to(slot);
            self.feed(slot);
        }
        for done in message.done {
            if self.queue.release(done.task, done.attempt) {
                self.outcomes.done.push(done);
            }
        }
        for returned in message.returned {
            if self.queue.release(returned.task, returned.attempt) {
                self.outcomes.returned.push(returned);
            }
        }
    }

    /// Tells the dispatcher what has ended, and how much room there is.
    fn report(&mut self) {
        if !self.outcomes.done.is_empty() || !self.outcomes.returned.is_empty() {
            let outcomes = std::mem::replace(&mut self.outcomes, no_outcomes(&self.setup.id));
            self.outbox.send(OUTCOMES, codec::encode(&outcomes));
        }
        let credit = self.queue.credit();
        if credit != self.told_credit && !self.draining {
            self.told_credit = credit;
            self.say(&SupervisorToDispatcher::Credit(credit));
        }
    }

    fn start_workers(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        for slot in 0..self.workers.len() {
            if self.workers[slot].is_to_start(now) && !self.draining {
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
            .open(SocketSpec {
                name: worker.socket(),
                pattern: Pattern::Push,
                place: Place::Bind(endpoint),
                identity: None,
            })
            .map_err(Fault::error)?;
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
        self.account_for_death(slot);
        Ok(())
    }

    fn account_for_death(&mut self, slot: usize) {
        let path = webfill_worker::suspect_path(&self.setup.sockets, slot as u16);
        let blamed = webfill_worker::read_suspect(&path);
        let lost = self.queue.give_back(slot as u16, blamed);
        if !lost.is_empty() {
            tracing::warn!(
                event = "tasks_given_back",
                slot,
                tasks = lost.len(),
                blamed,
                "a dead worker's tasks go back"
            );
        }
        self.outcomes.returned.extend(lost);
        self.report();
    }

    /// Workers' health, heartbeats, signals: what happens without a message.
    fn look_after(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        if now.duration_since(self.last_look) < LOOK {
            return Ok(());
        }
        self.last_look = now;
        for slot in 0..self.workers.len() {
            self.look_at_worker(slot)?;
        }
        self.start_workers()?;
        if now.duration_since(self.last_heartbeat) >= HEARTBEAT {
            self.last_heartbeat = now;
            self.say(&SupervisorToDispatcher::Heartbeat);
        }
        self.watch_dispatcher(now);
        if signals::asked() >= Asked::Drain {
            self.drain();
        }
        if signals::asked() == Asked::Stop {
            return Err(Fault::error("stopped at once"));
        }
        Ok(())
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
            Sight::Drained if self.draining => {
                tracing::info!(event = "worker_drained", slot, "worker drained");
            }
            Sight::Drained => {
                return Err(Fault::error(format!(
                    "worker {slot} ended without being told to"
                )));
            }
            Sight::Died { how } => {
                tracing::error!(
                    event = "worker_died",
                    slot,
                    how,
                    "worker died, it is started again"
                );
                if self.draining {
                    self.account_for_death(slot);
                }
            }
            Sight::Broken(fault) => return Err(fault),
        }
        Ok(())
    }

    fn watch_dispatcher(&mut self, now: Instant) {
        let silent = now.duration_since(self.heard) > DISPATCHER_SILENT;
        if silent != self.dispatcher_silent {
            self.dispatcher_silent = silent;
            if silent {
                tracing::warn!(
                    event = "dispatcher_silent",
                    "nothing heard of the dispatcher"
                );
            } else {
                tracing::info!(
                    event = "dispatcher_back",
                    "the dispatcher is heard of again"
                );
            }
        }
    }

    /// Workers finish what they have begun and give back the rest.
    fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        tracing::info!(event = "draining", held = self.queue.len(), "draining");
        self.return_waiting();
        for worker in self.workers.iter().filter(|worker| worker.ready) {
            let drain = codec::encode(&SupervisorToWorker::Drain);
            self.outbox.send(worker.socket(), drain);
        }
    }

    fn return_waiting(&mut self) {
        for worker in &mut self.workers {
            for task in std::mem::take(&mut worker.waiting) {
                if self.queue.release(task.task, task.attempt) {
                    self.outcomes.returned.push(TaskReturned {
                        task: task.task,
                        attempt: task.attempt,
                        cause: ReturnCause::Unstarted,
                    });
                }
            }
        }
        self.report();
    }

    fn is_drained(&self) -> bool {
        let running = self.workers.iter().any(Worker::is_running);
        self.draining && !running && self.queue.is_empty()
    }
}

fn no_outcomes(supervisor: &str) -> SupervisorOutcomes {
    SupervisorOutcomes {
        supervisor: supervisor.to_owned(),
        done: Vec::new(),
        returned: Vec::new(),
    }
}
