//! The leases: recorded when tasks are handed out, removed when they end, restored at a start.

use std::collections::BTreeMap;
use std::net::IpAddr;

use webfill_wire::{CrawlKey, Delivery, SiteClock};

use super::groups::Group;
use super::held::TasksBySupervisor;
use super::{ClockUpdate, Dispatch};
use crate::frontier::{HeldLease, SavedSupervisor, SiteDue, SiteId, TaskId, Turn, WokenSite};

/// A task that was handed out and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub delivery: Delivery,
    pub supervisor: String,
    pub site: SiteId,
    pub priority: u8,
    pub crawl: CrawlKey,
    /// When the lease was made. For one from before the dispatcher's start: the time of the start.
    pub since_ms: i64,
    /// The group of sites whose limits the lease counts for. The site may be in another group by now.
    pub group: Option<Group>,
}

/// The last request under a returned lease, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastRequest {
    /// No request was made under the lease.
    None,
    /// The returned clock of the site includes the request.
    Known(SiteClock),
    /// A request may have been in flight until now.
    PossiblyUntilNow,
}

/// All leases: the tasks that supervisors hold.
#[derive(Debug, Default)]
pub struct Leases {
    by_task: BTreeMap<TaskId, Lease>,
    /// The leased tasks, by supervisor.
    held: TasksBySupervisor,
}

impl Leases {
    /// The number of leased tasks.
    pub fn count(&self) -> usize {
        self.by_task.len()
    }

    /// How many tasks are leased to a supervisor.
    pub fn count_held_by(&self, name: &str) -> usize {
        self.held.count(name)
    }

    /// How many leases of this priority or a higher one a supervisor holds.
    pub(super) fn count_held_at_least(&self, name: &str, priority: u8) -> u64 {
        self.held.count_at_least(name, priority)
    }

    /// The leases of a supervisor. The cost does not depend on the leases of other supervisors.
    pub fn leases_of_supervisor<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (TaskId, &'a Lease)> {
        let lease = |task| Some((task, self.by_task.get(&task)?));
        self.held.tasks(name).filter_map(lease)
    }

    /// The site of a leased task.
    pub fn site_of_task(&self, task: TaskId) -> Option<SiteId> {
        self.by_task.get(&task).map(|lease| lease.site)
    }

    /// The lease of a task, if it has one.
    pub fn get(&self, task: TaskId) -> Option<&Lease> {
        self.by_task.get(&task)
    }

    /// The oldest lease of each of these crawls, found in one pass over all leases. Leases from before the dispatcher's
    /// start count from the start.
    pub fn oldest_by_crawl(&self, crawls: &[CrawlKey]) -> BTreeMap<CrawlKey, (TaskId, &Lease)> {
        let mut oldest: BTreeMap<CrawlKey, (TaskId, &Lease)> = BTreeMap::new();
        let asked_for = |(_, lease): &(&TaskId, &Lease)| crawls.contains(&lease.crawl);
        for (task, lease) in self.by_task.iter().filter(asked_for) {
            let found = oldest.entry(lease.crawl).or_insert((*task, lease));
            if (lease.since_ms, *task) < (found.1.since_ms, found.0) {
                *found = (*task, lease);
            }
        }
        oldest
    }

    fn add(&mut self, task: TaskId, lease: Lease) {
        self.held.add(&lease.supervisor, task, lease.priority);
        self.by_task.insert(task, lease);
    }

    fn remove(&mut self, task: TaskId) -> Option<Lease> {
        let lease = self.by_task.remove(&task)?;
        self.held.remove(&lease.supervisor, task, lease.priority);
        Some(lease)
    }
}

impl Dispatch {
    pub(super) fn add_lease(&mut self, task: TaskId, lease: Lease) {
        if let Some(site) = self.schedule.site_mut(lease.site) {
            site.leases += 1;
            site.lowest_leased = site.lowest_leased.min(lease.priority);
            site.recalled_below = 0;
        }
        if let Some(group) = &lease.group {
            self.schedule.groups.begin_lease(group);
        }
        self.leases.add(task, lease);
    }

    fn remove_lease(&mut self, task: TaskId, now_ms: i64) -> Option<Lease> {
        let lease = self.leases.remove(task)?;
        if let Some(egress) = self.fleet.egress_of(&lease.supervisor) {
            egress.on_lease_end(task, now_ms);
        }
        if let Some(group) = &lease.group {
            self.schedule.groups.end_lease(group);
        }
        Some(lease)
    }

    /// Restores the leases of the last commit. Each belongs to the owner of its site. Returns the leases whose site is
    /// unknown or has no owner, so that no supervisor can hold them.
    pub fn restore_leases(
        &mut self,
        supervisors: Vec<SavedSupervisor>,
        sites: Vec<SiteDue>,
        leases: Vec<HeldLease>,
        now_ms: i64,
    ) -> Vec<(TaskId, Lease)> {
        if !supervisors.is_empty() {
            self.schedule.groups.delay_first_starts(now_ms);
        }
        for kept in supervisors {
            self.fleet.add_awaited(kept, now_ms);
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
                crawl: held.crawl,
                since_ms: now_ms,
                group: self.schedule.group_of(held.site),
            };
            self.add_lease(held.task, lease.clone());
            if owner.is_none() {
                ownerless.push((held.task, lease));
            }
        }
        ownerless
    }

    /// Ends a task's lease. `clock`: the worker's knowledge of the site's clock. Returns the clock to store.
    pub fn end_lease(
        &mut self,
        task: TaskId,
        clock: SiteClock,
        now_ms: i64,
    ) -> Option<ClockUpdate> {
        let lease = self.remove_lease(task, now_ms)?;
        if let Some(site) = self.schedule.site_mut(lease.site) {
            site.set_clock(clock, now_ms);
        }
        self.on_lease_end(lease.site)
    }

    /// Ends a lease that came back without an outcome. `requeued`: the crawl, priority and lane of the task, if it is
    /// queued again. Returns the clock to store.
    pub fn return_lease(
        &mut self,
        task: TaskId,
        requeued: Option<Turn>,
        request: LastRequest,
        now_ms: i64,
    ) -> Option<ClockUpdate> {
        let lease = self.remove_lease(task, now_ms)?;
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
            self.schedule.wake(WokenSite { site, turn });
        }
        self.on_lease_end(lease.site)
    }

    /// Notes the address of a leased task's site. The task was returned because the address differs from the known one.
    pub fn note_address(&mut self, task: TaskId, address: IpAddr) {
        if let Some(lease) = self.leases.get(task) {
            self.schedule.set_address(lease.site, address);
        }
    }

    fn on_lease_end(&mut self, site: SiteId) -> Option<ClockUpdate> {
        let clock = self.schedule.on_lease_end(site)?;
        Some((site, clock))
    }
}
