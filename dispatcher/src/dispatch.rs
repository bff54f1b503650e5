//! Which site's tasks go to which supervisor, and when. Decisions only: no sockets, no disk, no
//! clock of its own; times are milliseconds that the caller passes in.
//!
//! A site is in one of these states while it is in the window:
//! - *later*: its clock forbids the next request for longer than the lookahead;
//! - *ready*: its next task may be handed out now;
//! - *starved*: ready, but its owner has no credit;
//! - *handed out*: as many of its tasks are out as its pace allows;
//! - *idle*: nothing is queued; it leaves the window when its last outcome is in.
//!
//! A waiting site therefore never occupies a place in a supervisor's queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

use webfill_wire::socket::Peer;
use webfill_wire::{CrawlKey, Credit, SiteClock};

use crate::frontier::{Clock, SiteDue, SiteId, TaskId};

/// A task is handed out this long before its site's clock allows it, so that it is there when it
/// does: longer than a commit and two sockets take, shorter than a wait worth a queue place.
pub const LOOKAHEAD_MS: i64 = 300;

/// Tasks of one site that are out at once, at most, however short its delay.
const MOST_OUT: u32 = 64;

/// A supervisor unheard of for this long does not get tasks.
pub const LEASE_MS: i64 = 10_000;

/// A site in the window.
#[derive(Debug)]
struct Site {
    name: String,
    clock: Clock,
    /// Tasks handed out and not ended.
    out: u32,
    /// It is in `later` or `ready`, or with its starved owner.
    scheduled: bool,
    /// Tasks queued in the frontier, as last heard.
    queued: u64,
    top_priority: u8,
}

/// A supervisor that has said hello.
#[derive(Debug)]
struct Supervisor {
    peer: Peer,
    granted: Credit,
    used: Credit,
    heard_ms: i64,
    /// Crawls that it has been told of.
    crawls: HashSet<CrawlKey>,
    starved: Vec<SiteId>,
    draining: bool,
}

/// A task that is out.
#[derive(Debug, Clone)]
pub struct Lease {
    pub attempt: u32,
    pub supervisor: String,
    pub site: SiteId,
}

/// Leave to hand out tasks of one site.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub site: SiteId,
    pub supervisor: String,
    /// At most so many tasks.
    pub tasks: usize,
    /// The first of them must not start before this many milliseconds have passed.
    pub wait_ms: u32,
}

/// The schedule.
#[derive(Debug)]
pub struct Dispatch {
    default_delay_ms: u32,
    /// Until then, sites of an owner from before our start wait for it to say hello: it may have
    /// requests to them under way.
    owners_awaited_until_ms: i64,
    sites: HashMap<SiteId, Site>,
    later: BinaryHeap<Reverse<(i64, SiteId)>>,
    ready: BTreeSet<(Reverse<u8>, i64, SiteId)>,
    supervisors: BTreeMap<String, Supervisor>,
    /// The supervisor that got the last new site.
    last_chosen: String,
    leases: HashMap<TaskId, Lease>,
    /// Sites whose last outcome is in and that have nothing queued.
    idle: Vec<SiteId>,
}

impl Dispatch {
    pub fn new(default_delay_ms: u32, longest_request_ms: u64, now_ms: i64) -> Dispatch {
        Dispatch {
            default_delay_ms,
            owners_awaited_until_ms: now_ms.saturating_add(hand_over_ms(longest_request_ms)),
            sites: HashMap::new(),
            later: BinaryHeap::new(),
            ready: BTreeSet::new(),
            supervisors: BTreeMap::new(),
            last_chosen: String::new(),
            leases: HashMap::new(),
            idle: Vec::new(),
        }
    }

    pub fn sites_in_window(&self) -> usize {
        self.sites.len()
    }

    pub fn leases_out(&self) -> usize {
        self.leases.len()
    }

    pub fn supervisor_count(&self) -> usize {
        self.supervisors.len()
    }

    /// A site with queued tasks enters the window.
    pub fn add_site(&mut self, due: SiteDue) {
        let site = Site {
            name: due.name,
            clock: due.clock,
            out: 0,
            scheduled: false,
            queued: due.queued,
            top_priority: due.top_priority,
        };
        self.sites.insert(due.id, site);
        self.schedule(due.id);
    }

    /// A site in the window has got further tasks.
    pub fn wake(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get_mut(&id) {
            site.queued = site.queued.max(1);
            self.schedule(id);
        }
    }

    /// Puts a site where its clock says, unless it is there already or has all tasks out.
    fn schedule(&mut self, id: SiteId) {
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        if site.scheduled || site.queued == 0 || site.out >= most_out(site, self.default_delay_ms) {
            return;
        }
        site.scheduled = true;
        let from_ms = if site.out > 0 {
            0
        } else {
            site.clock.due_at_ms - LOOKAHEAD_MS
        };
        self.later.push(Reverse((from_ms, id)));
    }

    /// When the next site becomes ready.
    pub fn next_ready_ms(&self) -> Option<i64> {
        self.later.peek().map(|Reverse((from_ms, _))| *from_ms)
    }

    /// The next site whose tasks are to be handed out, the highest priority first; `None` when
    /// nothing is ready or nobody has room.
    pub fn next_grant(&mut self, now_ms: i64) -> Option<Grant> {
        while let Some(Reverse((from_ms, id))) = self.later.peek().copied() {
            if from_ms > now_ms {
                break;
            }
            self.later.pop();
            if let Some(site) = self.sites.get(&id) {
                let key = (Reverse(site.top_priority), site.clock.due_at_ms, id);
                self.ready.insert(key);
            }
        }
        while let Some(key) = self.ready.first().copied() {
            let id = key.2;
            if self.awaits_owner(id, now_ms) {
                self.ready.remove(&key);
                self.later.push(Reverse((self.owners_awaited_until_ms, id)));
                continue;
            }
            let supervisor = self.supervisor_for(id, now_ms)?;
            self.ready.remove(&key);
            if let Some(grant) = self.grant(id, supervisor, now_ms) {
                return Some(grant);
            }
        }
        None
    }

    fn awaits_owner(&self, id: SiteId, now_ms: i64) -> bool {
        let owner = self
            .sites
            .get(&id)
            .and_then(|site| site.clock.owner.as_ref());
        now_ms < self.owners_awaited_until_ms
            && owner.is_some_and(|owner| !self.supervisors.contains_key(owner))
    }

    /// The site's owner, or for a new site the next supervisor with room, in turn. `None` if no
    /// supervisor has room at all.
    fn supervisor_for(&mut self, id: SiteId, now_ms: i64) -> Option<String> {
        let owner = self
            .sites
            .get(&id)
            .and_then(|site| site.clock.owner.clone());
        if let Some(owner) = owner
            && self.supervisors.contains_key(&owner)
        {
            return Some(owner);
        }
        let has_room =
            |supervisor: &Supervisor| supervisor.room() > 0 && supervisor.is_alive(now_ms);
        let after = (
            std::ops::Bound::Excluded(self.last_chosen.clone()),
            std::ops::Bound::Unbounded,
        );
        let in_turn = self.supervisors.range(after).chain(self.supervisors.iter());
        let (chosen, _) = in_turn
            .into_iter()
            .find(|(_, supervisor)| has_room(supervisor))?;
        let chosen = chosen.clone();
        self.last_chosen.clone_from(&chosen);
        Some(chosen)
    }

    fn grant(&mut self, id: SiteId, name: String, now_ms: i64) -> Option<Grant> {
        let site = self.sites.get_mut(&id)?;
        let supervisor = self.supervisors.get_mut(&name)?;
        site.clock.owner = Some(name.clone());
        let room = if supervisor.is_alive(now_ms) {
            supervisor.room()
        } else {
            0
        };
        if room == 0 {
            supervisor.starved.push(id);
            return None;
        }
        site.scheduled = false;
        let pace = most_out(site, self.default_delay_ms);
        let tasks = u64::from(pace.saturating_sub(site.out)).min(room) as usize;
        let wait_ms = site
            .clock
            .due_at_ms
            .saturating_sub(now_ms)
            .clamp(0, u32::MAX.into());
        (tasks > 0).then_some(Grant {
            site: id,
            supervisor: name,
            tasks,
            wait_ms: wait_ms as u32,
        })
    }

    /// Tasks were handed out by a grant; `left` are still queued.
    pub fn handed_out(
        &mut self,
        grant: &Grant,
        tasks: &[(TaskId, u32, usize)],
        left: u64,
        priority: u8,
    ) {
        for (task, attempt, url_bytes) in tasks {
            let lease = Lease {
                attempt: *attempt,
                supervisor: grant.supervisor.clone(),
                site: grant.site,
            };
            self.leases.insert(*task, lease);
            if let Some(supervisor) = self.supervisors.get_mut(&grant.supervisor) {
                supervisor.used.tasks += 1;
                supervisor.used.url_bytes += *url_bytes as u64;
            }
        }
        if let Some(site) = self.sites.get_mut(&grant.site) {
            site.out += tasks.len() as u32;
            site.queued = left;
            site.top_priority = priority;
            if site.out == 0 && left == 0 {
                self.idle.push(grant.site);
            }
        }
        self.schedule(grant.site);
    }

    /// Whether the supervisor must be told of a crawl before its first task; asks once.
    pub fn must_tell_crawl(&mut self, supervisor: &str, crawl: CrawlKey) -> bool {
        let known = self.supervisors.get_mut(supervisor);
        known.is_some_and(|supervisor| supervisor.crawls.insert(crawl))
    }

    /// A crawl's settings have changed: everybody is to be told again.
    pub fn forget_crawl(&mut self, crawl: CrawlKey) {
        for supervisor in self.supervisors.values_mut() {
            supervisor.crawls.remove(&crawl);
        }
    }

    pub fn peer(&self, supervisor: &str) -> Option<&Peer> {
        self.supervisors.get(supervisor).map(|found| &found.peer)
    }

    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.supervisors.values().map(|supervisor| &supervisor.peer)
    }

    fn name_of(&self, peer: &Peer) -> Option<&String> {
        let mut named = self.supervisors.iter();
        named
            .find(|(_, supervisor)| supervisor.peer == *peer)
            .map(|(name, _)| name)
    }

    /// A supervisor says hello. Returns the leases that it was thought to hold and does not.
    pub fn hello(
        &mut self,
        name: &str,
        peer: Peer,
        credit: Credit,
        held: &[(TaskId, u32)],
        now_ms: i64,
    ) -> Vec<(TaskId, Lease)> {
        let starved = match self.supervisors.remove(name) {
            Some(former) => former.starved,
            None => Vec::new(),
        };
        let supervisor = Supervisor {
            peer,
            granted: credit,
            used: Credit::default(),
            heard_ms: now_ms,
            crawls: HashSet::new(),
            starved,
            draining: false,
        };
        self.supervisors.insert(name.to_owned(), supervisor);
        self.feed_starved(name, now_ms);
        self.greet_awaited(name);
        let held: HashSet<(TaskId, u32)> = held.iter().copied().collect();
        let leases = self.leases.iter();
        leases
            .filter(|(task, lease)| {
                lease.supervisor == name && !held.contains(&(**task, lease.attempt))
            })
            .map(|(task, lease)| (*task, lease.clone()))
            .collect()
    }

    /// Sites that waited for this owner to come back wait no longer.
    fn greet_awaited(&mut self, owner: &str) {
        let awaited_until = self.owners_awaited_until_ms;
        let waiting: Vec<SiteId> = self
            .later
            .iter()
            .filter(|Reverse((from_ms, _))| *from_ms == awaited_until)
            .map(|Reverse((_, id))| *id)
            .collect();
        for id in waiting {
            if let Some(site) = self.sites.get(&id)
                && site.clock.owner.as_deref() == Some(owner)
            {
                self.later
                    .push(Reverse((site.clock.due_at_ms - LOOKAHEAD_MS, id)));
            }
        }
    }

    /// Anything was heard of a supervisor. Returns false if it is unknown.
    pub fn heard(&mut self, peer: &Peer, now_ms: i64) -> bool {
        let Some(name) = self.name_of(peer).cloned() else {
            return false;
        };
        if let Some(supervisor) = self.supervisors.get_mut(&name) {
            let was_alive = supervisor.is_alive(now_ms);
            supervisor.heard_ms = now_ms;
            if !was_alive {
                self.feed_starved(&name, now_ms);
            }
        }
        true
    }

    /// A supervisor has room again.
    pub fn credit(&mut self, peer: &Peer, credit: Credit, now_ms: i64) {
        let Some(name) = self.name_of(peer).cloned() else {
            return;
        };
        if let Some(supervisor) = self.supervisors.get_mut(&name) {
            supervisor.granted = credit;
        }
        self.feed_starved(&name, now_ms);
    }

    fn feed_starved(&mut self, name: &str, now_ms: i64) {
        let Some(supervisor) = self.supervisors.get_mut(name) else {
            return;
        };
        if supervisor.room() == 0 || !supervisor.is_alive(now_ms) {
            return;
        }
        for id in std::mem::take(&mut supervisor.starved) {
            if let Some(site) = self.sites.get(&id) {
                self.ready
                    .insert((Reverse(site.top_priority), site.clock.due_at_ms, id));
            }
        }
    }

    /// A supervisor leaves. Its sites go to others; returns the leases that it still had.
    pub fn goodbye(&mut self, peer: &Peer) -> Vec<(TaskId, Lease)> {
        match self.name_of(peer).cloned() {
            Some(name) => self.remove_supervisor(&name),
            None => Vec::new(),
        }
    }

    /// Supervisors unheard of for so long that none of their requests can still be under way.
    pub fn lost_supervisors(&self, now_ms: i64, longest_request_ms: u64) -> Vec<String> {
        let limit = hand_over_ms(longest_request_ms);
        let lost = self.supervisors.iter();
        lost.filter(|(_, supervisor)| now_ms - supervisor.heard_ms > limit)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Forgets a supervisor: its sites get new owners. Returns its leases.
    pub fn remove_supervisor(&mut self, name: &str) -> Vec<(TaskId, Lease)> {
        let starved = self.supervisors.remove(name).map(|gone| gone.starved);
        for site in self.sites.values_mut() {
            if site.clock.owner.as_deref() == Some(name) {
                site.clock.owner = None;
            }
        }
        for id in starved.unwrap_or_default() {
            if let Some(site) = self.sites.get(&id) {
                self.ready
                    .insert((Reverse(site.top_priority), site.clock.due_at_ms, id));
            }
        }
        let leases = self.leases.iter();
        leases
            .filter(|(_, lease)| lease.supervisor == name)
            .map(|(task, lease)| (*task, lease.clone()))
            .collect()
    }

    /// No further tasks for anybody.
    pub fn drain(&mut self) {
        for supervisor in self.supervisors.values_mut() {
            supervisor.draining = true;
        }
    }

    pub fn is_out(&self, task: TaskId) -> bool {
        self.leases.contains_key(&task)
    }

    /// A lease from before our start is in force again.
    pub fn adopt(&mut self, task: TaskId, lease: Lease) {
        self.leases.insert(task, lease);
    }

    /// A task has ended; what its worker knows of the site's clock. Returns the clock to keep.
    pub fn ended(
        &mut self,
        task: TaskId,
        clock: SiteClock,
        now_ms: i64,
    ) -> Option<(SiteId, Clock)> {
        let lease = self.leases.remove(&task)?;
        let site = self.sites.get_mut(&lease.site)?;
        site.clock.due_at_ms = site
            .clock
            .due_at_ms
            .max(now_ms + i64::from(clock.next_in_ms));
        site.clock.delay_ms = Some(clock.delay_ms);
        site.clock.last_start_ms = Some(now_ms);
        self.lease_over(lease.site)
    }

    /// A lease came back. `requeued`: it waits for another try. `may_have_started`: its request
    /// may have been made just now.
    pub fn returned(
        &mut self,
        task: TaskId,
        requeued: bool,
        may_have_started: bool,
        now_ms: i64,
    ) -> Option<(SiteId, Clock)> {
        let lease = self.leases.remove(&task)?;
        let default_delay_ms = self.default_delay_ms;
        let site = self.sites.get_mut(&lease.site)?;
        site.queued += u64::from(requeued);
        if may_have_started {
            let delay_ms = i64::from(site.clock.delay_ms.unwrap_or(default_delay_ms));
            site.clock.due_at_ms = site.clock.due_at_ms.max(now_ms + delay_ms);
            site.clock.last_start_ms = Some(now_ms);
        }
        self.lease_over(lease.site)
    }

    fn lease_over(&mut self, id: SiteId) -> Option<(SiteId, Clock)> {
        let site = self.sites.get_mut(&id)?;
        site.out = site.out.saturating_sub(1);
        let clock = site.clock.clone();
        if site.out == 0 && site.queued == 0 {
            self.idle.push(id);
        }
        self.schedule(id);
        Some((id, clock))
    }

    /// Sites that leave the window: nothing queued, nothing out.
    pub fn take_idle(&mut self) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        for id in std::mem::take(&mut self.idle) {
            let is_idle = |site: &Site| site.out == 0 && site.queued == 0 && !site.scheduled;
            if self.sites.get(&id).is_some_and(is_idle)
                && let Some(site) = self.sites.remove(&id)
            {
                left.push((id, site.clock));
            }
        }
        left
    }

    pub fn site_name(&self, id: SiteId) -> Option<&str> {
        self.sites.get(&id).map(|site| site.name.as_str())
    }
}

/// How long after the last word of a supervisor its sites may be given to another: it stops by
/// itself after the lease time, and a request may still be under way then.
fn hand_over_ms(longest_request_ms: u64) -> i64 {
    LEASE_MS + i64::try_from(longest_request_ms).unwrap_or(i64::MAX / 2)
}

/// How many tasks of a site may be out: what its pace lets through within the lookahead. One
/// until its delay is known.
fn most_out(site: &Site, default_delay_ms: u32) -> u32 {
    let Some(delay_ms) = site.clock.delay_ms else {
        return if default_delay_ms == 0 { MOST_OUT } else { 1 };
    };
    match delay_ms {
        0 => MOST_OUT,
        delay_ms => (1 + LOOKAHEAD_MS as u32 / delay_ms).min(MOST_OUT),
    }
}

impl Supervisor {
    /// Tasks that may still be sent.
    fn room(&self) -> u64 {
        if self.draining || self.used.url_bytes >= self.granted.url_bytes {
            return 0;
        }
        self.granted.tasks.saturating_sub(self.used.tasks)
    }

    fn is_alive(&self, now_ms: i64) -> bool {
        now_ms - self.heard_ms <= LEASE_MS
    }
}

#[cfg(test)]
mod tests;
