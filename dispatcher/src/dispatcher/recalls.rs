//! Tasks are called back before they start: of a stopped or paused crawl, of a site that is to be
//! treated differently, of a lower priority than what has come in. What has started comes to its
//! end; whether it has, its worker alone decides.

use std::collections::{BTreeMap, BTreeSet};

use webfill_wire::{DispatcherToSupervisor, RecallScope};

use super::Dispatcher;

/// How long a recall is waited for.
pub(super) const PATIENCE_MS: i64 = 1_000;

/// Names a recall; higher than those of all dispatchers before on this machine, so that the late
/// word of a supervisor does not mean another one.
pub(crate) type RecallNumber = u64;

/// Recalls that are not carried out yet, as far as is known.
#[derive(Debug)]
pub(super) struct Recalls {
    last: RecallNumber,
    under_way: BTreeMap<RecallNumber, Recall>,
}

#[derive(Debug)]
struct Recall {
    scope: RecallScope,
    asked_at_ms: i64,
    awaited: BTreeSet<String>,
}

impl Recalls {
    pub(super) fn new(now_ms: i64) -> Recalls {
        Recalls {
            last: u64::try_from(now_ms).unwrap_or(0) << 10,
            under_way: BTreeMap::new(),
        }
    }

    fn begin(&mut self, scope: &RecallScope, awaited: &[String], now_ms: i64) -> RecallNumber {
        self.last += 1;
        let recall = Recall {
            scope: scope.clone(),
            asked_at_ms: now_ms,
            awaited: awaited.iter().cloned().collect(),
        };
        self.under_way.insert(self.last, recall);
        self.last
    }

    /// Forgets recalls that have been waited for long enough.
    fn forget_old(&mut self, now_ms: i64) {
        self.under_way
            .retain(|_, recall| now_ms - recall.asked_at_ms < PATIENCE_MS);
    }

    /// A supervisor has carried a recall out, or is gone.
    fn note(&mut self, number: RecallNumber, supervisor: &str) {
        if let Some(recall) = self.under_way.get_mut(&number) {
            recall.awaited.remove(supervisor);
            if recall.awaited.is_empty() {
                self.under_way.remove(&number);
            }
        }
    }

    fn is_over(&self, number: RecallNumber, now_ms: i64) -> bool {
        let recall = self.under_way.get(&number);
        recall.is_none_or(|recall| now_ms - recall.asked_at_ms >= PATIENCE_MS)
    }
}

impl Dispatcher {
    /// Calls tasks back from all supervisors.
    pub(crate) fn recall(&mut self, scope: RecallScope, now_ms: i64) -> RecallNumber {
        let present = self.dispatch.present();
        self.recall_from(present, scope, now_ms)
    }

    /// Calls tasks back from these supervisors.
    pub(super) fn recall_from(
        &mut self,
        supervisors: Vec<String>,
        scope: RecallScope,
        now_ms: i64,
    ) -> RecallNumber {
        self.recalls.forget_old(now_ms);
        let number = self.recalls.begin(&scope, &supervisors, now_ms);
        if supervisors.is_empty() {
            self.recalls.under_way.remove(&number);
        }
        for supervisor in supervisors {
            self.tell_recall(&supervisor, number, &scope);
        }
        number
    }

    fn tell_recall(&mut self, supervisor: &str, recall: RecallNumber, scope: &RecallScope) {
        let Some((peer, session, number)) = self.dispatch.address(supervisor) else {
            return;
        };
        let message = DispatcherToSupervisor::Recall {
            session,
            number,
            recall,
            scope: scope.clone(),
        };
        self.write_to(&peer, message);
    }

    /// Whether nothing of what was recalled can start any more, or that was waited for long enough.
    pub(crate) fn is_recalled(&self, number: RecallNumber, now_ms: i64) -> bool {
        self.recalls.is_over(number, now_ms)
    }

    /// A supervisor begins a session: it may not have heard what was asked in the last one.
    pub(super) fn recall_again(&mut self, supervisor: &str, now_ms: i64) {
        self.recalls.forget_old(now_ms);
        let under_way = self.recalls.under_way.iter_mut();
        let scopes: Vec<(RecallNumber, RecallScope)> = under_way
            .map(|(number, recall)| {
                recall.awaited.insert(supervisor.to_owned());
                (*number, recall.scope.clone())
            })
            .collect();
        for (number, scope) in scopes {
            self.tell_recall(supervisor, number, &scope);
        }
    }

    pub(super) fn note_recalled(&mut self, recalls: &[RecallNumber], supervisor: &str) {
        for number in recalls {
            self.recalls.note(*number, supervisor);
        }
    }

    /// Nobody waits for a supervisor that has left or is lost.
    pub(super) fn await_no_recall_of(&mut self, supervisor: &str) {
        let numbers: Vec<RecallNumber> = self.recalls.under_way.keys().copied().collect();
        self.note_recalled(&numbers, supervisor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recall_is_over_when_all_have_said_so_or_after_a_second() {
        let mut recalls = Recalls::new(5_000);
        let supervisors = ["a".to_owned(), "b".to_owned()];
        let first = recalls.begin(&RecallScope::default(), &supervisors, 5_000);
        let second = recalls.begin(&RecallScope::default(), &supervisors, 5_000);
        recalls.note(first, "a");
        assert!(!recalls.is_over(first, 5_999));
        recalls.note(first, "b");
        assert!(recalls.is_over(first, 5_001));
        assert!(!recalls.is_over(second, 5_999), "another one");
        assert!(recalls.is_over(second, 6_000), "waited for long enough");
        recalls.forget_old(6_000);
        assert!(recalls.under_way.is_empty());
    }

    #[test]
    fn a_later_dispatcher_counts_higher() {
        let mut earlier = Recalls::new(5_000);
        let last = (0..900)
            .map(|_| earlier.begin(&RecallScope::default(), &[], 5_000))
            .last();
        let mut later = Recalls::new(5_001);
        assert!(Some(later.begin(&RecallScope::default(), &[], 5_001)) > last);
    }
}
