//! The decisions of a supervisor: its state, and how each message changes the state.
//!
//! This code has no sockets, processes or clock, so that the simulation can run it. The caller passes in messages and
//! the time, and sends the [`OutgoingMessage`]s that are collected here.
//!
//! Tasks arrive from the dispatcher ([`dispatcher_side`]), wait in the [`Queue`] and are sent to the workers
//! ([`worker_side`]); outcomes take the opposite way. All state is in memory. After a crash of the supervisor, its
//! leases expire at the dispatcher, or end immediately when a supervisor of the same instance says hello.

use std::collections::HashMap;
use std::sync::Arc;

use webfill_wire::Lane;
use webfill_wire::{
    CrawlKey, CrawlSettings, Credit, RecallScope, ReturnCause, SiteScripts, SupervisorOutcomes,
    SupervisorToDispatcher, SupervisorToWorker, Task, TaskReturned,
};
use webfill_worker::MOST_LOOK_UPS;

use crate::mappings::Mappings;
use crate::queue::Queue;
use crate::recalls::Recalls;
use crate::session::Session;
use crate::unacknowledged::UnacknowledgedOutcomes;
use crate::worker_state::WorkerState;

mod dispatcher_side;
mod worker_side;

/// The identity of a supervisor, and its limits.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The supervisor's name.
    pub id: String,
    /// A number that distinguishes two supervisors of the same name; see [`webfill_wire::Hello`].
    pub instance: u64,
    pub lane: Lane,
    pub workers: u16,
    pub longest_request_ms: u64,
    /// How many tasks and bytes of URLs the supervisor holds at most.
    pub limit: Credit,
}

/// How long a drained supervisor waits for the dispatcher to acknowledge its last outcomes. A dispatcher that is being
/// restarted answers within seconds. If there is none, the supervisor must end eventually. Together with the longest
/// request, this stays below `TimeoutStopSec` of the service.
const LAST_ACKNOWLEDGEMENT_MS: u64 = 20_000;

/// A message that the caller must send.
#[derive(Debug, Clone, PartialEq)]
pub enum OutgoingMessage {
    ToDispatcher(SupervisorToDispatcher),
    /// A message that is sent immediately or dropped, because a later message of the same kind replaces it.
    ToDispatcherNow(SupervisorToDispatcher),
    Outcomes(Arc<SupervisorOutcomes>),
    ToWorker(u16, SupervisorToWorker),
}

/// Makes the decisions of a supervisor process; see the documentation of the module.
#[derive(Debug)]
pub struct Supervisor {
    terms: Terms,
    session: Session,
    /// The end of the claim of `webfill crawl` to its crawl. No request may start after that, even under a lease.
    /// `u64::MAX` without a claim.
    claimed_until_ms: u64,
    workers: Vec<WorkerState>,
    queue: Queue,
    crawls: HashMap<CrawlKey, CrawlSettings>,
    /// What is known about the scripts of sites whose tasks wait here for their worker. The dispatcher sends it again
    /// with each batch of tasks.
    site_scripts: HashMap<String, SiteScripts>,
    mappings: Mappings,
    /// The outcomes that the next [`Supervisor::send_report`] sends to the dispatcher.
    outcomes: SupervisorOutcomes,
    unacknowledged: UnacknowledgedOutcomes,
    recalls: Recalls,
    reported_credit: Credit,
    draining: bool,
    /// Since when the draining supervisor has held no lease.
    empty_since_ms: Option<u64>,
    /// Whether fetching is paused: tasks are given back instead of started.
    paused: bool,
    /// Whether it was already logged that the dispatcher is silent, or that the name is taken.
    problem_logged: bool,
    /// Whether the last hello was refused because another supervisor has the same name.
    name_taken: bool,
    outgoing: Vec<OutgoingMessage>,
}

impl Supervisor {
    pub fn new(terms: Terms) -> Supervisor {
        Supervisor {
            session: Session::default(),
            claimed_until_ms: u64::MAX,
            workers: (0..terms.workers).map(|_| WorkerState::default()).collect(),
            queue: Queue::new(terms.limit, most_uncounted(&terms)),
            crawls: HashMap::new(),
            site_scripts: HashMap::new(),
            mappings: Mappings::default(),
            outcomes: empty_outcomes(&terms.id),
            unacknowledged: UnacknowledgedOutcomes::default(),
            recalls: Recalls::default(),
            reported_credit: terms.limit,
            draining: false,
            empty_since_ms: None,
            paused: false,
            problem_logged: false,
            name_taken: false,
            outgoing: Vec::new(),
            terms,
        }
    }

    pub fn take_outgoing(&mut self) -> Vec<OutgoingMessage> {
        std::mem::take(&mut self.outgoing)
    }

    /// Whether the dispatcher has answered the last hello with a welcome.
    pub fn is_welcome(&self) -> bool {
        self.session.is_welcomed()
    }

    /// The duration of a lease; 0 until the dispatcher has named it.
    pub fn lease_ms(&self) -> u64 {
        self.session.lease_ms()
    }

    /// Whether the lease, the permission to start fetches, has not ended yet.
    pub fn has_lease(&self, now_ms: u64) -> bool {
        now_ms < self.session.lease_until_ms()
    }

    /// Notes that the claim of `webfill crawl` to its crawl lasts until `boot_ms`. The workers start no request after
    /// that.
    pub fn set_claimed_until(&mut self, boot_ms: u64) {
        if std::mem::replace(&mut self.claimed_until_ms, boot_ms) != boot_ms {
            self.send_lease();
        }
    }

    /// Workers may start no requests after this time: the end of the lease or of the claim, whichever is earlier.
    fn requests_until_ms(&self) -> u64 {
        self.session.lease_until_ms().min(self.claimed_until_ms)
    }

    /// Whether another supervisor has the same name as this one.
    pub fn is_name_taken(&self) -> bool {
        self.name_taken
    }

    /// The number of leases (tasks handed out by the dispatcher) that this supervisor holds.
    pub fn held_leases(&self) -> usize {
        self.queue.len()
    }

    /// The number of held leases whose tasks were not yet sent to their worker.
    pub fn waiting_tasks(&self) -> usize {
        self.workers.iter().map(|worker| worker.waiting.len()).sum()
    }

    /// The number of the session with the dispatcher; 0 before the first hello.
    pub fn session_id(&self) -> u64 {
        self.session.id()
    }

    fn send_to_dispatcher(&mut self, message: SupervisorToDispatcher) {
        self.outgoing.push(OutgoingMessage::ToDispatcher(message));
    }

    fn send_to_worker(&mut self, worker_index: usize, message: SupervisorToWorker) {
        self.outgoing
            .push(OutgoingMessage::ToWorker(worker_index as u16, message));
    }

    /// The indexes of the workers that have reported ready.
    fn ready_workers(&self) -> Vec<usize> {
        let workers = self.workers.iter().enumerate();
        workers
            .filter(|(_, worker)| worker.ready)
            .map(|(n, _)| n)
            .collect()
    }

    fn send_to_ready_workers(&mut self, message: &SupervisorToWorker) {
        for worker_index in self.ready_workers() {
            self.send_to_worker(worker_index, message.clone());
        }
    }

    /// Starts to drain: workers finish their started tasks and give back the rest.
    pub fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        tracing::info!(event = "draining", held = self.queue.len(), "draining");
        self.return_waiting(&RecallScope::default());
        self.send_to_ready_workers(&SupervisorToWorker::Drain);
    }

    /// Begins or ends a pause. During a pause, started tasks are finished, all others are given back, and no credit
    /// is granted, so the dispatcher soon sends no more tasks.
    pub fn set_paused(&mut self, paused: bool) {
        if std::mem::replace(&mut self.paused, paused) == paused {
            return;
        }
        match paused {
            true => self.recall(0, RecallScope::default()),
            false => self.send_report(),
        }
    }

    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Gives back the tasks in the scope that were not sent to a worker yet.
    fn return_waiting(&mut self, scope: &RecallScope) {
        for worker in &mut self.workers {
            let is_in_scope =
                |task: &mut Task| scope.contains_task(task.crawl, &task.site, task.priority);
            for task in worker.waiting.extract_if(.., is_in_scope) {
                if self.queue.release(task.task, task.delivery) {
                    self.outcomes.returned.push(TaskReturned {
                        task: task.task,
                        delivery: task.delivery,
                        cause: ReturnCause::Unstarted,
                        clock: None,
                        address: None,
                    });
                }
            }
        }
        self.send_report();
    }

    /// Whether the supervisor is draining and holds no more leases, and the dispatcher has acknowledged all its
    /// outcomes. After [`LAST_ACKNOWLEDGEMENT_MS`], it no longer waits for that.
    pub fn is_drained(&mut self, now_ms: u64) -> bool {
        if !self.draining || !self.queue.is_empty() {
            return false;
        }
        if self.unacknowledged_pages() == 0 {
            return true;
        }
        let since_ms = *self.empty_since_ms.get_or_insert(now_ms);
        now_ms >= since_ms + LAST_ACKNOWLEDGEMENT_MS
    }

    /// How many pages have an outcome that the dispatcher has not acknowledged. They will be fetched again. Tasks that
    /// were given back do not count, because their pages were not fetched.
    pub fn unacknowledged_pages(&self) -> usize {
        self.outcomes.done.len() + self.unacknowledged.pages()
    }

    pub fn send_goodbye(&mut self) {
        self.send_report();
        let (session, outcomes_sent) = (self.session.id(), self.session.outcomes_sent());
        self.send_to_dispatcher(SupervisorToDispatcher::Goodbye {
            session,
            outcomes_sent,
        });
    }
}

/// How many tasks that wait for a name server need not count against the limit on tasks: as many as there are places
/// for name lookups in all workers.
fn most_uncounted(terms: &Terms) -> u64 {
    u64::from(terms.workers) * MOST_LOOK_UPS as u64
}

fn empty_outcomes(supervisor: &str) -> SupervisorOutcomes {
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
