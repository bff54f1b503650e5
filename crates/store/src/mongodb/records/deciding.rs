//! Applies decisions of people.

use super::document::{EntryResult, RecordDocument};
use super::revising::{group_by_record, read_modify_write};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::record::{Decided, Decision};

/// Applies a person's decision about a value.
pub(super) async fn decide(
    db: &Db,
    decision: &Decision,
    now_ms: i64,
) -> Result<EntryResult<Decided>, Fault> {
    let by_record = group_by_record(std::iter::once(decision.record.as_str()));
    let revise = |_: &[usize], kept: &mut Option<RecordDocument>| {
        let decided = match kept {
            Some(kept) => kept.apply_decision(decision, now_ms),
            None => Ok(Decided::Unknown),
        };
        vec![decided]
    };
    let decided = read_modify_write(db, by_record, revise).await?;
    let decided = decided.into_iter().map(|(_, decided)| decided).next();
    Ok(decided.unwrap_or(Ok(Decided::Unknown)))
}

impl RecordDocument {
    fn apply_decision(&mut self, decision: &Decision, now_ms: i64) -> EntryResult<Decided> {
        // If the answer to the write was lost, the decision is applied again. It then finds that it has already been
        // applied.
        if self.record.has_decision(decision, now_ms) {
            return Ok(Decided::Done);
        }
        let before = self.record.clone();
        let decided = self.record.decide(decision, now_ms);
        if decided == Decided::Done {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        Ok(decided)
    }
}
