//! One supervisor's session: the dispatcher's knowledge of it since its hello. This is its credit, the crawls that it
//! knows, and whether all messages have arrived in both directions.

use std::collections::HashSet;

use webfill_wire::{Arrivals, CrawlKey, Credit, Hello, Lane, SupervisorHeartbeat};

use crate::caller::Caller;

/// After this many crawls a supervisor is made to forget the settings of all of them. This bounds its memory and that
/// of its workers, because small crawls may come by the hundred thousand.
const MOST_CRAWLS: usize = 10_000;

/// See [`Hello`].
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) peer: Caller,
    pub(super) lane: Lane,
    /// The newest `sent_ms` received, by the supervisor's own clock.
    pub(super) heard_sent_ms: u64,
    granted: Credit,
    used: Credit,
    /// Credit for this many tasks is kept for priorities that few of the leased tasks have.
    reserve: u64,
    /// The crawls whose settings were sent to it.
    crawls: HashSet<CrawlKey>,
    /// The number of the last message sent to it.
    sent: u64,
    sent_check: Check,
    outcomes: Arrivals,
    outcomes_check: Check,
    /// Its pages.
    pages: u64,
    /// It has said goodbye: the number of its last outcomes, and when the goodbye arrived.
    leaving: Option<(u64, i64)>,
    pub(super) draining: bool,
}

/// One in this many tasks of the credit is kept for higher priorities.
const RESERVE_ONE_IN: u64 = 16;

/// Tasks that may still be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AvailableCredit {
    /// For tasks of any priority.
    pub(super) ordinary: u64,
    /// For tasks that may use the reserve.
    pub(super) reserved: u64,
    /// The size of the reserve, used or not.
    pub(super) reserve: u64,
}

impl AvailableCredit {
    pub(super) fn at_most(self, tasks: u64) -> AvailableCredit {
        AvailableCredit {
            ordinary: self.ordinary.min(tasks),
            reserved: self.reserved.min(tasks),
            reserve: self.reserve,
        }
    }
}

/// A message number that should have arrived at the other end, and since when it is checked.
#[derive(Debug, Clone, Copy)]
struct Check {
    number: u64,
    since_ms: i64,
}

impl Check {
    /// Records how far messages have arrived. Returns whether the checked one has been missing for
    /// longer than `patience_ms`; once it has arrived, the last one sent is checked next.
    fn record_arrived(&mut self, arrived: u64, sent: u64, now_ms: i64, patience_ms: i64) -> bool {
        if arrived >= self.number {
            *self = Check {
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
        let check = Check {
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

    /// It drains or leaves.
    pub(super) fn is_ending(&self) -> bool {
        self.draining || self.leaving.is_some()
    }

    /// Tasks that may still be sent.
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

    pub(super) fn grant(&mut self, credit: Credit) {
        self.granted = credit;
    }

    pub(super) fn use_credit(&mut self, url_bytes: u64) {
        self.used.tasks += 1;
        self.used.url_bytes += url_bytes;
    }

    /// If the settings of too many crawls were sent, counts them all as not sent and returns true: then the
    /// supervisor must be made to forget them.
    pub(super) fn forget_crawls_if_too_many(&mut self) -> bool {
        let too_many = self.crawls.len() >= MOST_CRAWLS;
        if too_many {
            self.crawls.clear();
        }
        too_many
    }

    /// Counts a crawl's settings as sent; returns whether they were not sent before.
    pub(super) fn note_crawl_sent(&mut self, crawl: CrawlKey) -> bool {
        self.crawls.insert(crawl)
    }

    pub(super) fn forget_crawl(&mut self, crawl: CrawlKey) {
        self.crawls.remove(&crawl);
    }

    /// The number of the next message.
    pub(super) fn next_number(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    pub(super) fn note_outcomes(&mut self, number: u64, pages: u64) {
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

    /// Takes a heartbeat. Returns false if messages have been missing for longer than
    /// `patience_ms`, here or there.
    pub(super) fn heartbeat(
        &mut self,
        beat: &SupervisorHeartbeat,
        now_ms: i64,
        patience_ms: i64,
    ) -> bool {
        self.heard_sent_ms = self.heard_sent_ms.max(beat.sent_ms);
        self.grant(beat.credit);
        let tasks_missing =
            self.sent_check
                .record_arrived(beat.received, self.sent, now_ms, patience_ms);
        let outcomes_missing = self.outcomes_check.record_arrived(
            self.outcomes.complete(),
            beat.outcomes_sent,
            now_ms,
            patience_ms,
        );
        !tasks_missing && !outcomes_missing
    }

    /// The supervisor has said goodbye; outcomes up to number `outcomes_sent` may still arrive.
    pub(super) fn begin_leaving(&mut self, outcomes_sent: u64, now_ms: i64) {
        self.leaving = Some((outcomes_sent, now_ms));
    }

    /// Whether it has said goodbye and its last outcomes have arrived, or have not for too long.
    pub(super) fn has_left(&self, now_ms: i64, patience_ms: i64) -> bool {
        self.leaving.is_some_and(|(outcomes_sent, since_ms)| {
            self.outcomes.complete() >= outcomes_sent || now_ms - since_ms > patience_ms
        })
    }
}
