//! Recalls: revocations of leased tasks that have not started. A recall has a scope: a stopped or paused crawl, a site
//! whose rule has changed, or the tasks below a priority at a site. Started tasks run to their end; only the worker
//! that holds a task decides whether it has started.
//!
//! A recall ends when each supervisor that held leases has either confirmed it or can start nothing under them any more
//! because its lease is over. The deadline of a supervisor follows from these rules:
//!
//! - A lease is renewed by the answer to a heartbeat. A heartbeat says how many messages have arrived (see
//!   `on_lease_renewed`). The deadline is the lease time after the last heartbeat that was sent before the recall had
//!   arrived. Workers hear of a later lease only after the recall.
//! - An expired lease is renewed by a new session only. A supervisor that begins a session first recalls everything
//!   from its workers, so tasks that it held before cannot start after the end of the former session's lease (see
//!   `on_session_begun`).
//!
//! Recalls are not stored. After a crash of the dispatcher the clients that waited have to ask again.

use std::collections::BTreeMap;

use webfill_wire::{DispatcherToSupervisor, RecallScope};

use crate::caller::Caller;
use crate::core::context::Context;

/// Identifies a recall. The numbers keep growing across restarts, so that a late confirmation of a recall of an
/// earlier dispatcher is not mistaken for that of a new one.
pub(crate) type RecallNumber = u64;

/// The recalls that have not ended: some task in their scope may still start.
#[derive(Debug)]
pub(super) struct Recalls {
    last: RecallNumber,
    under_way: BTreeMap<RecallNumber, Recall>,
}

#[derive(Debug)]
struct Recall {
    scope: RecallScope,
    /// The supervisors that have not confirmed the recall and may still start tasks in its scope.
    awaited: BTreeMap<String, AwaitedConfirmation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AwaitedConfirmation {
    /// The number, in its session, of the message that carried the recall; `None` if the supervisor was not connected
    /// or has begun another session since.
    message: Option<u64>,
    /// When the supervisor's lease is over.
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

    /// Notes that a supervisor has confirmed a recall or is gone.
    fn on_confirmed_or_gone(&mut self, number: RecallNumber, supervisor: &str) {
        if let Some(recall) = self.under_way.get_mut(&number) {
            recall.awaited.remove(supervisor);
            if recall.awaited.is_empty() {
                self.under_way.remove(&number);
            }
        }
    }

    /// Notes that a supervisor's lease was renewed. `received`: the last message that it had received by then. A
    /// recall in a later message has to wait for the end of the renewed lease.
    fn on_lease_renewed(&mut self, supervisor: &str, received: u64, until_ms: i64) {
        for recall in self.under_way.values_mut() {
            if let Some(awaited) = recall.awaited.get_mut(supervisor)
                && awaited.message.is_some_and(|message| received < message)
            {
                awaited.until_ms = until_ms;
            }
        }
    }

    /// Notes that a supervisor has begun a new session. Returns the recalls that it has not confirmed.
    fn on_session_begun(&mut self, supervisor: &str) -> Vec<(RecallNumber, RecallScope)> {
        let mut awaited_for = Vec::new();
        for (number, recall) in &mut self.under_way {
            if let Some(awaited) = recall.awaited.get_mut(supervisor) {
                awaited.message = None;
                awaited_for.push((*number, recall.scope.clone()));
            }
        }
        awaited_for
    }

    /// Ends the waits for supervisors whose leases are over.
    pub(super) fn expire(&mut self, now_ms: i64) {
        self.under_way.retain(|_, recall| {
            recall.awaited.retain(|_, one| now_ms < one.until_ms);
            !recall.awaited.is_empty()
        });
    }

    /// The earliest end of a recall (revocation of leased tasks) without further confirmations.
    pub(super) fn next_deadline_ms(&self) -> Option<i64> {
        let ends = self.under_way.values().filter_map(|recall| {
            let ends = recall.awaited.values().map(|awaited| awaited.until_ms);
            ends.max()
        });
        ends.min()
    }
}

/// Recalls tasks from all supervisors that may hold leases, connected or not.
pub(crate) fn recall(cx: &mut Context, scope: RecallScope) -> RecallNumber {
    let number = cx.recalls.next_number();
    let mut awaited = BTreeMap::new();
    for (supervisor, until_ms) in cx.dispatch.fleet.lease_ends() {
        let message = try_send_recall(cx, &supervisor, number, &scope);
        awaited.insert(supervisor, AwaitedConfirmation { message, until_ms });
    }
    cx.recalls.begin(number, Recall { scope, awaited });
    number
}

/// Recalls tasks from one supervisor, without waiting for the confirmation.
pub(super) fn recall_from(cx: &mut Context, supervisor: &str, scope: &RecallScope) {
    let number = cx.recalls.next_number();
    try_send_recall(cx, supervisor, number, scope);
}

/// Sends a recall. Returns the number of the message; `None` if the supervisor is not connected.
fn try_send_recall(
    cx: &mut Context,
    supervisor: &str,
    recall: RecallNumber,
    scope: &RecallScope,
) -> Option<u64> {
    let (peer, session, number) = cx.dispatch.fleet.next_message_address(supervisor)?;
    let message = DispatcherToSupervisor::Recall {
        session,
        number,
        recall,
        scope: scope.clone(),
    };
    cx.send_to_supervisor(&peer, message);
    Some(number)
}

/// Whether the recall has ended, so that no task in its scope can start any more.
pub(crate) fn is_recall_complete(cx: &Context, number: RecallNumber) -> bool {
    !cx.recalls.under_way.contains_key(&number)
}

/// Sends the unconfirmed recalls again to a supervisor that begins a session. Messages of its last session may be
/// lost, and a confirmation ends the wait earlier than the end of the lease.
pub(super) fn resend_recalls(cx: &mut Context, supervisor: &str) {
    for (number, scope) in cx.recalls.on_session_begun(supervisor) {
        try_send_recall(cx, supervisor, number, &scope);
    }
}

/// Extends the deadlines of a supervisor whose lease the answer to a heartbeat renews. `received`: the last message
/// that the heartbeat confirmed.
pub(super) fn extend_recall_deadlines(cx: &mut Context, peer: &Caller, received: u64) {
    if let Some((supervisor, until_ms)) = cx.dispatch.fleet.lease_end(peer) {
        cx.recalls.on_lease_renewed(supervisor, received, until_ms);
    }
}

pub(super) fn confirm_recalls(cx: &mut Context, recalls: &[RecallNumber], supervisor: &str) {
    for number in recalls {
        cx.recalls.on_confirmed_or_gone(*number, supervisor);
    }
}

/// Stops waiting for a supervisor that has left or is lost.
pub(super) fn stop_awaiting(cx: &mut Context, supervisor: &str) {
    let numbers: Vec<RecallNumber> = cx.recalls.under_way.keys().copied().collect();
    confirm_recalls(cx, &numbers, supervisor);
}

/// Ends all waits up to this time, though leases may be in force: a fault that the simulation injects.
pub(super) fn expire_recalls(cx: &mut Context, until_ms: i64) {
    cx.recalls.expire(until_ms);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [&str; 2] = ["a", "b"];

    /// Begins a recall that two supervisors got with message 7. Their leases are over at 15 s.
    fn begin(recalls: &mut Recalls) -> RecallNumber {
        let number = recalls.next_number();
        let one = AwaitedConfirmation {
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

    fn expire_and_check(recalls: &mut Recalls, number: RecallNumber, now_ms: i64) -> bool {
        recalls.expire(now_ms);
        !recalls.under_way.contains_key(&number)
    }

    #[test]
    fn a_recall_ends_when_all_have_confirmed_or_their_leases_are_over() {
        let mut recalls = Recalls::new(5_000);
        let (first, second) = (begin(&mut recalls), begin(&mut recalls));
        recalls.on_confirmed_or_gone(first, "a");
        assert!(!expire_and_check(&mut recalls, first, 14_999));
        recalls.on_confirmed_or_gone(first, "b");
        assert!(expire_and_check(&mut recalls, first, 5_001));
        assert!(
            !expire_and_check(&mut recalls, second, 14_999),
            "another one"
        );
        assert_eq!(recalls.next_deadline_ms(), Some(15_000));
        assert!(expire_and_check(&mut recalls, second, 15_000));
        assert_eq!(recalls.next_deadline_ms(), None);
    }

    #[test]
    fn a_lease_renewed_before_the_recall_was_received_is_waited_for() {
        let mut recalls = Recalls::new(5_000);
        let number = begin(&mut recalls);
        recalls.on_confirmed_or_gone(number, "b");
        recalls.on_lease_renewed("a", 6, 16_000);
        assert_eq!(recalls.next_deadline_ms(), Some(16_000));
        recalls.on_lease_renewed("a", 7, 17_000);
        recalls.on_lease_renewed("b", 0, 18_000);
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
        recalls.on_confirmed_or_gone(number, "b");
        assert!(recalls.on_session_begun("b").is_empty());
        let again = recalls.on_session_begun("a");
        assert_eq!(again, [(number, RecallScope::default())]);
        recalls.on_lease_renewed("a", 0, 16_000);
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
