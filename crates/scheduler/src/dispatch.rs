//! Decides which site's tasks go to which supervisor, and when. No sockets, no disk, no clock; times are milliseconds
//! that the caller passes in.
//!
//! The [`schedule`] knows when a site's next request is allowed, and which sites share the bounds of an address or a
//! provider ([`groups`]). The [`fleet`] knows which supervisors are connected and how much credit they have.
//! [`Dispatch`] combines them and holds the leases.
//!
//! A new site goes to the next supervisor with credit, round-robin; this supervisor is the site's
//! *owner* from then on. The site gets another owner when
//!
//! - the owner has left or is lost, or, while no task of the site is leased,
//! - the next task needs a browser, and the owner has none,
//! - the owner's machine is cut off from the web ([`egress`]), or
//! - another supervisor, which has joined late, has fewer sites than its share.
//!
//! So all leases of a site are with its owner. Owners are stored with the sites; everything else
//! here is restored from the frontier after a crash.

use webfill_wire::{Credit, Hello, Lane, RecallScope, SupervisorHeartbeat};

use self::balance::Balance;
use self::fleet::Fleet;
use self::overdue::Overdue;
use self::schedule::Schedule;
use crate::caller::Caller;
use crate::frontier::{Clock, SiteId, TaskId, Turn, Woken};

mod balance;
mod egress;
mod fleet;
mod granting;
mod groups;
mod held;
mod judging;
mod leases;
mod overdue;
mod put_off;
mod ready;
mod schedule;
mod session;
mod site;
mod supervisor;

pub use self::egress::{CutOff, MachineFailures};
pub use self::fleet::{FleetMetrics, Greeting, HeartbeatReply, Presence};
pub use self::groups::GroupBounds;
use self::leases::Leases;
pub use self::leases::{LastRequest, Lease};
pub use self::schedule::SURPLUS_RETURNS_AFTER_MS;
pub use self::schedule::SiteWait;
pub use self::site::LOOKAHEAD_MS;
pub use self::supervisor::Particulars;

/// Permission to hand out tasks of one site to one supervisor.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub site: SiteId,
    /// The turn that the site was granted for.
    pub turn: Option<Turn>,
    pub supervisor: String,
    /// The supervisor's lane.
    pub lane: Lane,
    /// At most this many tasks.
    pub tasks: usize,
    /// The first task must not start before this time.
    pub start_ms: i64,
    /// How long that is from now.
    pub wait_ms: u32,
    /// See [`webfill_wire::Task`].
    pub last_request_ago_ms: Option<u32>,
    pub delay_ms: Option<u32>,
    /// If the site has a new owner: the clock to store in the commit of the leases.
    pub new_owner: Option<Clock>,
}

/// A site's clock has changed and is to be stored.
pub type ClockUpdate = (SiteId, Clock);

/// Schedule, fleet and leases.
#[derive(Debug)]
pub struct Dispatch {
    pub schedule: Schedule,
    pub fleet: Fleet,
    pub leases: Leases,
    pub overdue: Overdue,
    balance: Balance,
    /// At which site the last probe was.
    last_draw: u64,
}

impl Dispatch {
    /// Without bounds of groups, each site is bounded by its own delay only.
    pub fn new(default_delay_ms: u32, lease_ms: u64, bounds: Option<GroupBounds>) -> Dispatch {
        Dispatch {
            schedule: Schedule::new(default_delay_ms, bounds),
            fleet: Fleet::new(lease_ms),
            leases: Leases::default(),
            overdue: Overdue::default(),
            balance: Balance::default(),
            last_draw: 0,
        }
    }

    /// A site in the window has got further tasks. If leased tasks of a lower priority are in their
    /// way, returns the supervisor and the scope of the recall that preempts them.
    pub fn wake(&mut self, woken: Woken) -> Option<(String, RecallScope)> {
        self.schedule.wake(woken);
        let priority = woken.turn.priority;
        let default_delay_ms = self.schedule.default_delay_ms();
        let owner = self.schedule.site(woken.site)?.clock.owner.clone()?;
        let needs_other_owner = self.needs_other_owner(woken.site, &owner);
        let site = self.schedule.site_mut(woken.site)?;
        let is_in_the_way = needs_other_owner || site.is_full(default_delay_ms);
        if !is_in_the_way || !site.can_be_preempted_by(priority) {
            return None;
        }
        site.recalled_below = priority;
        let scope = RecallScope {
            site: Some(site.name.clone()),
            below: Some(priority),
            ..RecallScope::default()
        };
        Some((owner, scope))
    }

    /// A site begins to back off. If tasks of it are leased, returns the supervisor that has them.
    pub fn holder_of(&self, site: SiteId) -> Option<String> {
        let leases = self.schedule.site(site)?.leases;
        self.owner_of(site).filter(|_| leases > 0)
    }

    /// Evicts sites while more than `most` wait in the window for a browser, or more than `most` in their
    /// groups, so that other sites have room in it.
    pub fn evict_surplus(&mut self, most: usize, now_ms: i64) -> Vec<ClockUpdate> {
        let mut left = self.schedule.evict_surplus(Lane::Browser, most, now_ms);
        left.extend(self.schedule.evict_surplus_of_groups(most, now_ms));
        left
    }

    /// A supervisor joins after its hello. Returns the leases that it should hold and does not.
    pub fn join(&mut self, hello: &Hello, peer: Caller, now_ms: i64) -> Vec<(TaskId, Lease)> {
        self.fleet.join(hello, peer, now_ms);
        self.balance.forget();
        // It may reach the sites at which probes of others have failed.
        self.schedule.bring_back();
        self.schedule.bring_all_forward();
        self.make_starved_ready(&hello.supervisor, now_ms);
        let held: std::collections::HashSet<_> = hello.held.iter().copied().collect();
        let leases = self.leases.of(&hello.supervisor);
        leases
            .filter(|(task, lease)| !held.contains(&(*task, lease.delivery)))
            .map(|(task, lease)| (task, lease.clone()))
            .collect()
    }

    pub fn heartbeat(
        &mut self,
        peer: &Caller,
        beat: &SupervisorHeartbeat,
        now_ms: i64,
    ) -> HeartbeatReply {
        let heard = self.fleet.heartbeat(peer, beat, now_ms);
        self.make_starved_ready_of(peer, now_ms);
        heard
    }

    /// A supervisor grants more credit.
    pub fn credit(&mut self, peer: &Caller, session: u64, credit: Credit, now_ms: i64) {
        self.fleet.credit(peer, session, credit);
        self.make_starved_ready_of(peer, now_ms);
    }

    fn make_starved_ready_of(&mut self, peer: &Caller, now_ms: i64) {
        if let Some(name) = self.fleet.name_of(peer).cloned() {
            self.make_starved_ready(&name, now_ms);
        }
    }

    fn make_starved_ready(&mut self, name: &str, now_ms: i64) {
        for id in self.fleet.take_starved(name, now_ms) {
            self.schedule.make_ready(id);
        }
    }

    /// Removes a supervisor that has left or is lost: its sites get new owners. Returns its leases.
    pub fn remove_supervisor(&mut self, name: &str) -> Vec<(TaskId, Lease)> {
        for id in self.fleet.forget(name) {
            self.schedule.make_ready(id);
        }
        self.schedule.disown(name);
        self.schedule.bring_all_forward();
        self.balance.forget();
        let leases = self.leases.of(name);
        leases.map(|(task, lease)| (task, lease.clone())).collect()
    }

    /// Hands out no further tasks to this supervisor. Its sites go to others.
    pub fn drain_supervisor(&mut self, name: &str) {
        self.fleet.drain_supervisor(name);
        self.release_starved(name);
    }

    /// The supervisors that have fallen silent since the last call, and when each is lost.
    pub fn fall_silent(&mut self, now_ms: i64) -> Vec<(String, i64)> {
        let silent = self.fleet.fall_silent(now_ms);
        silent
            .iter()
            .for_each(|(name, _)| self.release_starved(name));
        silent
    }

    /// The lanes of the connected supervisors, if each of them has credit and no other may come back: then it is
    /// certain that a due task is handed out. The simulation uses this to find tasks that should not wait.
    pub fn lanes_with_room(&self, now_ms: i64) -> Vec<Lane> {
        let metrics = self.fleet.metrics();
        let has_room = |name: &str| {
            let credit = self.fleet.available_credit(name, now_ms);
            credit.ordinary > 0 && self.fleet.cut_off(name).is_none()
        };
        let connected = self.fleet.present_lanes();
        let with_room = connected.filter(|(name, _)| has_room(name));
        let lanes: Vec<Lane> = with_room.map(|(_, lane)| lane).collect();
        let is_doubtful = metrics.silent + metrics.draining + metrics.awaited > 0;
        match is_doubtful || lanes.len() < metrics.connected {
            true => Vec::new(),
            false => lanes,
        }
    }
}

#[cfg(test)]
mod tests;
