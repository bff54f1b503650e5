//! Finds out whether a column has a value in several rows, in bounded memory.
//!
//! The hashes of the values are kept. When there are too many, only hashes that end in a zero bit are kept, then only
//! hashes that end in two zero bits, and so on. So a hash that is still kept at the end was compared with the values of
//! all rows.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use rustc_hash::FxHashSet;

/// How many hashes are kept for all columns together, and for one column.
const KEPT: usize = 2 << 20;
const KEPT_OF_COLUMN: usize = 64 << 10;

/// Repeated values are searched for only if at least this many hashes can be kept for each column. With fewer, too few
/// would be found.
const LEAST_OF_COLUMN: usize = 1 << 10;

#[derive(Debug, Default)]
pub(crate) struct Repeats {
    hashes: FxHashSet<u64>,
    most: usize,
    /// A hash is kept only if all of these bits of it are zero. Each further bit halves the number of hashes that are
    /// kept.
    unwatched: u64,
    /// The beginning of the first value that was found in a second row.
    repeated: Option<String>,
}

impl Repeats {
    pub(super) fn new(columns: usize) -> Repeats {
        Repeats {
            most: (KEPT / columns.max(1)).min(KEPT_OF_COLUMN),
            ..Repeats::default()
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        if self.repeated.is_some() || self.most < LEAST_OF_COLUMN {
            return;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
        if hash & self.unwatched != 0 {
            return;
        }
        if !self.hashes.insert(hash) {
            const SHOWN_CHARACTERS: usize = 40;
            self.repeated = Some(text.chars().take(SHOWN_CHARACTERS).collect());
            self.hashes = FxHashSet::default();
            return;
        }
        if self.hashes.len() > self.most {
            self.unwatched = self.unwatched << 1 | 1;
            let unwatched = self.unwatched;
            self.hashes.retain(|hash| hash & unwatched == 0);
        }
    }

    /// The beginning of a value that occurs in several rows; `None` if none was found.
    pub(crate) fn repeated_value(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    /// Whether repeated values are searched for. They are not if a table has very many columns.
    pub(crate) fn are_watched(&self) -> bool {
        self.most >= LEAST_OF_COLUMN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_repeats_among_very_many_values_are_found() {
        let mut repeats = Repeats::new(10);
        for number in 0..1_000_000 {
            repeats.note(&number.to_string());
        }
        assert_eq!(repeats.repeated_value(), None);
        assert!(repeats.hashes.len() <= KEPT_OF_COLUMN);
        for number in 0..1_000 {
            repeats.note(&(number * 991).to_string());
        }
        assert!(repeats.repeated_value().is_some());
    }
}
