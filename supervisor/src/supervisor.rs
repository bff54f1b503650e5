//! The supervisor's state, and what each message does to it. No sockets, no processes, no clock:
//! what arrives is handed in with the time, and what is to be sent is collected as letters.

use std::collections::HashMap;
use std::sync::Arc;

use webfill_wire::{
    CrawlKey, CrawlSettings, Credit, DispatcherToSupervisor, Hello, MappingSource, ReturnCause,
    SupervisorOutcomes, SupervisorToDispatcher, SupervisorToWorker, Task, TaskReturned,
    WorkerToSupervisor,
};

use crate::queue::{Queue, slot_of};
use crate::session::{Due, Session};
use crate::slot::Slot;
use crate::unheard::{Unheard, leases_of};

/// What a supervisor goes by.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Its name.
    pub id: String,
    /// See [`Hello`].
    pub home: u64,
    pub workers: u16,
    pub longest_request_ms: u64,
    /// How much is held at most.
    pub limit: Credit,
}

/// A message and whom it goes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Letter {
    ToDispatcher(SupervisorToDispatcher),
    /// Sent at once or not at all: what is not heard is said anew.
    ToDispatcherNow(SupervisorToDispatcher),
    Outcomes(Arc<SupervisorOutcomes>),
    ToWorker(u16, SupervisorToWorker),
}

/// See the module.
#[derive(Debug)]
pub struct Supervisor {
    terms: Terms,
    session: Session,
    slots: Vec<Slot>,
    queue: Queue,
    crawls: HashMap<CrawlKey, CrawlSettings>,
    mappings: Option<Vec<MappingSource>>,
    /// Collected for the dispatcher until the next report.
    outcomes: SupervisorOutcomes,
    unheard: Unheard,
    told_credit: Credit,
    draining: bool,
    /// The dispatcher was found to be silent, or the name to be taken, and that was logged.
    complained: bool,
    letters: Vec<Letter>,
}

impl Supervisor {
    pub fn new(terms: Terms) -> Supervisor {
        Supervisor {
            session: Session::default(),
            slots: (0..terms.workers).map(|_| Slot::default()).collect(),
            queue: Queue::new(terms.limit),
            crawls: HashMap::new(),
            mappings: None,
            outcomes: no_outcomes(&terms.id),
            unheard: Unheard::default(),
            told_credit: terms.limit,
            draining: false,
            complained: false,
            letters: Vec::new(),
            terms,
        }
    }

    pub fn take_letters(&mut self) -> Vec<Letter> {
        std::mem::take(&mut self.letters)
    }

    /// Tasks held.
    pub fn held(&self) -> usize {
        self.queue.len()
    }

    fn say(&mut self, message: SupervisorToDispatcher) {
        self.letters.push(Letter::ToDispatcher(message));
    }

    fn tell(&mut self, slot: usize, message: SupervisorToWorker) {
        self.letters.push(Letter::ToWorker(slot as u16, message));
    }

    fn ready_slots(&self) -> Vec<usize> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(|(_, slot)| slot.ready)
            .map(|(n, _)| n)
            .collect()
    }

    fn tell_ready_workers(&mut self, message: &SupervisorToWorker) {
        for slot in self.ready_slots() {
            self.tell(slot, message.clone());
        }
    }

    // The dispatcher.

    /// When there will be something to say without a message.
    pub fn next_word_ms(&self) -> u64 {
        self.session.speak_at_ms()
    }

    /// What time alone brings: hello, heartbeats.
    pub fn keep_time(&mut self, now_ms: u64) {
        match self.session.due(now_ms) {
            Due::Nothing => {}
            Due::Hello => self.say_hello(now_ms),
            Due::Heartbeat => {
                let beat = self.session.heartbeat(self.queue.credit(), now_ms);
                let beat = SupervisorToDispatcher::Heartbeat(beat);
                self.letters.push(Letter::ToDispatcherNow(beat));
            }
        }
        if self.session.is_welcomed() {
            self.watch_dispatcher(now_ms);
        }
    }

    fn say_hello(&mut self, now_ms: u64) {
        let goes_on = self.session.has_begun();
        let held = self.queue.leases().into_iter();
        let ended = self.unheard.leases().chain(leases_of(&self.outcomes));
        let held = held.chain(ended).collect();
        let credit = self.queue.fresh_credit();
        self.told_credit = credit;
        let hello = SupervisorToDispatcher::Hello(Hello {
            supervisor: self.terms.id.clone(),
            home: self.terms.home,
            session: self.session.begin(now_ms),
            sent_ms: now_ms,
            workers: self.terms.workers,
            longest_request_ms: self.terms.longest_request_ms,
            credit,
            held,
        });
        self.letters.push(Letter::ToDispatcherNow(hello));
        if goes_on {
            self.recall();
        }
    }

    /// The dispatcher may have given what we hold to others. Only what has been started can come
    /// to an end; for the rest new leases will come.
    fn recall(&mut self) {
        self.return_waiting();
        self.tell_ready_workers(&SupervisorToWorker::Recall);
    }

    pub fn take_from_dispatcher(&mut self, message: DispatcherToSupervisor, now_ms: u64) {
        match message {
            DispatcherToSupervisor::Welcome {
                session,
                heard_ms,
                lease_ms,
                mappings,
            } => {
                if session == self.session.id() && !self.session.is_welcomed() {
                    self.session.welcomed(heard_ms, lease_ms, now_ms);
                    self.complained = false;
                    self.tell_lease();
                    self.use_mappings(mappings);
                    self.send_again();
                }
            }
            DispatcherToSupervisor::NameTaken { session } => self.note_name_taken(session),
            DispatcherToSupervisor::Tasks {
                session,
                number,
                crawls,
                tasks,
            } => {
                if self.session.accepts(session, number) {
                    self.learn_crawls(crawls);
                    self.queue_tasks(tasks);
                }
            }
            DispatcherToSupervisor::Heartbeat {
                session,
                heard_ms,
                outcomes_heard,
            } => {
                if session == self.session.id() {
                    self.unheard.heard(outcomes_heard);
                    if self.session.heard(heard_ms, now_ms) {
                        self.tell_lease();
                    }
                }
            }
            DispatcherToSupervisor::SayHello { session } => {
                if session == self.session.id() {
                    self.say_hello(now_ms);
                }
            }
            DispatcherToSupervisor::Drain => self.drain(),
        }
    }

    fn note_name_taken(&mut self, session: u64) {
        if session == self.session.id() && !std::mem::replace(&mut self.complained, true) {
            tracing::error!(
                event = "name_taken",
                supervisor = self.terms.id,
                "another supervisor of this name is at work, or was until a moment ago: waiting; \
                 if it is to stay, start this one with another --id"
            );
        }
    }

    fn watch_dispatcher(&mut self, now_ms: u64) {
        let silent = now_ms >= self.session.lease_until_ms();
        if silent && !self.complained {
            tracing::warn!(
                event = "dispatcher_silent",
                "nothing heard of the dispatcher, no fetches are started"
            );
        }
        if !silent && self.complained {
            tracing::info!(
                event = "dispatcher_back",
                "the dispatcher is heard of again"
            );
        }
        self.complained = silent;
    }

    fn tell_lease(&mut self) {
        let boot_ms = self.session.lease_until_ms();
        self.tell_ready_workers(&SupervisorToWorker::LeaseUntil { boot_ms });
    }

    fn use_mappings(&mut self, mappings: Vec<MappingSource>) {
        if self.mappings.as_ref() != Some(&mappings) {
            self.tell_ready_workers(&SupervisorToWorker::Mappings(mappings.clone()));
            self.mappings = Some(mappings);
        }
    }

    /// A crawl's settings may change when it is resumed; workers are told anew.
    fn learn_crawls(&mut self, crawls: Vec<CrawlSettings>) {
        for crawl in crawls {
            for slot in &mut self.slots {
                slot.crawls.retain(|key| *key != crawl.key);
            }
            self.crawls.insert(crawl.key, crawl);
        }
    }

    fn queue_tasks(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            let slot = slot_of(&task.site, self.terms.workers);
            self.queue.hold(&task, slot, false);
            self.slots[usize::from(slot)].waiting.push(task);
        }
        if self.draining {
            self.return_waiting();
        }
        for slot in 0..self.slots.len() {
            self.feed(slot);
        }
    }

    /// Tells the dispatcher what has ended, and how much room there is. Without a session, that
    /// waits for the next one.
    pub fn report(&mut self) {
        if !self.session.is_welcomed() {
            return;
        }
        if !self.outcomes.done.is_empty() || !self.outcomes.returned.is_empty() {
            let outcomes = std::mem::replace(&mut self.outcomes, no_outcomes(&self.terms.id));
            self.send_outcomes(outcomes);
        }
        let credit = self.queue.credit();
        if credit != self.told_credit && !self.draining {
            self.told_credit = credit;
            let session = self.session.id();
            self.say(SupervisorToDispatcher::Credit { session, credit });
        }
    }

    fn send_outcomes(&mut self, mut outcomes: SupervisorOutcomes) {
        outcomes.session = self.session.id();
        outcomes.number = self.session.next_outcomes();
        let outcomes = Arc::new(outcomes);
        self.unheard.note(&outcomes);
        self.letters.push(Letter::Outcomes(outcomes));
    }

    /// A new session begins with what may have been lost in the last one.
    fn send_again(&mut self) {
        for outcomes in self.unheard.take() {
            self.send_outcomes(outcomes);
        }
        self.report();
    }

    // Workers.

    /// Sends a ready worker what waits for it.
    fn feed(&mut self, slot: usize) {
        let worker = &mut self.slots[slot];
        if !worker.ready || worker.waiting.is_empty() {
            return;
        }
        let tasks = std::mem::take(&mut worker.waiting);
        for task in &tasks {
            self.queue.mark_sent(task.task);
            let worker = &mut self.slots[slot];
            if !worker.crawls.contains(&task.crawl)
                && let Some(crawl) = self.crawls.get(&task.crawl)
            {
                worker.crawls.push(task.crawl);
                let message = SupervisorToWorker::Crawl(crawl.clone());
                self.tell(slot, message);
            }
        }
        self.tell(slot, SupervisorToWorker::Tasks(tasks));
    }

    pub fn take_from_worker(&mut self, message: WorkerToSupervisor) {
        let slot = usize::from(message.slot);
        let is_alive = |slot: &Slot| slot.incarnation == message.incarnation;
        if !self.slots.get(slot).is_some_and(is_alive) {
            return;
        }
        if message.ready {
            self.welcome_worker(slot);
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

    fn welcome_worker(&mut self, slot: usize) {
        self.slots[slot].ready = true;
        if self.draining {
            self.tell(slot, SupervisorToWorker::Drain);
        }
        if let Some(mappings) = &self.mappings {
            let message = SupervisorToWorker::Mappings(mappings.clone());
            self.tell(slot, message);
        }
        let sites = std::mem::take(&mut self.slots[slot].inherited);
        if !sites.is_empty() {
            self.tell(slot, SupervisorToWorker::Inherited { sites });
        }
        let boot_ms = self.session.lease_until_ms();
        self.tell(slot, SupervisorToWorker::LeaseUntil { boot_ms });
        self.feed(slot);
    }

    /// A worker's process is gone; its last words may still arrive.
    pub fn worker_died(&mut self, slot: u16) {
        let slot = &mut self.slots[usize::from(slot)];
        slot.ready = false;
        slot.crawls.clear();
    }

    /// The slot's process was started. What the one before held is lost for good; `blamed` is the
    /// page that it worked on when it died.
    pub fn worker_started(&mut self, slot: u16, incarnation: u32, blamed: Option<u64>) {
        self.worker_died(slot);
        self.slots[usize::from(slot)].incarnation = incarnation;
        self.account_for_death(slot, blamed);
    }

    /// The slot's process is dead, and its last words are in.
    pub fn account_for_death(&mut self, slot: u16, blamed: Option<u64>) {
        let lost = self.queue.give_back(slot, blamed);
        if !lost.returned.is_empty() {
            tracing::warn!(
                event = "tasks_given_back",
                slot,
                tasks = lost.returned.len(),
                blamed,
                "a dead worker's tasks go back"
            );
        }
        let inherited = &mut self.slots[usize::from(slot)].inherited;
        inherited.extend(lost.sites);
        self.outcomes.returned.extend(lost.returned);
        self.report();
    }

    // The end.

    /// Workers finish what they have begun and give back the rest.
    pub fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        tracing::info!(event = "draining", held = self.queue.len(), "draining");
        self.return_waiting();
        self.tell_ready_workers(&SupervisorToWorker::Drain);
    }

    pub fn is_draining(&self) -> bool {
        self.draining
    }

    fn return_waiting(&mut self) {
        for slot in &mut self.slots {
            for task in std::mem::take(&mut slot.waiting) {
                if self.queue.release(task.task, task.attempt) {
                    self.outcomes.returned.push(TaskReturned {
                        task: task.task,
                        attempt: task.attempt,
                        cause: ReturnCause::Unstarted,
                        clock: None,
                    });
                }
            }
        }
        self.report();
    }

    /// Told to drain, and nothing is held any more.
    pub fn is_drained(&self) -> bool {
        self.draining && self.queue.is_empty()
    }

    pub fn say_goodbye(&mut self) {
        self.report();
        let (session, outcomes_sent) = (self.session.id(), self.session.outcomes_sent());
        self.say(SupervisorToDispatcher::Goodbye {
            session,
            outcomes_sent,
        });
    }
}

fn no_outcomes(supervisor: &str) -> SupervisorOutcomes {
    SupervisorOutcomes {
        supervisor: supervisor.to_owned(),
        session: 0,
        number: 0,
        done: Vec::new(),
        returned: Vec::new(),
    }
}
