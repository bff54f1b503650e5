//! Deliberate faults, which show that faults of standby dispatchers are found. The code for the journal is that of the
//! product, so most of these faults change the answers that a dispatcher gets from the journal.

use webfill_scheduler::journal::{AppendAnswer, JournalAnswer, Lease, Record};

/// The deliberate faults. Each has a test in `tests/standbys.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandbySabotage {
    /// Effects of a commit (such as messages) are released before its record is in the journal.
    EffectsPrecedeTheRecord,
    /// If a record with the same number is already in the journal, it counts as the dispatcher's own, whatever its
    /// epoch (the number of the lease) is.
    EpochsAreNotCompared,
    /// A dispatcher continues although it has not renewed its lease.
    TenuresDoNotEnd,
    /// The holder of the lease counts its time from the arrival of the answer to a renewal, and not from the sending of
    /// the renewal.
    TenuresCountFromTheAnswer,
    /// The end of a lease is decided by wall clocks.
    WallClocksDecide,
    /// A new dispatcher does not wait for the supervisors that were connected to the dispatcher before it.
    NobodyIsAwaited,
    /// A command without an answer counts as carried out.
    LostAnswersCountAsDone,
    /// A new dispatcher begins without the last records of the dispatcher before it.
    TheEndIsNotRead,
    /// The files of dispatchers contain commits whose records are not in the journal yet.
    FilesAreAhead,
    /// A late write of a former dispatcher to the store takes effect.
    LateWritesCount,
    /// Records that a former dispatcher adds under numbers that were cut are applied by others.
    CutRecordsCount,
}

impl StandbySabotage {
    /// The answers that a dispatcher gets in place of this one. `by_wall_clocks` changes a lease to what it would be if
    /// wall clocks decided about it.
    pub(super) fn change_answer(
        self,
        mut answer: JournalAnswer,
        by_wall_clocks: impl Fn(Lease) -> Lease,
        (is_serving, own_epoch, now_ms): (bool, Option<u64>, u64),
    ) -> Vec<JournalAnswer> {
        match (self, &mut answer) {
            (
                StandbySabotage::TenuresCountFromTheAnswer,
                JournalAnswer::Renewed { sent_ms, .. },
            ) => {
                *sent_ms = now_ms;
            }
            (StandbySabotage::TenuresDoNotEnd, JournalAnswer::Renewed { is_held, .. }) => {
                *is_held = true;
            }
            (StandbySabotage::WallClocksDecide, JournalAnswer::Read { lease, .. }) => {
                *lease = by_wall_clocks(*lease);
            }
            (StandbySabotage::CutRecordsCount, JournalAnswer::Read { cut_before, .. }) => {
                *cut_before = 0;
            }
            (StandbySabotage::EpochsAreNotCompared, JournalAnswer::Appended { answer, .. })
                if is_serving =>
            {
                *answer = AppendAnswer::Added;
            }
            (StandbySabotage::TheEndIsNotRead, JournalAnswer::Taken { epoch: Some(_), .. }) => {
                return vec![answer, answer_at_end(Vec::new())];
            }
            (
                StandbySabotage::TheEndIsNotRead,
                JournalAnswer::Appended {
                    answer: AppendAnswer::Taken { number, epoch },
                    ..
                },
            ) if !is_serving && Some(*epoch) < own_epoch => {
                let skipped = Record::epoch_start(*number, *epoch);
                return vec![answer, answer_at_end(vec![skipped])];
            }
            _ => {}
        }
        vec![answer]
    }
}

/// An answer that makes a dispatcher believe that it has read the whole journal.
fn answer_at_end(records: Vec<Record>) -> JournalAnswer {
    JournalAnswer::Read {
        records,
        is_end: true,
        cut_before: 0,
        lease: Lease::unused(),
    }
}
