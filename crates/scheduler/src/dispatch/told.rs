//! What people are told of supervisors, sites and leases. Nothing here changes what is handed out.

use std::collections::BTreeMap;

use webfill_wire::{CrawlKey, Lane, SupervisorReport};

use super::site::{LOOKAHEAD_MS, Site};
use super::supervisor::Particulars;
use super::{Dispatch, Lease};
use crate::caller::Caller;
use crate::frontier::{SiteId, TaskId};

/// What a site of the window waits for before its next task can be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteWait {
    /// For the outcomes of the tasks that are leased.
    Leased,
    /// For its clock, a block or a backoff.
    Time { until_ms: i64 },
    /// For other sites of its address or provider.
    Group,
    /// For another supervisor, because a probe of its machine has failed at it.
    Aside { until_ms: i64 },
    /// It had nothing to hand out in its turn.
    SetAside { until_ms: i64 },
    /// For room at its supervisor, or for one that serves its lane.
    Room,
    /// For its turn.
    Turn,
}

impl Dispatch {
    /// A supervisor has told of itself.
    pub fn note_report(&mut self, peer: &Caller, report: SupervisorReport, now_ms: i64) {
        self.fleet.note_report(peer, report, now_ms);
    }

    /// Where a connected supervisor calls from.
    pub fn note_address_of(&mut self, peer: &Caller, address: String) {
        self.fleet.note_address(peer, address);
    }

    pub fn particulars(&self, supervisor: &str) -> Option<&Particulars> {
        self.fleet.particulars(supervisor)
    }

    /// What a site waits for, and the delay between two requests to it. `None`: it is not in the window.
    pub fn site_wait(&self, id: SiteId, now_ms: i64) -> Option<(SiteWait, u32)> {
        let site = self.schedule.site(id)?;
        let delay_ms = site.delay_ms(self.schedule.default_delay_ms());
        Some((wait_of(site, now_ms), delay_ms))
    }

    /// The lanes of the connected supervisors, if each of them has credit and no other may come back: who
    /// gets a task that is due is certain then. The simulation judges by it whether anything stands still.
    pub fn lanes_with_room(&self, now_ms: i64) -> Vec<Lane> {
        let figures = self.fleet.figures();
        let has_room = |name: &str| {
            let credit = self.fleet.available_credit(name, now_ms);
            credit.ordinary > 0 && self.fleet.cut_off(name).is_none()
        };
        let connected = self.supervisors();
        let with_room = connected.filter(|(name, _)| has_room(name));
        let lanes: Vec<Lane> = with_room.map(|(_, lane)| lane).collect();
        let is_doubtful = figures.silent + figures.draining + figures.awaited > 0;
        match is_doubtful || lanes.len() < figures.connected {
            true => Vec::new(),
            false => lanes,
        }
    }

    /// The delay that holds for a site of unknown delay and without a rule.
    pub fn default_delay_ms(&self) -> u32 {
        self.schedule.default_delay_ms()
    }

    /// The lease of a task that is out.
    pub fn lease_told(&self, task: TaskId) -> Option<&Lease> {
        self.leases.get(&task)
    }

    /// The lease of each of these crawls that was made first, found in one pass over all leases; those of
    /// before the dispatcher's start count from then.
    pub fn oldest_leases(&self, crawls: &[CrawlKey]) -> BTreeMap<CrawlKey, (TaskId, &Lease)> {
        let mut oldest: BTreeMap<CrawlKey, (TaskId, &Lease)> = BTreeMap::new();
        let asked_for = |(_, lease): &(&TaskId, &Lease)| crawls.contains(&lease.crawl);
        for (task, lease) in self.leases.iter().filter(asked_for) {
            let found = oldest.entry(lease.crawl).or_insert((*task, lease));
            if (lease.since_ms, *task) < (found.1.since_ms, found.0) {
                *found = (*task, lease);
            }
        }
        oldest
    }
}

fn wait_of(site: &Site, now_ms: i64) -> SiteWait {
    let until_ms = site.next_request_ms();
    if site.leases > 0 {
        SiteWait::Leased
    } else if site.place_in_group.is_some() {
        SiteWait::Group
    } else if site.aside_until_ms > now_ms {
        let until_ms = site.aside_until_ms;
        SiteWait::Aside { until_ms }
    } else if site.empty_grants > 0 && site.put_off_until_ms > now_ms {
        let until_ms = site.put_off_until_ms;
        SiteWait::SetAside { until_ms }
    } else if until_ms - LOOKAHEAD_MS > now_ms {
        SiteWait::Time { until_ms }
    } else if site.place.is_some() {
        SiteWait::Turn
    } else {
        SiteWait::Room
    }
}
