//! Sites that can be handed out now, and whose turn it is: the highest priority first, then crawls
//! in turn, then the site that has been due for longest.
//!
//! Crawls of one priority share by *start-time fair queueing*: each is as far as tasks of its were
//! handed out, and the one that is least far goes next. Who comes later begins where the others are,
//! so neither a long queue nor a long rest gives an advantage.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use webfill_wire::CrawlKey;

use crate::frontier::{SiteId, Turn};

/// Crawls remembered before those that are not ahead of the others are forgotten.
const MANY_CRAWLS: usize = 4_096;

/// Where a site stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    turn: Turn,
    due_at_ms: i64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ready {
    levels: BTreeMap<Reverse<u8>, Level>,
    /// How far crawls are that are ahead of the others.
    served: HashMap<CrawlKey, u64>,
    /// How far the crawl was that went last.
    now: u64,
}

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
    pub(super) fn insert(&mut self, site: SiteId, turn: Turn, due_at_ms: i64) -> Place {
        let so_far = self.so_far(turn.crawl);
        let level = self.levels.entry(Reverse(turn.priority)).or_default();
        let line = level.lines.entry(turn.crawl).or_default();
        if line.sites.is_empty() {
            line.so_far = so_far;
            level.order.insert((so_far, turn.crawl));
        }
        line.sites.insert((due_at_ms, site));
        Place { turn, due_at_ms }
    }

    pub(super) fn remove(&mut self, site: SiteId, place: Place) {
        let priority = Reverse(place.turn.priority);
        let Some(level) = self.levels.get_mut(&priority) else {
            return;
        };
        let crawl = place.turn.crawl;
        let Some(line) = level.lines.get_mut(&crawl) else {
            return;
        };
        line.sites.remove(&(place.due_at_ms, site));
        if line.sites.is_empty() {
            level.order.remove(&(line.so_far, crawl));
            level.lines.remove(&crawl);
        }
        if level.lines.is_empty() {
            self.levels.remove(&priority);
        }
    }

    /// The site whose turn it is.
    pub(super) fn first(&self) -> Option<SiteId> {
        let (_, level) = self.levels.first_key_value()?;
        let (_, crawl) = level.order.first()?;
        let (_, site) = level.lines.get(crawl)?.sites.first()?;
        Some(*site)
    }

    /// Tasks of a crawl were handed out.
    pub(super) fn charge(&mut self, crawl: CrawlKey, tasks: u64) {
        let before = self.so_far(crawl);
        self.now = self.now.max(before);
        let so_far = before + tasks;
        self.served.insert(crawl, so_far);
        for level in self.levels.values_mut() {
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
        Turn { priority, crawl }
    }

    /// Takes the next site and hands one task of it out.
    fn take(ready: &mut Ready, places: &[(SiteId, Place)]) -> Option<i64> {
        let site = ready.first()?;
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
            places.push((SiteId(id), ready.insert(SiteId(id), turn(50, 1), 0)));
        }
        for _ in 0..100 {
            assert!(take(&mut ready, &places).unwrap() < 1_000);
        }
        for id in 2_000..2_003 {
            places.push((SiteId(id), ready.insert(SiteId(id), turn(50, 2), 99)));
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
        .map(|(id, turn, due)| (SiteId(id), ready.insert(SiteId(id), turn, due)));
        let order: Vec<i64> = std::iter::from_fn(|| take(&mut ready, &places)).collect();
        assert_eq!(order, [3, 2, 1]);
        assert!(ready.levels.is_empty());
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
            ids.map(|id| (id, ready.insert(id, turn(50, crawl), 0)))
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
