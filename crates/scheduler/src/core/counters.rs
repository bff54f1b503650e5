//! Counters that only grow during the life of the process.

use std::collections::BTreeMap;

use webfill_notifications::Verdict;
use webfill_wire::BackoffReason;

use crate::frontier::NothingHandedOut;

/// Counts of events since the start.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    pub messages: Messages,
    pub accepted: u64,
    pub handed_out: u64,
    /// Tasks given back without an outcome.
    pub returned: u64,
    /// Outcomes whose task was retried.
    pub retried: u64,
    /// Outcomes that are ignored, because their lease was no longer in force.
    pub stale: u64,
    pub backoff: BTreeMap<BackoffReason, u64>,
    /// Sites that were granted to a supervisor but had nothing to hand out, by reason.
    pub set_aside: BTreeMap<NothingHandedOut, u64>,
    pub supervisors_lost: u64,
    pub deliveries: Deliveries,
}

/// The number of messages from and to supervisors since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Messages {
    pub received: u64,
    pub sent: u64,
}

/// The results of attempts to deliver notifications.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deliveries {
    pub delivered: u64,
    pub failed: u64,
    pub dropped: u64,
}

impl Deliveries {
    pub(super) fn count_verdict(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Delivered => &mut self.delivered,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::Dropped(_) => &mut self.dropped,
        } += 1;
    }
}
