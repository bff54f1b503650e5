//! The plan of the dispatchers in a world with standbys.

use webfill_scheduler::journal::MemberTerms;

use super::faults::NodeFault;
use crate::dice::Dice;

/// After this long a request to the journal is made again.
pub(super) const MISSED_AFTER_MS: u64 = 250;

#[derive(Debug, Clone)]
pub(crate) struct StandbyPlan {
    pub(super) nodes: usize,
    /// How long a lease lasts, and how often it is renewed and the journal read.
    pub(super) lease_ms: u64,
    pub(super) tick_ms: u64,
    /// The size of a record, and of all that are on their way.
    pub(super) part_bytes: usize,
    pub(super) on_their_way_bytes: usize,
    /// How often a serving dispatcher commits to its own file.
    pub(super) keeps_every_ms: u64,
    /// The longest time of a message to or from the journal, and one in how many messages is lost or late.
    pub(super) way_ms: u64,
    pub(super) lost_once_in: u64,
    pub(super) late_once_in: u64,
    /// One in how many commands with several records is carried out in part.
    pub(super) cut_short_once_in: u64,
    /// How far the wall clock of each dispatcher is ahead of the true time.
    pub(super) clocks_ahead_ms: Vec<i64>,
    pub(super) faults: Vec<(u64, NodeFault)>,
}

impl StandbyPlan {
    /// Adds faults that cut the dispatcher that serves off from the journal, until another one has taken over.
    pub(super) fn cut_journal_off(&mut self, dice: &mut Dice, estimate_ms: u64) {
        for _ in 0..12 {
            let at_ms = dice.between(0, estimate_ms + 60_000);
            let for_ms = dice.between(2 * self.lease_ms, 4 * self.lease_ms);
            let fault = NodeFault::CutOffFromJournal { node: None, for_ms };
            self.faults.push((at_ms, fault));
        }
    }

    pub(super) fn member_terms(&self) -> MemberTerms {
        MemberTerms {
            lease_ms: self.lease_ms,
            missed_after_ms: MISSED_AFTER_MS,
            part_bytes: self.part_bytes,
            pending_bytes: self.on_their_way_bytes,
        }
    }

    /// How much longer a world may take than without these faults.
    pub(crate) fn patience_ms(&self, hand_over_ms: u64) -> u64 {
        (100 + 20 * self.faults.len() as u64) * (self.lease_ms + hand_over_ms)
    }

    /// Whether no dispatcher is replaced, and nothing about the journal goes wrong.
    pub(crate) fn is_peaceful(&self) -> bool {
        let losses = [self.lost_once_in, self.late_once_in, self.cut_short_once_in];
        self.faults.is_empty() && losses == [0; 3]
    }
}
