//! When each site's next tasks may be handed out.
//!
//! A site is in one of these states while it is in the window:
//! - *later*: its clock forbids the next request for longer than the lookahead;
//! - *ready*: its next task may be handed out now;
//! - *starved*: ready, but its owner has no credit (it waits with the owner then);
//! - *handed out*: as many of its tasks are out as its pace allows;
//! - *idle*: nothing is queued; it leaves the window when its last outcome is in.
//!
//! A waiting site therefore never occupies a place in a supervisor's queue.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use webfill_wire::SiteClock;

use crate::frontier::{Clock, SiteDue, SiteId};

/// A task is handed out this long before its site's clock allows it, so that it is there when it
/// does: longer than a commit and two sockets take, shorter than a wait worth a queue place.
pub const LOOKAHEAD_MS: i64 = 300;

/// Tasks of one site that are out at once, at most, however short its delay.
pub(super) const MOST_OUT: u32 = 64;

/// A site in the window.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) clock: Clock,
    /// Tasks handed out and not ended.
    pub(super) out: u32,
    /// It is in `later` or `ready`, or with its starved owner.
    pub(super) scheduled: bool,
    /// Tasks queued in the frontier, as last heard.
    pub(super) queued: u64,
    pub(super) top_priority: u8,
    /// The next worker may not know of the site's last request.
    pub(super) tell_last_request: bool,
}

/// The sites of the window, by when they are due.
#[derive(Debug)]
pub(super) struct Schedule {
    default_delay_ms: u32,
    sites: HashMap<SiteId, Site>,
    later: BinaryHeap<Reverse<(i64, SiteId)>>,
    ready: BTreeSet<(Reverse<u8>, i64, SiteId)>,
    /// Sites whose last outcome is in and that have nothing queued.
    idle: Vec<SiteId>,
}

impl Schedule {
    pub(super) fn new(default_delay_ms: u32) -> Schedule {
        Schedule {
            default_delay_ms,
            sites: HashMap::new(),
            later: BinaryHeap::new(),
            ready: BTreeSet::new(),
            idle: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sites.len()
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
        let site = Site {
            name: due.name,
            clock: due.clock,
            out: 0,
            scheduled: false,
            queued: due.queued,
            top_priority: due.top_priority,
            tell_last_request: true,
        };
        self.sites.insert(due.id, site);
        self.schedule(due.id);
    }

    /// A site in the window has got further tasks.
    pub(super) fn wake(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get_mut(&id) {
            site.queued = site.queued.max(1);
            self.schedule(id);
        }
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
        let from_ms = if site.out > 0 {
            0
        } else {
            site.clock.due_at_ms - LOOKAHEAD_MS
        };
        self.later.push(Reverse((from_ms, id)));
    }

    /// When the next site becomes ready.
    pub(super) fn next_ready_ms(&self) -> Option<i64> {
        self.later.peek().map(|Reverse((from_ms, _))| *from_ms)
    }

    /// The ready site whose turn it is: the highest priority, then the longest due.
    pub(super) fn first_ready(&mut self, now_ms: i64) -> Option<SiteId> {
        while let Some(Reverse((from_ms, id))) = self.later.peek().copied() {
            if from_ms > now_ms {
                break;
            }
            self.later.pop();
            self.make_ready(id);
        }
        self.ready.first().map(|(_, _, id)| *id)
    }

    /// Takes away what [`first_ready`](Schedule::first_ready) told.
    pub(super) fn pop_ready(&mut self) {
        self.ready.pop_first();
    }

    /// A scheduled site can be handed out from now.
    pub(super) fn make_ready(&mut self, id: SiteId) {
        if let Some(site) = self.sites.get(&id) {
            let key = (Reverse(site.top_priority), site.clock.due_at_ms, id);
            self.ready.insert(key);
        }
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

    /// Sites that leave the window: nothing queued, nothing out.
    pub(super) fn take_idle(&mut self) -> Vec<(SiteId, Clock)> {
        let mut left = Vec::new();
        for id in std::mem::take(&mut self.idle) {
            if self.sites.get(&id).is_some_and(Site::is_idle)
                && let Some(site) = self.sites.remove(&id)
            {
                left.push((id, site.clock));
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
        let delay_ms = i64::from(self.clock.delay_ms.unwrap_or(default_delay_ms));
        self.clock.due_at_ms = self.clock.due_at_ms.max(now_ms + delay_ms);
        self.clock.last_start_ms = Some(now_ms);
        self.tell_last_request = true;
    }

    fn is_idle(&self) -> bool {
        self.out == 0 && self.queued == 0 && !self.scheduled
    }

    /// How many tasks of a site may be out: what its pace lets through within the lookahead. One
    /// until its delay is known.
    fn most_out(&self, default_delay_ms: u32) -> u32 {
        let Some(delay_ms) = self.clock.delay_ms else {
            return if default_delay_ms == 0 { MOST_OUT } else { 1 };
        };
        match delay_ms {
            0 => MOST_OUT,
            delay_ms => (1 + LOOKAHEAD_MS as u32 / delay_ms).min(MOST_OUT),
        }
    }
}
