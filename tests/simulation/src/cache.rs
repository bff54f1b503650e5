//! The simulated cache that all workers share. It stores real entries: robots.txt files, and site clocks (the time of
//! the last request to each site). It follows the rules of the real caches, without a database.

use std::collections::BTreeMap;

use webfill_store::{RobotsEntry, SITE_KEPT_MS, SiteClockEntry};

#[derive(Debug, Default)]
pub(crate) struct SharedCache {
    /// Whether the cache is unreachable and never answers.
    is_away: bool,
    robots: BTreeMap<String, RobotsEntry>,
    sites: BTreeMap<String, SiteClockEntry>,
}

/// The error of an unreachable cache.
#[derive(Debug)]
pub(crate) struct CacheUnavailable;

impl SharedCache {
    pub(crate) fn new(is_away: bool) -> SharedCache {
        SharedCache {
            is_away,
            ..SharedCache::default()
        }
    }

    /// The cached robots.txt of an origin (scheme, host and port), even if it is stale.
    pub(crate) fn robots(
        &self,
        origin: &str,
        wall_ms: i64,
    ) -> Result<Option<RobotsEntry>, CacheUnavailable> {
        self.check_available()?;
        let entry = self.robots.get(origin);
        Ok(entry.filter(|entry| entry.is_usable(wall_ms)).cloned())
    }

    pub(crate) fn put_robots(&mut self, entry: RobotsEntry) {
        let known = self.robots.get(&entry.origin);
        let is_newer = known.is_none_or(|known| known.fetched_at_ms <= entry.fetched_at_ms);
        if is_newer && !self.is_away {
            self.robots.insert(entry.origin.clone(), entry);
        }
    }

    pub(crate) fn site(
        &self,
        site: &str,
        wall_ms: i64,
    ) -> Result<Option<SiteClockEntry>, CacheUnavailable> {
        self.check_available()?;
        let entry = self.sites.get(site);
        let is_kept = |entry: &&SiteClockEntry| {
            let touched_ms = entry
                .blocked_until_ms
                .map_or(entry.last_start_ms, |until_ms| {
                    until_ms.max(entry.last_start_ms)
                });
            touched_ms + SITE_KEPT_MS > wall_ms
        };
        Ok(entry.filter(is_kept).cloned())
    }

    /// Merges entries about the last requests to sites. The time of the last start and the end of a block can only move
    /// forward. The delay and the owner are those of the latest start.
    pub(crate) fn put_sites(
        &mut self,
        entries: Vec<SiteClockEntry>,
    ) -> Result<(), CacheUnavailable> {
        self.check_available()?;
        for entry in entries {
            let Some(known) = self.sites.get_mut(&entry.site) else {
                self.sites.insert(entry.site.clone(), entry);
                continue;
            };
            known.blocked_until_ms = known.blocked_until_ms.max(entry.blocked_until_ms);
            if entry.last_start_ms >= known.last_start_ms {
                known.last_start_ms = entry.last_start_ms;
                known.delay_ms = entry.delay_ms;
                known.owner = entry.owner;
            }
        }
        Ok(())
    }

    fn check_available(&self) -> Result<(), CacheUnavailable> {
        match self.is_away {
            true => Err(CacheUnavailable),
            false => Ok(()),
        }
    }
}
