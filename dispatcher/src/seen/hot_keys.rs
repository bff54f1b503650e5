//! The keys met last, exact and in bounded memory. A page's links are mostly links that its
//! neighbours have too, so this answers most duplicates.

use super::cache_lines::{CacheLines, LINE_BYTES};

/// A set-associative cache: a line holds eight keys, the one used last in front; zero is empty.
#[derive(Debug)]
pub(super) struct HotKeys {
    lines: CacheLines,
    most_lines: usize,
}

impl HotKeys {
    pub(super) fn new(most_bytes: usize) -> Self {
        HotKeys { lines: CacheLines::new(1), most_lines: (most_bytes / LINE_BYTES).max(1) }
    }

    /// Makes room for so many keys, as far as the bytes allowed go.
    pub(super) fn grow_for(&mut self, keys: u64) {
        // A quarter of room to spare, because some lines fill sooner than others.
        let wanted = (keys as usize / 6).next_power_of_two().min(self.most_lines);
        if wanted <= self.lines.count() {
            return;
        }
        let old = std::mem::replace(&mut self.lines, CacheLines::new(wanted));
        for line in old.words().chunks_exact(8) {
            let held = line.iter().rev().filter(|key| **key != 0);
            held.for_each(|key| self.insert(*key));
        }
    }

    /// Whether the key is held; it then counts as used last.
    pub(super) fn contains(&mut self, key: u64) -> bool {
        let line = self.lines.line_of(key);
        let Some(place) = line.iter().position(|held| *held == key) else { return false };
        line[..=place].rotate_right(1);
        true
    }

    /// Inserts a key that is not held; the one used longest ago may have to go.
    pub(super) fn insert(&mut self, key: u64) {
        let line = self.lines.line_of(key);
        line.rotate_right(1);
        line[0] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::tests::keys;

    #[test]
    fn the_keys_used_longest_ago_go_first() {
        let mut hot = HotKeys::new(LINE_BYTES);
        (1..=8).for_each(|key| hot.insert(key));
        assert!(hot.contains(1));
        hot.insert(9);
        assert!(hot.contains(1));
        assert!(!hot.contains(2));
        assert!(hot.contains(9));
    }

    #[test]
    fn growing_keeps_what_is_held_and_stops_at_the_bytes_allowed() {
        let mut hot = HotKeys::new(1 << 20);
        hot.grow_for(1_000);
        keys(1, 500).for_each(|key| hot.insert(key));
        hot.grow_for(u64::MAX);
        assert_eq!(hot.lines.count() * LINE_BYTES, 1 << 20);
        assert!(keys(1, 500).filter(|key| hot.contains(*key)).count() > 480);
    }
}
