//! The plan of the dispatchers in a world with standbys.

use webfill_scheduler::journal::MemberTerms;

use super::faults::NodeFault;
use crate::dice::Dice;

/// If a request to the journal has no answer after this time, it is repeated.
pub(super) const MISSED_AFTER_MS: u64 = 250;

#[derive(Debug, Clone)]
pub(crate) struct StandbyPlan {
    pub(super) nodes: usize,
    /// The length of the lease that lets a dispatcher serve. After each `tick_ms`, a dispatcher renews the lease or
    /// reads the journal.
    pub(super) lease_ms: u64,
    pub(super) tick_ms: u64,
    /// The largest size of a record, and of all records that are in transit to the journal.
    pub(super) part_bytes: usize,
    pub(super) on_their_way_bytes: usize,
    /// How often a serving dispatcher commits to its own file.
    pub(super) keeps_every_ms: u64,
    /// The longest time that a message to or from the journal takes. One in `lost_once_in` messages is lost, and one in
    /// `late_once_in` is late.
    pub(super) way_ms: u64,
    pub(super) lost_once_in: u64,
    pub(super) late_once_in: u64,
    /// One in this many commands with several records is only partly carried out.
    pub(super) cut_short_once_in: u64,
    /// For each dispatcher, the difference between its wall clock and the true time.
    pub(super) clocks_ahead_ms: Vec<i64>,
    pub(super) faults: Vec<(u64, NodeFault)>,
    /// When a snapshot is made, and of whose file.
    pub(super) snapshots: Vec<(u64, usize)>,
}

impl StandbyPlan {
    /// Adds faults that cut the serving dispatcher off from the journal, until another dispatcher has taken over.
    pub(super) fn cut_journal_off(&mut self, dice: &mut Dice, estimate_ms: u64) {
        for _ in 0..12 {
            let at_ms = dice.between(0, estimate_ms + 60_000);
            let for_ms = dice.between(2 * self.lease_ms, 4 * self.lease_ms);
            let fault = NodeFault::CutOffFromJournal { node: None, for_ms };
            self.faults.push((at_ms, fault));
        }
    }

    /// Adds faults so that a former dispatcher adds records under numbers that were cut, while a third dispatcher has
    /// missed just the records with these numbers.
    pub(super) fn cut_behind_ghosts(&mut self, dice: &mut Dice, estimate_ms: u64) {
        self.clocks_ahead_ms.resize(3, 0);
        self.nodes = 3;
        self.keeps_every_ms = 20;
        for _ in 0..12 {
            let at_ms = dice.between(0, estimate_ms + 60_000);
            let for_ms = dice.between(3 * self.lease_ms, 5 * self.lease_ms);
            let ghost = NodeFault::CutOffFromJournal { node: None, for_ms };
            self.faults.push((at_ms, ghost));
            // The third one reads what was added until the other one was cut off, and returns after that one.
            let node = Some(dice.between(0, 2) as usize);
            let third = NodeFault::CutOffFromJournal { node, for_ms };
            self.faults.push((at_ms + self.lease_ms / 2, third));
            let taken_ms = at_ms + dice.between(self.lease_ms, 2 * self.lease_ms);
            self.snapshots.push((taken_ms, dice.between(0, 2) as usize));
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

    /// The additional time that a world may take because of its faults.
    pub(crate) fn patience_ms(&self, hand_over_ms: u64) -> u64 {
        (100 + 20 * self.faults.len() as u64) * (self.lease_ms + hand_over_ms)
    }

    /// Whether no dispatcher is replaced and the journal has no faults.
    pub(crate) fn is_peaceful(&self) -> bool {
        let losses = [self.lost_once_in, self.late_once_in, self.cut_short_once_in];
        self.faults.is_empty() && losses == [0; 3]
    }
}
