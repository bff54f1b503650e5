//! The simulated world: one queue of events in time, and the processes that they affect. A stopped process gets its
//! events when it continues.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use webfill_scheduler::Caller;
use webfill_scheduler::effects::{BackfillWrite, SiteStatesWrite};
use webfill_wire::{DispatcherToSupervisor, SupervisorToWorker, WorkerToSupervisor};
use webfill_worker::Now;

use crate::cache::SharedCache;

use crate::backoff::ObservedBackoffs;
use crate::client::Client;
use crate::coordinator::{Coordinator, EPOCH_MS};
use crate::dice::Dice;
use crate::faults::Fault;
use crate::fleet::{Machine, MessageToDispatcher};
use crate::lost_ways::EgressLoss;
use crate::machines::ObservedMachines;
use crate::operator::Operator;
use crate::plan::Plan;
use crate::sabotage::Sabotage;
use crate::site_states::SiteStates;
use crate::standbys::{StandbyEvent, Standbys};
use crate::standstill::Standstill;
use crate::store::Store;
use crate::web::Web;
use crate::worker::FinishedTask;

/// One world: its plan, its state, and its future events.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) dice: Dice,
    pub(crate) now_ms: u64,
    events: BTreeMap<(u64, u64), Box<Event>>,
    count: u64,
    pub(crate) web: Web,
    pub(crate) coordinator: Coordinator,
    pub(crate) machines: Vec<Machine>,
    pub(crate) client: Client,
    pub(crate) operator: Operator,
    stopped_until_ms: BTreeMap<Place, u64>,
    pub(crate) cache: SharedCache,
    pub(crate) store: Store,
    pub(crate) backoff: ObservedBackoffs,
    pub(crate) site_states: SiteStates,
    pub(crate) standstill: Standstill,
    pub(crate) lost_ways: EgressLoss,
    pub(crate) machines_seen: ObservedMachines,
    /// The dispatchers of a world that has several, of which one serves.
    pub(crate) standbys: Option<Box<Standbys>>,
    /// The time at which monotonic clocks start.
    epoch: Instant,
    pub(crate) connections: u64,
    pub(crate) traces: bool,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) faults: Vec<String>,
}

/// A place where events happen, which may be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Nowhere,
    Dispatcher,
    /// One of several dispatchers.
    Node(usize),
    Supervisor(usize),
    Worker(usize, u16),
}

/// An event at one of the processes.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    DispatcherWakes,
    DispatcherStarts,
    ToDispatcher {
        life: u32,
        peer: Caller,
        message: MessageToDispatcher,
    },
    ToSupervisor {
        machine: usize,
        connection: u64,
        message: DispatcherToSupervisor,
    },
    SupervisorStarts(usize),
    SupervisorSpeaks(usize),
    FromWorker {
        machine: usize,
        life: u32,
        message: WorkerToSupervisor,
    },
    WorkerMissed {
        machine: usize,
        life: u32,
        slot: u16,
        blamed: Option<u64>,
    },
    WorkerStarts {
        machine: usize,
        life: u32,
        slot: u16,
        blamed: Option<u64>,
    },
    WorkerHangs {
        machine: usize,
        slot: u16,
        incarnation: u32,
    },
    ToWorker {
        machine: usize,
        slot: u16,
        incarnation: u32,
        message: SupervisorToWorker,
    },
    WorkerReady {
        machine: usize,
        slot: u16,
        incarnation: u32,
    },
    Turn {
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    },
    Answered {
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    },
    Saved {
        machine: usize,
        slot: u16,
        incarnation: u32,
        finished: Box<FinishedTask>,
    },
    ClocksKept {
        machine: usize,
        slot: u16,
        incarnation: u32,
    },
    /// A runner's task waits for a name server.
    WorkerWaits {
        machine: usize,
        slot: u16,
        incarnation: u32,
        site: usize,
    },
    /// The store has written states of sites; the dispatcher learns that later.
    SiteStatesStored {
        life: u32,
        write: Box<SiteStatesWrite>,
    },
    SiteStatesConfirmed {
        life: u32,
        last: i64,
    },
    /// The store has applied a page to a further record.
    Applied {
        life: u32,
        application: Box<BackfillWrite>,
    },
    Fault(Fault),
    Standby(StandbyEvent),
    NamesakeEnds(usize),
    ClientAsks,
    OperatorActs(usize),
}

impl Event {
    fn place(&self) -> Place {
        if let Event::Standby(event) = self {
            return event.place();
        }
        match *self {
            Event::DispatcherWakes
            | Event::ToDispatcher { .. }
            | Event::Applied { .. }
            | Event::SiteStatesStored { .. }
            | Event::SiteStatesConfirmed { .. } => Place::Dispatcher,
            Event::ToSupervisor { machine, .. }
            | Event::SupervisorSpeaks(machine)
            | Event::FromWorker { machine, .. }
            | Event::WorkerMissed { machine, .. }
            | Event::WorkerStarts { machine, .. }
            | Event::WorkerHangs { machine, .. } => Place::Supervisor(machine),
            Event::ToWorker { machine, slot, .. }
            | Event::WorkerReady { machine, slot, .. }
            | Event::Turn { machine, slot, .. }
            | Event::Answered { machine, slot, .. }
            | Event::Saved { machine, slot, .. }
            | Event::WorkerWaits { machine, slot, .. }
            | Event::ClocksKept { machine, slot, .. } => Place::Worker(machine, slot),
            Event::DispatcherStarts
            | Event::Standby(_)
            | Event::SupervisorStarts(_)
            | Event::Fault(_)
            | Event::NamesakeEnds(_)
            | Event::ClientAsks
            | Event::OperatorActs(_) => Place::Nowhere,
        }
    }
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, sabotage: Option<Sabotage>, traces: bool) -> World {
        let machines = plan.lanes.iter().enumerate();
        let machines = machines.map(|(name, lanes)| Machine::new(&plan, name, name as u64, *lanes));
        let mut world = World {
            dice: Dice::new(seed ^ 0xD1CE),
            now_ms: 0,
            events: BTreeMap::new(),
            count: 0,
            web: Web::new(&plan),
            coordinator: Coordinator::new(),
            machines: machines.collect(),
            client: Client::new(&plan),
            operator: Operator::default(),
            stopped_until_ms: BTreeMap::new(),
            cache: SharedCache::new(plan.cache_fails),
            store: Store::default(),
            backoff: ObservedBackoffs::default(),
            site_states: SiteStates::new(seed),
            standstill: Standstill::default(),
            lost_ways: EgressLoss::new(seed),
            machines_seen: ObservedMachines::default(),
            standbys: Standbys::from_plan(&plan, seed),
            epoch: Instant::now(),
            connections: 0,
            traces,
            sabotage,
            faults: Vec::new(),
            plan,
        };
        world.trace(|world| format!("{:#?}", world.plan));
        world.schedule_at(0, Event::DispatcherStarts);
        world.schedule_at(0, Event::ClientAsks);
        for machine in 0..world.machines.len() {
            let at_ms = world.dice.between(0, 50);
            world.schedule_at(at_ms, Event::SupervisorStarts(machine));
        }
        for (at_ms, fault) in world.plan.faults.clone() {
            world.schedule_at(at_ms, Event::Fault(fault));
        }
        for number in 0..world.plan.orders.len() {
            let (at_ms, order) = world.plan.orders[number];
            if !order.reverts_previous() {
                world.schedule_at(at_ms, Event::OperatorActs(number));
            }
        }
        world
    }

    pub(crate) fn schedule_at(&mut self, at_ms: u64, event: Event) {
        self.count += 1;
        let key = (at_ms.max(self.now_ms), self.count);
        self.events.insert(key, Box::new(event));
    }

    pub(crate) fn schedule_in(&mut self, wait_ms: u64, event: Event) {
        self.schedule_at(self.now_ms + wait_ms, event);
    }

    /// Runs the next event. Returns false when the crawls are finished or nothing is left.
    pub(crate) fn step(&mut self) -> bool {
        let Some(((at_ms, _), event)) = self.events.pop_first() else {
            return false;
        };
        self.now_ms = at_ms;
        let stopped = self.stopped_until_ms.get(&event.place());
        if let Some(until_ms) = stopped.copied().filter(|until_ms| *until_ms > at_ms) {
            self.schedule_at(until_ms, *event);
            return true;
        }
        self.trace(|_| format!("{event:?}"));
        self.handle_event(*event);
        !self.client.is_finished()
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::DispatcherWakes => self.wake_dispatcher(),
            Event::DispatcherStarts if self.has_standbys() => self.begin_standbys(),
            Event::DispatcherStarts => self.start_dispatcher(),
            Event::Standby(event) => self.handle_standby_event(event),
            Event::ToDispatcher {
                life,
                peer,
                message,
            } => self.deliver_to_dispatcher(life, &peer, message),
            Event::ToSupervisor {
                machine,
                connection,
                message,
            } => self.deliver_to_supervisor(machine, connection, message),
            Event::SupervisorStarts(machine) => self.start_supervisor(machine),
            Event::SupervisorSpeaks(machine) => self.run_due_supervisor(machine),
            Event::FromWorker {
                machine,
                life,
                message,
            } => self.deliver_from_worker(machine, life, message),
            Event::WorkerMissed {
                machine,
                life,
                slot,
                blamed,
            } => self.report_worker_death(machine, life, slot, blamed),
            Event::WorkerStarts {
                machine,
                life,
                slot,
                blamed,
            } => self.start_worker(machine, life, slot, blamed),
            Event::WorkerHangs {
                machine,
                slot,
                incarnation,
            } => self.kill_if_still_hanging(machine, slot, incarnation),
            Event::ToWorker {
                machine,
                slot,
                incarnation,
                message,
            } => self.deliver_to_worker(machine, slot, incarnation, message),
            Event::WorkerReady {
                machine,
                slot,
                incarnation,
            } => self.worker_is_ready(machine, slot, incarnation),
            Event::Turn {
                machine,
                slot,
                incarnation,
                site,
            } => self.advance_runner(machine, slot, incarnation, site),
            Event::Answered {
                machine,
                slot,
                incarnation,
                site,
            } => self.deliver_answer(machine, slot, incarnation, site),
            Event::Saved {
                machine,
                slot,
                incarnation,
                finished,
            } => self.save(machine, slot, incarnation, &finished),
            Event::ClocksKept {
                machine,
                slot,
                incarnation,
            } => self.write_clocks_if_alive(machine, slot, incarnation),
            Event::WorkerWaits {
                machine,
                slot,
                incarnation,
                site,
            } => self.report_waiting(machine, slot, incarnation, site),
            Event::SiteStatesStored { life, write } => self.store_site_states(life, *write),
            Event::SiteStatesConfirmed { life, last } => self.confirm_site_states(life, last),
            Event::Applied { life, application } => self.confirm_application(life, &application),
            Event::Fault(fault) => self.inject_fault(fault),
            Event::NamesakeEnds(machine) => self.kill_supervisor(machine),
            Event::ClientAsks => self.run_client(),
            Event::OperatorActs(order) => self.give_order(order),
        }
    }

    /// The present moment, for workers. Their wall clocks are right.
    pub(crate) fn now(&self) -> Now {
        Now {
            instant: self.epoch + Duration::from_millis(self.now_ms),
            wall_ms: EPOCH_MS + self.now_ms as i64,
        }
    }

    /// The first simulated millisecond that is not before a moment.
    pub(crate) fn ms_of(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.epoch);
        since.as_nanos().div_ceil(1_000_000) as u64
    }

    pub(crate) fn suspend(&mut self, place: Place, for_ms: u64) {
        let until_ms = self.now_ms + for_ms;
        let stopped = self.stopped_until_ms.entry(place).or_default();
        *stopped = until_ms.max(*stopped);
    }

    /// Ends the stop of a place, because a new process is not stopped.
    pub(crate) fn resume(&mut self, place: Place) {
        self.stopped_until_ms.remove(&place);
    }

    pub(crate) fn is_suspended(&self, place: Place) -> bool {
        let until_ms = self.stopped_until_ms.get(&place);
        until_ms.is_some_and(|until_ms| *until_ms > self.now_ms)
    }

    pub(crate) fn trace(&self, what: impl FnOnce(&World) -> String) {
        if self.traces {
            eprintln!("{:>9} {}", self.now_ms, what(self));
        }
    }
}
