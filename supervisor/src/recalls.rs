//! Recalls (revocations of leased tasks) that some workers have not confirmed yet.
//!
//! The dispatcher numbers each recall and names a [`webfill_wire::RecallScope`]. The supervisor forwards it to every
//! ready worker. A recall is *settled*, and reported to the dispatcher, when each of these workers has either died or
//! confirmed that it no longer starts tasks in the recall's scope. Nothing is kept on disk: after a restart the
//! supervisor says hello again, and the dispatcher repeats the recalls that still matter.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Recalls {
    /// For each recall, the indexes of the workers that have not confirmed it.
    unconfirmed: BTreeMap<u64, BTreeSet<usize>>,
}

impl Recalls {
    /// Notes that the recall was sent to these workers. If there are none, the recall is settled, and is returned.
    pub(crate) fn begin(&mut self, recall: u64, workers: Vec<usize>) -> Option<u64> {
        if workers.is_empty() {
            return Some(recall);
        }
        self.unconfirmed
            .insert(recall, workers.into_iter().collect());
        None
    }

    /// Notes that a worker has confirmed a recall. Returns the recall if that settles it.
    pub(crate) fn confirm(&mut self, recall: u64, worker_index: usize) -> Option<u64> {
        let workers = self.unconfirmed.get_mut(&recall)?;
        workers.remove(&worker_index);
        if !workers.is_empty() {
            return None;
        }
        self.unconfirmed.remove(&recall);
        Some(recall)
    }

    /// Confirms all recalls for a dead worker, because it starts no more tasks. Returns the recalls that are settled by
    /// this.
    pub(crate) fn confirm_all_of_dead_worker(&mut self, worker_index: usize) -> Vec<u64> {
        let recalls: Vec<u64> = self.unconfirmed.keys().copied().collect();
        recalls
            .into_iter()
            .filter_map(|recall| self.confirm(recall, worker_index))
            .collect()
    }

    /// Forgets all recalls when a new session begins: the dispatcher sends those that still matter again.
    pub(crate) fn clear(&mut self) {
        self.unconfirmed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recall_is_settled_when_every_worker_has_confirmed_it_or_is_dead() {
        let mut recalls = Recalls::default();
        assert_eq!(
            recalls.begin(7, Vec::new()),
            Some(7),
            "there is no worker to wait for"
        );
        assert_eq!(recalls.begin(8, vec![0, 1]), None);
        assert_eq!(recalls.begin(9, vec![1]), None);
        assert_eq!(recalls.confirm(8, 0), None);
        assert_eq!(recalls.confirm(8, 0), None, "twice");
        assert_eq!(recalls.confirm_all_of_dead_worker(1), [8, 9]);
        assert_eq!(
            recalls.confirm(9, 1),
            None,
            "a late message of the dead worker"
        );
    }

    #[test]
    fn a_recall_of_a_former_session_is_not_reported() {
        let mut recalls = Recalls::default();
        recalls.begin(7, vec![0]);
        recalls.clear();
        assert_eq!(recalls.confirm(7, 0), None);
    }
}
