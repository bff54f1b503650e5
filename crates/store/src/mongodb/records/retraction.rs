//! Takes back values from pages.

use super::document::{EntryResult, RecordDocument};
use super::revising::{group_by_record, read_modify_write};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::record::FillRules;

/// A fetch whose response turned out to be a block page instead of the page. Its values are to be taken back.
pub(in crate::mongodb) struct RetractRequest<'a> {
    pub(in crate::mongodb) record: String,
    pub(in crate::mongodb) url: &'a str,
    /// When the fetch started, in the form used in a record's sources.
    pub(in crate::mongodb) started_at: String,
    pub(in crate::mongodb) at_ms: i64,
}

/// Takes back the values of fetches that turned out to be block pages from their records. Records that are not stored
/// are skipped.
pub(in crate::mongodb) async fn take_back(
    db: &Db,
    requests: &[RetractRequest<'_>],
    rules: &FillRules,
) -> Result<(), Fault> {
    let by_record = group_by_record(requests.iter().map(|request| request.record.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| -> Vec<EntryResult<()>> {
        let take_back_one = |index: &usize| {
            if let Some(kept) = kept {
                kept.retract(&requests[*index], rules);
            }
            Ok(())
        };
        indexes.iter().map(take_back_one).collect()
    };
    read_modify_write(db, by_record, revise).await.map(drop)
}

impl RecordDocument {
    fn retract(&mut self, request: &RetractRequest<'_>, rules: &FillRules) {
        let fetch = (request.url, request.started_at.as_str());
        if self.record.take_back(fetch, rules, request.at_ms) {
            self.mark_unwritten();
        }
    }
}
