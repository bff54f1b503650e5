//! Decides which site's tasks go to which supervisor, and when. No sockets, no disk, no clock; times are milliseconds
//! that the caller passes in.
//!
//! The [`schedule`] knows when a site's next request is allowed, and which sites share the limits of an address or a
//! provider ([`groups`]). The [`fleet`] knows which supervisors are connected and how much credit they have.
//! [`Dispatch`] combines them and holds the leases.
//!
//! A new site goes to the next supervisor with credit, round-robin; this supervisor is the site's *owner* from then
//! on. The site gets another owner when
//!
//! - the owner has left or is lost, or, while no task of the site is leased,
//! - the next task needs a browser, and the owner has none,
//! - the owner is draining, leaving or silent, or its machine is offline ([`egress`]), or
//! - another supervisor, which has joined late, has fewer sites than its share.
//!
//! So all leases of a site are with its owner. Owners are stored with the sites; everything else here is restored
//! from the frontier after a crash.

use webfill_wire::{Credit, Hello, Lane, RecallScope, SupervisorHeartbeat};

use self::balance::Balance;
use self::fleet::Fleet;
use self::overdue::OverdueSites;
pub(crate) use self::overdue::count_due_sites;
use self::schedule::Schedule;
use crate::caller::Caller;
use crate::frontier::{Clock, SiteId, TaskId, Turn, WokenSite};

mod attribution;
mod balance;
mod deferral;
mod egress;
mod fleet;
mod granting;
mod groups;
mod held;
mod leases;
mod overdue;
mod ready;
mod schedule;
mod session;
mod site;
mod supervisor;

pub use self::egress::{MachineFailures, Offline};
pub use self::fleet::{FleetMetrics, HeartbeatReply, HelloVerdict, Presence};
pub use self::groups::GroupBounds;
use self::leases::Leases;
pub use self::leases::{LastRequest, Lease};
pub use self::schedule::SURPLUS_RETURNS_AFTER_MS;
pub use self::schedule::SiteWait;
pub use self::site::LOOKAHEAD_MS;
pub use self::supervisor::SupervisorDetails;

/// Permission to hand out tasks of one site to one supervisor.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub site: SiteId,
    /// The crawl, priority and lane the site was granted for.
    pub turn: Option<Turn>,
    pub supervisor: String,
    /// The lane of the supervisor: `http` or `browser`.
    pub lane: Lane,
    /// The maximum number of tasks to hand out.
    pub tasks: usize,
    /// The first task must not start before this time.
    pub start_ms: i64,
    /// How long `start_ms` is from now.
    pub wait_ms: u32,
    /// How long ago the site's last request ended, and the delay between requests; see [`webfill_wire::Task`].
    pub last_request_ago_ms: Option<u32>,
    pub delay_ms: Option<u32>,
    /// The site's clock (when its next request is allowed) with the site's new owner, to be stored in the commit of the
    /// leases. `None` if the owner stays the same.
    pub new_owner: Option<Clock>,
}

/// A site with its changed clock (when its next request is allowed), to be stored.
pub type ClockUpdate = (SiteId, Clock);

/// Which sites' tasks may be handed out when (`schedule`), the supervisors (`fleet`), and the tasks that they hold.
#[derive(Debug)]
pub struct Dispatch {
    pub schedule: Schedule,
    pub fleet: Fleet,
    pub leases: Leases,
    pub overdue: OverdueSites,
    balance: Balance,
    /// The last pseudo-random number. It chose the site of the last probe, which tests whether a machine reaches the
    /// web.
    last_draw: u64,
}

impl Dispatch {
    /// `bounds`: the limits of sites that share an address or a provider. Without them, each site is limited by its own
    /// delay only.
    pub fn new(default_delay_ms: u32, lease_ms: u64, bounds: Option<GroupBounds>) -> Dispatch {
        Dispatch {
            schedule: Schedule::new(default_delay_ms, bounds),
            fleet: Fleet::new(lease_ms),
            leases: Leases::default(),
            overdue: OverdueSites::default(),
            balance: Balance::default(),
            last_draw: 0,
        }
    }

    /// Notes that a site that is in memory has got further tasks. If leased tasks of a lower priority have to be
    /// recalled for them, returns the supervisor that holds these, and the scope of the recall.
    pub fn wake(&mut self, woken: WokenSite) -> Option<(String, RecallScope)> {
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

    /// The supervisor that holds leases of a site, if any does. Called when the site begins to back off.
    pub fn lease_holder_of(&self, site: SiteId) -> Option<String> {
        let leases = self.schedule.site(site)?.leases;
        self.owner_of(site).filter(|_| leases > 0)
    }

    /// Evicts surplus sites from memory, so that there is room for others. At most `most` sites that wait for a browser
    /// remain, and at most `most` sites that wait for a limit that they share with other sites.
    pub fn evict_surplus_waiting(&mut self, most: usize, now_ms: i64) -> Vec<ClockUpdate> {
        let mut left = self.schedule.evict_surplus(Lane::Browser, most, now_ms);
        left.extend(self.schedule.evict_surplus_of_groups(most, now_ms));
        left
    }

    /// Adds a supervisor after its hello. Returns the leases that it should hold but does not.
    pub fn join(&mut self, hello: &Hello, peer: Caller, now_ms: i64) -> Vec<(TaskId, Lease)> {
        self.fleet.begin_session(hello, peer, now_ms);
        self.balance.invalidate();
        // The new supervisor may reach sites where tests of other, offline supervisors have failed.
        self.schedule.end_set_asides();
        self.schedule.end_put_offs();
        self.make_starved_ready(&hello.supervisor, now_ms);
        let held: std::collections::HashSet<_> = hello.held.iter().copied().collect();
        let leases = self.leases.leases_of_supervisor(&hello.supervisor);
        leases
            .filter(|(task, lease)| !held.contains(&(*task, lease.delivery)))
            .map(|(task, lease)| (task, lease.clone()))
            .collect()
    }

    pub fn on_heartbeat(
        &mut self,
        peer: &Caller,
        beat: &SupervisorHeartbeat,
        now_ms: i64,
    ) -> HeartbeatReply {
        let heard = self.fleet.on_heartbeat(peer, beat, now_ms);
        self.make_starved_of_peer_ready(peer, now_ms);
        heard
    }

    /// Notes that a supervisor accepts more tasks.
    pub fn on_credit(&mut self, peer: &Caller, session: u64, credit: Credit, now_ms: i64) {
        self.fleet.on_credit(peer, session, credit);
        self.make_starved_of_peer_ready(peer, now_ms);
    }

    fn make_starved_of_peer_ready(&mut self, peer: &Caller, now_ms: i64) {
        if let Some(name) = self.fleet.name_of(peer).cloned() {
            self.make_starved_ready(&name, now_ms);
        }
    }

    fn make_starved_ready(&mut self, name: &str, now_ms: i64) {
        for id in self.fleet.take_starved(name, now_ms) {
            self.schedule.make_ready(id);
        }
    }

    /// Removes a supervisor that has left or is lost, so that its sites get new owners. Returns its leases.
    pub fn remove_supervisor(&mut self, name: &str) -> Vec<(TaskId, Lease)> {
        for id in self.fleet.remove(name) {
            self.schedule.make_ready(id);
        }
        self.schedule.remove_owner(name);
        self.schedule.end_put_offs();
        self.balance.invalidate();
        let leases = self.leases.leases_of_supervisor(name);
        leases.map(|(task, lease)| (task, lease.clone())).collect()
    }

    /// Stops handing out tasks to this supervisor. Its sites go to other supervisors.
    pub fn drain_supervisor(&mut self, name: &str) {
        self.fleet.drain_supervisor(name);
        self.release_starved(name);
    }

    /// The supervisors that have fallen silent since the last call, each with the time when it is lost.
    pub fn release_newly_silent(&mut self, now_ms: i64) -> Vec<(String, i64)> {
        let silent = self.fleet.take_newly_silent(now_ms);
        silent
            .iter()
            .for_each(|(name, _)| self.release_starved(name));
        silent
    }

    /// The lanes of the connected supervisors, if each of them accepts tasks and no other may come back. Then a due
    /// task of such a lane is certain to be handed out. The simulation uses this to find tasks that wait without a
    /// reason.
    pub fn lanes_with_credit(&self, now_ms: i64) -> Vec<Lane> {
        let metrics = self.fleet.metrics();
        let has_room = |name: &str| {
            let credit = self.fleet.available_credit(name, now_ms);
            credit.ordinary > 0 && self.fleet.offline_state(name).is_none()
        };
        let connected = self.fleet.connected_lanes();
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
