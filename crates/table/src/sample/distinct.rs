//! Whether a value of a column stands in several rows, found in bounded memory.
//!
//! Values are hashed, and the hashes kept. When there are too many, only those that end in a zero bit are kept, then
//! those that end in two, and so on. Each value that is watched is watched in all rows.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use rustc_hash::FxHashSet;

/// So many hashes are kept of all columns together, and of one.
const KEPT: usize = 2 << 20;
const KEPT_OF_COLUMN: usize = 64 << 10;

/// Of fewer it is not worth the while.
const LEAST_OF_COLUMN: usize = 1 << 10;

#[derive(Debug, Default)]
pub(crate) struct Repeats {
    hashes: FxHashSet<u64>,
    most: usize,
    /// Hashes with one of these bits are not watched.
    unwatched: u64,
    /// The first value that was found again.
    repeated: Option<String>,
}

impl Repeats {
    pub(super) fn of(columns: usize) -> Repeats {
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

    /// A value that stands in several rows.
    pub(crate) fn repeated(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    /// Whether repeats would have been found. In tables with very many columns they are not looked for.
    pub(crate) fn are_watched(&self) -> bool {
        self.most >= LEAST_OF_COLUMN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_repeats_among_very_many_values_are_found() {
        let mut repeats = Repeats::of(10);
        for number in 0..1_000_000 {
            repeats.note(&number.to_string());
        }
        assert_eq!(repeats.repeated(), None);
        assert!(repeats.hashes.len() <= KEPT_OF_COLUMN);
        for number in 0..1_000 {
            repeats.note(&(number * 991).to_string());
        }
        assert!(repeats.repeated().is_some());
    }
}
