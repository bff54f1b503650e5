//! Fills records from pages.

use super::FillRequest;
use super::document::{EntryResult, RecordDocument};
use super::revising::{group_by_record, read_modify_write, read_records};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::record::{FillRules, PageValues, RecordState};
use crate::reread::FieldChange;
use crate::sqlite::Trial;

/// Fills records from pages. A record that is not stored counts as open.
pub(in crate::mongodb) async fn fill<'w, 'p>(
    db: &Db,
    requests: &'w [FillRequest<'p>],
    rules: &FillRules,
) -> Result<Vec<(&'w FillRequest<'p>, EntryResult)>, Fault> {
    let by_record = group_by_record(requests.iter().map(|request| request.record.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let fill_one = |index: &usize| match kept {
            None => Ok(RecordState::Open),
            Some(kept) => kept.fill(&requests[*index].values, rules),
        };
        indexes.iter().map(fill_one).collect()
    };
    let settled = read_modify_write(db, by_record, revise).await?;
    let pairs = settled
        .into_iter()
        .map(|(index, state)| (&requests[index], state));
    Ok(pairs.collect())
}

/// The requests, each with the changes to its record's values.
type Changes<'w, 'p> = Vec<(&'w FillRequest<'p>, EntryResult<Vec<FieldChange>>)>;

/// Fills records from pages that were read again. Returns which values are new or changed.
pub(in crate::mongodb) async fn fill_from_reread_pages<'w, 'p>(
    db: &Db,
    requests: &'w [FillRequest<'p>],
    rules: &FillRules,
) -> Result<Changes<'w, 'p>, Fault> {
    let by_record = group_by_record(requests.iter().map(|request| request.record.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let fill_one = |index: &usize| match kept {
            None => Ok(Vec::new()),
            Some(kept) => kept.fill_from_reread_page(&requests[*index].values, rules),
        };
        indexes.iter().map(fill_one).collect()
    };
    let settled = read_modify_write(db, by_record, revise).await?;
    let pairs = settled
        .into_iter()
        .map(|(index, changes)| (&requests[index], changes));
    Ok(pairs.collect())
}

/// The changes that [`fill_from_reread_pages`] would make, after all earlier changes of the trial. Records that are not
/// stored are left out.
pub(in crate::mongodb) async fn preview_changes<'w, 'p>(
    db: &Db,
    requests: &'w [FillRequest<'p>],
    rules: &FillRules,
    trial: &Trial,
) -> Result<Changes<'w, 'p>, Fault> {
    let by_record = group_by_record(requests.iter().map(|request| request.record.as_str()));
    let mut read = read_records(db, by_record.keys().copied().collect()).await?;
    let mut previewed = Vec::new();
    for (key, indexes) in by_record {
        let Some(mut stored) = read.remove(key) else {
            continue;
        };
        if let Some(tried) = trial.load(key)? {
            stored.record = tried;
        }
        let before = stored.record.clone();
        for index in indexes {
            let request = &requests[index];
            previewed.push((
                request,
                stored.fill_from_reread_page(&request.values, rules),
            ));
        }
        if stored.record != before {
            trial.keep(key, &stored.record)?;
        }
    }
    Ok(previewed)
}

impl RecordDocument {
    /// Like [`RecordDocument::fill`], from a page that was read again.
    fn fill_from_reread_page(
        &mut self,
        page: &PageValues<'_>,
        rules: &FillRules,
    ) -> EntryResult<Vec<FieldChange>> {
        let before = self.record.clone();
        let changes = self.record.fill_from_reread_page(page, rules);
        if self.record != before {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        Ok(changes)
    }
}
