//! A crawl in memory: its spec, its scope, its counters.

use std::collections::BTreeMap;

use webfill_api::CrawlSpec;
use webfill_wire::{Outcome, Reason};

use super::crawl_status::CrawlStatus;
use crate::scope::Scope;

/// The maximum weight (approximate memory) counted for a single crawl, so that one alone does not push out all others.
const HEAVIEST: usize = 5_000;

/// The approximate size of a crawl without patterns and domains.
const BYTES_OF_A_CRAWL: usize = 2_048;

/// The approximate size of the data that searches keep beside the automaton.
const BYTES_OF_A_SEARCH: usize = 40 << 10;

/// A crawl in memory, with its settings and counters.
#[derive(Debug)]
pub(super) struct Crawl {
    pub(super) spec: CrawlSpec,
    pub(super) scope: Scope,
    pub(super) status: CrawlStatus,
    /// If the crawl is over: the outcome its queued tasks will end with.
    pub(super) ended: Option<Outcome>,
    /// Whether the crawl is paused, so that none of its tasks is handed out.
    pub(super) paused: bool,
    /// The number of the crawl's queued tasks, by priority.
    pub(super) waiting: BTreeMap<u8, u64>,
    /// Whether some of the crawl's sites may skip it because it hands nothing out; see [`super::holding`].
    pub(super) held: bool,
    /// Whether the counters differ from the stored ones.
    pub(super) changed: bool,
    /// The crawl's numbers of queued and leased tasks as stored in its row.
    pub(super) written: (u64, u64),
    /// Whether the crawl's rows are being deleted. For everything but the deletion, the crawl is unknown then.
    pub(super) is_pruned: bool,
}

impl Crawl {
    pub(super) fn new(spec: CrawlSpec, scope: Scope) -> Crawl {
        Crawl {
            spec,
            scope,
            status: CrawlStatus::default(),
            ended: None,
            paused: false,
            waiting: BTreeMap::new(),
            held: true,
            changed: true,
            written: (0, 0),
            is_pruned: false,
        }
    }

    /// The approximate memory of the crawl, in units of a crawl without patterns and domains. A list of patterns is
    /// one automaton, which may take megabytes. One that several crawls share counts for each of them.
    pub(super) fn memory_weight(&self) -> usize {
        let compiled = self.scope.pattern_memory_bytes();
        let compiled = compiled.map(|bytes| bytes + BYTES_OF_A_SEARCH);
        let texts = self.spec.allow_regex.iter().chain(&self.spec.deny_regex);
        let bytes = compiled.sum::<usize>() + texts.map(String::len).sum::<usize>();
        (1 + bytes / BYTES_OF_A_CRAWL + self.spec.allowed_domains.len() / 10).min(HEAVIEST)
    }

    /// If the crawl is over: the outcome its queued tasks end with.
    pub(super) fn ending_outcome(&self, wall_ms: i64) -> Option<Outcome> {
        let expired = self
            .spec
            .expires_at_ms
            .is_some_and(|at| at as i64 <= wall_ms);
        self.ended.or(expired.then_some(Outcome::Expired))
    }

    /// How many of the crawl's tasks may be handed out now.
    pub(super) fn allowance(&self) -> u64 {
        if self.paused {
            return 0;
        }
        let used = self.status.pages + self.status.leased;
        let most = self.spec.max_pages;
        most.map_or(u64::MAX, |most| most.saturating_sub(used))
    }

    /// Counts newly queued tasks.
    pub(super) fn count_queued(&mut self, priority: u8, n: u64) {
        self.status.queued += n;
        *self.waiting.entry(priority).or_default() += n;
        self.changed = true;
    }

    /// Counts a task that has left the queue.
    pub(super) fn count_unqueued(&mut self, priority: u8) {
        self.status.queued -= 1;
        self.changed = true;
        if let Some(n) = self.waiting.get_mut(&priority) {
            *n -= 1;
            if *n == 0 {
                self.waiting.remove(&priority);
            }
        }
    }

    pub(super) fn count_skipped(&mut self, reason: Reason) {
        self.status.discovered += 1;
        *self.status.skipped.entry(reason).or_default() += 1;
    }

    /// Counts a task that has ended.
    pub(super) fn count_outcome(&mut self, outcome: Outcome) {
        self.status.done += 1;
        *self.status.outcomes.entry(outcome).or_default() += 1;
        self.changed = true;
    }

    /// Corrects the counts when a finished task is queued again. Returns how many tasks still have its outcome; if
    /// there are none, the caller must delete the stored counter.
    pub(super) fn uncount_outcome(&mut self, outcome: Outcome) -> u64 {
        self.status.done -= 1;
        self.changed = true;
        let left = self
            .status
            .outcomes
            .get(&outcome)
            .map_or(0, |n| n.saturating_sub(1));
        match left {
            0 => self.status.outcomes.remove(&outcome),
            _ => self.status.outcomes.insert(outcome, left),
        };
        left
    }
}
