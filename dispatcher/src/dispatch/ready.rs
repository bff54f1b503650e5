//! Sites that can be handed out now, and whose turn it is: the highest priority first, then crawls
//! in turn, then the site that has been due for longest.
//!
//! Crawls of one priority share by *start-time fair queueing*: each is as far as tasks of its were
//! handed out, and the one that is least far goes next. Who comes later begins where the others are,
//! so neither a long queue nor a long rest gives an advantage.
//!
//! Sites that need a new owner of a lane in which nobody has room stand apart, in the same order, so
//! that they are in nobody's way and are not looked at one by one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use webfill_wire::{CrawlKey, Lane};

use crate::frontier::{SiteId, Turn};

/// Crawls remembered before those that are not ahead of the others are forgotten.
const MANY_CRAWLS: usize = 4_096;

/// Where a site stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    turn: Turn,
    due_at_ms: i64,
    /// It was found to wait until somebody of this lane has room.
    awaits: Option<Lane>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ready {
    queues: BTreeMap<Option<Lane>, Levels>,
    /// How many wait for room in a lane.
    waiting: BTreeMap<Lane, usize>,
    /// How far crawls are that are ahead of the others.
    served: HashMap<CrawlKey, u64>,
    /// How far the crawl was that went last.
    now: u64,
}

type Levels = BTreeMap<Reverse<u8>, Level>;

/// The sites of one priority.
#[derive(Debug, Default)]
struct Level {
    /// The crawls, by how far they are.
    order: BTreeSet<(u64, CrawlKey)>,
    lines: HashMap<CrawlKey, Line>,
}

#[derive(Debug, Default)]
struct Line {
    so_far: u64,
    sites: BTreeSet<(i64, SiteId)>,
}

impl Ready {
    pub(super) fn insert(
        &mut self,
        site: SiteId,
        turn: Turn,
        due_at_ms: i64,
        awaits: Option<Lane>,
    ) -> Place {
        let so_far = self.so_far(turn.crawl);
        let levels = self.queues.entry(awaits).or_default();
        let level = levels.entry(Reverse(turn.priority)).or_default();
        let line = level.lines.entry(turn.crawl).or_default();
        if line.sites.is_empty() {
            line.so_far = so_far;
            level.order.insert((so_far, turn.crawl));
        }
        line.sites.insert((due_at_ms, site));
        if let Some(lane) = awaits {
            *self.waiting.entry(lane).or_default() += 1;
        }
        Place {
            turn,
            due_at_ms,
            awaits,
        }
    }

    pub(super) fn remove(&mut self, site: SiteId, place: Place) {
        let priority = Reverse(place.turn.priority);
        let Some(levels) = self.queues.get_mut(&place.awaits) else {
            return;
        };
        let Some(level) = levels.get_mut(&priority) else {
            return;
        };
        let crawl = place.turn.crawl;
        let Some(line) = level.lines.get_mut(&crawl) else {
            return;
        };
        let was_there = line.sites.remove(&(place.due_at_ms, site));
        if let Some(waiting) = place.awaits.and_then(|lane| self.waiting.get_mut(&lane)) {
            *waiting -= usize::from(was_there);
        }
        if line.sites.is_empty() {
            level.order.remove(&(line.so_far, crawl));
            level.lines.remove(&crawl);
        }
        if level.lines.is_empty() {
            levels.remove(&priority);
        }
    }

    /// The site whose turn it is, but for those that wait for room in lanes that are full.
    pub(super) fn first(&self, full: &BTreeSet<Lane>) -> Option<SiteId> {
        let is_full = |awaits: &Option<Lane>| awaits.is_some_and(|lane| full.contains(&lane));
        let open = self.queues.iter().filter(|(awaits, _)| !is_full(awaits));
        let firsts = open.filter_map(|(_, levels)| {
            let (priority, level) = levels.first_key_value()?;
            let (so_far, crawl) = level.order.first()?;
            let (due_at_ms, site) = level.lines.get(crawl)?.sites.first()?;
            Some((priority, so_far, crawl, due_at_ms, site))
        });
        firsts.min().map(|(.., site)| *site)
    }

    /// How many sites wait until somebody of a lane has room.
    pub(super) fn waiting(&self, lane: Lane) -> usize {
        self.waiting.get(&lane).copied().unwrap_or(0)
    }

    /// The one of them whose turn is last.
    pub(super) fn last(&self, lane: Lane) -> Option<SiteId> {
        let (_, level) = self.queues.get(&Some(lane))?.last_key_value()?;
        let (_, crawl) = level.order.last()?;
        let (_, site) = level.lines.get(crawl)?.sites.last()?;
        Some(*site)
    }

    /// Tasks of a crawl were handed out.
    pub(super) fn charge(&mut self, crawl: CrawlKey, tasks: u64) {
        let before = self.so_far(crawl);
        self.now = self.now.max(before);
        let so_far = before + tasks;
        self.served.insert(crawl, so_far);
        for level in self.queues.values_mut().flat_map(BTreeMap::values_mut) {
            if let Some(line) = level.lines.get_mut(&crawl) {
                level.order.remove(&(line.so_far, crawl));
                level.order.insert((so_far, crawl));
                line.so_far = so_far;
            }
        }
        if self.served.len() > MANY_CRAWLS {
            let now = self.now;
            self.served.retain(|_, so_far| *so_far > now);
        }
    }

    /// How far a crawl is; who was not served lately is where the others are.
    fn so_far(&self, crawl: CrawlKey) -> u64 {
        let served = self.served.get(&crawl).copied().unwrap_or(0);
        served.max(self.now)
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

    /// Takes the next site and hands one task of it out.
    fn take(ready: &mut Ready, places: &[(SiteId, Place)]) -> Option<i64> {
        let site = ready.first(&BTreeSet::new())?;
        let (_, place) = places.iter().find(|(id, _)| *id == site).unwrap();
        ready.remove(site, *place);
        ready.charge(place.turn.crawl, 1);
        Some(site.0)
    }

    #[test]
    fn a_crawl_of_many_sites_does_not_delay_one_of_few() {
        let mut ready = Ready::default();
        let mut places = Vec::new();
        for id in 0..1_000 {
            places.push((SiteId(id), ready.insert(SiteId(id), turn(50, 1), 0, None)));
        }
        for _ in 0..100 {
            assert!(take(&mut ready, &places).unwrap() < 1_000);
        }
        for id in 2_000..2_003 {
            places.push((SiteId(id), ready.insert(SiteId(id), turn(50, 2), 99, None)));
        }
        let next: Vec<bool> = (0..6)
            .map(|_| take(&mut ready, &places).unwrap() >= 2_000)
            .collect();
        assert_eq!(next.iter().filter(|small| **small).count(), 3, "{next:?}");
        assert!(take(&mut ready, &places).unwrap() < 1_000);
    }

    #[test]
    fn the_highest_priority_goes_first_and_within_a_crawl_the_longest_due() {
        let mut ready = Ready::default();
        let places = [
            (1, turn(50, 1), 100),
            (2, turn(50, 1), 50),
            (3, turn(90, 2), 900),
        ]
        .map(|(id, turn, due)| (SiteId(id), ready.insert(SiteId(id), turn, due, None)));
        let order: Vec<i64> = std::iter::from_fn(|| take(&mut ready, &places)).collect();
        assert_eq!(order, [3, 2, 1]);
        assert!(ready.queues.values().all(BTreeMap::is_empty));
    }

    #[test]
    fn those_who_wait_for_a_full_lane_are_passed_over_and_keep_their_order() {
        let mut ready = Ready::default();
        let browser = Some(Lane::Browser);
        for (id, priority, awaits) in [(1, 50, browser), (2, 90, browser), (3, 40, None)] {
            ready.insert(SiteId(id), turn(priority, 1), 0, awaits);
        }
        let full = BTreeSet::from([Lane::Browser]);
        assert_eq!(ready.first(&full), Some(SiteId(3)));
        assert_eq!(ready.first(&BTreeSet::new()), Some(SiteId(2)));
        assert_eq!(ready.waiting(Lane::Browser), 2);
        assert_eq!(ready.last(Lane::Browser), Some(SiteId(1)));
    }

    #[test]
    fn a_long_rest_is_no_advantage() {
        let mut ready = Ready::default();
        ready.charge(1, 1_000);
        ready.charge(2, 1_000);
        ready.charge(1, 1);
        // The third was never there before.
        let places = [1, 2, 3].map(|crawl| {
            let ids = (0..10).map(|n| SiteId(i64::from(crawl) * 100 + n));
            ids.map(|id| (id, ready.insert(id, turn(50, crawl), 0, None)))
                .collect::<Vec<_>>()
        });
        let places = places.concat();
        let first: Vec<i64> = (0..9)
            .map(|_| take(&mut ready, &places).unwrap() / 100)
            .collect();
        for crawl in [2, 3] {
            let served = first.iter().filter(|one| **one == crawl).count();
            assert!((2..=6).contains(&served), "{first:?}");
        }
    }
}
