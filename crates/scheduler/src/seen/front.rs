//! The memory in front of the runs, of a fixed size: an exact cache of recently used keys, and a filter that recognises
//! most new keys.
//!
//! A filter is filled from the runs in the order of the keys, a few slices (small parts) at a time. So neither a start
//! nor a growth of the index waits until all runs are read. Until it is filled, the previous filter answers for the
//! keys that were not read yet. After a start there is no previous filter, and every such key may be in the runs.

use rusqlite::Result;

use super::filter::KeyFilter;
use super::hot_keys::HotKeys;
use super::runs::{Entry, Run};

#[derive(Debug)]
pub(super) struct LookupCache {
    hot: HotKeys,
    filter: KeyFilter,
    filling: Option<FilterRebuild>,
    /// The maximum memory of all parts together.
    bytes: usize,
}

/// A filter that is being filled.
#[derive(Debug)]
struct FilterRebuild {
    filter: KeyFilter,
    /// The filter holds all keys below this one that are in the runs (sorted files).
    next_key: u64,
    /// Whether the cache of recently used keys is filled as well, because no key was used yet.
    warms_up: bool,
}

impl LookupCache {
    pub(super) fn new(bytes: usize) -> LookupCache {
        LookupCache {
            hot: HotKeys::new(),
            filter: KeyFilter::empty(),
            filling: None,
            bytes,
        }
    }

    /// Whether the key was used recently. If so, it is certainly in the index.
    pub(super) fn is_hot(&mut self, key: u64) -> bool {
        self.hot.contains(key)
    }

    pub(super) fn insert_hot(&mut self, key: u64) {
        if !self.hot.contains(key) {
            self.hot.insert(key);
        }
    }

    /// Reads the memory that a look-up of the key needs. The returned value has no meaning.
    pub(super) fn prefetch(&self, key: u64) -> u64 {
        self.hot.prefetch(key) ^ self.filter.prefetch(key)
    }

    /// Whether the runs (sorted files on disk) may hold the key.
    pub(super) fn may_be_in_runs(&mut self, key: u64) -> bool {
        match &mut self.filling {
            Some(filling) if key < filling.next_key => filling.filter.may_contain(key),
            _ => self.filter.may_contain(key),
        }
    }

    /// Adds the keys of a new run.
    pub(super) fn insert(&mut self, entries: &[Entry]) {
        for (key, _) in entries {
            self.filter.insert(*key);
            if let Some(filling) = &mut self.filling {
                filling.filter.insert(*key);
            }
            self.insert_hot(*key);
        }
    }

    /// Divides the memory, given this many keys in the runs: the filter grows with them, up to half of the memory,
    /// and the hot keys get the rest.
    pub(super) fn resize(&mut self, keys: u64) {
        let most_bytes = self.bytes / 2;
        if self.filling.is_none() && self.filter.is_outgrown(keys, most_bytes) {
            self.filling = Some(FilterRebuild {
                filter: KeyFilter::with_capacity_for(keys, most_bytes),
                next_key: 0,
                warms_up: self.filter.is_empty(),
            });
        }
        let growing = self.filling.as_ref();
        let growing_bytes = growing.map_or(0, |filling| filling.filter.bytes());
        let left = self
            .bytes
            .saturating_sub(self.filter.bytes() + growing_bytes);
        self.hot.resize(keys, left);
    }

    pub(super) fn is_rebuilding(&self) -> bool {
        self.filling.is_some()
    }

    /// Continues to read the runs: about `slices` slices (small parts) of the largest run, and the parts of the other
    /// runs with the same keys.
    pub(super) fn advance_rebuild(&mut self, runs: &[Run], slices: u64) -> Result<()> {
        let Some(mut filling) = self.filling.take() else {
            return Ok(());
        };
        let end_key = filling.next_end_key(runs, slices);
        let mut entries = Vec::new();
        for run in runs {
            entries.clear();
            run.read_keys(filling.next_key, end_key, &mut entries)?;
            for (key, _) in &entries {
                filling.filter.insert(*key);
                if filling.warms_up {
                    self.insert_hot(*key);
                }
            }
        }
        match end_key {
            Some(end_key) => {
                filling.next_key = end_key;
                self.filling = Some(filling);
            }
            None => self.filter = filling.filter,
        }
        Ok(())
    }
}

impl FilterRebuild {
    /// The key to read up to; `None`: to the end.
    fn next_end_key(&self, runs: &[Run], slices: u64) -> Option<u64> {
        let largest = runs.iter().max_by_key(|run| run.slice_count())?;
        let end = largest
            .slice_of(self.next_key)
            .saturating_add(slices.max(1));
        (end < largest.slice_count()).then(|| largest.first_key_of(end))
    }
}
