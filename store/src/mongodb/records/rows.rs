//! Rows of pages become records.

use std::collections::{HashMap, HashSet};

use super::{
    EntryResult, RecordDocument, Results, group_by_record, read_all, read_modify_write, refusals,
};
use crate::listing::{KeyedRow, RowPage};
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::record::{FillRules, RowValues};

/// The most rows that are asked for and written at a time: a query for keys may have 16 MB, and a key 1,225 bytes.
const ROWS_AT_ONCE: usize = 5_000;

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
    let mut refused = Vec::new();
    for some in rows.chunks(ROWS_AT_ONCE) {
        refused.extend(put_some(db, pages, some, rules).await?);
    }
    Ok(refused)
}

async fn put_some(
    db: &Db,
    pages: &[RowPage<'_>],
    rows: &[Row],
    rules: &FillRules,
) -> Result<Vec<(usize, String)>, Fault> {
    let mut by_record = group_by_record(rows.iter().map(|(_, row)| row.key.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let take_one = |index: &usize| {
            let (entry, row) = &rows[*index];
            let values = RowValues::of(&pages[*entry], row);
            kept.get_or_insert_default().take_row(&values, rules)
        };
        indexes.iter().map(take_one).collect()
    };
    let mut settled = insert_new(db, &mut by_record, revise).await?;
    settled.extend(read_modify_write(db, by_record, revise).await?);
    let refused = settled
        .into_iter()
        .filter_map(|(index, taken)| Some((rows[index].0, taken.err()?)));
    Ok(refused.collect())
}

/// Creates the records that do not exist yet, without reading them, which is several times as fast. Takes those out of
/// `pending` that are settled by that.
async fn insert_new(
    db: &Db,
    pending: &mut HashMap<&str, Vec<usize>>,
    revise: impl Fn(&[usize], &mut Option<RecordDocument>) -> Vec<EntryResult<()>>,
) -> Result<Results<()>, Fault> {
    let keys: Vec<&str> = pending.keys().copied().collect();
    let known = db.existing("records", &keys).await?;
    let mut new: Vec<(&str, Vec<usize>)> =
        pending.extract_if(|key, _| !known.contains(*key)).collect();
    // They are created, and exported, in the order of their rows.
    new.sort_unstable_by_key(|(_, entries)| entries[0]);
    let mut settled = Vec::new();
    let (mut documents, mut sent) = (Vec::new(), Vec::new());
    for (key, entries) in new {
        let mut record = None;
        let taken: Results<()> = revise(&entries, &mut record)
            .into_iter()
            .zip(&entries)
            .map(|(taken, index)| (*index, taken))
            .collect();
        match record.filter(|record| *record != RecordDocument::default()) {
            Some(record) => {
                documents.push(record.new_document(key)?);
                sent.push((key, entries, taken));
            }
            None => settled.extend(taken),
        }
    }
    let inserted = db.insert("records", &documents).await?;
    let refused = refusals(&inserted.failed)?;
    let failed: HashSet<usize> = inserted.failed.iter().map(|(index, ..)| *index).collect();
    for (statement, (key, entries, taken)) in sent.into_iter().enumerate() {
        match refused.get(&statement) {
            Some(reason) => settled.extend(
                entries
                    .into_iter()
                    .map(|index| (index, Err(reason.clone()))),
            ),
            // Another client was faster.
            None if failed.contains(&statement) => drop(pending.insert(key, entries)),
            None => settled.extend(taken),
        }
    }
    Ok(settled)
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
