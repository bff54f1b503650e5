//! Rows of pages become records.

use super::{EntryResult, RecordDocument, group_by_record, read_all, read_modify_write};
use crate::listing::{KeyedRow, RowPage};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::record::{FillRules, RowValues};

/// A row, and the index of its page's entry.
type Row = (usize, KeyedRow);

/// Takes the rows of pages into their records. Those without a key are left out. Returns the refusals of rows that
/// cannot be stored, each with the index of its entry.
pub(in crate::mongodb) async fn put_rows(
    db: &Db,
    pages: &[RowPage<'_>],
    rules: &FillRules,
) -> Result<Vec<(usize, String)>, Fault> {
    let rows = keyed(db, pages).await?;
    let by_record = group_by_record(rows.iter().map(|(_, row)| row.key.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let take_one = |index: &usize| {
            let (entry, row) = &rows[*index];
            let values = RowValues::of(&pages[*entry], row);
            kept.get_or_insert_default().take_row(&values, rules)
        };
        indexes.iter().map(take_one).collect()
    };
    let settled = read_modify_write(db, by_record, revise).await?;
    let refused = settled
        .into_iter()
        .filter_map(|(index, taken)| Some((rows[index].0, taken.err()?)));
    Ok(refused.collect())
}

async fn keyed(db: &Db, pages: &[RowPage<'_>]) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for (entry, page) in pages.iter().enumerate() {
        for listing in page.listings {
            let keys = page.records.iter();
            let mut read = match listing.needs_record() {
                true => read_all(db, keys.clone().map(String::as_str).collect()).await?,
                false => Default::default(),
            };
            let of_page: Vec<_> = keys
                .map(|key| (key.clone(), read.remove(key).map(|stored| stored.record)))
                .collect();
            rows.extend(listing.keyed(&of_page).into_iter().map(|row| (entry, row)));
        }
    }
    Ok(rows)
}

impl RecordDocument {
    /// A row that would make the record too large is refused and changes nothing.
    fn take_row(&mut self, row: &RowValues<'_>, rules: &FillRules) -> EntryResult<()> {
        let before = self.record.clone();
        if self.record.take_row(row, rules) {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        Ok(())
    }
}
