//! How the sites in memory (the *window*) take part in [`groups`](super::super::groups), which share the limits of an
//! address or a provider.

use std::cmp::Reverse;
use std::net::IpAddr;

use webfill_wire::AddressBounds;

use super::Schedule;
use crate::dispatch::groups::{Group, GroupPosition};
use crate::frontier::{Clock, SiteId};

/// A task that was handed out more often than this stays in its group, even if its host has another address by then.
/// Its name resolves to a different address each time.
const MOST_DELIVERIES_MOVED: u32 = 5;

/// A worker requests robots.txt again if the last request to the site is at least this long ago.
const ROBOTS_KEPT_MS: i64 = 3_600_000;

/// A group with at most this many waiting sites keeps them all in memory.
const FEW_WAITING: usize = 64;

/// How long a surplus site of a group is kept out of memory, at least and at most.
const SURPLUS_RETURNS_MS: (i64, i64) = (10_000, 600_000);

impl Schedule {
    /// The group whose limits apply to a site. None while the site is unreachable, because it gets no requests.
    pub(in crate::dispatch) fn group_of(&self, id: SiteId) -> Option<Group> {
        let site = self.sites.get(&id).filter(|site| !site.is_unreachable)?;
        site.group.clone()
    }

    /// Whether a ready site's group admits no more tasks now. If so, the site is made to wait in the group.
    pub(in crate::dispatch) fn await_group_if_full(&mut self, id: SiteId, now_ms: i64) -> bool {
        let Some(group) = self.group_of(id) else {
            return false;
        };
        if self.groups.try_admit(&group, id, now_ms) {
            return false;
        }
        self.remove_from_ready(id);
        if let Some(site) = self.sites.get_mut(&id) {
            let place = GroupPosition {
                priority: Reverse(site.turn().priority),
                due_at_ms: site.clock.due_at_ms,
                site: id,
            };
            self.groups.enqueue_waiting(&group, place);
            site.place_in_group = Some(place);
        }
        true
    }

    /// Makes the waiting sites ready that their groups call, because there is room for them now.
    pub(super) fn make_called_ready(&mut self, now_ms: i64) {
        while let Some(id) = self.groups.call_next_due(now_ms) {
            if let Some(site) = self.sites.get_mut(&id) {
                site.place_in_group = None;
            }
            self.make_ready(id);
        }
    }

    /// Removes a site from its group's waiting sites, and withdraws the call if the group has called it.
    pub(super) fn remove_from_group(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get_mut(&id)
            && let Some(group) = &site.group
        {
            self.groups
                .remove_waiting(group, id, site.place_in_group.take());
        }
    }

    /// How many tasks of the site its group has room for, and when the first may start.
    pub(in crate::dispatch) fn group_capacity(&self, id: SiteId) -> (u32, i64) {
        let group = self.group_of(id);
        group.map_or((u32::MAX, i64::MIN), |group| self.groups.capacity(&group))
    }

    /// Moves the time of the next request of the site's group, after this many tasks of the site were handed out. The
    /// first of them starts at `start_ms`; a request for robots.txt may precede them.
    pub(in crate::dispatch) fn put_off_next_start_of_group(
        &mut self,
        id: SiteId,
        tasks: usize,
        start_ms: i64,
    ) {
        let Some(site) = self.sites.get(&id).filter(|_| tasks > 0) else {
            return;
        };
        let last_ms = site.clock.last_start_ms;
        let asks_robots = last_ms.is_none_or(|last_ms| start_ms - last_ms >= ROBOTS_KEPT_MS);
        if let Some(group) = self.group_of(id) {
            let requests = tasks as u32 + u32::from(asks_robots);
            self.groups.put_off_next_start(&group, requests, start_ms);
        }
    }

    /// Notes the address of a site, and with it the site's group.
    pub(in crate::dispatch) fn set_address(&mut self, id: SiteId, address: IpAddr) {
        let Some(site) = self.sites.get(&id) else {
            return;
        };
        let group = self.groups.group_of(&site.name, Some(address));
        let waited = site.place_in_group.is_some();
        if group != site.group {
            self.remove_from_group(id);
        }
        if let Some(site) = self.sites.get_mut(&id) {
            site.clock.address = Some(address);
            site.group = group;
        }
        if waited {
            self.make_ready(id);
        }
    }

    /// How the worker checks the address of a task's host: it must be the one whose limits the task counts for. `None`
    /// for a provider, whose limits apply to any address.
    pub(crate) fn address_bounds(&self, id: SiteId, delivery: u32) -> AddressBounds {
        let (Some(bounds), Some(site)) = (self.groups.bounds(), self.sites.get(&id)) else {
            return AddressBounds::None;
        };
        let address = match &site.group {
            Some(Group::Provider(_)) => return AddressBounds::None,
            Some(Group::Address(address)) => Some(*address),
            None => site.clock.address,
        };
        if address.is_some() && delivery > MOST_DELIVERIES_MOVED {
            return AddressBounds::None;
        }
        match bounds.of_private {
            true => AddressBounds::OfAny(address),
            false => AddressBounds::OfPublic(address),
        }
    }

    /// Evicts sites if more than `most` sites wait in groups, so that a large group does not fill the memory. The last
    /// sites in the order of the largest group are evicted.
    pub(in crate::dispatch) fn evict_surplus_of_groups(
        &mut self,
        most: usize,
        now_ms: i64,
    ) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        loop {
            let surplus = self.groups.surplus_waiting_sites(most, FEW_WAITING);
            if surplus.is_empty() {
                return left;
            }
            for (id, wait_ms) in surplus {
                let (soonest_ms, latest_ms) = SURPLUS_RETURNS_MS;
                let back_ms = now_ms + wait_ms.clamp(soonest_ms, latest_ms);
                if let Some((_, mut clock)) = self.remove(id) {
                    clock.due_at_ms = clock.due_at_ms.max(back_ms);
                    left.push((id, clock));
                }
            }
        }
    }
}
