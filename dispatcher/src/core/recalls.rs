//! Tasks are called back before they start: of a stopped or paused crawl, of a site that is to be
//! treated differently, of a lower priority than what has come in. What has started comes to its
//! end; whether it has, its worker alone decides.
//!
//! Whoever does not say that a recall is carried out is waited for until its lease is over, for then
//! it can start nothing that it held. That lease was given by the answer to a message that it sent
//! before it heard of the recall, so it is over a lease time after the last such message that we
//! have heard; workers hear of a later lease behind the recall. A lease that has run out is renewed
//! only by a new session, and who begins one recalls from its workers, before anything else, all
//! that they hold: what it held before keeps the lease of the last session, and ends with it.

use std::collections::BTreeMap;

use webfill_wire::socket::Peer;
use webfill_wire::{DispatcherToSupervisor, RecallScope};

use super::Core;

/// Names a recall; higher than those of all dispatchers before on this machine, so that the late
/// word of a supervisor does not mean another one.
pub(crate) type RecallNumber = u64;

/// Recalls that are waited for: something of what they mean may still start.
#[derive(Debug)]
pub(super) struct Recalls {
    last: RecallNumber,
    under_way: BTreeMap<RecallNumber, Recall>,
}

#[derive(Debug)]
struct Recall {
    scope: RecallScope,
    /// Supervisors that may start something of it.
    awaited: BTreeMap<String, Awaited>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Awaited {
    /// The message that tells it, in the session in which it was asked; none, if it was away or has
    /// begun another one.
    message: Option<u64>,
    /// Its lease is over then.
    until_ms: i64,
}

impl Recalls {
    pub(super) fn new(now_ms: i64) -> Recalls {
        Recalls {
            last: u64::try_from(now_ms).unwrap_or(0) << 10,
            under_way: BTreeMap::new(),
        }
    }

    fn next_number(&mut self) -> RecallNumber {
        self.last += 1;
        self.last
    }

    fn begin(&mut self, number: RecallNumber, recall: Recall) {
        if !recall.awaited.is_empty() {
            self.under_way.insert(number, recall);
        }
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

    /// A supervisor got a longer lease when it had heard all messages up to this one.
    fn lease_renewed(&mut self, supervisor: &str, received: u64, until_ms: i64) {
        for recall in self.under_way.values_mut() {
            if let Some(awaited) = recall.awaited.get_mut(supervisor)
                && awaited.message.is_some_and(|message| received < message)
            {
                awaited.until_ms = until_ms;
            }
        }
    }

    /// A supervisor has begun a new session. Returns what it is still awaited for.
    fn session_begun(&mut self, supervisor: &str) -> Vec<(RecallNumber, RecallScope)> {
        let mut awaited_for = Vec::new();
        for (number, recall) in &mut self.under_way {
            if let Some(awaited) = recall.awaited.get_mut(supervisor) {
                awaited.message = None;
                awaited_for.push((*number, recall.scope.clone()));
            }
        }
        awaited_for
    }

    /// Nobody waits for those whose lease is over.
    pub(super) fn expire(&mut self, now_ms: i64) {
        self.under_way.retain(|_, recall| {
            recall.awaited.retain(|_, one| now_ms < one.until_ms);
            !recall.awaited.is_empty()
        });
    }

    /// When the next recall is over at the latest.
    pub(super) fn next_deadline_ms(&self) -> Option<i64> {
        let ends = self.under_way.values().filter_map(|recall| {
            let ends = recall.awaited.values().map(|awaited| awaited.until_ms);
            ends.max()
        });
        ends.min()
    }
}

impl Core {
    /// Calls tasks back from all supervisors that may hold some, present or not.
    pub(crate) fn recall(&mut self, scope: RecallScope) -> RecallNumber {
        let number = self.recalls.next_number();
        let mut awaited = BTreeMap::new();
        for (supervisor, until_ms) in self.dispatch.lease_ends() {
            let message = self.send_recall(&supervisor, number, &scope);
            awaited.insert(supervisor, Awaited { message, until_ms });
        }
        self.recalls.begin(number, Recall { scope, awaited });
        number
    }

    /// Calls tasks back from one supervisor. Nobody waits for that.
    pub(super) fn recall_from(&mut self, supervisor: &str, scope: &RecallScope) {
        let number = self.recalls.next_number();
        self.send_recall(supervisor, number, scope);
    }

    /// Returns the number of the message, if the supervisor is there.
    fn send_recall(
        &mut self,
        supervisor: &str,
        recall: RecallNumber,
        scope: &RecallScope,
    ) -> Option<u64> {
        let (peer, session, number) = self.dispatch.address(supervisor)?;
        let message = DispatcherToSupervisor::Recall {
            session,
            number,
            recall,
            scope: scope.clone(),
        };
        self.send_to_supervisor(&peer, message);
        Some(number)
    }

    /// Whether nothing of what was recalled can start any more.
    pub(crate) fn is_recalled(&self, number: RecallNumber) -> bool {
        !self.recalls.under_way.contains_key(&number)
    }

    /// A supervisor begins a session: it may not have heard what was asked in the last one, and has
    /// not to wait for the end of its lease if it says that it is carried out.
    pub(super) fn resend_recalls(&mut self, supervisor: &str) {
        for (number, scope) in self.recalls.session_begun(supervisor) {
            self.send_recall(supervisor, number, &scope);
        }
    }

    /// A heartbeat that tells of so many messages is answered with a longer lease.
    pub(super) fn extend_recall_deadlines(&mut self, peer: &Peer, received: u64) {
        if let Some((supervisor, until_ms)) = self.dispatch.lease_end(peer) {
            self.recalls.lease_renewed(supervisor, received, until_ms);
        }
    }

    pub(super) fn note_recalled(&mut self, recalls: &[RecallNumber], supervisor: &str) {
        for number in recalls {
            self.recalls.note(*number, supervisor);
        }
    }

    /// Nobody waits for a supervisor that has left or is lost.
    pub(super) fn release_recalls_awaiting(&mut self, supervisor: &str) {
        let numbers: Vec<RecallNumber> = self.recalls.under_way.keys().copied().collect();
        self.note_recalled(&numbers, supervisor);
    }

    /// Waits no longer than up to this time, for the simulation to see what comes of that.
    pub fn expire_recalls(&mut self, until_ms: i64) {
        self.recalls.expire(until_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [&str; 2] = ["a", "b"];

    /// Asked by message 7 of supervisors whose leases are over after ten seconds.
    fn begin(recalls: &mut Recalls) -> RecallNumber {
        let number = recalls.next_number();
        let one = Awaited {
            message: Some(7),
            until_ms: 15_000,
        };
        let recall = Recall {
            scope: RecallScope::default(),
            awaited: BOTH.map(|name| (name.to_owned(), one)).into(),
        };
        recalls.begin(number, recall);
        number
    }

    fn is_over(recalls: &mut Recalls, number: RecallNumber, now_ms: i64) -> bool {
        recalls.expire(now_ms);
        !recalls.under_way.contains_key(&number)
    }

    #[test]
    fn a_recall_is_over_when_all_have_said_so_or_their_leases_are_over() {
        let mut recalls = Recalls::new(5_000);
        let (first, second) = (begin(&mut recalls), begin(&mut recalls));
        recalls.note(first, "a");
        assert!(!is_over(&mut recalls, first, 14_999));
        recalls.note(first, "b");
        assert!(is_over(&mut recalls, first, 5_001));
        assert!(!is_over(&mut recalls, second, 14_999), "another one");
        assert_eq!(recalls.next_deadline_ms(), Some(15_000));
        assert!(is_over(&mut recalls, second, 15_000));
        assert_eq!(recalls.next_deadline_ms(), None);
    }

    #[test]
    fn a_lease_that_is_given_before_the_recall_was_heard_is_waited_for() {
        let mut recalls = Recalls::new(5_000);
        let number = begin(&mut recalls);
        recalls.note(number, "b");
        recalls.lease_renewed("a", 6, 16_000);
        assert_eq!(recalls.next_deadline_ms(), Some(16_000));
        recalls.lease_renewed("a", 7, 17_000);
        recalls.lease_renewed("b", 0, 18_000);
        assert_eq!(
            recalls.next_deadline_ms(),
            Some(16_000),
            "the recall was heard"
        );
    }

    #[test]
    fn a_new_session_starts_nothing_that_the_last_one_held() {
        let mut recalls = Recalls::new(5_000);
        let number = begin(&mut recalls);
        recalls.note(number, "b");
        assert!(recalls.session_begun("b").is_empty());
        let again = recalls.session_begun("a");
        assert_eq!(again, [(number, RecallScope::default())]);
        recalls.lease_renewed("a", 0, 16_000);
        assert_eq!(recalls.next_deadline_ms(), Some(15_000));
    }

    #[test]
    fn a_later_dispatcher_counts_higher() {
        let mut earlier = Recalls::new(5_000);
        let last = (0..900).map(|_| earlier.next_number()).last();
        let mut later = Recalls::new(5_001);
        assert!(Some(later.next_number()) > last);
    }
}
