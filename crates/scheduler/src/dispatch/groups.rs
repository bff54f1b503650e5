//! Limits that several sites share: those of an address, and those of a provider. The sites that share limits are a
//! *group*; its limits apply to all supervisors and workers together.
//!
//! Tasks of a group may be handed out while fewer than `in_flight` of them are leased, and not earlier than the
//! lookahead before its next start. Each task moves the next start.
//!
//! A ready site whose group is full waits in the group. When the group has room, it *calls* the first waiting site:
//! the one of the highest priority, then the longest due. It calls the next one when tasks of that site were handed
//! out, or a moment later if none were. So each request checks one waiting site, however many there are.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use webfill_urls::address::{AddressClass, classify};
use webfill_urls::provider;

use super::site::LOOKAHEAD_MS;
use crate::frontier::SiteId;

/// If no task of the site that a group has called is handed out, the group calls its next waiting site after this time.
const MOMENT_MS: i64 = 20;

/// Above this many groups, those that limit nothing at present are dropped.
const MANY_GROUPS: usize = 4_096;

/// The limits that the sites of a group share, and which addresses form groups of sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupBounds {
    /// The time between the starts of two requests to sites of a group.
    pub delay_ms: u32,
    /// The maximum number of leased tasks of a group, at least 1.
    pub in_flight: u32,
    /// Whether loopback and private addresses form groups, as public ones do.
    pub of_private: bool,
}

/// The property that the sites of a group share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// A provider, named by the public suffix below which its customers' sites are, such as `github.io`.
    Provider(Arc<str>),
    Address(IpAddr),
}

/// The position of a waiting site in the order of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupPosition {
    pub(super) priority: Reverse<u8>,
    pub(super) due_at_ms: i64,
    pub(super) site: SiteId,
}

/// All groups that limit something at present. Without limits, no site belongs to a group.
#[derive(Debug, Default)]
pub(super) struct Groups {
    bounds: Option<GroupBounds>,
    groups: HashMap<Group, GroupState>,
    /// The groups that are going to call one of their waiting sites, because there is room for it, ordered by the time
    /// of the call.
    calls: BTreeSet<(i64, Group)>,
    /// How many sites wait in groups.
    waiting: usize,
    /// No request of any group starts before this time.
    first_start_ms: i64,
    dropped_above: usize,
}

#[derive(Debug, Default)]
struct GroupState {
    leased: u32,
    next_start_ms: i64,
    waiting: BTreeSet<GroupPosition>,
    called: Option<SiteId>,
    /// The group calls none of its waiting sites before this time.
    call_from_ms: i64,
    /// The time of the group's entry in `calls`.
    calls_at_ms: Option<i64>,
}

impl GroupState {
    fn has_capacity(&self, in_flight: u32, now_ms: i64) -> bool {
        self.leased < in_flight && self.next_start_ms - LOOKAHEAD_MS <= now_ms
    }

    fn next_call_ms(&self, in_flight: u32) -> Option<i64> {
        let calls = !self.waiting.is_empty() && self.called.is_none() && self.leased < in_flight;
        calls.then(|| (self.next_start_ms - LOOKAHEAD_MS).max(self.call_from_ms))
    }

    fn is_in_use(&self, now_ms: i64) -> bool {
        self.leased > 0
            || self.next_start_ms > now_ms
            || !self.waiting.is_empty()
            || self.called.is_some()
    }
}

impl Groups {
    pub(super) fn new(bounds: Option<GroupBounds>) -> Groups {
        Groups {
            bounds,
            dropped_above: MANY_GROUPS,
            ..Groups::default()
        }
    }

    pub(super) fn bounds(&self) -> Option<GroupBounds> {
        self.bounds
    }

    /// The group of a site, as far as it can be known from the name and the address.
    pub(super) fn group_of(&self, site: &str, address: Option<IpAddr>) -> Option<Group> {
        let bounds = self.bounds?;
        if let Some(provider) = provider(site) {
            return Some(Group::Provider(provider.into()));
        }
        let literal = site.trim_start_matches('[').trim_end_matches(']').parse();
        let address = literal.ok().or(address)?;
        let is_bounded = match classify(address) {
            AddressClass::Public => true,
            AddressClass::Private => bounds.of_private,
            AddressClass::Never => false,
        };
        is_bounded.then_some(Group::Address(address))
    }

    /// Delays the first requests of all groups after a start, because requests from before the start are unknown.
    pub(super) fn delay_first_starts(&mut self, now_ms: i64) {
        let delay_ms = self.bounds.map_or(0, |bounds| bounds.delay_ms);
        self.first_start_ms = now_ms + i64::from(delay_ms);
    }

    /// Whether tasks of a ready site may be handed out now. A site that the group has called precedes all others.
    pub(super) fn try_admit(&mut self, group: &Group, site: SiteId, now_ms: i64) -> bool {
        let in_flight = self.max_in_flight();
        let state = self.state_or_insert(group);
        let was_called = state.called == Some(site);
        if was_called {
            state.called = None;
            state.call_from_ms = now_ms + MOMENT_MS;
        }
        let is_next = was_called || (state.waiting.is_empty() && state.called.is_none());
        let admits = is_next && state.has_capacity(in_flight, now_ms);
        self.plan_call(group);
        admits
    }

    pub(super) fn enqueue_waiting(&mut self, group: &Group, place: GroupPosition) {
        let is_new = self.state_or_insert(group).waiting.insert(place);
        self.waiting += usize::from(is_new);
        self.plan_call(group);
    }

    /// Removes a site that no longer waits in the group, or that was called but is no longer ready.
    pub(super) fn remove_waiting(
        &mut self,
        group: &Group,
        site: SiteId,
        place: Option<GroupPosition>,
    ) {
        let Some(state) = self.groups.get_mut(group) else {
            return;
        };
        if state.called == Some(site) {
            state.called = None;
        }
        let waited = place.is_some_and(|place| state.waiting.remove(&place));
        self.waiting -= usize::from(waited);
        self.plan_call(group);
    }

    /// If a group has room for a waiting site, takes the first such site out of its group and returns it.
    pub(super) fn call_next_due(&mut self, now_ms: i64) -> Option<SiteId> {
        let (at_ms, group) = self.calls.first()?;
        if *at_ms > now_ms {
            return None;
        }
        let group = group.clone();
        let state = self.state_or_insert(&group);
        let first = state.waiting.pop_first()?;
        state.called = Some(first.site);
        self.waiting -= 1;
        self.plan_call(&group);
        Some(first.site)
    }

    /// When the next group calls one of its waiting sites.
    pub(super) fn next_call_ms(&self) -> Option<i64> {
        self.calls.first().map(|(at_ms, _)| *at_ms)
    }

    /// How many tasks of one site of this group may be handed out together, and when the first may start.
    pub(super) fn capacity(&self, group: &Group) -> (u32, i64) {
        let state = self.groups.get(group);
        let leased = state.map_or(0, |state| state.leased);
        let next_start_ms = state.map_or(self.first_start_ms, |state| state.next_start_ms);
        let free = self.max_in_flight().saturating_sub(leased);
        match self.bounds {
            Some(GroupBounds { delay_ms: 1.., .. }) => (free.min(1), next_start_ms),
            _ => (free, next_start_ms),
        }
    }

    /// Notes that a task was handed out.
    pub(super) fn begin_lease(&mut self, group: &Group) {
        self.state_or_insert(group).leased += 1;
        self.plan_call(group);
    }

    /// Notes that the lease of a task has ended.
    pub(super) fn end_lease(&mut self, group: &Group) {
        let Some(state) = self.groups.get_mut(group) else {
            return;
        };
        state.leased = state.leased.saturating_sub(1);
        self.plan_call(group);
    }

    /// Moves the time of the group's next request behind `requests` requests. The first of them starts at `start_ms`.
    pub(super) fn put_off_next_start(&mut self, group: &Group, requests: u32, start_ms: i64) {
        let delay_ms = self.bounds.map_or(0, |bounds| bounds.delay_ms);
        let state = self.state_or_insert(group);
        state.next_start_ms =
            state.next_start_ms.max(start_ms) + i64::from(requests.saturating_mul(delay_ms));
        state.call_from_ms = 0;
        self.plan_call(group);
        if self.groups.len() > self.dropped_above {
            self.groups.retain(|_, state| state.is_in_use(start_ms));
            self.dropped_above = MANY_GROUPS.max(2 * self.groups.len());
        }
    }

    /// The sites to evict if more than `most` sites wait in groups: the surplus at the end of the largest group, each
    /// with its expected wait. The first `few` sites of the group are never among them.
    pub(super) fn surplus_waiting_sites(&self, most: usize, few: usize) -> Vec<(SiteId, i64)> {
        let too_many = self.waiting.saturating_sub(most);
        let groups = self.groups.values().filter(|_| too_many > 0);
        let Some(longest) = groups.max_by_key(|state| state.waiting.len()) else {
            return Vec::new();
        };
        let delay_ms = self.bounds.map_or(0, |bounds| i64::from(bounds.delay_ms));
        let last_first = longest.waiting.iter().rev();
        let places = (few..longest.waiting.len()).rev();
        last_first
            .zip(places)
            .take(too_many)
            .map(|(waits, place)| (waits.site, place as i64 * delay_ms))
            .collect()
    }

    fn max_in_flight(&self) -> u32 {
        self.bounds.map_or(u32::MAX, |bounds| bounds.in_flight)
    }

    fn state_or_insert(&mut self, group: &Group) -> &mut GroupState {
        let next_start_ms = self.first_start_ms;
        self.groups
            .entry(group.clone())
            .or_insert_with(|| GroupState {
                next_start_ms,
                ..GroupState::default()
            })
    }

    /// Updates when a group next calls one of its waiting sites.
    fn plan_call(&mut self, group: &Group) {
        let in_flight = self.max_in_flight();
        let Some(state) = self.groups.get_mut(group) else {
            return;
        };
        let next_ms = state.next_call_ms(in_flight);
        if next_ms == state.calls_at_ms {
            return;
        }
        if let Some(before_ms) = state.calls_at_ms {
            self.calls.remove(&(before_ms, group.clone()));
        }
        self.calls
            .extend(next_ms.map(|at_ms| (at_ms, group.clone())));
        state.calls_at_ms = next_ms;
    }
}

#[cfg(test)]
mod tests;
