//! Which site's tasks go to which supervisor, and when. Decisions only: no sockets, no disk, no
//! clock; times are milliseconds that the caller passes in.
//!
//! The [`schedule`] knows when a site's next request is allowed, and which sites share the bounds of an
//! address or a provider ([`groups`]); the [`fleet`] knows which supervisors are connected and how much
//! credit they have. [`Dispatch`] combines them and holds the leases.
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

use std::collections::BTreeMap;

use webfill_wire::{
    AddressBounds, CrawlKey, Credit, Hello, Lane, RecallScope, SupervisorHeartbeat,
};

use self::balance::Balance;
use self::fleet::Fleet;
use self::held::Held;
use self::overdue::Overdue;
use self::schedule::Schedule;
use crate::caller::Caller;
use crate::frontier::{Clock, SiteDue, SiteId, TaskId, Turn, Woken};

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
mod told;

pub use self::egress::{CutOff, MachineFailures};
pub use self::fleet::{FleetFigures, Greeting, HeartbeatReply, Presence};
pub use self::groups::GroupBounds;
pub use self::leases::{LastRequest, Lease};
pub use self::schedule::SURPLUS_RETURNS_AFTER_MS;
pub use self::site::LOOKAHEAD_MS;
pub(crate) use self::supervisor::CLOCK_SLACK_MS;
pub use self::supervisor::Particulars;
pub use self::told::SiteWait;

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
    schedule: Schedule,
    fleet: Fleet,
    balance: Balance,
    leases: BTreeMap<TaskId, Lease>,
    /// The leases, by supervisor.
    held: Held,
    /// At which site the last probe was.
    last_draw: u64,
    overdue: Overdue,
}

impl Dispatch {
    /// Without bounds of groups, each site is bounded by its own delay only.
    pub fn new(default_delay_ms: u32, lease_ms: u64, bounds: Option<GroupBounds>) -> Dispatch {
        Dispatch {
            schedule: Schedule::new(default_delay_ms, bounds),
            fleet: Fleet::new(lease_ms),
            balance: Balance::default(),
            leases: BTreeMap::new(),
            held: Held::default(),
            last_draw: 0,
            overdue: Overdue::default(),
        }
    }

    pub fn sites_in_window(&self) -> usize {
        self.schedule.sites().len()
    }

    /// How many sites of the window, beside those that back off, are not due before `ms`, and when the first is.
    pub fn sites_delayed_until(&self, ms: i64) -> (u64, Option<i64>) {
        let sites = self.schedule.sites().values();
        let waiting = sites.filter(|site| {
            let backoff = site.backoff_until_ms.is_some_and(|until_ms| until_ms > ms);
            site.queued > 0 && site.leases == 0 && !backoff && site.next_request_ms() > ms
        });
        let due: Vec<i64> = waiting.map(|site| site.next_request_ms()).collect();
        (due.len() as u64, due.iter().min().copied())
    }

    /// How long the slowest site of the window takes at least until nothing of it is queued.
    pub fn least_time_left_ms(&self, now_ms: i64) -> i64 {
        let default_delay_ms = self.schedule.default_delay_ms();
        let sites = self.schedule.sites().values();
        let least = sites.map(|site| site.least_time_left_ms(default_delay_ms, now_ms));
        least.max().unwrap_or(0)
    }

    /// How many supervisors are connected.
    pub fn supervisor_count(&self) -> usize {
        self.fleet.present()
    }

    /// What the supervisors do.
    pub fn fleet_figures(&self) -> FleetFigures {
        self.fleet.figures()
    }

    /// The names and lanes of the connected supervisors.
    pub fn supervisors(&self) -> impl Iterator<Item = (&str, Lane)> {
        self.fleet.present_lanes()
    }

    /// Whether a supervisor of this lane is connected.
    pub fn has_lane(&self, lane: Lane) -> bool {
        self.fleet.has_lane(lane)
    }

    // Sites.

    /// A site with queued tasks enters the window.
    pub fn add_site(&mut self, due: SiteDue) {
        self.schedule.add(due);
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

    /// The rule of a site has changed.
    pub fn change_rule(&mut self, due: &SiteDue) {
        self.schedule.change_rule(due, false);
    }

    /// A site was forgotten by request: when it is due is as it is stored.
    pub fn forget_site(&mut self, due: &SiteDue) {
        self.schedule.change_rule(due, true);
    }

    /// A site begins to rest. If tasks of it are leased, returns the supervisor that has them.
    pub fn holder_of(&self, site: SiteId) -> Option<String> {
        let leases = self.schedule.site(site)?.leases;
        self.owner_of(site).filter(|_| leases > 0)
    }

    /// How many sites were admitted to the window for a crawl.
    pub fn admitted_for(&self, crawl: CrawlKey) -> usize {
        self.schedule.admitted_for(crawl)
    }

    /// Evicts up to `most` sites that are not due for long from a full window. Each crawl keeps
    /// `few` sites as long as other crawls have more.
    pub fn evict_distant(&mut self, most: usize, few: usize, now_ms: i64) -> Vec<ClockUpdate> {
        self.schedule.evict_distant(most, few, now_ms)
    }

    /// Evicts sites while more than `most` wait in the window for a browser, or more than `most` in their
    /// groups, so that other sites have room in it.
    pub fn evict_surplus(&mut self, most: usize, now_ms: i64) -> Vec<ClockUpdate> {
        let mut left = self.schedule.evict_surplus(Lane::Browser, most, now_ms);
        left.extend(self.schedule.evict_surplus_of_groups(most, now_ms));
        left
    }

    /// Whether the address of a task's host is to be compared; see [`AddressBounds`].
    pub fn address_bounds(&self, site: SiteId, delivery: u32) -> AddressBounds {
        self.schedule.address_bounds(site, delivery)
    }

    /// When the next site becomes ready.
    pub fn next_ready_ms(&self) -> Option<i64> {
        self.schedule.next_ready_ms()
    }

    /// Evicts sites that have nothing queued and nothing leased.
    pub fn evict_idle(&mut self) -> Vec<ClockUpdate> {
        self.schedule.evict_idle()
    }

    pub fn site_name(&self, id: SiteId) -> Option<&str> {
        self.schedule.site(id).map(|site| site.name.as_str())
    }

    // Messages.

    /// A supervisor's peer and session.
    pub fn peer(&mut self, supervisor: &str) -> Option<(Caller, u64)> {
        let session = self.fleet.session_of(supervisor)?;
        Some((session.peer.clone(), session.id))
    }

    /// Where to send a message: the peer, its session and the message's number.
    pub fn address(&mut self, supervisor: &str) -> Option<(Caller, u64, u64)> {
        let session = self.fleet.session_of(supervisor)?;
        Some((session.peer.clone(), session.id, session.next_number()))
    }

    /// Resets the record of which crawls the supervisor was told of, if there are too many. Returns
    /// whether it was reset; the supervisor must be told to forget them, too.
    pub fn forget_crawls_if_too_many(&mut self, supervisor: &str) -> bool {
        let session = self.fleet.session_of(supervisor);
        session.is_some_and(|session| session.forget_crawls_if_too_many())
    }

    /// Records that the supervisor is told of a crawl. Returns whether this is the first time, so
    /// that the crawl's settings must go along with the task.
    pub fn note_crawl_told(&mut self, supervisor: &str, crawl: CrawlKey) -> bool {
        let session = self.fleet.session_of(supervisor);
        session.is_some_and(|session| session.note_crawl_told(crawl))
    }

    /// A crawl's settings have changed: they are sent to each supervisor again.
    pub fn forget_crawl(&mut self, crawl: CrawlKey) {
        self.fleet.forget_crawl(crawl);
    }

    // Supervisors.

    pub fn greet(&self, hello: &Hello) -> Greeting {
        self.fleet.greet(hello)
    }

    /// A supervisor joins after its hello. Returns the leases that it should hold and does not.
    pub fn join(&mut self, hello: &Hello, peer: Caller, now_ms: i64) -> Vec<(TaskId, Lease)> {
        self.fleet.join(hello, peer, now_ms);
        self.balance.forget();
        // It may have a way out to the sites at which probes of others have failed.
        self.schedule.bring_back();
        self.schedule.bring_all_forward();
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
        peer: &Caller,
        beat: &SupervisorHeartbeat,
        now_ms: i64,
    ) -> HeartbeatReply {
        let heard = self.fleet.heartbeat(peer, beat, now_ms);
        self.make_starved_ready_of(peer, now_ms);
        heard
    }

    pub fn is_in_session(&mut self, peer: &Caller, session: u64) -> bool {
        self.fleet.is_in_session(peer, session)
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

    /// A supervisor says goodbye; it has left when its last outcomes have arrived.
    pub fn goodbye(&mut self, peer: &Caller, session: u64, outcomes_sent: u64, now_ms: i64) {
        self.fleet
            .begin_leaving(peer, session, outcomes_sent, now_ms);
    }

    /// Outcomes of a supervisor have arrived, in the message of this number; so many of them brought a page.
    pub fn note_outcomes(&mut self, supervisor: &str, session: u64, number: u64, pages: u64) {
        self.fleet.note_outcomes(supervisor, session, number, pages);
    }

    /// Supervisors from before the start that have not come back, with the time of their silence.
    pub fn silences(&self, now_ms: i64) -> Vec<(String, u64)> {
        self.fleet.silences(now_ms)
    }

    pub fn left_supervisors(&self, now_ms: i64) -> Vec<String> {
        self.fleet.left(now_ms)
    }

    pub fn lost_supervisors(&self, now_ms: i64) -> Vec<String> {
        self.fleet.lost(now_ms)
    }

    /// Removes a supervisor that has left or is lost: its sites get new owners. Returns its leases.
    pub fn remove_supervisor(&mut self, name: &str) -> Vec<(TaskId, Lease)> {
        for id in self.fleet.forget(name) {
            self.schedule.make_ready(id);
        }
        self.schedule.disown(name);
        self.schedule.bring_all_forward();
        self.balance.forget();
        let leases = self.leases_of(name);
        leases.map(|(task, lease)| (task, lease.clone())).collect()
    }

    /// Hands out no further tasks.
    pub fn drain(&mut self) {
        self.fleet.drain();
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

    /// The names of the connected supervisors.
    pub fn connected(&self) -> impl Iterator<Item = &str> {
        self.fleet.present_lanes().map(|(name, _)| name)
    }

    /// What operators want to know of a supervisor besides: whether it drains, for how long it is silent,
    /// and, once it has fallen silent, when it is lost.
    pub fn presence(&self, name: &str, now_ms: i64) -> Presence {
        self.fleet.presence(name, now_ms)
    }

    /// All supervisors that may hold leases, with the time when those are over unless a further
    /// heartbeat arrives.
    pub fn lease_ends(&self) -> Vec<(String, i64)> {
        self.fleet.lease_ends()
    }

    /// The name of a connected supervisor, and when its leases are over.
    pub fn lease_end(&self, peer: &Caller) -> Option<(&str, i64)> {
        self.fleet.lease_end(peer)
    }

    pub fn peers(&self) -> impl Iterator<Item = &Caller> {
        self.fleet.peers()
    }
}

#[cfg(test)]
mod tests;
