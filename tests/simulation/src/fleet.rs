//! The simulated supervisor processes: real supervisor code, with simulated workers, connections and deaths around it.

use std::collections::BTreeSet;

use webfill_supervisor::supervisor::{Supervisor, Terms};
use webfill_wire::codec::{OLDEST_VERSION, WIRE_VERSION};
use webfill_wire::{Credit, Delivery, Lane, WorkerToSupervisor};

use crate::dice::Dice;
use crate::event::MessageToDispatcher;
use crate::faults::EgressFailure;
use crate::names::PageOfCrawl;
use crate::plan::Plan;
use crate::worker::Worker;

/// A machine with a supervisor and its workers.
pub(crate) struct Machine {
    terms: Terms,
    /// The supervisor's lane (`http` or `browser`) after an odd and after an even number of starts.
    lanes: [Lane; 2],
    /// The number of times that the supervisor has been started.
    pub(crate) life: u32,
    pub(crate) core: Option<Supervisor>,
    pub(crate) workers: Vec<Worker>,
    /// Identifies the machine's connection to the dispatcher. After a new connection, the dispatcher sees a new peer.
    pub(crate) connection: u64,
    /// Messages that could not be sent while the dispatcher was away.
    pub(crate) unsent: Vec<MessageToDispatcher>,
    pub(crate) cut_up_until_ms: u64,
    pub(crate) cut_down_until_ms: u64,
    /// How requests fail while the machine has no connection to the web, and when this ends.
    pub(crate) lost_way: Option<(EgressFailure, u64)>,
    /// The leases of tasks that wait for name servers, as reported by the workers.
    pub(crate) waiting: BTreeSet<(u64, Delivery)>,
    /// How long the supervisor stays away when it leaves.
    pub(crate) away_ms: u64,
    /// When the supervisor's next message is due.
    pub(crate) speaks_at_ms: u64,
    /// The latest arrival time in each direction, for networks that keep the order of messages.
    pub(crate) last_arrival_ms: [u64; 3],
    boot_ms: u64,
}

impl Machine {
    pub(crate) fn new(plan: &Plan, name: usize, instance: u64, lanes: [Lane; 2]) -> Machine {
        Machine {
            lanes,
            terms: Terms {
                id: format!("v{name}"),
                instance,
                lane: Lane::Http,
                workers: plan.workers,
                longest_request_ms: plan.longest_request_ms,
                limit: Credit {
                    tasks: plan.queue,
                    url_bytes: 10_000,
                },
            },
            life: 0,
            core: None,
            workers: (0..plan.workers).map(|_| Worker::default()).collect(),
            connection: 0,
            unsent: Vec::new(),
            cut_up_until_ms: 0,
            cut_down_until_ms: 0,
            lost_way: None,
            waiting: BTreeSet::new(),
            away_ms: 0,
            speaks_at_ms: 0,
            last_arrival_ms: [0; 3],
            boot_ms: 1_000 + instance * 77_777_777,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.terms.id
    }

    /// The lane (`http` or `browser`) of the present supervisor process.
    pub(crate) fn lane(&self) -> Lane {
        self.terms.lane
    }

    /// The protocol version of the supervisor's messages. Each start uses another version, as after an upgrade or a
    /// downgrade.
    pub(crate) fn version(&self) -> u8 {
        let versions = u64::from(WIRE_VERSION - OLDEST_VERSION) + 1;
        let turn = self.terms.instance.wrapping_add(self.life.into());
        WIRE_VERSION - (turn % versions) as u8
    }

    /// The time on the machine's clock, which starts when the machine boots.
    pub(crate) fn boot_ms(&self, now_ms: u64) -> u64 {
        self.boot_ms + now_ms
    }

    pub(crate) fn since_start_ms(&self, boot_ms: u64) -> u64 {
        boot_ms - self.boot_ms
    }

    /// How a request fails now if the machine has lost its connection to the web; otherwise `None`.
    pub(crate) fn loss(&self, now_ms: u64) -> Option<EgressFailure> {
        let lost = self.lost_way.filter(|(_, until_ms)| *until_ms > now_ms);
        lost.map(|(loss, _)| loss)
    }

    /// Starts a new supervisor process.
    pub(crate) fn start(&mut self, connection: u64) {
        self.life += 1;
        self.terms.lane = self.lanes[self.life as usize % 2];
        self.core = Some(Supervisor::new(self.terms.clone()));
        self.connection = connection;
        self.speaks_at_ms = u64::MAX;
        self.unsent.clear();
        self.waiting.clear();
    }

    /// Notes which tasks wait for a name server. They do not count against the limit of the supervisor's queue.
    pub(crate) fn track_name_waits(&mut self, message: &WorkerToSupervisor) {
        self.waiting.extend(&message.waiting);
        for done in &message.done {
            self.waiting.remove(&(done.task, done.delivery));
        }
        for returned in &message.returned {
            self.waiting.remove(&(returned.task, returned.delivery));
        }
    }

    /// Whether the supervisor was asked to drain and has no task left.
    pub(crate) fn has_drained(&mut self, boot_ms: u64) -> bool {
        let core = self.core.as_mut();
        let is_drained = core.is_some_and(|core| core.is_drained(boot_ms));
        is_drained && !self.workers.iter().any(|worker| worker.is_alive)
    }
}

/// The tasks that were tried while their machines had no connection to the web.
#[derive(Debug)]
pub(crate) struct EgressLoss {
    pub(crate) dice: Dice,
    /// The pages whose tasks were tried without a connection to the web.
    pub(crate) tried: BTreeSet<PageOfCrawl>,
}

impl EgressLoss {
    pub(crate) fn new(seed: u64) -> EgressLoss {
        EgressLoss {
            dice: Dice::new(seed ^ 0x7057),
            tried: BTreeSet::new(),
        }
    }

    /// Whether a task of this page was tried without a connection to the web.
    pub(crate) fn was_tried_offline(&self, page: PageOfCrawl) -> bool {
        self.tried.contains(&page)
    }
}
