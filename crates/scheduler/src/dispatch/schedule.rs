//! When each site's next tasks may be handed out.
//!
//! A site in the window (the sites that are in memory) is in one of these states:
//!
//! - *delayed*: its clock, or a rule, forbids the next request for longer than the lookahead;
//! - *ready*: its next task may be handed out now;
//! - *starved*: ready, but its owner has no credit (the site waits in the [`fleet`](super::fleet)), or no supervisor of
//!   the lane that it needs has credit (it waits in the queue of the lane);
//! - *waiting in its group*: ready, but the address or the provider that it shares with other sites may get no more
//!   requests now (the site waits in [`groups`](super::groups));
//! - *put off*: it was granted but had nothing to hand out ([`deferral`](super::deferral));
//! - *changing owner*: its next task needs another owner, which it gets when no task of it is leased;
//! - *full*: as many of its tasks are leased as its pace allows;
//! - *idle*: no task can be handed out; it leaves the window when its last outcome has arrived.
//!
//! So a delayed site takes up no credit of a supervisor. When the window is nearly full, sites that are due only much
//! later leave it, so that slow sites keep no others out.

use std::collections::{BTreeSet, HashMap};

use webfill_wire::{CrawlKey, Lane};

use super::groups::{GroupBounds, Groups};
use super::ready::ReadyQueue;
use super::site::Site;
use crate::frontier::{Clock, SiteDue, SiteId, WokenSite};

mod grouped;
mod waits;

pub use self::waits::SiteWait;

/// A site that is not due for at least this long may be evicted when too many sites are in memory.
const LONG_MS: i64 = 1_000;

/// How long a site is kept out of memory after it was evicted while it waited for a supervisor with credit.
pub const SURPLUS_RETURNS_AFTER_MS: i64 = 10_000;

/// The sites that are in memory (the *window*), ordered by when they are due.
#[derive(Debug)]
pub struct Schedule {
    default_delay_ms: u32,
    sites: HashMap<SiteId, Site>,
    delayed: BTreeSet<(i64, SiteId)>,
    ready: ReadyQueue,
    pub(super) groups: Groups,
    /// Sites that have nothing leased and nothing to hand out.
    idle: Vec<SiteId>,
    /// The number of sites that were admitted for each crawl.
    admitted_for: HashMap<CrawlKey, usize>,
    /// The number of sites that each supervisor owns.
    owned_by: HashMap<String, usize>,
}

impl Schedule {
    pub(super) fn new(default_delay_ms: u32, bounds: Option<GroupBounds>) -> Schedule {
        Schedule {
            default_delay_ms,
            sites: HashMap::new(),
            delayed: BTreeSet::new(),
            ready: ReadyQueue::default(),
            groups: Groups::new(bounds),
            idle: Vec::new(),
            admitted_for: HashMap::new(),
            owned_by: HashMap::new(),
        }
    }

    pub(super) fn sites(&self) -> &HashMap<SiteId, Site> {
        &self.sites
    }

    /// The number of sites that were loaded into memory for a crawl.
    pub(crate) fn count_admitted_for(&self, crawl: CrawlKey) -> usize {
        self.admitted_for.get(&crawl).copied().unwrap_or(0)
    }

    pub(super) fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(&id)
    }

    pub(super) fn site_mut(&mut self, id: SiteId) -> Option<&mut Site> {
        self.sites.get_mut(&id)
    }

    /// The number of sites in memory that a supervisor owns, that is, whose tasks it gets.
    pub(crate) fn count_owned_by(&self, name: &str) -> usize {
        self.owned_by.get(name).copied().unwrap_or(0)
    }

    pub(super) fn set_owner(&mut self, id: SiteId, owner: Option<String>) {
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        if let Some(owner) = &owner {
            *self.owned_by.entry(owner.clone()).or_default() += 1;
        }
        if let Some(former) = std::mem::replace(&mut site.clock.owner, owner) {
            self.decrement_owned(&former);
        }
    }

    /// Leaves the sites of a supervisor that is gone without an owner.
    pub(super) fn remove_owner(&mut self, name: &str) {
        for site in self.sites.values_mut() {
            if site.clock.owner.as_deref() == Some(name) {
                site.clock.owner = None;
            }
        }
        self.owned_by.remove(name);
    }

    fn decrement_owned(&mut self, owner: &str) {
        if let Some(n) = self.owned_by.get_mut(owner) {
            *n -= 1;
            if *n == 0 {
                self.owned_by.remove(owner);
            }
        }
    }

    /// Hands out nothing of a site until this time, or until [`Schedule::end_set_asides`].
    pub(super) fn set_aside(&mut self, id: SiteId, until_ms: i64) {
        if let Some(site) = self.sites.get_mut(&id) {
            site.aside_until_ms = until_ms;
            self.reschedule(id);
        }
    }

    /// Schedules a site again after the time of its next hand-out has changed.
    pub(super) fn reschedule(&mut self, id: SiteId) {
        self.unschedule(id);
        self.schedule(id);
    }

    /// Lets all sites be chosen again that were set aside for a time.
    pub(super) fn end_set_asides(&mut self) {
        let aside = self
            .sites
            .iter()
            .filter(|(_, site)| site.aside_until_ms > 0);
        let mut ids: Vec<SiteId> = aside.map(|(id, _)| *id).collect();
        // Sorted, so that the order is repeatable.
        ids.sort_unstable();
        for id in ids {
            self.set_aside(id, 0);
        }
    }

    /// Adds a site to those in memory.
    pub(crate) fn add(&mut self, due: SiteDue) {
        let admitted_for = due.next.map(|turn| turn.crawl);
        let site = Site {
            group: self.groups.group_of(&due.name, due.clock.address),
            place_in_group: None,
            name: due.name,
            clock: due.clock,
            rule: due.rule,
            backoff_until_ms: due.backoff_until_ms,
            is_unreachable: due.is_unreachable,
            aside_until_ms: 0,
            put_off_until_ms: 0,
            empty_grants: 0,
            leases: 0,
            lowest_leased: u8::MAX,
            recalled_below: 0,
            scheduled: false,
            ready_from_ms: None,
            place: None,
            queued: if due.next.is_some() { due.queued } else { 0 },
            next: due.next,
            awaits_new_owner: false,
            admitted_for,
            sends_last_request: true,
        };
        if let Some(crawl) = admitted_for {
            *self.admitted_for.entry(crawl).or_default() += 1;
        }
        if let Some(owner) = &site.clock.owner {
            *self.owned_by.entry(owner.clone()).or_default() += 1;
        }
        self.sites.insert(due.id, site);
        self.schedule(due.id);
    }

    fn remove(&mut self, id: SiteId) -> Option<(SiteId, Clock)> {
        self.unschedule(id);
        let site = self.sites.remove(&id)?;
        if let Some(crawl) = site.admitted_for
            && let Some(n) = self.admitted_for.get_mut(&crawl)
        {
            *n -= 1;
            if *n == 0 {
                self.admitted_for.remove(&crawl);
            }
        }
        if let Some(owner) = &site.clock.owner {
            self.decrement_owned(owner);
        }
        Some((id, site.clock))
    }

    /// Notes that a site in memory has got further tasks.
    pub(super) fn wake(&mut self, woken: WokenSite) {
        let Some(site) = self.sites.get_mut(&woken.site) else {
            return;
        };
        site.queued = site.queued.max(1);
        let is_higher = site
            .next
            .is_none_or(|next| next.priority < woken.turn.priority);
        if is_higher {
            site.set_next(Some(woken.turn));
            self.requeue_ready(woken.site);
        }
        self.schedule(woken.site);
        self.end_put_off(woken.site);
    }

    /// Applies a changed rule or backoff of a site. `is_forgotten`: the data learned about the site were dropped.
    pub(crate) fn apply_rule(&mut self, due: &SiteDue, is_forgotten: bool) {
        let Some(site) = self.sites.get_mut(&due.id) else {
            return;
        };
        site.apply_rule(due, is_forgotten, self.default_delay_ms);
        site.queued = if due.next.is_some() { due.queued } else { 0 };
        site.set_next(due.next);
        site.put_off_until_ms = 0;
        self.reschedule(due.id);
        self.queue_if_idle(due.id);
    }

    /// Schedules a site by its clock, unless it is scheduled already, is full or has nothing
    /// queued.
    pub(super) fn schedule(&mut self, id: SiteId) {
        let default_delay_ms = self.default_delay_ms;
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        if site.scheduled || site.queued == 0 || site.is_full(default_delay_ms) {
            return;
        }
        site.scheduled = true;
        self.delay_until_due(id);
    }

    fn delay_until_due(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get_mut(&id) {
            let from_ms = site.earliest_handout_ms();
            site.ready_from_ms = Some(from_ms);
            self.delayed.insert((from_ms, id));
        }
    }

    /// Removes a site from the delayed sites, from the ready ones and from those that wait in groups.
    fn unschedule(&mut self, id: SiteId) {
        self.remove_from_group(id);
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        site.scheduled = false;
        if let Some(from_ms) = site.ready_from_ms.take() {
            self.delayed.remove(&(from_ms, id));
        }
        if let Some(place) = site.place.take() {
            self.ready.remove(id, place);
        }
    }

    /// When the next site becomes ready.
    pub(crate) fn next_ready_ms(&self) -> Option<i64> {
        let delayed_ms = self.delayed.first().map(|(from_ms, _)| *from_ms);
        delayed_ms
            .into_iter()
            .chain(self.groups.next_call_ms())
            .min()
    }

    /// The next ready site: by the highest priority, then by crawls in turn, then the site that has been due longest,
    /// or a drawn one. Sites that wait in one of the `full` lanes, where no supervisor accepts tasks, are skipped.
    pub(super) fn next_ready_site(
        &mut self,
        full: &BTreeSet<Lane>,
        draw: Option<u64>,
        now_ms: i64,
    ) -> Option<SiteId> {
        while let Some((from_ms, id)) = self.delayed.first().copied()
            && from_ms <= now_ms
        {
            self.delayed.pop_first();
            if let Some(site) = self.sites.get_mut(&id) {
                site.ready_from_ms = None;
            }
            self.make_ready(id);
        }
        loop {
            self.make_called_ready(now_ms);
            let id = self.ready.peek_next(full, draw)?;
            if self
                .sites
                .get(&id)
                .is_some_and(|site| site.earliest_handout_ms() <= now_ms)
            {
                return Some(id);
            }
            // The site's clock or rule has changed while it waited for a supervisor or in its group.
            self.remove_from_group(id);
            self.remove_from_ready(id);
            self.delay_until_due(id);
        }
    }

    /// Removes a site from the ready sites.
    pub(super) fn remove_from_ready(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get_mut(&id)
            && let Some(place) = site.place.take()
        {
            self.ready.remove(id, place);
        }
    }

    /// Adds a scheduled site to the ready sites, unless it is delayed, ready already, or waiting in its group.
    pub(super) fn make_ready(&mut self, id: SiteId) {
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        let waits_elsewhere =
            site.place.is_some() || site.ready_from_ms.is_some() || site.place_in_group.is_some();
        if !site.scheduled || waits_elsewhere {
            return;
        }
        site.place = Some(
            self.ready
                .insert(id, site.turn(), site.clock.due_at_ms, None),
        );
    }

    /// Makes a ready site wait until a supervisor of this lane grants credit.
    pub(super) fn await_lane_credit(&mut self, id: SiteId, lane: Lane) {
        self.remove_from_ready(id);
        if let Some(site) = self.sites.get_mut(&id) {
            let (turn, due_at_ms) = (site.turn(), site.clock.due_at_ms);
            site.place = Some(self.ready.insert(id, turn, due_at_ms, Some(lane)));
        }
    }

    /// Makes a ready site wait until its leases have ended, so that it can get another owner.
    pub(super) fn await_owner_change(&mut self, id: SiteId) {
        self.remove_from_ready(id);
        if let Some(site) = self.sites.get_mut(&id) {
            site.scheduled = false;
            site.awaits_new_owner = true;
        }
    }

    /// Queues a site again after another crawl has become next there. If the site is ready, its position changes. If it
    /// waited for a supervisor or in its group, the new crawl may not need to wait.
    fn requeue_ready(&mut self, id: SiteId) {
        self.remove_from_group(id);
        self.remove_from_ready(id);
        self.make_ready(id);
    }

    /// Notes that tasks of a crawl were handed out, so that other crawls are served first.
    pub(super) fn count_handed_out(&mut self, crawl: CrawlKey, tasks: u64) {
        self.ready.count_handed_out(crawl, tasks);
    }

    /// How many more of the site's tasks may be leased now.
    pub(super) fn free_leases(&self, id: SiteId) -> u32 {
        self.sites.get(&id).map_or(0, |site| {
            site.max_leases(self.default_delay_ms)
                .saturating_sub(site.leases)
        })
    }

    pub(crate) fn default_delay_ms(&self) -> u32 {
        self.default_delay_ms
    }

    /// Notes that a lease of the site is over. Returns the site's clock, which is to be stored.
    pub(super) fn on_lease_end(&mut self, id: SiteId) -> Option<Clock> {
        let site = self.sites.get_mut(&id)?;
        site.leases = site.leases.saturating_sub(1);
        if site.leases == 0 {
            site.lowest_leased = u8::MAX;
        }
        let clock = site.clock.clone();
        self.queue_if_idle(id);
        self.schedule(id);
        self.end_put_off(id);
        Some(clock)
    }

    pub(super) fn queue_if_idle(&mut self, id: SiteId) {
        if self.sites.get(&id).is_some_and(Site::is_idle) {
            self.idle.push(id);
        }
    }

    /// Evicts sites that have nothing to hand out and nothing leased.
    pub(crate) fn evict_idle(&mut self) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        for id in std::mem::take(&mut self.idle) {
            if self.sites.get(&id).is_some_and(Site::is_idle) {
                left.extend(self.remove(id));
            }
        }
        left
    }

    /// Evicts the sites beyond `most` that wait for credit of a supervisor of this lane, the last in order first.
    pub(super) fn evict_surplus(
        &mut self,
        lane: Lane,
        most: usize,
        now_ms: i64,
    ) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        while self.ready.count_waiting_sites(lane) > most
            && let Some(id) = self.ready.last_waiting_site(lane)
            && let Some((_, mut clock)) = self.remove(id)
        {
            let back_ms = now_ms + SURPLUS_RETURNS_AFTER_MS;
            clock.due_at_ms = clock.due_at_ms.max(back_ms);
            left.push((id, clock));
        }
        left
    }

    /// Evicts up to `most` sites that are not due within [`LONG_MS`] from memory: first those of crawls that have more
    /// than `few` sites there, then any.
    pub(crate) fn evict_distant(
        &mut self,
        most: usize,
        few: usize,
        now_ms: i64,
    ) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        for spare in [few, 0] {
            let mut far = Vec::new();
            let latest_first = self.delayed.iter().rev();
            for (from_ms, id) in latest_first.take_while(|(at_ms, _)| *at_ms > now_ms + LONG_MS) {
                if left.len() + far.len() >= most {
                    break;
                }
                let Some(site) = self.sites.get(id) else {
                    continue;
                };
                let company = site
                    .admitted_for
                    .map_or(usize::MAX, |crawl| self.count_admitted_for(crawl));
                if site.leases == 0 && company > spare {
                    far.push((*from_ms, *id));
                }
            }
            for (_, id) in far {
                left.extend(self.remove(id));
            }
        }
        left
    }
}
