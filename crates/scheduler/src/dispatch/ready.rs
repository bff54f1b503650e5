//! The ready sites: those whose next task can be handed out now. They are ordered by the highest priority first, then
//! by crawls in turn, then the site that has been due longest.
//!
//! Crawls of one priority share by *start-time fair queueing*. Each crawl has a tag, which grows by one with each of
//! its tasks that is handed out; the crawl with the lowest tag is next. A crawl that arrives, or comes back after a
//! pause, starts at the current virtual time (the tag of the crawl that was served last). So neither a long queue nor
//! a long pause gives an advantage.
//!
//! A site that needs a new owner, in a lane where no supervisor has credit, waits in the queue of that lane, in the
//! same order. [`ReadyQueue::peek_next`] skips such a queue as a whole.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use webfill_wire::{CrawlKey, Lane};

use crate::frontier::{SiteId, Turn};

/// Above this many stored tags of crawls, those that are not ahead of the virtual time are dropped, because they have
/// no effect.
const MANY_CRAWLS: usize = 4_096;

/// The position of a ready site in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadyPosition {
    turn: Turn,
    due_at_ms: i64,
    /// The lane where the site waits until a supervisor accepts tasks; `None`: it does not wait.
    awaits: Option<Lane>,
}

/// The ready sites, in their order.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    queues: BTreeMap<Option<Lane>, Levels>,
    /// How many sites wait, by lane, until a supervisor accepts tasks.
    waiting: BTreeMap<Lane, usize>,
    /// The tags of crawls that are ahead of the virtual time. A crawl's tag grows with each task handed out.
    tags: HashMap<CrawlKey, u64>,
    /// The tag of the last served crawl before it was served.
    virtual_time: u64,
}

type Levels = BTreeMap<Reverse<u8>, Level>;

/// The ready sites of one priority.
#[derive(Debug, Default)]
struct Level {
    /// The crawls, ordered by their tags.
    order: BTreeSet<(u64, CrawlKey)>,
    queues: HashMap<CrawlKey, CrawlQueue>,
}

/// The ready sites of one priority and crawl.
#[derive(Debug, Default)]
struct CrawlQueue {
    tag: u64,
    /// The sites, ordered by their due times.
    sites: BTreeSet<(i64, SiteId)>,
}

impl ReadyQueue {
    pub(super) fn insert(
        &mut self,
        site: SiteId,
        turn: Turn,
        due_at_ms: i64,
        awaits: Option<Lane>,
    ) -> ReadyPosition {
        let tag = self.tag(turn.crawl);
        let levels = self.queues.entry(awaits).or_default();
        let level = levels.entry(Reverse(turn.priority)).or_default();
        let queue = level.queues.entry(turn.crawl).or_default();
        if queue.sites.is_empty() {
            queue.tag = tag;
            level.order.insert((tag, turn.crawl));
        }
        queue.sites.insert((due_at_ms, site));
        if let Some(lane) = awaits {
            *self.waiting.entry(lane).or_default() += 1;
        }
        ReadyPosition {
            turn,
            due_at_ms,
            awaits,
        }
    }

    pub(super) fn remove(&mut self, site: SiteId, place: ReadyPosition) {
        let priority = Reverse(place.turn.priority);
        let Some(levels) = self.queues.get_mut(&place.awaits) else {
            return;
        };
        let Some(level) = levels.get_mut(&priority) else {
            return;
        };
        let crawl = place.turn.crawl;
        let Some(queue) = level.queues.get_mut(&crawl) else {
            return;
        };
        let was_there = queue.sites.remove(&(place.due_at_ms, site));
        if let Some(waiting) = place.awaits.and_then(|lane| self.waiting.get_mut(&lane)) {
            *waiting -= usize::from(was_there);
        }
        if queue.sites.is_empty() {
            level.order.remove(&(queue.tag, crawl));
            level.queues.remove(&crawl);
        }
        if level.queues.is_empty() {
            levels.remove(&priority);
        }
    }

    /// The next site, skipping those that wait in one of the `full` lanes, where no supervisor accepts tasks. With a
    /// `draw`, any site of the same priority and crawl; all are equally likely if draws are spread evenly over their
    /// range.
    pub(super) fn peek_next(&self, full: &BTreeSet<Lane>, draw: Option<u64>) -> Option<SiteId> {
        let is_full = |awaits: &Option<Lane>| awaits.is_some_and(|lane| full.contains(&lane));
        let open = self.queues.iter().filter(|(awaits, _)| !is_full(awaits));
        let firsts = open.filter_map(|(_, levels)| {
            let (priority, level) = levels.first_key_value()?;
            let (tag, crawl) = level.order.first()?;
            let sites = &level.queues.get(crawl)?.sites;
            Some(((priority, tag, crawl, sites.first()?), sites))
        });
        let ((.., first), sites) = firsts.min_by_key(|(place, _)| *place)?;
        let drawn = draw.and_then(|draw| {
            let index = (u128::from(draw) * sites.len() as u128) >> u64::BITS;
            sites.iter().nth(index as usize)
        });
        Some(drawn.unwrap_or(first).1)
    }

    /// How many sites wait until a supervisor of this lane accepts tasks.
    pub(super) fn count_waiting_sites(&self, lane: Lane) -> usize {
        self.waiting.get(&lane).copied().unwrap_or(0)
    }

    /// The last site, in order, of those that wait until a supervisor of this lane accepts tasks.
    pub(super) fn last_waiting_site(&self, lane: Lane) -> Option<SiteId> {
        let (_, level) = self.queues.get(&Some(lane))?.last_key_value()?;
        let (_, crawl) = level.order.last()?;
        let (_, site) = level.queues.get(crawl)?.sites.last()?;
        Some(*site)
    }

    /// Raises the tag of a crawl by the number of its tasks that were handed out, so that other crawls are served
    /// first.
    pub(super) fn count_handed_out(&mut self, crawl: CrawlKey, tasks: u64) {
        let before = self.tag(crawl);
        self.virtual_time = self.virtual_time.max(before);
        let tag = before + tasks;
        self.tags.insert(crawl, tag);
        for level in self.queues.values_mut().flat_map(BTreeMap::values_mut) {
            if let Some(queue) = level.queues.get_mut(&crawl) {
                level.order.remove(&(queue.tag, crawl));
                level.order.insert((tag, crawl));
                queue.tag = tag;
            }
        }
        if self.tags.len() > MANY_CRAWLS {
            let virtual_time = self.virtual_time;
            self.tags.retain(|_, tag| *tag > virtual_time);
        }
    }

    /// A crawl's tag; at least the virtual time.
    fn tag(&self, crawl: CrawlKey) -> u64 {
        let tag = self.tags.get(&crawl).copied().unwrap_or(0);
        tag.max(self.virtual_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(priority: u8, crawl: CrawlKey) -> Turn {
        Turn {
            priority,
            crawl,
            lane: Lane::Http,
        }
    }

    /// Hands out one task of the next site. Returns the site's id.
    fn hand_out_next(ready: &mut ReadyQueue, places: &[(SiteId, ReadyPosition)]) -> Option<i64> {
        let site = ready.peek_next(&BTreeSet::new(), None)?;
        let (_, place) = places.iter().find(|(id, _)| *id == site).unwrap();
        ready.remove(site, *place);
        ready.count_handed_out(place.turn.crawl, 1);
        Some(site.0)
    }

    #[test]
    fn a_crawl_of_many_sites_does_not_delay_one_of_few() {
        let mut ready = ReadyQueue::default();
        let mut places = Vec::new();
        for id in 0..1_000 {
            places.push((SiteId(id), ready.insert(SiteId(id), turn(50, 1), 0, None)));
        }
        for _ in 0..100 {
            assert!(hand_out_next(&mut ready, &places).unwrap() < 1_000);
        }
        for id in 2_000..2_003 {
            places.push((SiteId(id), ready.insert(SiteId(id), turn(50, 2), 99, None)));
        }
        let next: Vec<bool> = (0..6)
            .map(|_| hand_out_next(&mut ready, &places).unwrap() >= 2_000)
            .collect();
        assert_eq!(next.iter().filter(|small| **small).count(), 3, "{next:?}");
        assert!(hand_out_next(&mut ready, &places).unwrap() < 1_000);
    }

    #[test]
    fn the_highest_priority_goes_first_and_within_a_crawl_the_longest_due() {
        let mut ready = ReadyQueue::default();
        let places = [
            (1, turn(50, 1), 100),
            (2, turn(50, 1), 50),
            (3, turn(90, 2), 900),
        ]
        .map(|(id, turn, due)| (SiteId(id), ready.insert(SiteId(id), turn, due, None)));
        let order: Vec<i64> = std::iter::from_fn(|| hand_out_next(&mut ready, &places)).collect();
        assert_eq!(order, [3, 2, 1]);
        assert!(ready.queues.values().all(BTreeMap::is_empty));
    }

    #[test]
    fn sites_that_wait_for_a_full_lane_are_skipped_and_keep_their_order() {
        let mut ready = ReadyQueue::default();
        let browser = Some(Lane::Browser);
        for (id, priority, awaits) in [(1, 50, browser), (2, 90, browser), (3, 40, None)] {
            ready.insert(SiteId(id), turn(priority, 1), 0, awaits);
        }
        let full = BTreeSet::from([Lane::Browser]);
        assert_eq!(ready.peek_next(&full, None), Some(SiteId(3)));
        assert_eq!(ready.peek_next(&BTreeSet::new(), None), Some(SiteId(2)));
        assert_eq!(ready.count_waiting_sites(Lane::Browser), 2);
        assert_eq!(ready.last_waiting_site(Lane::Browser), Some(SiteId(1)));
    }

    #[test]
    fn a_draw_finds_each_site_of_the_crawl_that_is_next() {
        let mut ready = ReadyQueue::default();
        for id in 0..10 {
            ready.insert(SiteId(id), turn(50, 1), 0, None);
            ready.insert(SiteId(100 + id), turn(40, 2), 0, None);
        }
        let full = BTreeSet::new();
        let draws = (0..10).map(|tenth| u64::MAX / 10 * tenth + u64::MAX / 20);
        let drawn: Vec<Option<SiteId>> = draws
            .map(|draw| ready.peek_next(&full, Some(draw)))
            .collect();
        let all: Vec<Option<SiteId>> = (0..10).map(|id| Some(SiteId(id))).collect();
        assert_eq!(drawn, all);
        assert_eq!(ready.peek_next(&full, Some(u64::MAX)), Some(SiteId(9)));
    }

    #[test]
    fn a_long_pause_is_no_advantage() {
        let mut ready = ReadyQueue::default();
        ready.count_handed_out(1, 1_000);
        ready.count_handed_out(2, 1_000);
        ready.count_handed_out(1, 1);
        // The third crawl joins after the other two were served.
        let places = [1, 2, 3].map(|crawl| {
            let ids = (0..10).map(|n| SiteId(i64::from(crawl) * 100 + n));
            ids.map(|id| (id, ready.insert(id, turn(50, crawl), 0, None)))
                .collect::<Vec<_>>()
        });
        let places = places.concat();
        let first: Vec<i64> = (0..9)
            .map(|_| hand_out_next(&mut ready, &places).unwrap() / 100)
            .collect();
        for crawl in [2, 3] {
            let served = first.iter().filter(|one| **one == crawl).count();
            assert!((2..=6).contains(&served), "{first:?}");
        }
    }
}
