//! One supervisor's session: the dispatcher's data about the supervisor since its hello. It has the credit, the crawls
//! that the supervisor knows, and whether all messages have arrived in both directions.

use std::collections::HashSet;

use webfill_wire::{Arrivals, CrawlKey, Credit, Hello, Lane, SupervisorHeartbeat};

use crate::caller::Caller;

/// After this many crawls a supervisor is made to forget the settings of all of them. This bounds its memory and that
/// of its workers, because small crawls may come by the hundred thousand.
const MOST_CRAWLS: usize = 10_000;

/// The session that a [`Hello`] has begun.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) peer: Caller,
    pub(super) lane: Lane,
    /// The newest `sent_ms` received, by the supervisor's own clock.
    pub(super) heard_sent_ms: u64,
    granted: Credit,
    used: Credit,
    /// Credit for this many tasks is reserved for high priorities: a task may use it if few of the leased tasks have
    /// its priority or a higher one.
    reserve: u64,
    /// The crawls whose settings were sent to the supervisor.
    crawls: HashSet<CrawlKey>,
    /// The number of the last message sent to the supervisor.
    sent: u64,
    sent_check: DeliveryCheck,
    outcomes: Arrivals,
    outcomes_check: DeliveryCheck,
    /// The number of pages that the supervisor has fetched.
    pages: u64,
    /// After a goodbye: the number of the last outcomes, and when the goodbye arrived.
    leaving: Option<(u64, i64)>,
    pub(super) draining: bool,
}

/// One in this many tasks of the credit is reserved for higher priorities.
const RESERVE_ONE_IN: u64 = 16;

/// How many more tasks may be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AvailableCredit {
    /// The number of tasks of any priority that may be sent.
    pub(super) ordinary: u64,
    /// The number of tasks that may be sent if they may use the reserve.
    pub(super) reserved: u64,
    /// The size of the reserve, used or not.
    pub(super) reserve: u64,
}

impl AvailableCredit {
    pub(super) fn limit_to(self, tasks: u64) -> AvailableCredit {
        AvailableCredit {
            ordinary: self.ordinary.min(tasks),
            reserved: self.reserved.min(tasks),
            reserve: self.reserve,
        }
    }
}

/// A message number that should have arrived at the other end, and when the check for it began.
#[derive(Debug, Clone, Copy)]
struct DeliveryCheck {
    number: u64,
    since_ms: i64,
}

impl DeliveryCheck {
    /// Records how far messages have arrived. Returns whether the checked one has been missing for longer than
    /// `patience_ms`. Once it has arrived, the last message sent is checked next.
    fn record_arrived_and_check(
        &mut self,
        arrived: u64,
        sent: u64,
        now_ms: i64,
        patience_ms: i64,
    ) -> bool {
        if arrived >= self.number {
            *self = DeliveryCheck {
                number: sent,
                since_ms: now_ms,
            };
            return false;
        }
        now_ms - self.since_ms > patience_ms
    }
}

impl Session {
    pub(super) fn begin(hello: &Hello, peer: Caller, now_ms: i64) -> Session {
        let check = DeliveryCheck {
            number: 0,
            since_ms: now_ms,
        };
        Session {
            id: hello.session,
            peer,
            lane: hello.lane,
            heard_sent_ms: hello.sent_ms,
            granted: hello.credit,
            used: Credit::default(),
            reserve: hello.credit.tasks / RESERVE_ONE_IN,
            crawls: HashSet::new(),
            sent: 0,
            sent_check: check,
            outcomes: Arrivals::default(),
            outcomes_check: check,
            pages: 0,
            leaving: None,
            draining: false,
        }
    }

    /// Whether the supervisor drains or leaves.
    pub(super) fn is_ending(&self) -> bool {
        self.draining || self.leaving.is_some()
    }

    /// How many more tasks may be sent.
    pub(super) fn available_credit(&self) -> AvailableCredit {
        if self.is_ending() || self.used.url_bytes >= self.granted.url_bytes {
            return AvailableCredit::default();
        }
        let reserved = self.granted.tasks.saturating_sub(self.used.tasks);
        AvailableCredit {
            ordinary: reserved.saturating_sub(self.reserve),
            reserved,
            reserve: self.reserve,
        }
    }

    pub(super) fn set_granted_credit(&mut self, credit: Credit) {
        self.granted = credit;
    }

    pub(super) fn use_credit(&mut self, url_bytes: u64) {
        self.used.tasks += 1;
        self.used.url_bytes += url_bytes;
    }

    /// If the settings of too many crawls were sent, counts all as not sent and returns true. Then the supervisor
    /// must be made to forget them.
    pub(super) fn forget_crawls_if_too_many(&mut self) -> bool {
        let too_many = self.crawls.len() >= MOST_CRAWLS;
        if too_many {
            self.crawls.clear();
        }
        too_many
    }

    /// Counts a crawl's settings as sent. Returns whether they were not sent before.
    pub(super) fn note_crawl_sent(&mut self, crawl: CrawlKey) -> bool {
        self.crawls.insert(crawl)
    }

    pub(super) fn forget_crawl(&mut self, crawl: CrawlKey) {
        self.crawls.remove(&crawl);
    }

    /// Counts a message, and returns its number.
    pub(super) fn next_number(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    pub(super) fn record_outcomes(&mut self, number: u64, pages: u64) {
        self.outcomes.record(number);
        self.pages += pages;
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// All outcomes up to this number have arrived.
    pub(super) fn outcomes_heard(&self) -> u64 {
        self.outcomes.complete()
    }

    /// Handles a heartbeat. Returns false if messages have been missing for longer than `patience_ms`, in either
    /// direction.
    pub(super) fn on_heartbeat(
        &mut self,
        beat: &SupervisorHeartbeat,
        now_ms: i64,
        patience_ms: i64,
    ) -> bool {
        self.heard_sent_ms = self.heard_sent_ms.max(beat.sent_ms);
        self.set_granted_credit(beat.credit);
        let tasks_missing =
            self.sent_check
                .record_arrived_and_check(beat.received, self.sent, now_ms, patience_ms);
        let outcomes_missing = self.outcomes_check.record_arrived_and_check(
            self.outcomes.complete(),
            beat.outcomes_sent,
            now_ms,
            patience_ms,
        );
        !tasks_missing && !outcomes_missing
    }

    /// Notes that the supervisor has said goodbye. Outcomes up to number `outcomes_sent` may still arrive.
    pub(super) fn begin_leaving(&mut self, outcomes_sent: u64, now_ms: i64) {
        self.leaving = Some((outcomes_sent, now_ms));
    }

    /// Whether the supervisor has said goodbye and its last outcomes have arrived, or are overdue.
    pub(super) fn has_left(&self, now_ms: i64, patience_ms: i64) -> bool {
        self.leaving.is_some_and(|(outcomes_sent, since_ms)| {
            self.outcomes.complete() >= outcomes_sent || now_ms - since_ms > patience_ms
        })
    }
}
