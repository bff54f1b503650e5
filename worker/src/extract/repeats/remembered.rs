//! A map with a bounded size, keyed by hashes: beyond twice the bound, the oldest entries are forgotten.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

#[derive(Debug)]
pub(super) struct Remembered<V> {
    recent: FxHashMap<u64, V>,
    /// The entries of `recent` when it was last full.
    older: FxHashMap<u64, V>,
    most: usize,
}

impl<V: Default> Remembered<V> {
    pub(super) fn with_capacity(most: usize) -> Remembered<V> {
        Remembered {
            recent: FxHashMap::default(),
            older: FxHashMap::default(),
            most,
        }
    }

    pub(super) fn entry(&mut self, key: u64) -> &mut V {
        self.insert(key);
        self.recent.entry(key).or_default()
    }

    pub(super) fn get(&self, key: u64) -> Option<&V> {
        self.recent.get(&key).or_else(|| self.older.get(&key))
    }

    /// Remembers a key. Returns whether it is new.
    pub(super) fn insert(&mut self, key: u64) -> bool {
        let is_full = self.recent.len() >= self.most;
        let Entry::Vacant(vacant) = self.recent.entry(key) else {
            return false;
        };
        let known = self.older.remove(&key);
        let is_new = known.is_none();
        let value = known.unwrap_or_default();
        if is_full {
            // The map of the forgotten entries is used again, so that it does not have to grow again.
            self.older.clear();
            std::mem::swap(&mut self.older, &mut self.recent);
            self.recent.insert(key, value);
        } else {
            vacant.insert(value);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut known: Remembered<()> = Remembered::with_capacity(10);
        for key in 0..35 {
            assert!(known.insert(key));
            assert!(!known.insert(key));
            assert!(known.recent.len() <= 10 && known.older.len() <= 10);
        }
        assert!(known.get(34).is_some() && known.get(25).is_some());
        assert!(known.get(3).is_none() && known.insert(3));
    }
}
