//! Which site's tasks go to which supervisor, and when. Decisions only: no sockets, no disk, no
//! clock of its own; times are milliseconds that the caller passes in.
//!
//! The [`schedule`] knows when a site's next request is allowed, the [`fleet`] who is there and
//! has room; here they meet, and here the leases are that come of it. A new site goes to the next
//! supervisor with room, in turn, which is its *owner* from then on; it gets another one when that
//! one has left or is lost, or has no browsers where the next task needs them and nothing of the site
//! is out. So the leases of a site are all with its owner.

use std::collections::BTreeMap;

use webfill_wire::socket::Peer;
use webfill_wire::{CrawlKey, Credit, Hello, Lane, RecallScope, SiteClock, SupervisorHeartbeat};

use self::fleet::Fleet;
use self::lease_counts::LeaseCounts;
use self::schedule::Schedule;
use crate::frontier::{Clock, HeldLease, SavedSupervisor, SiteDue, SiteId, TaskId, Turn, Woken};

mod fleet;
mod granting;
mod lease_counts;
mod ready;
mod schedule;
mod session;
mod site;

pub use self::fleet::{Greeting, HeartbeatReply};
pub use self::schedule::SURPLUS_RETURNS_AFTER_MS;
pub use self::site::LOOKAHEAD_MS;

/// A task that is out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub delivery: u32,
    pub supervisor: String,
    pub site: SiteId,
    pub priority: u8,
}

/// Leave to hand out tasks of one site.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub site: SiteId,
    pub supervisor: String,
    /// What it can do.
    pub lane: Lane,
    /// At most so many tasks.
    pub tasks: usize,
    /// The first of them must not start before this many milliseconds have passed.
    pub wait_ms: u32,
    /// See [`webfill_wire::Task`].
    pub last_request_ago_ms: Option<u32>,
    pub delay_ms: Option<u32>,
    /// The clock to keep with the leases, if the site has a new owner.
    pub new_owner: Option<Clock>,
}

/// A site's clock has moved and is to be kept.
pub type ClockUpdate = (SiteId, Clock);

/// Schedule, fleet and leases.
#[derive(Debug)]
pub struct Dispatch {
    schedule: Schedule,
    fleet: Fleet,
    leases: BTreeMap<TaskId, Lease>,
    /// The leases, counted.
    lease_counts: LeaseCounts,
}

impl Dispatch {
    pub fn new(default_delay_ms: u32, lease_ms: u64) -> Dispatch {
        Dispatch {
            schedule: Schedule::new(default_delay_ms),
            fleet: Fleet::new(lease_ms),
            leases: BTreeMap::new(),
            lease_counts: LeaseCounts::default(),
        }
    }

    pub fn sites_in_window(&self) -> usize {
        self.schedule.len()
    }

    pub fn leases_out(&self) -> usize {
        self.leases.len()
    }

    pub fn leases_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (TaskId, &'a Lease)> {
        let leases = self.leases.iter().map(|(task, lease)| (*task, lease));
        leases.filter(move |(_, lease)| lease.supervisor == name)
    }

    /// Supervisors that are there.
    pub fn supervisor_count(&self) -> usize {
        self.fleet.present()
    }

    /// The names of those, and what they can do.
    pub fn supervisors(&self) -> impl Iterator<Item = (&str, Lane)> {
        self.fleet.present_lanes()
    }

    /// Whether one of this lane is there.
    pub fn has_lane(&self, lane: Lane) -> bool {
        self.fleet.has(lane)
    }

    // Sites.

    /// A site with queued tasks enters the window.
    pub fn add_site(&mut self, due: SiteDue) {
        self.schedule.add(due);
    }

    /// A site in the window has got further tasks. If what it has out is in their way, and of a
    /// lower priority, it should be called back: from whom, and what.
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

    /// What holds for a site has changed.
    pub fn change_rule(&mut self, due: &SiteDue) {
        self.schedule.change_rule(due);
    }

    /// Sites in the window that came into it for a crawl.
    pub fn admitted_for(&self, crawl: CrawlKey) -> usize {
        self.schedule.admitted_for(crawl)
    }

    /// Up to `most` sites that leave a full window, because they are not due for long; crawls keep
    /// `few` each as long as others have more.
    pub fn evict_distant(&mut self, most: usize, few: usize, now_ms: i64) -> Vec<ClockUpdate> {
        self.schedule.evict_distant(most, few, now_ms)
    }

    /// Sites that leave the window for a while, because more than `most` wait in it until somebody
    /// with browsers has room, and others need its places.
    pub fn evict_surplus(&mut self, most: usize, now_ms: i64) -> Vec<ClockUpdate> {
        self.schedule.evict_surplus(Lane::Browser, most, now_ms)
    }

    /// When the next site becomes ready.
    pub fn next_ready_ms(&self) -> Option<i64> {
        self.schedule.next_ready_ms()
    }

    /// Sites that leave the window: nothing queued, nothing out.
    pub fn evict_idle(&mut self) -> Vec<ClockUpdate> {
        self.schedule.evict_idle()
    }

    pub fn site_name(&self, id: SiteId) -> Option<&str> {
        self.schedule.site(id).map(|site| site.name.as_str())
    }

    // Leases.

    fn add_lease(&mut self, task: TaskId, lease: Lease) {
        if let Some(site) = self.schedule.site_mut(lease.site) {
            site.out += 1;
            site.lowest_out = site.lowest_out.min(lease.priority);
            site.recalled_below = 0;
        }
        self.lease_counts.add(&lease.supervisor, lease.priority);
        self.leases.insert(task, lease);
    }

    fn remove_lease(&mut self, task: TaskId) -> Option<Lease> {
        let lease = self.leases.remove(&task)?;
        self.lease_counts.remove(&lease.supervisor, lease.priority);
        Some(lease)
    }

    /// Where to send tasks of a grant: peer, session and the message's number.
    pub fn address(&mut self, supervisor: &str) -> Option<(Peer, u64, u64)> {
        let session = self.fleet.session_of(supervisor)?;
        Some((session.peer.clone(), session.id, session.next_number()))
    }

    /// Whether the supervisor must forget the crawls it was told of, because they are too many;
    /// asks once.
    pub fn forget_crawls_if_too_many(&mut self, supervisor: &str) -> bool {
        let session = self.fleet.session_of(supervisor);
        session.is_some_and(|session| session.forget_crawls_if_too_many())
    }

    /// Whether the supervisor must be told of a crawl before its first task; asks once.
    pub fn note_crawl_told(&mut self, supervisor: &str, crawl: CrawlKey) -> bool {
        let session = self.fleet.session_of(supervisor);
        session.is_some_and(|session| session.note_crawl_told(crawl))
    }

    /// A crawl's settings have changed: everybody is to be told again.
    pub fn forget_crawl(&mut self, crawl: CrawlKey) {
        self.fleet.forget_crawl(crawl);
    }

    // Supervisors.

    /// Takes up what was out before our start: the leases stay with the owners of their sites.
    /// Returns those whose owner is nobody that could hold them.
    pub fn restore(
        &mut self,
        supervisors: Vec<SavedSupervisor>,
        sites: Vec<SiteDue>,
        leases: Vec<HeldLease>,
        now_ms: i64,
    ) -> Vec<(TaskId, Lease)> {
        for kept in supervisors {
            self.fleet.await_return(kept, now_ms);
        }
        for site in sites {
            self.schedule.add(site);
        }
        let mut ownerless = Vec::new();
        for held in leases {
            let owner = self.owner_of(held.site);
            let lease = Lease {
                delivery: held.delivery,
                supervisor: owner.clone().unwrap_or_default(),
                site: held.site,
                priority: held.priority,
            };
            self.add_lease(held.task, lease.clone());
            if owner.is_none() {
                ownerless.push((held.task, lease));
            }
        }
        ownerless
    }

    pub fn greet(&self, hello: &Hello) -> Greeting {
        self.fleet.greet(hello)
    }

    /// A greeted supervisor joins. Returns the leases that it was thought to hold and does not.
    pub fn join(&mut self, hello: &Hello, peer: Peer, now_ms: i64) -> Vec<(TaskId, Lease)> {
        self.fleet.join(hello, peer, now_ms);
        self.make_starved_ready(&hello.supervisor, now_ms);
        let held: std::collections::HashSet<_> = hello.held.iter().copied().collect();
        let leases = self.leases_of(&hello.supervisor);
        leases
            .filter(|(task, lease)| !held.contains(&(*task, lease.delivery)))
            .map(|(task, lease)| (task, lease.clone()))
            .collect()
    }

    pub fn heartbeat(
        &mut self,
        peer: &Peer,
        beat: &SupervisorHeartbeat,
        now_ms: i64,
    ) -> HeartbeatReply {
        let heard = self.fleet.heartbeat(peer, beat, now_ms);
        self.make_starved_ready_of(peer, now_ms);
        heard
    }

    /// A supervisor has room again.
    pub fn credit(&mut self, peer: &Peer, session: u64, credit: Credit, now_ms: i64) {
        self.fleet.credit(peer, session, credit);
        self.make_starved_ready_of(peer, now_ms);
    }

    fn make_starved_ready_of(&mut self, peer: &Peer, now_ms: i64) {
        if let Some(name) = self.fleet.name_of(peer).cloned() {
            self.make_starved_ready(&name, now_ms);
        }
    }

    fn make_starved_ready(&mut self, name: &str, now_ms: i64) {
        for id in self.fleet.take_starved(name, now_ms) {
            self.schedule.make_ready(id);
        }
    }

    /// A supervisor leaves; it is gone when its last outcomes are in.
    pub fn goodbye(&mut self, peer: &Peer, session: u64, outcomes_sent: u64, now_ms: i64) {
        self.fleet.leaves(peer, session, outcomes_sent, now_ms);
    }

    /// Outcomes of a supervisor have arrived.
    pub fn note_outcomes(&mut self, supervisor: &str, session: u64, number: u64) {
        self.fleet.note_outcomes(supervisor, session, number);
    }

    /// Supervisors from before our start that are silent, and for how long.
    pub fn silences(&self, now_ms: i64) -> Vec<(String, u64)> {
        self.fleet.silences(now_ms)
    }

    pub fn left_supervisors(&self, now_ms: i64) -> Vec<String> {
        self.fleet.left(now_ms)
    }

    pub fn lost_supervisors(&self, now_ms: i64) -> Vec<String> {
        self.fleet.lost(now_ms)
    }

    /// Forgets a supervisor that has left or is lost: its sites get new owners. Returns its leases.
    pub fn remove_supervisor(&mut self, name: &str) -> Vec<(TaskId, Lease)> {
        for id in self.fleet.forget(name) {
            self.schedule.make_ready(id);
        }
        for site in self.schedule.sites_mut() {
            if site.clock.owner.as_deref() == Some(name) {
                site.clock.owner = None;
            }
        }
        let leases = self.leases_of(name);
        leases.map(|(task, lease)| (task, lease.clone())).collect()
    }

    /// No further tasks for anybody.
    pub fn drain(&mut self) {
        self.fleet.drain();
    }

    /// All supervisors that may hold leases, and when they can start nothing under them any more
    /// if they are not heard of again.
    pub fn lease_ends(&self) -> Vec<(String, i64)> {
        self.fleet.lease_ends()
    }

    /// The same of one that is there, with its name.
    pub fn lease_end(&self, peer: &Peer) -> Option<(&str, i64)> {
        self.fleet.lease_end(peer)
    }

    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.fleet.peers()
    }

    // Endings.

    /// A task has ended; what its worker knows of the site's clock.
    pub fn ended(&mut self, task: TaskId, clock: SiteClock, now_ms: i64) -> Option<ClockUpdate> {
        let lease = self.remove_lease(task)?;
        if let Some(site) = self.schedule.site_mut(lease.site) {
            site.set_clock(clock, now_ms);
        }
        self.lease_over(lease.site)
    }

    /// A lease came back without an outcome. `requeued`: it can be handed out again, and whose turn
    /// that may be.
    pub fn returned(
        &mut self,
        task: TaskId,
        requeued: Option<Turn>,
        request: LastRequest,
        now_ms: i64,
    ) -> Option<ClockUpdate> {
        let lease = self.remove_lease(task)?;
        let default_delay_ms = self.schedule.default_delay_ms();
        if let Some(site) = self.schedule.site_mut(lease.site) {
            match request {
                LastRequest::None => {}
                LastRequest::Known(clock) => site.set_clock(clock, now_ms),
                LastRequest::PossiblyUntilNow => {
                    site.note_possible_request(default_delay_ms, now_ms)
                }
            }
        }
        if let Some(turn) = requeued {
            let site = lease.site;
            self.schedule.wake(Woken { site, turn });
        }
        self.lease_over(lease.site)
    }

    fn lease_over(&mut self, site: SiteId) -> Option<ClockUpdate> {
        let clock = self.schedule.lease_over(site)?;
        Some((site, clock))
    }
}

/// What is known of the request that was made for a lease that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastRequest {
    /// None was made.
    None,
    /// The site's clock counts it.
    Known(SiteClock),
    /// One may have been under way until just now.
    PossiblyUntilNow,
}

#[cfg(test)]
mod tests;
