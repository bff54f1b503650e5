//! Records are filled from pages.

use super::{EntryResult, FillRequest, RecordDocument, group_by_record, read_modify_write};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::record::{MappingOrder, PageValues, RecordState};

/// Fills records from pages. A record that is not stored stays open.
pub(in crate::mongodb) async fn fill<'w, 'p>(
    db: &Db,
    requests: &'w [FillRequest<'p>],
    order: &MappingOrder,
) -> Result<Vec<(&'w FillRequest<'p>, EntryResult)>, Fault> {
    let by_record = group_by_record(requests.iter().map(|request| request.record.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let fill_one = |index: &usize| match kept {
            None => Ok(RecordState::Open),
            Some(kept) => kept.fill(&requests[*index].values, order),
        };
        indexes.iter().map(fill_one).collect()
    };
    let settled = read_modify_write(db, by_record, revise).await?;
    let pairs = settled
        .into_iter()
        .map(|(index, state)| (&requests[index], state));
    Ok(pairs.collect())
}

/// Fills records from pages that were read again; how many values of fields are new or other ones. A trial
/// writes nothing.
pub(in crate::mongodb) async fn fill_again<'w, 'p>(
    db: &Db,
    requests: &'w [FillRequest<'p>],
    order: &MappingOrder,
    is_trial: bool,
) -> Result<Vec<(&'w FillRequest<'p>, EntryResult<u32>)>, Fault> {
    let by_record = group_by_record(requests.iter().map(|request| request.record.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let before = kept.clone();
        let fill_one = |index: &usize| match kept {
            None => Ok(0),
            Some(kept) => kept.fill_again(&requests[*index].values, order),
        };
        let filled = indexes.iter().map(fill_one).collect();
        if is_trial {
            *kept = before;
        }
        filled
    };
    let settled = read_modify_write(db, by_record, revise).await?;
    let pairs = settled
        .into_iter()
        .map(|(index, values)| (&requests[index], values));
    Ok(pairs.collect())
}

impl RecordDocument {
    /// As [`RecordDocument::fill`], from a page that was read again.
    fn fill_again(&mut self, page: &PageValues<'_>, order: &MappingOrder) -> EntryResult<u32> {
        let before = self.record.clone();
        let values = self.record.fill_again(page, order);
        if self.record != before {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        Ok(values)
    }
}
