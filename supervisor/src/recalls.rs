//! Recalls under way: which workers have still to say that nothing of what is meant can start.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Recalls {
    awaited: BTreeMap<u64, BTreeSet<usize>>,
}

impl Recalls {
    /// These slots were told. Returns the recall if there is nobody to wait for.
    pub(crate) fn begin(&mut self, recall: u64, slots: Vec<usize>) -> Option<u64> {
        if slots.is_empty() {
            return Some(recall);
        }
        self.awaited.insert(recall, slots.into_iter().collect());
        None
    }

    /// A slot has carried a recall out. Returns it if that was the last one.
    pub(crate) fn confirm(&mut self, recall: u64, slot: usize) -> Option<u64> {
        let slots = self.awaited.get_mut(&recall)?;
        slots.remove(&slot);
        if !slots.is_empty() {
            return None;
        }
        self.awaited.remove(&recall);
        Some(recall)
    }

    /// A dead worker starts nothing. Returns the recalls that waited for it alone.
    pub(crate) fn note_death(&mut self, slot: usize) -> Vec<u64> {
        let recalls: Vec<u64> = self.awaited.keys().copied().collect();
        let settled = recalls.into_iter();
        settled
            .filter_map(|recall| self.confirm(recall, slot))
            .collect()
    }

    /// A new session begins: what was asked in the last one is asked again, or is of no interest.
    pub(crate) fn forget(&mut self) {
        self.awaited.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recall_is_carried_out_when_every_worker_has_said_so_or_is_dead() {
        let mut recalls = Recalls::default();
        assert_eq!(recalls.begin(7, Vec::new()), Some(7), "nobody to wait for");
        assert_eq!(recalls.begin(8, vec![0, 1]), None);
        assert_eq!(recalls.begin(9, vec![1]), None);
        assert_eq!(recalls.confirm(8, 0), None);
        assert_eq!(recalls.confirm(8, 0), None, "twice");
        assert_eq!(recalls.note_death(1), [8, 9]);
        assert_eq!(recalls.confirm(9, 1), None, "a late word of the dead");
    }

    #[test]
    fn what_was_asked_in_a_former_session_is_not_answered() {
        let mut recalls = Recalls::default();
        recalls.begin(7, vec![0]);
        recalls.forget();
        assert_eq!(recalls.confirm(7, 0), None);
    }
}
