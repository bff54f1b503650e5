//! The differences between the list of admitted keys and its previous version.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Entry, PublicKey};

/// The difference between two lists of keys, by the names of their entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListChange {
    pub added: Vec<Arc<Entry>>,
    pub removed: Vec<Arc<Entry>>,
    /// Entries that have another role, key or rights than before: the former entry and the present one.
    pub changed: Vec<(Arc<Entry>, Arc<Entry>)>,
}

type Entries = HashMap<PublicKey, Arc<Entry>>;

impl ListChange {
    pub(super) fn between(before: &Entries, now: &Entries) -> ListChange {
        let mut before = index_by_name(before);
        let mut change = ListChange::default();
        for (name, entry) in index_by_name(now) {
            match before.remove(name) {
                None => change.added.push(Arc::clone(entry)),
                Some(former) if former == entry => {}
                Some(former) => change.changed.push((Arc::clone(former), Arc::clone(entry))),
            }
        }
        change.removed = before.into_values().map(Arc::clone).collect();
        change
    }

    /// Whether the entries are the same. The text of the file may still have changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

fn index_by_name(entries: &Entries) -> BTreeMap<&str, &Arc<Entry>> {
    let named = entries.values().map(|entry| (&*entry.name, entry));
    named.collect()
}
