//! The session with the dispatcher: hello, heartbeats, and the lease that permits fetches to start.
//!
//! - *New*: no hello was sent yet (`id` is 0).
//! - *Begun*: a hello was sent and is repeated, each time as a new session, until it is answered.
//! - *Welcomed*: the dispatcher has answered; heartbeats follow.
//!
//! Each session has a number, which all its messages carry; messages of another session are ignored. The *lease* is the
//! permission to start fetches, and has a fixed duration. It counts from the time when the supervisor sent the latest
//! message that the dispatcher is known to have received. The answer to a heartbeat names that message, so slow or
//! repeated answers cannot prolong the lease. The caller passes in all times, in milliseconds since the machine's boot.

use webfill_wire::{Arrivals, Credit, SupervisorHeartbeat};

/// The pause before an unanswered hello is repeated. It doubles from the first of these values to the last. The first
/// pause is short, because a hello may be lost while the connection is still being set up.
const FIRST_HELLO_PAUSE_MS: u64 = 100;
const LAST_HELLO_PAUSE_MS: u64 = 2_000;

/// The pause before a heartbeat that is sent early, because its answer is needed soon.
const EARLY_HEARTBEAT_MS: u64 = 50;

/// How many heartbeats are sent within the duration of a lease.
const HEARTBEATS_PER_LEASE: u64 = 10;

/// The state of the session with the dispatcher.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// The session's number; 0 before the first hello.
    id: u64,
    /// The duration of a lease; `None` until the dispatcher has answered the hello.
    lease_ms: Option<u64>,
    lease_until_ms: u64,
    next_send_ms: u64,
    /// How many hellos were sent since the last answer.
    unanswered: u32,
    /// The numbers of the dispatcher's messages that have arrived.
    arrived: Arrivals,
    /// The highest number of a recall that was accepted in this session.
    recalled: u64,
    outcomes_sent: u64,
}

/// The message to send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DueMessage {
    Nothing,
    Hello,
    Heartbeat,
}

impl Session {
    pub(crate) fn due_message(&self, now_ms: u64) -> DueMessage {
        match self.lease_ms {
            _ if now_ms < self.next_send_ms => DueMessage::Nothing,
            None => DueMessage::Hello,
            Some(_) => DueMessage::Heartbeat,
        }
    }

    pub(crate) fn next_send_ms(&self) -> u64 {
        self.next_send_ms
    }

    /// Schedules the next heartbeat earlier than usual.
    pub(crate) fn schedule_early_heartbeat(&mut self, now_ms: u64) {
        if self.is_welcomed() {
            self.next_send_ms = self.next_send_ms.min(now_ms + EARLY_HEARTBEAT_MS);
        }
    }

    /// Begins a new session and returns its number. The lease continues.
    pub(crate) fn begin(&mut self, now_ms: u64) -> u64 {
        self.id = now_ms.max(self.id + 1);
        self.lease_ms = None;
        let wait_ms = FIRST_HELLO_PAUSE_MS << self.unanswered.min(8);
        self.next_send_ms = now_ms + wait_ms.min(LAST_HELLO_PAUSE_MS);
        self.unanswered += 1;
        self.arrived = Arrivals::default();
        self.recalled = 0;
        self.outcomes_sent = 0;
        self.id
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.id > 0
    }

    pub(crate) fn is_welcomed(&self) -> bool {
        self.lease_ms.is_some()
    }

    /// Notes that the dispatcher has answered the hello, which was sent at `heard_ms`.
    pub(crate) fn note_welcome(&mut self, heard_ms: u64, lease_ms: u64, now_ms: u64) {
        self.lease_ms = Some(lease_ms);
        self.unanswered = 0;
        self.note_heard(heard_ms, now_ms);
        self.next_send_ms = now_ms + lease_ms / HEARTBEATS_PER_LEASE;
    }

    /// Notes that the dispatcher has received the message that was sent at `heard_ms`. Returns whether this extends the
    /// lease.
    pub(crate) fn note_heard(&mut self, heard_ms: u64, now_ms: u64) -> bool {
        let Some(lease_ms) = self.lease_ms else {
            return false;
        };
        let until_ms = heard_ms.min(now_ms).saturating_add(lease_ms);
        let is_longer = until_ms > self.lease_until_ms;
        self.lease_until_ms = self.lease_until_ms.max(until_ms);
        is_longer
    }

    /// The duration of a lease in milliseconds; 0 until the dispatcher has named it.
    pub(crate) fn lease_ms(&self) -> u64 {
        self.lease_ms.unwrap_or_default()
    }

    /// When the lease ends. No fetch may start after that.
    pub(crate) fn lease_until_ms(&self) -> u64 {
        self.lease_until_ms
    }

    pub(crate) fn next_heartbeat(
        &mut self,
        credit: Credit,
        now_ms: u64,
        wall_ms: i64,
    ) -> SupervisorHeartbeat {
        let pause_ms = self.lease_ms.unwrap_or_default() / HEARTBEATS_PER_LEASE;
        self.next_send_ms = now_ms + pause_ms;
        SupervisorHeartbeat {
            session: self.id,
            sent_ms: now_ms,
            wall_ms,
            credit,
            received: self.arrived.complete(),
            outcomes_sent: self.outcomes_sent,
        }
    }

    /// Records the number of a message from the dispatcher. Returns false if the message must be ignored, because it
    /// belongs to another session or has arrived before.
    pub(crate) fn accept_number(&mut self, session: u64, number: u64) -> bool {
        session == self.id && self.is_welcomed() && self.arrived.record(number)
    }

    /// Notes that a recall was accepted.
    pub(crate) fn note_recall(&mut self, number: u64) {
        self.recalled = self.recalled.max(number);
    }

    /// Whether a recall was accepted that was sent after the message of tasks with this number. If so, the recall may
    /// apply to these tasks.
    pub(crate) fn has_later_recall(&self, tasks: u64) -> bool {
        tasks < self.recalled
    }

    /// Returns the number of the next message with outcomes.
    pub(crate) fn next_outcomes_number(&mut self) -> u64 {
        self.outcomes_sent += 1;
        self.outcomes_sent
    }

    pub(crate) fn outcomes_sent(&self) -> u64 {
        self.outcomes_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_MS: u64 = 10_000;

    fn welcomed_session(now_ms: u64) -> Session {
        let mut session = Session::default();
        assert_eq!(session.due_message(now_ms), DueMessage::Hello);
        session.begin(now_ms);
        session.note_welcome(now_ms, LEASE_MS, now_ms + 5);
        session
    }

    #[test]
    fn the_lease_counts_from_the_latest_message_that_the_dispatcher_received() {
        let mut session = welcomed_session(1_000);
        assert_eq!(session.lease_until_ms(), 11_000);
        // An answer after nine seconds extends the lease from the message it answers, not from its own arrival.
        assert!(session.note_heard(2_000, 11_000));
        assert_eq!(session.lease_until_ms(), 12_000);
        assert!(!session.note_heard(1_500, 11_000), "an old answer again");
        assert_eq!(session.lease_until_ms(), 12_000);
        session.note_heard(u64::MAX, 11_000);
        assert_eq!(
            session.lease_until_ms(),
            21_000,
            "nothing is heard in advance"
        );
    }

    #[test]
    fn a_hello_is_repeated_until_it_is_answered_and_heartbeats_follow() {
        let mut session = Session::default();
        let first = session.begin(1_000);
        assert_eq!(session.due_message(1_099), DueMessage::Nothing);
        assert_eq!(session.due_message(1_100), DueMessage::Hello);
        assert!(
            session.begin(1_000) > first,
            "each hello is a session of its own"
        );
        session.note_welcome(1_000, LEASE_MS, 1_100);
        assert_eq!(session.due_message(1_100), DueMessage::Nothing);
        assert_eq!(session.due_message(2_100), DueMessage::Heartbeat);
    }

    #[test]
    fn tasks_of_another_session_are_not_accepted() {
        let mut session = welcomed_session(1_000);
        let id = session.id();
        assert!(session.accept_number(id, 1));
        assert!(!session.accept_number(id, 1), "twice");
        assert!(!session.accept_number(id - 1, 2));
        session.begin(3_000);
        assert!(!session.accept_number(session.id(), 1), "not welcomed yet");
    }
}
