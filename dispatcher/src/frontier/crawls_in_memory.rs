//! The crawls in memory: those used lately, in bounded number; others are read when they are needed.
//!
//! A commit looks only at the crawls that were used since the commit before, and it drops none as long
//! as there are at most [`MOST`]. Beyond that, half of them are dropped at once, those that were
//! not used lately first: so at least as many are read again before the next time.

use std::collections::HashMap;

use webfill_wire::CrawlKey;

use super::crawls::Crawl;

/// Crawls are small, but for those with long patterns.
const MOST: usize = 20_000;

#[derive(Debug, Default)]
pub(super) struct CrawlsInMemory {
    crawls: HashMap<CrawlKey, Kept>,
    /// Those that may have changed since [`CrawlsInMemory::take_used`], each once.
    used: Vec<CrawlKey>,
}

#[derive(Debug)]
struct Kept {
    crawl: Crawl,
    /// Used since crawls were last dropped.
    is_recent: bool,
    /// In the list of those used.
    is_listed: bool,
}

impl CrawlsInMemory {
    pub(super) fn contains_key(&self, key: &CrawlKey) -> bool {
        self.crawls.contains_key(key)
    }

    pub(super) fn get(&self, key: &CrawlKey) -> Option<&Crawl> {
        Some(&self.crawls.get(key)?.crawl)
    }

    /// Whoever gets the crawl may change it.
    pub(super) fn get_mut(&mut self, key: &CrawlKey) -> Option<&mut Crawl> {
        let kept = self.crawls.get_mut(key)?;
        kept.is_recent = true;
        if !std::mem::replace(&mut kept.is_listed, true) {
            self.used.push(*key);
        }
        Some(&mut kept.crawl)
    }

    pub(super) fn insert(&mut self, key: CrawlKey, crawl: Crawl) {
        let kept = Kept {
            crawl,
            is_recent: true,
            is_listed: true,
        };
        let before = self.crawls.insert(key, kept);
        if !before.is_some_and(|before| before.is_listed) {
            self.used.push(key);
        }
    }

    pub(super) fn remove(&mut self, key: &CrawlKey) {
        if self.crawls.remove(key).is_some_and(|kept| kept.is_listed) {
            self.used.retain(|used| used != key);
        }
    }

    /// As [`CrawlsInMemory::get_mut`], for who writes the crawl to the file: that is no use.
    pub(super) fn get_unused(&mut self, key: &CrawlKey) -> Option<&mut Crawl> {
        Some(&mut self.crawls.get_mut(key)?.crawl)
    }

    /// The crawls that were used since the last call, and may have changed.
    pub(super) fn take_used(&mut self) -> Vec<CrawlKey> {
        let used = std::mem::take(&mut self.used);
        for key in &used {
            if let Some(kept) = self.crawls.get_mut(key) {
                kept.is_listed = false;
            }
        }
        used
    }

    /// Drops crawls if there are too many. None may have changes that are not written.
    pub(super) fn make_room(&mut self) {
        if self.crawls.len() <= MOST {
            return;
        }
        let mut surplus = self.crawls.len() - MOST / 2;
        for drops_recent in [false, true] {
            self.crawls.retain(|_, kept| {
                let is_recent = std::mem::take(&mut kept.is_recent);
                let stays = surplus == 0 || (is_recent && !drops_recent);
                surplus -= usize::from(!stays);
                stays
            });
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.crawls.len()
    }
}
