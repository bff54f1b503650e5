//! Deliberate faults, which show that faults of dispatchers with standbys are found. The rules of the journal are those
//! of the product, so most of these faults change the answers that a dispatcher gets.

use webfill_scheduler::journal::{AppendAnswer, JournalAnswer, Lease, Record};

/// The deliberate faults. Each has a test in `tests/standbys.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandbySabotage {
    /// Effects are released before the record of their commit is in the journal.
    EffectsPrecedeTheRecord,
    /// If a record with the same number is already in the journal, it counts as the dispatcher's own, whatever its
    /// epoch is.
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
    /// A file is ahead of the journal, because commits are stored in it before their records are added to the journal.
    FilesAreAhead,
    /// A late write of a former dispatcher to the store takes effect.
    LateWritesCount,
}

impl StandbySabotage {
    /// The answers that a dispatcher gets in place of this one. `by_wall_clocks` is the lease as it would be if wall
    /// clocks decided about it.
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

/// An answer that makes a dispatcher believe that it has read the journal to its end.
fn answer_at_end(records: Vec<Record>) -> JournalAnswer {
    JournalAnswer::Read {
        records,
        is_end: true,
        lease: Lease::unused(),
    }
}
