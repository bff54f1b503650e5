//! The simulated world: one queue of events in order of time, and the processes that the events affect. A stopped
//! process gets its events when it continues.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use webfill_worker::Now;

use crate::cache::SharedCache;
use crate::client::Client;
use crate::coordinator::Coordinator;
use crate::dice::Dice;
use crate::event::{Event, Place};
use crate::fleet::{EgressLoss, Machine};
use crate::observations::{ObservedBackoffs, ObservedMachines, Standstill};
use crate::orders::Operator;
use crate::plan::Plan;
use crate::sabotage::Sabotage;
use crate::settings::EPOCH_MS;
use crate::standbys::Standbys;
use crate::store::{SiteStates, Store};
use crate::web::Web;

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
    /// The dispatchers, in a world where one of several dispatchers serves.
    pub(crate) standbys: Option<Box<Standbys>>,
    /// When the monotonic clocks of all workers start.
    epoch: Instant,
    pub(crate) connections: u64,
    pub(crate) traces: bool,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) faults: Vec<String>,
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

    /// Takes the next event, and advances the time to it. `None` if no event is left.
    pub(crate) fn take_next_event(&mut self) -> Option<Event> {
        let ((at_ms, _), event) = self.events.pop_first()?;
        self.now_ms = at_ms;
        Some(*event)
    }

    /// The present moment in the form that workers use. Their wall clocks are right.
    pub(crate) fn now(&self) -> Now {
        Now {
            instant: self.epoch + Duration::from_millis(self.now_ms),
            wall_ms: EPOCH_MS + self.now_ms as i64,
        }
    }

    /// The first simulated millisecond at or after a moment.
    pub(crate) fn ms_of(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.epoch);
        since.as_nanos().div_ceil(1_000_000) as u64
    }

    pub(crate) fn suspend(&mut self, place: Place, for_ms: u64) {
        let until_ms = self.now_ms + for_ms;
        let stopped = self.stopped_until_ms.entry(place).or_default();
        *stopped = until_ms.max(*stopped);
    }

    /// Makes a process continue, because a new process there is not stopped.
    pub(crate) fn resume(&mut self, place: Place) {
        self.stopped_until_ms.remove(&place);
    }

    pub(crate) fn is_suspended(&self, place: Place) -> bool {
        self.suspended_until_ms(place).is_some()
    }

    /// When a stopped process continues; `None` if the process is not stopped.
    pub(crate) fn suspended_until_ms(&self, place: Place) -> Option<u64> {
        let until_ms = self.stopped_until_ms.get(&place).copied();
        until_ms.filter(|until_ms| *until_ms > self.now_ms)
    }

    pub(crate) fn trace(&self, what: impl FnOnce(&World) -> String) {
        if self.traces {
            eprintln!("{:>9} {}", self.now_ms, what(self));
        }
    }

    pub(crate) fn is_sabotaged_by(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    pub(crate) fn has_standbys(&self) -> bool {
        self.standbys.is_some()
    }

    /// The dispatchers of this world, which must have several.
    pub(crate) fn standbys_mut(&mut self) -> &mut Standbys {
        self.standbys.as_mut().expect("a world with standbys")
    }
}
