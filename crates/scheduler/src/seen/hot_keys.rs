//! An exact cache of recently used keys, in bounded memory. Neighbouring pages mostly have the same
//! links, so the cache answers most duplicates.

use super::cache_lines::{CacheLines, LINE_BYTES};

/// The cache is resized one segment after the other, so that the whole cache is never in memory twice.
const SEGMENTS: usize = 64;
const SEGMENT_BITS: u32 = SEGMENTS.ilog2();

/// A set-associative LRU cache. A line holds eight keys, the most recently used first; zero is an empty place.
#[derive(Debug)]
pub(super) struct HotKeys {
    segments: Vec<CacheLines>,
}

impl HotKeys {
    pub(super) fn new() -> Self {
        HotKeys {
            segments: (0..SEGMENTS).map(|_| CacheLines::new(1)).collect(),
        }
    }

    /// Resizes the cache for this many keys, to at most `most_bytes`, and keeps as many keys as fit.
    pub(super) fn resize(&mut self, keys: u64, most_bytes: usize) {
        let most = (most_bytes / LINE_BYTES / SEGMENTS).max(1);
        // A third more places than keys, because some lines fill sooner than others.
        let wanted = (keys as usize / 6 / SEGMENTS).next_power_of_two().min(most);
        for segment in &mut self.segments {
            if wanted > segment.count() || most < segment.count() {
                *segment = copy_with_lines(segment, wanted);
            }
        }
    }

    /// Whether the cache holds the key. If so, the key becomes the most recently used of its line.
    pub(super) fn contains(&mut self, key: u64) -> bool {
        let line = self.line_of(key);
        let Some(place) = line.iter().position(|held| *held == key) else {
            return false;
        };
        line[..=place].rotate_right(1);
        true
    }

    /// Inserts a key that the cache does not hold. This may evict the least recently used key of its line.
    pub(super) fn insert(&mut self, key: u64) {
        push_front(self.line_of(key), key);
    }

    /// Reads the memory that a look-up of the key needs; see [`CacheLines::prefetch`].
    pub(super) fn prefetch(&self, key: u64) -> u64 {
        let segment = (key >> (u64::BITS - SEGMENT_BITS)) as usize;
        self.segments[segment].prefetch(key_within_segment(key))
    }

    fn line_of(&mut self, key: u64) -> &mut [u64; 8] {
        let segment = (key >> (u64::BITS - SEGMENT_BITS)) as usize;
        self.segments[segment].line_of(key_within_segment(key))
    }
}

fn key_within_segment(key: u64) -> u64 {
    key << SEGMENT_BITS
}

fn push_front(line: &mut [u64; 8], key: u64) {
    line.rotate_right(1);
    line[0] = key;
}

fn copy_with_lines(old: &CacheLines, lines: usize) -> CacheLines {
    let mut new = CacheLines::new(lines);
    for line in old.words().chunks_exact(8) {
        let held = line.iter().rev().filter(|key| **key != 0);
        held.for_each(|key| push_front(new.line_of(key_within_segment(*key)), *key));
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::tests::keys;

    fn cache_bytes(hot: &HotKeys) -> usize {
        let lines: usize = hot.segments.iter().map(CacheLines::count).sum();
        lines * LINE_BYTES
    }

    #[test]
    fn the_keys_used_longest_ago_go_first() {
        let mut hot = HotKeys::new();
        (1..=8).for_each(|key| hot.insert(key));
        assert!(hot.contains(1));
        hot.insert(9);
        assert!(hot.contains(1));
        assert!(!hot.contains(2));
        assert!(hot.contains(9));
    }

    #[test]
    fn resizing_keeps_what_fits_and_stops_at_the_bytes_allowed() {
        let mut hot = HotKeys::new();
        hot.resize(1_000, 1 << 20);
        keys(1, 500).for_each(|key| hot.insert(key));
        hot.resize(u64::MAX, 1 << 20);
        assert_eq!(cache_bytes(&hot), 1 << 20);
        assert!(keys(1, 500).filter(|key| hot.contains(*key)).count() > 450);
        hot.resize(u64::MAX, 1 << 16);
        assert_eq!(cache_bytes(&hot), 1 << 16);
        assert!(keys(1, 500).filter(|key| hot.contains(*key)).count() > 400);
    }
}
