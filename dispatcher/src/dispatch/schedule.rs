//! When each site's next tasks may be handed out.
//!
//! A site is in one of these states while it is in the window:
//! - *later*: its clock, or a rule, forbids the next request for longer than the lookahead;
//! - *ready*: its next task may be handed out now;
//! - *starved*: ready, but its owner has no credit (it waits with the owner then);
//! - *handed out*: as many of its tasks are out as its pace allows;
//! - *idle*: nothing can be handed out; it leaves the window when its last outcome is in.
//!
//! A waiting site therefore never occupies a place in a supervisor's queue. And when the window is
//! nearly full, sites that are not due for long leave it, so that slow sites keep nobody out.

use std::collections::{BTreeSet, HashMap};

use webfill_wire::{CrawlKey, SiteClock};

use super::ready::{Place, Ready};
use crate::frontier::{Clock, SiteDue, SiteId, SiteRule, Turn, Woken};

/// A task is handed out this long before its site's clock allows it, so that it is there when it
/// does: longer than a commit and two sockets take, shorter than a wait worth a queue place.
pub const LOOKAHEAD_MS: i64 = 300;

/// Tasks of one site that are out at once, at most, however short its delay.
pub(super) const MOST_OUT: u32 = 64;

/// A site that is not due for this long may leave a window that is needed by others.
const LONG_MS: i64 = 1_000;

/// A site in the window.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) clock: Clock,
    pub(super) rule: SiteRule,
    /// Tasks handed out and not ended.
    pub(super) out: u32,
    /// The lowest priority that may be among them.
    pub(super) lowest_out: u8,
    /// Those below this priority have been called back.
    pub(super) recalled_below: u8,
    /// It is in `later` or `ready`, or with its starved owner.
    pub(super) scheduled: bool,
    /// When it leaves `later`, if it is there.
    ready_from_ms: Option<i64>,
    /// Where it stands in `ready`, if it is there.
    place: Option<Place>,
    /// Tasks queued in the frontier that can be handed out, as last heard; more of them may not.
    pub(super) queued: u64,
    pub(super) next: Option<Turn>,
    /// The crawl that it came into the window for.
    came_for: Option<CrawlKey>,
    /// The next worker may not know of the site's last request.
    pub(super) tell_last_request: bool,
}

/// The sites of the window, by when they are due.
#[derive(Debug)]
pub(super) struct Schedule {
    default_delay_ms: u32,
    sites: HashMap<SiteId, Site>,
    later: BTreeSet<(i64, SiteId)>,
    ready: Ready,
    /// Sites whose last outcome is in and that have nothing to hand out.
    idle: Vec<SiteId>,
    /// Sites by the crawls that they came for.
    came_for: HashMap<CrawlKey, usize>,
}

impl Schedule {
    pub(super) fn new(default_delay_ms: u32) -> Schedule {
        Schedule {
            default_delay_ms,
            sites: HashMap::new(),
            later: BTreeSet::new(),
            ready: Ready::default(),
            idle: Vec::new(),
            came_for: HashMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sites.len()
    }

    /// Sites that came into the window for a crawl.
    pub(super) fn came_for(&self, crawl: CrawlKey) -> usize {
        self.came_for.get(&crawl).copied().unwrap_or(0)
    }

    pub(super) fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(&id)
    }

    pub(super) fn site_mut(&mut self, id: SiteId) -> Option<&mut Site> {
        self.sites.get_mut(&id)
    }

    pub(super) fn sites_mut(&mut self) -> impl Iterator<Item = &mut Site> {
        self.sites.values_mut()
    }

    /// A site enters the window.
    pub(super) fn add(&mut self, due: SiteDue) {
        let came_for = due.next.map(|turn| turn.crawl);
        let site = Site {
            name: due.name,
            clock: due.clock,
            rule: due.rule,
            out: 0,
            lowest_out: u8::MAX,
            recalled_below: 0,
            scheduled: false,
            ready_from_ms: None,
            place: None,
            queued: if due.next.is_some() { due.queued } else { 0 },
            next: due.next,
            came_for,
            tell_last_request: true,
        };
        if let Some(crawl) = came_for {
            *self.came_for.entry(crawl).or_default() += 1;
        }
        self.sites.insert(due.id, site);
        self.schedule(due.id);
    }

    fn take_out(&mut self, id: SiteId) -> Option<(SiteId, Clock)> {
        self.unschedule(id);
        let site = self.sites.remove(&id)?;
        if let Some(crawl) = site.came_for
            && let Some(n) = self.came_for.get_mut(&crawl)
        {
            *n -= 1;
            if *n == 0 {
                self.came_for.remove(&crawl);
            }
        }
        Some((id, site.clock))
    }

    /// A site in the window has got further tasks.
    pub(super) fn wake(&mut self, woken: Woken) {
        let Some(site) = self.sites.get_mut(&woken.site) else {
            return;
        };
        site.queued = site.queued.max(1);
        let is_higher = site
            .next
            .is_none_or(|next| next.priority < woken.turn.priority);
        if is_higher {
            site.next = Some(woken.turn);
            self.set_place_anew(woken.site);
        }
        self.schedule(woken.site);
    }

    /// What holds for a site has changed, and with it perhaps when it is due.
    pub(super) fn change_rule(&mut self, due: &SiteDue) {
        let Some(site) = self.sites.get_mut(&due.id) else {
            return;
        };
        site.follow_rule(due, self.default_delay_ms);
        site.queued = if due.next.is_some() { due.queued } else { 0 };
        site.next = due.next;
        self.unschedule(due.id);
        self.schedule(due.id);
        self.note_if_idle(due.id);
    }

    /// Puts a site where its clock says, unless it is there already or has all tasks out.
    pub(super) fn schedule(&mut self, id: SiteId) {
        let default_delay_ms = self.default_delay_ms;
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        if site.scheduled || site.queued == 0 || site.out >= site.most_out(default_delay_ms) {
            return;
        }
        site.scheduled = true;
        self.set_later(id);
    }

    fn set_later(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get_mut(&id) {
            let from_ms = site.can_go_from_ms();
            site.ready_from_ms = Some(from_ms);
            self.later.insert((from_ms, id));
        }
    }

    /// Takes a site from where it waits.
    fn unschedule(&mut self, id: SiteId) {
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        site.scheduled = false;
        if let Some(from_ms) = site.ready_from_ms.take() {
            self.later.remove(&(from_ms, id));
        }
        if let Some(place) = site.place.take() {
            self.ready.remove(id, place);
        }
    }

    /// When the next site becomes ready.
    pub(super) fn next_ready_ms(&self) -> Option<i64> {
        self.later.first().map(|(from_ms, _)| *from_ms)
    }

    /// The ready site whose turn it is: the highest priority, then crawls in turn, then the longest
    /// due.
    pub(super) fn first_ready(&mut self, now_ms: i64) -> Option<SiteId> {
        while let Some((from_ms, id)) = self.later.first().copied()
            && from_ms <= now_ms
        {
            self.later.pop_first();
            if let Some(site) = self.sites.get_mut(&id) {
                site.ready_from_ms = None;
            }
            self.make_ready(id);
        }
        loop {
            let id = self.ready.first()?;
            if self
                .sites
                .get(&id)
                .is_some_and(|site| site.can_go_from_ms() <= now_ms)
            {
                return Some(id);
            }
            // Something has changed while it waited for room.
            self.pop_ready(id);
            self.set_later(id);
        }
    }

    /// Takes away what [`first_ready`](Schedule::first_ready) told.
    pub(super) fn pop_ready(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get_mut(&id)
            && let Some(place) = site.place.take()
        {
            self.ready.remove(id, place);
        }
    }

    /// A scheduled site can be handed out from now.
    pub(super) fn make_ready(&mut self, id: SiteId) {
        let Some(site) = self.sites.get_mut(&id) else {
            return;
        };
        let waits_elsewhere = site.place.is_some() || site.ready_from_ms.is_some();
        if !site.scheduled || waits_elsewhere {
            return;
        }
        let turn = site.next.unwrap_or(Turn {
            priority: 0,
            crawl: 0,
        });
        site.place = Some(self.ready.insert(id, turn, site.clock.due_at_ms));
    }

    /// Another turn is next at a site: if it is ready, it stands elsewhere now, and if it waits for
    /// room, it may not have to.
    fn set_place_anew(&mut self, id: SiteId) {
        self.pop_ready(id);
        self.make_ready(id);
    }

    /// Tasks of a crawl were handed out.
    pub(super) fn charge(&mut self, crawl: CrawlKey, tasks: u64) {
        self.ready.charge(crawl, tasks);
    }

    /// How many more of the site's tasks may be out now.
    pub(super) fn pace(&self, id: SiteId) -> u32 {
        self.sites.get(&id).map_or(0, |site| {
            site.most_out(self.default_delay_ms)
                .saturating_sub(site.out)
        })
    }

    pub(super) fn default_delay_ms(&self) -> u32 {
        self.default_delay_ms
    }

    /// A lease of the site is over. Returns the clock to keep.
    pub(super) fn lease_over(&mut self, id: SiteId) -> Option<Clock> {
        let site = self.sites.get_mut(&id)?;
        site.out = site.out.saturating_sub(1);
        if site.out == 0 {
            site.lowest_out = u8::MAX;
        }
        let clock = site.clock.clone();
        self.note_if_idle(id);
        self.schedule(id);
        Some(clock)
    }

    pub(super) fn note_if_idle(&mut self, id: SiteId) {
        if self.sites.get(&id).is_some_and(Site::is_idle) {
            self.idle.push(id);
        }
    }

    /// Sites that leave the window: nothing to hand out, nothing out.
    pub(super) fn take_idle(&mut self) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        for id in std::mem::take(&mut self.idle) {
            if self.sites.get(&id).is_some_and(Site::is_idle) {
                left.extend(self.take_out(id));
            }
        }
        left
    }

    /// Up to `most` sites that leave the window because they are not due for long: first those of
    /// crawls that have more than `few` others in it.
    pub(super) fn take_far(
        &mut self,
        most: usize,
        few: usize,
        now_ms: i64,
    ) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        for spare in [few, 0] {
            let mut far = Vec::new();
            let latest_first = self.later.iter().rev();
            for (from_ms, id) in latest_first.take_while(|(at_ms, _)| *at_ms > now_ms + LONG_MS) {
                if left.len() + far.len() >= most {
                    break;
                }
                let Some(site) = self.sites.get(id) else {
                    continue;
                };
                let company = site
                    .came_for
                    .map_or(usize::MAX, |crawl| self.came_for(crawl));
                if site.out == 0 && company > spare {
                    far.push((*from_ms, *id));
                }
            }
            for (_, id) in far {
                left.extend(self.take_out(id));
            }
        }
        left
    }
}

impl Site {
    /// Takes over what a worker knows of the site's clock.
    pub(super) fn set_clock(&mut self, clock: SiteClock, now_ms: i64) {
        let next_in_ms = i64::from(clock.next_in_ms);
        self.clock.due_at_ms = self.clock.due_at_ms.max(now_ms + next_in_ms);
        let Some(delay_ms) = clock.delay_ms else {
            return;
        };
        let last_ms = now_ms + (next_in_ms - i64::from(delay_ms)).min(0);
        self.clock.last_start_ms = self.clock.last_start_ms.max(Some(last_ms));
        self.clock.delay_ms = Some(delay_ms);
        // From now on what the worker knows is in the time that the site is due.
        self.tell_last_request = false;
    }

    /// A request may have been under way until now, and the worker that made it is gone.
    pub(super) fn may_be_asked_now(&mut self, default_delay_ms: u32, now_ms: i64) {
        let delay_ms = i64::from(self.delay_ms(default_delay_ms));
        self.clock.due_at_ms = self.clock.due_at_ms.max(now_ms + delay_ms);
        self.clock.last_start_ms = Some(now_ms);
        self.tell_last_request = true;
    }

    /// Another delay is wanted, or another time. What a server wants beside its delay still holds,
    /// unless that was forgotten.
    fn follow_rule(&mut self, due: &SiteDue, default_delay_ms: u32) {
        let is_paced = self.clock.last_start_ms.is_some_and(|last_ms| {
            self.clock.due_at_ms <= last_ms + i64::from(self.delay_ms(default_delay_ms))
        });
        self.rule = due.rule;
        if due.clock.delay_ms.is_none() && self.clock.delay_ms.is_some() {
            // It was forgotten.
            self.clock.delay_ms = None;
            self.clock.due_at_ms = due.clock.due_at_ms;
        } else if is_paced && let Some(last_ms) = self.clock.last_start_ms {
            let delay_ms = self.rule.delay_ms.unwrap_or(default_delay_ms);
            self.clock.due_at_ms = last_ms + i64::from(delay_ms);
        }
        // A delay that was shortened here is kept by the worker, if it knows of the last request.
        self.tell_last_request = true;
    }

    /// The delay as far as it is known.
    fn delay_ms(&self, default_delay_ms: u32) -> u32 {
        let wanted = self.rule.delay_ms;
        let known = self.clock.delay_ms.or(wanted).unwrap_or(default_delay_ms);
        known.max(wanted.unwrap_or(0))
    }

    /// From when on its next task may be handed out.
    fn can_go_from_ms(&self) -> i64 {
        let due_at_ms = if self.out > 0 {
            0
        } else {
            self.clock.due_at_ms
        };
        due_at_ms.max(self.rule.block_until_ms.unwrap_or(0)) - LOOKAHEAD_MS
    }

    /// When its next request may start.
    pub(super) fn starts_at_ms(&self) -> i64 {
        let blocked = self.rule.block_until_ms.unwrap_or(0);
        self.clock.due_at_ms.max(blocked)
    }

    /// Whether what it has out is in the way of a task of this priority, and can be called back.
    pub(super) fn is_in_the_way_of(&self, priority: u8, default_delay_ms: u32) -> bool {
        let is_full = self.out > 0 && self.out >= self.most_out(default_delay_ms);
        is_full && self.lowest_out < priority && self.recalled_below < priority
    }

    fn is_idle(&self) -> bool {
        self.out == 0 && self.queued == 0 && !self.scheduled
    }

    /// How many tasks of a site may be out: what its pace lets through within the lookahead. One
    /// until its delay is known.
    fn most_out(&self, default_delay_ms: u32) -> u32 {
        if self.clock.delay_ms.is_none() && self.rule.delay_ms.unwrap_or(default_delay_ms) > 0 {
            return 1;
        }
        match self.delay_ms(default_delay_ms) {
            0 => MOST_OUT,
            delay_ms => (1 + LOOKAHEAD_MS as u32 / delay_ms).min(MOST_OUT),
        }
    }
}
