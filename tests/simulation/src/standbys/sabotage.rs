//! Deliberate faults, which show that faults of dispatchers that stand by are found. The rules of the journal are the
//! product's, so most of the faults change the answers that a dispatcher gets.

use webfill_scheduler::journal::{AppendAnswer, JournalAnswer, Lease, Record};

/// The deliberate faults. Each has a test in `tests/standbys.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandbySabotage {
    /// Effects leave before the record of their commit is in the journal.
    EffectsPrecedeTheRecord,
    /// A record that is there already counts as the dispatcher's own, whatever its epoch.
    EpochsAreNotCompared,
    /// A dispatcher that has not renewed its lease continues.
    TenuresDoNotEnd,
    /// A tenure counts from when the answer to a renewal came, not from when the renewal was sent.
    TenuresCountFromTheAnswer,
    /// Wall clocks decide whether a lease is over.
    WallClocksDecide,
    /// A new dispatcher does not wait for supervisors that were connected to the former one.
    NobodyIsAwaited,
    /// A command that is not answered counts as carried out.
    LostAnswersCountAsDone,
    /// A new dispatcher begins without the records that the former one has added meanwhile.
    TheEndIsNotRead,
    /// A file is ahead of the journal, because commits are kept in it before their records are added.
    FilesAreAhead,
    /// What a former dispatcher writes late to the store counts.
    LateWritesCount,
}

impl StandbySabotage {
    /// The answers that a dispatcher gets in place of this one. `by_wall_clocks`: the lease, if wall clocks decided
    /// about it.
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

/// An answer after which a dispatcher takes the journal to be read to its end.
fn answer_at_end(records: Vec<Record>) -> JournalAnswer {
    JournalAnswer::Read {
        records,
        is_end: true,
        lease: Lease::unused(),
    }
}
