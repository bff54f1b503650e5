//! A blocked Bloom filter: recognises most new keys without reading the runs.

use super::cache_lines::{CacheLines, LINE_BYTES};

/// How many of the 512 bits of its line each key sets. Five give 1% false positives at ten bits of memory per key,
/// and 10% at five.
const BITS_PER_KEY: usize = 5;

/// With fewer bits of memory per key than this, the filter grows, if its memory limit allows it.
const WANTED_BITS: usize = 12;

/// A set of keys that answers "certainly not contained" or "perhaps contained".
#[derive(Debug)]
pub(super) struct KeyFilter {
    lines: CacheLines,
}

impl KeyFilter {
    /// An empty filter for this many keys, of at most `most_bytes`.
    pub(super) fn with_capacity_for(keys: u64, most_bytes: usize) -> Self {
        KeyFilter {
            lines: CacheLines::new(lines_for(keys, most_bytes)),
        }
    }

    /// A filter without lines, as a placeholder. It may contain every key, and is too small for any number of keys.
    pub(super) fn empty() -> Self {
        KeyFilter {
            lines: CacheLines::new(0),
        }
    }

    /// Whether a filter for this many keys would be larger than this one.
    pub(super) fn is_outgrown(&self, keys: u64, most_bytes: usize) -> bool {
        lines_for(keys, most_bytes) > self.lines.count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.count() == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.count() * LINE_BYTES
    }

    pub(super) fn insert(&mut self, key: u64) {
        if self.is_empty() {
            return;
        }
        let line = self.lines.line_of(key);
        for (word, bit) in bit_positions(key) {
            line[word] |= bit;
        }
    }

    /// Reads the memory that a look-up of the key needs; see [`CacheLines::prefetch`].
    pub(super) fn prefetch(&self, key: u64) -> u64 {
        match self.is_empty() {
            true => 0,
            false => self.lines.prefetch(key),
        }
    }

    pub(super) fn may_contain(&mut self, key: u64) -> bool {
        if self.is_empty() {
            return true;
        }
        let line = self.lines.line_of(key);
        bit_positions(key).all(|(word, bit)| line[word] & bit != 0)
    }
}

/// The number of lines. It is a power of two, so that a growing filter is rebuilt only when the number of keys has
/// doubled.
fn lines_for(keys: u64, most_bytes: usize) -> usize {
    let wanted = (keys as usize).saturating_mul(WANTED_BITS) / (LINE_BYTES * 8);
    let most = (most_bytes / LINE_BYTES).max(1);
    wanted.next_power_of_two().min(most)
}

/// The words and bits of a key within its line, from the key's low 45 bits. The high bits select the line.
fn bit_positions(key: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..BITS_PER_KEY).map(move |nth| {
        let place = (key >> (9 * nth)) as usize & 511;
        (place / 64, 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::tests::keys;

    #[test]
    fn inserted_keys_are_found_and_few_others() {
        let mut filter = KeyFilter::with_capacity_for(100_000, usize::MAX);
        keys(1, 100_000).for_each(|key| filter.insert(key));
        assert!(keys(1, 100_000).all(|key| filter.may_contain(key)));
        let alerts = keys(2, 100_000)
            .filter(|key| filter.may_contain(*key))
            .count();
        assert!(alerts < 2_000, "{alerts} false alarms in 100,000");
    }

    #[test]
    fn the_filter_stays_within_its_bytes_however_many_keys_come() {
        let mut filter = KeyFilter::with_capacity_for(u64::MAX / 64, 1 << 16);
        assert!(!filter.is_outgrown(u64::MAX / 64, 1 << 16));
        keys(1, 50_000).for_each(|key| filter.insert(key));
        assert!(keys(1, 50_000).all(|key| filter.may_contain(key)));
    }
}
