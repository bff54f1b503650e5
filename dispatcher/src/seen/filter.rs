//! A Bloom filter in cache lines: tells most new keys from those on disk without reading it.

use super::cache_lines::{CacheLines, LINE_BYTES};

/// Five bits of the 512 of a line per key: 1% false alarms at ten bits a key, 10% at five.
const BITS_PER_KEY: usize = 5;

/// With fewer bits a key than this, the filter should grow if it may.
const WANTED_BITS: usize = 12;

/// Answers "certainly not there" or "perhaps".
#[derive(Debug)]
pub(super) struct Filter {
    lines: CacheLines,
}

impl Filter {
    /// A filter that suits so many keys, within the bytes allowed.
    pub(super) fn for_keys(keys: u64, most_bytes: usize) -> Self {
        Filter {
            lines: CacheLines::new(lines_for(keys, most_bytes)),
        }
    }

    /// Not to be asked yet: any number of keys has outgrown it.
    pub(super) fn none() -> Self {
        Filter {
            lines: CacheLines::new(0),
        }
    }

    /// Whether a filter for so many keys would be larger than this one.
    pub(super) fn is_outgrown(&self, keys: u64, most_bytes: usize) -> bool {
        lines_for(keys, most_bytes) > self.lines.count()
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.count() * LINE_BYTES
    }

    pub(super) fn insert(&mut self, key: u64) {
        let line = self.lines.line_of(key);
        for (word, bit) in places(key) {
            line[word] |= bit;
        }
    }

    pub(super) fn may_contain(&mut self, key: u64) -> bool {
        let line = self.lines.line_of(key);
        places(key).all(|(word, bit)| line[word] & bit != 0)
    }
}

/// Powers of two, so that a growing filter is built anew only when the keys have doubled.
fn lines_for(keys: u64, most_bytes: usize) -> usize {
    let wanted = (keys as usize).saturating_mul(WANTED_BITS) / (LINE_BYTES * 8);
    let most = (most_bytes / LINE_BYTES).max(1);
    wanted.next_power_of_two().min(most)
}

/// The line comes from the key's high bits, the places within it from the low 45.
fn places(key: u64) -> impl Iterator<Item = (usize, u64)> {
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
    fn what_was_inserted_is_found_and_few_others_are() {
        let mut filter = Filter::for_keys(100_000, usize::MAX);
        keys(1, 100_000).for_each(|key| filter.insert(key));
        assert!(keys(1, 100_000).all(|key| filter.may_contain(key)));
        let alarms = keys(2, 100_000)
            .filter(|key| filter.may_contain(*key))
            .count();
        assert!(alarms < 2_000, "{alarms} false alarms in 100,000");
    }

    #[test]
    fn the_bytes_allowed_are_kept_however_many_keys_come() {
        let mut filter = Filter::for_keys(u64::MAX / 64, 1 << 16);
        assert!(!filter.is_outgrown(u64::MAX / 64, 1 << 16));
        keys(1, 50_000).for_each(|key| filter.insert(key));
        assert!(keys(1, 50_000).all(|key| filter.may_contain(key)));
    }
}
