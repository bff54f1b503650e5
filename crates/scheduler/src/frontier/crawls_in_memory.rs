//! The crawls in memory: a bounded number of recently used ones. Others are read when they are needed.
//!
//! A commit checks only the crawls that were used since the previous one, and drops nothing as long as the weight of
//! all crawls in memory is at most [`MOST`]. Beyond that, it drops compiled patterns, which are the heaviest part. If
//! that is not enough, it drops crawls until half of the weight is left. Crawls that were not used since the last
//! drop go first. So a walk through all crawls happens only after many were read.

use std::collections::HashMap;

use webfill_wire::CrawlKey;

use super::crawl::Crawl;

/// The maximum weight, in crawls without patterns; see [`Crawl::memory_weight`].
const MOST: usize = 20_000;

/// Compiled patterns are dropped until this weight is left.
const MOST_WITH_PATTERNS: usize = MOST / 4 * 3;

#[derive(Debug, Default)]
pub(super) struct CrawlsInMemory {
    crawls: HashMap<CrawlKey, CachedCrawl>,
    /// Crawls that may have changed since [`CrawlsInMemory::take_used`].
    used: Vec<CrawlKey>,
    /// The weight of all crawls, as of the last call of [`CrawlsInMemory::take_used`].
    weight: usize,
}

#[derive(Debug)]
struct CachedCrawl {
    crawl: Crawl,
    /// Whether the crawl was used since crawls were last dropped.
    is_recent: bool,
    /// Whether the crawl is in the list of used ones.
    is_listed: bool,
    /// The crawl's weight, as last measured.
    weight: usize,
}

impl CrawlsInMemory {
    pub(super) fn contains_key(&self, key: &CrawlKey) -> bool {
        self.crawls.contains_key(key)
    }

    pub(super) fn get(&self, key: &CrawlKey) -> Option<&Crawl> {
        Some(&self.crawls.get(key)?.crawl)
    }

    /// A crawl, to be changed. Counts as a use.
    pub(super) fn get_mut(&mut self, key: &CrawlKey) -> Option<&mut Crawl> {
        let kept = self.crawls.get_mut(key)?;
        kept.is_recent = true;
        if !std::mem::replace(&mut kept.is_listed, true) {
            self.used.push(*key);
        }
        Some(&mut kept.crawl)
    }

    pub(super) fn insert(&mut self, key: CrawlKey, crawl: Crawl) {
        self.remove(&key);
        let kept = CachedCrawl {
            crawl,
            is_recent: true,
            is_listed: true,
            weight: 0,
        };
        self.crawls.insert(key, kept);
        self.used.push(key);
    }

    pub(super) fn remove(&mut self, key: &CrawlKey) {
        if let Some(kept) = self.crawls.remove(key) {
            self.weight -= kept.weight;
        }
    }

    /// A crawl, to be written to the file. Does not count as a use.
    pub(super) fn get_without_use(&mut self, key: &CrawlKey) -> Option<&mut Crawl> {
        Some(&mut self.crawls.get_mut(key)?.crawl)
    }

    /// The crawls that were used since the last call, and may have changed. A crawl that was removed and read again
    /// may be listed twice.
    pub(super) fn take_used(&mut self) -> Vec<CrawlKey> {
        let used = std::mem::take(&mut self.used);
        for key in &used {
            if let Some(kept) = self.crawls.get_mut(key) {
                kept.is_listed = false;
                let before = std::mem::replace(&mut kept.weight, kept.crawl.memory_weight());
                self.weight = self.weight - before + kept.weight;
            }
        }
        used
    }

    /// Drops compiled patterns, then crawls, if they take too much memory. All changes must have been written before.
    pub(super) fn evict_if_full(&mut self) {
        if self.weight <= MOST {
            return;
        }
        for drops_recent in [false, true] {
            for kept in self.crawls.values_mut() {
                if self.weight > MOST_WITH_PATTERNS && (drops_recent || !kept.is_recent) {
                    kept.crawl.scope.forget_compiled();
                    let before = std::mem::replace(&mut kept.weight, kept.crawl.memory_weight());
                    self.weight = self.weight - before + kept.weight;
                }
            }
        }
        if self.weight > MOST {
            self.evict_crawls();
        }
        for kept in self.crawls.values_mut() {
            kept.is_recent = false;
        }
    }

    fn evict_crawls(&mut self) {
        for drops_recent in [false, true] {
            self.crawls.retain(|_, kept| {
                let stays = self.weight <= MOST / 2 || (kept.is_recent && !drops_recent);
                if !stays {
                    self.weight -= kept.weight;
                }
                stays
            });
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.crawls.len()
    }

    #[cfg(test)]
    pub(super) fn count_with_compiled_patterns(&self) -> usize {
        let scopes = self.crawls.values().map(|kept| &kept.crawl.scope);
        scopes
            .filter(|scope| scope.pattern_memory_bytes().next().is_some())
            .count()
    }
}
