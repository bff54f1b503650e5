//! Remembers pages that were already read, because an archive may have a page several times. Memory is bounded: a
//! forgotten page is read once more, and found unchanged.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The most pages in a generation. There are two generations: when the younger one is full, the older one is forgotten.
const MOST_PAGES: usize = 1_000_000;

#[derive(Default)]
pub struct SeenPages {
    hasher: RandomState,
    young: HashSet<u64>,
    old: HashSet<u64>,
}

impl SeenPages {
    pub fn contains(&self, page_id: &str) -> bool {
        let hash = self.hasher.hash_one(page_id);
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    pub fn add(&mut self, page_id: &str) {
        if self.young.len() >= MOST_PAGES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(self.hasher.hash_one(page_id));
    }
}
