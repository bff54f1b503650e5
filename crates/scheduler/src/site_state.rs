//! The state of a site besides its clock: open, backing off or unreachable. This module only decides, from the attempts
//! at the site's pages; the frontier stores the state and acts on it.
//!
//! - *open*: the site's tasks are handed out by its clock. Consecutive failures that may be the site's are counted.
//!   When there are as many as are tolerated for the reason, the site backs off.
//! - *backing off*: nothing is handed out until a time. Then one task goes first, the *probe*. If it is answered, the
//!   site is open again, and its next backoff is shorter by one step; if it fails, the next backoff of the
//!   [`BackoffTable`] begins.
//! - *unreachable*: the table is used up. The queued tasks end without a request. Tasks that come later begin with
//!   the table's last backoff. A site that has answered does not become unreachable because of one page: that page
//!   ends alone, and the site is open.
//!
//! A site that blocks never becomes unreachable: after the end of its list it backs off until a person wakes it.

use webfill_wire::{BackoffReason, Outcome, SiteTrouble, TaskDone, is_rate_limited};

use crate::backoff_table::BackoffTable;

/// The end of a backoff that only a person ends: the last millisecond of the year 9999.
pub const UNTIL_WOKEN_MS: i64 = 253_402_300_799_999;

/// The end of a backoff in seconds since the epoch, for applications; `None` if only a person ends it.
pub fn backoff_end_seconds(until_ms: i64) -> Option<f64> {
    (until_ms < UNTIL_WOKEN_MS).then_some(until_ms as f64 / 1_000.0)
}

/// The phase of a site's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Open,
    BackingOff { until_ms: i64 },
    Unreachable,
}

/// The evidence of an attempt about its site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptSign {
    /// The site has answered normally.
    Answered,
    /// The attempt failed, perhaps because of the site.
    Failed {
        reason: BackoffReason,
        certain: bool,
    },
    Nothing,
}

impl AttemptSign {
    pub fn from_task(done: &TaskDone) -> AttemptSign {
        let failed = |reason, certain| AttemptSign::Failed { reason, certain };
        let trouble = done.outcome.site_trouble();
        if let Some(SiteTrouble {
            reason,
            is_certain: true,
        }) = trouble
        {
            return failed(reason, true);
        }
        match (done.outcome, done.status_code) {
            _ if is_rate_limited(done) => failed(BackoffReason::Busy, false),
            (Outcome::HttpError, Some(401 | 403)) => failed(BackoffReason::Blocked, false),
            (_, Some(_)) => AttemptSign::Answered,
            (_, None) => trouble.map_or(AttemptSign::Nothing, |trouble| {
                failed(trouble.reason, false)
            }),
        }
    }
}

/// The consequence of a failure for its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The failure counts as the task's own fault for now.
    OwnFailure,
    /// The task will be retried, but the site stays open.
    TaskWaits,
    /// The site backs off, and the task stays queued.
    SiteBackoffs,
    /// The site is unreachable, and the task ends.
    Unreachable,
}

/// The state of a site. The default is an open site without failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteState {
    pub phase: Phase,
    /// The reason of the last failure.
    pub reason: BackoffReason,
    /// The number of consecutive failures for this reason.
    pub failures: u32,
    /// The index of the current or next backoff in the list of its reason.
    pub backoff_index: u32,
}

impl Default for SiteState {
    fn default() -> SiteState {
        SiteState {
            phase: Phase::Open,
            reason: BackoffReason::Unreachable,
            failures: 0,
            backoff_index: 0,
        }
    }
}

/// How many consecutive failures make a site back off, if a single failure may have another cause. A host below the
/// site may be gone, or a page may be slow or require a password.
const PATIENCE_KNOWN: u32 = 2;
const PATIENCE: u32 = 3;
const PATIENCE_FORBIDDEN: u32 = 5;

/// The maximum number of consecutive failures that count as tasks' own before a backoff.
pub const MOST_SUSPECTS: usize = PATIENCE_FORBIDDEN as usize - 1;

impl SiteState {
    /// Whether the site is open and has no failures. This state is not stored.
    pub fn is_default(&self) -> bool {
        self.phase == Phase::Open && self.failures == 0 && self.backoff_index == 0
    }

    /// Whether a failure for this reason continues a series of failures.
    pub fn is_failing_for(&self, reason: BackoffReason) -> bool {
        self.phase != Phase::Open || (self.failures > 0 && self.reason == reason)
    }

    /// Notes that an attempt was answered. Returns whether the state has changed.
    pub fn on_answer(&mut self, now_ms: i64) -> bool {
        match self.phase {
            // A late answer to a request from before the backoff.
            Phase::BackingOff { until_ms } if now_ms < until_ms => return false,
            Phase::Unreachable => return false,
            Phase::BackingOff { .. } | Phase::Open => {}
        }
        let before = *self;
        self.phase = Phase::Open;
        self.failures = 0;
        self.backoff_index = self.backoff_index.saturating_sub(1);
        *self != before
    }

    /// Notes that an attempt has failed. `has_answered`: a robots.txt or a page of the site was read before.
    pub fn on_failure(
        &mut self,
        reason: BackoffReason,
        certain: bool,
        has_answered: bool,
        table: &BackoffTable,
        now_ms: i64,
    ) -> Verdict {
        if table.backoff_seconds(reason).is_empty() {
            return Verdict::OwnFailure;
        }
        match self.phase {
            Phase::Unreachable => return Verdict::Unreachable,
            Phase::BackingOff { until_ms } if now_ms < until_ms => return Verdict::SiteBackoffs,
            Phase::BackingOff { .. } => self.backoff_index += 1,
            Phase::Open => {
                self.failures = match self.reason == reason {
                    true => self.failures.saturating_add(1),
                    false => 1,
                };
            }
        }
        self.reason = reason;
        if self.phase == Phase::Open
            && self.failures < failures_before_backoff(reason, certain, has_answered)
        {
            return match certain {
                true => Verdict::TaskWaits,
                false => Verdict::OwnFailure,
            };
        }
        self.begin_backoff(table, now_ms)
    }

    /// Begins the backoff with the current index.
    fn begin_backoff(&mut self, table: &BackoffTable, now_ms: i64) -> Verdict {
        self.failures = 0;
        let until_ms = match table.backoff_ms(self.reason, self.backoff_index as usize) {
            Some(backoff_ms) => now_ms.saturating_add(backoff_ms),
            None if self.reason == BackoffReason::Blocked => UNTIL_WOKEN_MS,
            None => {
                self.phase = Phase::Unreachable;
                return Verdict::Unreachable;
            }
        };
        self.phase = Phase::BackingOff { until_ms };
        Verdict::SiteBackoffs
    }

    /// Begins the last backoff of an unreachable site, because it has got new tasks.
    pub fn back_off_for_new_tasks(&mut self, table: &BackoffTable, now_ms: i64) {
        let last = table.backoff_seconds(self.reason).len().saturating_sub(1);
        self.backoff_index = last as u32;
        self.phase = Phase::Open;
        if self.begin_backoff(table, now_ms) == Verdict::Unreachable {
            *self = SiteState::default();
        }
    }

    /// Ends a backoff on a person's request, so that a task tests the site now.
    pub fn end_backoff(&mut self, now_ms: i64) {
        match self.phase {
            Phase::Open => {}
            Phase::BackingOff { until_ms } => {
                let until_ms = until_ms.min(now_ms);
                self.phase = Phase::BackingOff { until_ms };
            }
            Phase::Unreachable => *self = SiteState::default(),
        }
    }
}

fn failures_before_backoff(reason: BackoffReason, certain: bool, has_answered: bool) -> u32 {
    match (reason, certain) {
        (BackoffReason::Blocked, true) => 1,
        (BackoffReason::Blocked, false) => PATIENCE_FORBIDDEN,
        (BackoffReason::Robots | BackoffReason::Dns, _) if has_answered => PATIENCE_KNOWN,
        (BackoffReason::Robots | BackoffReason::Dns, _) => 1,
        (BackoffReason::Unreachable | BackoffReason::Tls | BackoffReason::Busy, _) => PATIENCE,
    }
}

/// The outcome of the tasks of a site that is unreachable for this reason.
pub fn outcome_if_unreachable(reason: BackoffReason) -> Outcome {
    match reason {
        BackoffReason::Robots => Outcome::RobotsUnreachable,
        BackoffReason::Unreachable => Outcome::NetworkError,
        BackoffReason::Tls => Outcome::TlsError,
        BackoffReason::Dns => Outcome::DnsError,
        BackoffReason::Busy => Outcome::HttpError,
        BackoffReason::Blocked => Outcome::Blocked,
    }
}

#[cfg(test)]
mod tests;
