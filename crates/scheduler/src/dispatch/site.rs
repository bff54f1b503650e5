//! One site in memory: its clock, its rule, its leased tasks, and the crawl that is next.

use webfill_wire::{CrawlKey, Lane, SiteClock};

use super::groups::{self, Group};
use super::ready::ReadyPosition;
use crate::frontier::{Clock, SiteDue, SiteRule, Turn};

/// A task is handed out this long before the site's clock allows its request, so that it reaches the worker in time. It
/// is longer than a commit and two socket hops take, and short enough that waiting tasks take up little room in queues.
pub const LOOKAHEAD_MS: i64 = 300;

/// The maximum number of simultaneously leased tasks of one site, however short its delay.
pub(super) const MAX_LEASES: u32 = 64;

/// A site that is in memory.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) clock: Clock,
    pub(super) rule: SiteRule,
    /// The end of the site's backoff. After that, a single task tests the site. `None`: the site is open.
    pub(super) backoff_until_ms: Option<i64>,
    /// Whether the site's tasks end without a request.
    pub(super) is_unreachable: bool,
    /// Nothing of the site is handed out before this time, because a test of an offline machine has failed at it.
    pub(super) aside_until_ms: i64,
    /// The site is not chosen before this time, because it had nothing to hand out. 0: it may be chosen.
    pub(super) put_off_until_ms: i64,
    /// How many consecutive times the site had nothing to hand out for an unknown reason.
    pub(super) empty_grants: u32,
    /// The number of leased tasks.
    pub(super) leases: u32,
    /// The lowest priority that the leased tasks may have.
    pub(super) lowest_leased: u8,
    /// Leased tasks of the site below this priority were recalled, that is, taken back from the supervisor.
    pub(super) recalled_below: u8,
    /// Whether the site is delayed, ready, starved or waiting in its group.
    pub(super) scheduled: bool,
    /// When the site becomes ready, if it is delayed.
    pub(super) ready_from_ms: Option<i64>,
    /// The site's position among the ready sites, if it is one.
    pub(super) place: Option<ReadyPosition>,
    /// The group of sites it shares limits with.
    pub(super) group: Option<Group>,
    /// The site's position in its group, if it waits there.
    pub(super) place_in_group: Option<groups::GroupPosition>,
    /// The maximum number of the site's queued tasks that can be handed out, as last reported by the frontier.
    pub(super) queued: u64,
    /// The crawl that is next at the site, with its priority and lane. Change it by [`set_next`](Site::set_next).
    pub(super) next: Option<Turn>,
    /// Whether the next task needs another owner, so that the present owner gets no more tasks.
    pub(super) awaits_new_owner: bool,
    /// The crawl the site was loaded into memory for.
    pub(super) admitted_for: Option<CrawlKey>,
    /// Whether the time of the last request is sent with the next task, because the worker may not know it.
    pub(super) sends_last_request: bool,
}

impl Site {
    /// Updates the site's clock from a worker's report on when the next request is allowed.
    pub(super) fn set_clock(&mut self, clock: SiteClock, now_ms: i64) {
        let next_in_ms = i64::from(clock.next_in_ms);
        self.clock.due_at_ms = self.clock.due_at_ms.max(now_ms + next_in_ms);
        let Some(delay_ms) = clock.delay_ms else {
            return;
        };
        let last_ms = now_ms + (next_in_ms - i64::from(delay_ms)).min(0);
        self.clock.last_start_ms = self.clock.last_start_ms.max(Some(last_ms));
        self.clock.delay_ms = Some(delay_ms);
        // From now on the due time reflects the worker's knowledge.
        self.sends_last_request = false;
    }

    /// Counts the delay from now, because a request may have been in flight until now.
    pub(super) fn note_possible_request(&mut self, default_delay_ms: u32, now_ms: i64) {
        let delay_ms = i64::from(self.delay_ms(default_delay_ms));
        self.clock.due_at_ms = self.clock.due_at_ms.max(now_ms + delay_ms);
        self.clock.last_start_ms = Some(now_ms);
        self.sends_last_request = true;
    }

    /// Applies a changed rule or backoff. A due time later than the last request plus the delay was demanded by the
    /// server, so it stays, unless the data learned about the site were dropped.
    pub(super) fn apply_rule(&mut self, due: &SiteDue, is_forgotten: bool, default_delay_ms: u32) {
        self.backoff_until_ms = due.backoff_until_ms;
        self.is_unreachable = due.is_unreachable;
        if self.rule == due.rule && !is_forgotten {
            return;
        }
        let is_paced = self.clock.last_start_ms.is_some_and(|last_ms| {
            self.clock.due_at_ms <= last_ms + i64::from(self.delay_ms(default_delay_ms))
        });
        let is_delay_changed = self.rule.delay_ms != due.rule.delay_ms;
        self.rule = due.rule;
        if is_forgotten {
            self.clock.delay_ms = None;
            self.clock.due_at_ms = due.clock.due_at_ms;
        } else if is_delay_changed
            && is_paced
            && let Some(last_ms) = self.clock.last_start_ms
        {
            let delay_ms = self.rule.delay_ms.unwrap_or(default_delay_ms);
            self.clock.due_at_ms = last_ms + i64::from(delay_ms);
        }
        // Even if the rule has a shorter delay, the worker keeps the delay of robots.txt, so it must know the time of
        // the last request.
        self.sends_last_request = true;
    }

    /// The delay between two requests: the known one, but at least that of the rule; without both, the default.
    pub(super) fn delay_ms(&self, default_delay_ms: u32) -> u32 {
        let wanted = self.rule.delay_ms;
        let known = self.clock.delay_ms.or(wanted).unwrap_or(default_delay_ms);
        known.max(wanted.unwrap_or(0))
    }

    /// When the next task may be handed out: [`LOOKAHEAD_MS`] before its request may start.
    pub(super) fn earliest_handout_ms(&self) -> i64 {
        // No request is made to an unreachable site, so its clock does not matter.
        let due_at_ms = if self.leases > 0 || self.is_unreachable {
            0
        } else {
            self.clock.due_at_ms
        };
        let from_ms = due_at_ms.max(self.held_until_ms()) - LOOKAHEAD_MS;
        from_ms.max(self.put_off_until_ms)
    }

    /// When the site's next task may be handed out, apart from its clock: after its block, its backoff, and the time it
    /// is set aside for.
    fn held_until_ms(&self) -> i64 {
        let blocked_until_ms = self.rule.block_until_ms.unwrap_or(0);
        let backoff_until_ms = self.backoff_until_ms.unwrap_or(0);
        blocked_until_ms
            .max(backoff_until_ms)
            .max(self.aside_until_ms)
    }

    /// When the next request may start.
    pub(super) fn next_request_ms(&self) -> i64 {
        self.clock.due_at_ms.max(self.held_until_ms())
    }

    /// The least time that the queued tasks take, one after the other at the site's delay.
    pub(super) fn least_time_left_ms(&self, default_delay_ms: u32, now_ms: i64) -> i64 {
        let waits_ms = (self.next_request_ms() - now_ms).max(0);
        let delay_ms = i64::from(self.delay_ms(default_delay_ms));
        match self.queued {
            0 => 0,
            queued => waits_ms.saturating_add(delay_ms.saturating_mul(queued as i64 - 1)),
        }
    }

    /// Whether the site has leased tasks of a lower priority that can be recalled for a task of this priority.
    pub(super) fn can_be_preempted_by(&self, priority: u8) -> bool {
        self.leases > 0 && self.lowest_leased < priority && self.recalled_below < priority
    }

    /// Sets the crawl that is next at the site.
    pub(super) fn set_next(&mut self, next: Option<Turn>) {
        self.next = next;
        self.awaits_new_owner = false;
    }

    pub(super) fn turn(&self) -> Turn {
        self.next.unwrap_or(Turn {
            priority: 0,
            crawl: 0,
            lane: Lane::Http,
        })
    }

    /// Whether no further task may be leased.
    pub(super) fn is_full(&self, default_delay_ms: u32) -> bool {
        (self.awaits_new_owner && self.leases > 0)
            || self.leases >= self.max_leases(default_delay_ms)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.leases == 0 && self.queued == 0 && !self.scheduled
    }

    /// How many tasks may be leased at once: as many as requests may start within [`LOOKAHEAD_MS`]. It is only one
    /// until the delay is known, and one after a backoff, to test the site. An unreachable site has no delay.
    pub(super) fn max_leases(&self, default_delay_ms: u32) -> u32 {
        if self.is_unreachable {
            return MAX_LEASES;
        }
        if self.backoff_until_ms.is_some() {
            return 1;
        }
        if self.clock.delay_ms.is_none() && self.rule.delay_ms.unwrap_or(default_delay_ms) > 0 {
            return 1;
        }
        match self.delay_ms(default_delay_ms) {
            0 => MAX_LEASES,
            delay_ms => (1 + LOOKAHEAD_MS as u32 / delay_ms).min(MAX_LEASES),
        }
    }
}
