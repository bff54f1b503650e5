//! Counters that only grow while the process lives.

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
    /// Given back without an outcome.
    pub returned: u64,
    /// Outcomes that were followed by another try.
    pub retried: u64,
    /// Outcomes that came too late.
    pub stale: u64,
    pub backoff: BTreeMap<BackoffReason, u64>,
    /// Sites that had nothing to hand out in their turn.
    pub set_aside: BTreeMap<NothingHandedOut, u64>,
    pub supervisors_lost: u64,
    pub deliveries: Deliveries,
}

/// How many messages have come from supervisors and gone to them since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Messages {
    pub received: u64,
    pub sent: u64,
}

/// Results of attempts to deliver notifications.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deliveries {
    pub delivered: u64,
    pub failed: u64,
    pub dropped: u64,
}

impl Deliveries {
    pub(super) fn count(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Delivered => &mut self.delivered,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::Dropped(_) => &mut self.dropped,
        } += 1;
    }
}
