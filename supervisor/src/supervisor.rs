//! The supervisor's state, and what each message does to it. No sockets, no processes, no clock:
//! what arrives is handed in with the time, and what is to be sent is collected as outgoing messages.
//!
//! Tasks come in at the [`dispatcher_side`], wait in the queue, and leave at the [`worker_side`];
//! outcomes go the other way.

use std::collections::HashMap;
use std::sync::Arc;

use webfill_wire::Lane;
use webfill_wire::{
    CrawlKey, CrawlSettings, Credit, MappingSource, RecallScope, ReturnCause, SupervisorOutcomes,
    SupervisorToDispatcher, SupervisorToWorker, Task, TaskReturned,
};

use crate::queue::Queue;
use crate::recalls::Recalls;
use crate::session::Session;
use crate::slot::Slot;
use crate::unheard::Unheard;

mod dispatcher_side;
mod worker_side;

/// What a supervisor goes by.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Its name.
    pub id: String,
    /// See [`webfill_wire::Hello`].
    pub instance: u64,
    pub lane: Lane,
    pub workers: u16,
    pub longest_request_ms: u64,
    /// How much is held at most.
    pub limit: Credit,
}

/// A message and whom it goes to.
#[derive(Debug, Clone, PartialEq)]
pub enum OutgoingMessage {
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
    recalls: Recalls,
    told_credit: Credit,
    draining: bool,
    /// The dispatcher was found to be silent, or the name to be taken, and that was logged.
    complained: bool,
    outgoing: Vec<OutgoingMessage>,
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
            recalls: Recalls::default(),
            told_credit: terms.limit,
            draining: false,
            complained: false,
            outgoing: Vec::new(),
            terms,
        }
    }

    pub fn take_outgoing(&mut self) -> Vec<OutgoingMessage> {
        std::mem::take(&mut self.outgoing)
    }

    /// Tasks held.
    pub fn held(&self) -> usize {
        self.queue.len()
    }

    fn say(&mut self, message: SupervisorToDispatcher) {
        self.outgoing.push(OutgoingMessage::ToDispatcher(message));
    }

    fn tell(&mut self, slot: usize, message: SupervisorToWorker) {
        self.outgoing
            .push(OutgoingMessage::ToWorker(slot as u16, message));
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

    /// Workers finish what they have begun and give back the rest.
    pub fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        tracing::info!(event = "draining", held = self.queue.len(), "draining");
        self.return_waiting(&RecallScope::default());
        self.tell_ready_workers(&SupervisorToWorker::Drain);
    }

    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Gives back what no worker has yet.
    fn return_waiting(&mut self, scope: &RecallScope) {
        for slot in &mut self.slots {
            let is_meant = |task: &mut Task| scope.holds(task.crawl, &task.site, task.priority);
            for task in slot.waiting.extract_if(.., is_meant) {
                if self.queue.release(task.task, task.delivery) {
                    self.outcomes.returned.push(TaskReturned {
                        task: task.task,
                        delivery: task.delivery,
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
        recalled: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
