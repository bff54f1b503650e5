//! What is said to the dispatcher and what is heard of it: hello, heartbeats, the lease, tasks,
//! outcomes.

use std::collections::HashSet;
use std::sync::Arc;

use webfill_wire::{
    CrawlKey, CrawlSettings, DispatcherToSupervisor, Hello, MappingSource, RecallScope,
    SupervisorOutcomes, SupervisorToDispatcher, SupervisorToWorker, Task,
};

use super::{OutgoingMessage, Supervisor, no_outcomes};
use crate::queue::slot_of;
use crate::session::Due;
use crate::unheard::leases_of;

impl Supervisor {
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
                self.outgoing.push(OutgoingMessage::ToDispatcherNow(beat));
            }
        }
        if self.session.is_welcomed() {
            self.watch_dispatcher(now_ms);
        }
    }

    pub(super) fn say_hello(&mut self, now_ms: u64) {
        let goes_on = self.session.has_begun();
        let held = self.queue.leases().into_iter();
        let ended = self.unheard.leases().chain(leases_of(&self.outcomes));
        let held = held.chain(ended).collect();
        let credit = self.queue.fresh_credit();
        self.told_credit = credit;
        let hello = SupervisorToDispatcher::Hello(Hello {
            supervisor: self.terms.id.clone(),
            instance: self.terms.instance,
            session: self.session.begin(now_ms),
            sent_ms: now_ms,
            lane: self.terms.lane,
            workers: self.terms.workers,
            longest_request_ms: self.terms.longest_request_ms,
            credit,
            held,
        });
        self.outgoing.push(OutgoingMessage::ToDispatcherNow(hello));
        if goes_on {
            // The dispatcher may have given what we hold to others. Only what has been started can
            // come to an end; for the rest new leases will come.
            self.recalls.forget();
            self.recall(0, RecallScope::default());
        }
    }

    pub(super) fn recall(&mut self, recall: u64, scope: RecallScope) {
        self.return_waiting(&scope);
        let slots = self.ready_slots();
        self.tell_ready_workers(&SupervisorToWorker::Recall { recall, scope });
        if recall > 0 {
            let settled = self.recalls.begin(recall, slots);
            self.outcomes.recalled.extend(settled);
        }
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
                    self.queue_tasks(tasks, self.session.has_overtaken(number));
                }
            }
            DispatcherToSupervisor::ForgetCrawls { session } => {
                if session == self.session.id() {
                    self.forget_crawls();
                }
            }
            DispatcherToSupervisor::Recall {
                session,
                number,
                recall,
                scope,
            } => {
                if self.session.accepts(session, number) {
                    self.session.note_recall(number);
                    self.recall(recall, scope);
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

    pub(super) fn note_name_taken(&mut self, session: u64) {
        if session == self.session.id() && !std::mem::replace(&mut self.complained, true) {
            tracing::error!(
                event = "name_taken",
                supervisor = self.terms.id,
                "another supervisor of this name is at work, or was until a moment ago: waiting; \
                 if it is to stay, start this one with another --id"
            );
        }
    }

    pub(super) fn watch_dispatcher(&mut self, now_ms: u64) {
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

    pub(super) fn tell_lease(&mut self) {
        let boot_ms = self.session.lease_until_ms();
        self.tell_ready_workers(&SupervisorToWorker::LeaseUntil { boot_ms });
    }

    pub(super) fn use_mappings(&mut self, mappings: Vec<MappingSource>) {
        if self.mappings.as_ref() != Some(&mappings) {
            self.tell_ready_workers(&SupervisorToWorker::Mappings(mappings.clone()));
            self.mappings = Some(mappings);
        }
    }

    /// A crawl's settings may change when it is resumed; workers are told anew.
    pub(super) fn learn_crawls(&mut self, crawls: Vec<CrawlSettings>) {
        for crawl in crawls {
            for slot in &mut self.slots {
                slot.crawls.remove(&crawl.key);
            }
            self.crawls.insert(crawl.key, crawl);
        }
    }

    /// Those of tasks that wait are needed still.
    fn forget_crawls(&mut self) {
        let waiting = self.slots.iter().flat_map(|slot| &slot.waiting);
        let needed: HashSet<CrawlKey> = waiting.map(|task| task.crawl).collect();
        self.crawls.retain(|key, _| needed.contains(key));
        for slot in &mut self.slots {
            slot.crawls.clear();
        }
        self.tell_ready_workers(&SupervisorToWorker::ForgetCrawls);
    }

    fn queue_tasks(&mut self, tasks: Vec<Task>, are_recalled: bool) {
        for task in tasks {
            let slot = slot_of(&task.site, self.terms.workers);
            self.queue.hold(&task, slot, false);
            self.slots[usize::from(slot)].waiting.push(task);
        }
        if self.draining || are_recalled {
            self.return_waiting(&RecallScope::default());
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
        let collected = &self.outcomes;
        let ended = collected.done.len() + collected.returned.len();
        if ended + collected.recalled.len() > 0 {
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

    pub(super) fn send_outcomes(&mut self, mut outcomes: SupervisorOutcomes) {
        outcomes.session = self.session.id();
        outcomes.number = self.session.next_outcomes();
        let outcomes = Arc::new(outcomes);
        self.unheard.note(&outcomes);
        self.outgoing.push(OutgoingMessage::Outcomes(outcomes));
    }

    /// A new session begins with what may have been lost in the last one.
    pub(super) fn send_again(&mut self) {
        for outcomes in self.unheard.take() {
            self.send_outcomes(outcomes);
        }
        self.report();
    }
}
