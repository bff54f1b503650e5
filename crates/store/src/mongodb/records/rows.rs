//! Turns rows of pages into records.

use std::collections::{HashMap, HashSet};

use super::document::{EntryResult, RecordDocument};
use super::revising::{
    Results, group_by_record, permanent_refusals, read_modify_write, read_records,
};
use crate::listing::KeyedRow;
use crate::mongodb::command::Db;
use crate::mongodb::fault::Fault;
use crate::record::{FillRules, RecordState, RowValues};
use crate::row_page::RowPage;
use crate::store::RowLead;
use crate::timestamp::iso_time;

/// How many rows are queried and written at a time. A query with keys may have 16 MB, and a key has up to 1,225 bytes.
const ROWS_AT_ONCE: usize = 5_000;

/// A row, and the index of its page's entry.
type Row = (usize, KeyedRow);

/// The results of storing rows as records. Each result has the index of its page's entry.
#[derive(Default)]
pub(in crate::mongodb) struct PutRowsResult {
    /// The reasons why rows cannot be stored.
    pub(in crate::mongodb) refused: Vec<(usize, String)>,
    /// The records of rows that lack a wanted field, with the links of these rows.
    pub(in crate::mongodb) leads: Vec<(usize, RowLead)>,
    /// Pages with rows that have no key.
    pub(in crate::mongodb) without_key: Vec<usize>,
}

/// Stores the rows of pages as records. Rows without a key are left out.
pub(in crate::mongodb) async fn put_rows(
    db: &Db,
    pages: &[RowPage<'_>],
    rules: &FillRules,
) -> Result<PutRowsResult, Fault> {
    let mut put = PutRowsResult::default();
    let rows = rows_with_keys(db, pages, &mut put.without_key).await?;
    for some in rows.chunks(ROWS_AT_ONCE) {
        put_chunk(db, pages, some, rules, &mut put).await?;
    }
    Ok(put)
}

async fn put_chunk(
    db: &Db,
    pages: &[RowPage<'_>],
    rows: &[Row],
    rules: &FillRules,
    put: &mut PutRowsResult,
) -> Result<(), Fault> {
    let mut by_record = group_by_record(rows.iter().map(|(_, row)| row.key.as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let take_one = |index: &usize| {
            let (entry, row) = &rows[*index];
            let values = RowValues::of(&pages[*entry], row);
            let record = kept.get_or_insert_default();
            if let Some(crawl) = pages[*entry]
                .crawl
                .as_ref()
                .filter(|_| !row.want.is_empty())
            {
                record.add_to_crawl(crawl);
            }
            record.put_row(&values, rules)
        };
        indexes.iter().map(take_one).collect()
    };
    let mut settled = insert_new_records(db, &mut by_record, revise).await?;
    settled.extend(read_modify_write(db, by_record, revise).await?);
    // The links of rows are followed in this order.
    settled.sort_unstable_by_key(|(index, _)| *index);
    for (index, taken) in settled {
        let (entry, row) = &rows[index];
        match taken {
            Err(reason) => put.refused.push((*entry, reason)),
            Ok(RecordState::Open) if !row.links.is_empty() => {
                let lead = RowLead {
                    record: row.key.clone(),
                    urls: row.links.clone(),
                };
                put.leads.push((*entry, lead));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Creates records that do not exist yet without reading them first, which is several times as fast. Removes these
/// records from `pending`.
async fn insert_new_records(
    db: &Db,
    pending: &mut HashMap<&str, Vec<usize>>,
    revise: impl Fn(&[usize], &mut Option<RecordDocument>) -> Vec<EntryResult>,
) -> Result<Results<RecordState>, Fault> {
    let keys: Vec<&str> = pending.keys().copied().collect();
    let known = db.existing_ids("records", &keys).await?;
    let mut new: Vec<(&str, Vec<usize>)> =
        pending.extract_if(|key, _| !known.contains(*key)).collect();
    // New records are created in the order of their rows, which is also the order of exports.
    new.sort_unstable_by_key(|(_, entries)| entries[0]);
    let mut settled = Vec::new();
    let (mut documents, mut sent) = (Vec::new(), Vec::new());
    for (key, entries) in new {
        let mut record = None;
        let taken: Results<RecordState> = revise(&entries, &mut record)
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
    let refused = permanent_refusals(&inserted.failed)?;
    let failed: HashSet<usize> = inserted.failed.iter().map(|(index, ..)| *index).collect();
    for (statement, (key, entries, taken)) in sent.into_iter().enumerate() {
        match refused.get(&statement) {
            Some(reason) => settled.extend(
                entries
                    .into_iter()
                    .map(|index| (index, Err(reason.clone()))),
            ),
            // Another client has created the record first, so it must be read and changed.
            None if failed.contains(&statement) => drop(pending.insert(key, entries)),
            None => settled.extend(taken),
        }
    }
    Ok(settled)
}

async fn rows_with_keys(
    db: &Db,
    pages: &[RowPage<'_>],
    without_key: &mut Vec<usize>,
) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for (entry, page) in pages.iter().enumerate() {
        for listing in page.listings {
            let keys = page.records.iter();
            let mut read = match listing.needs_record() {
                true => read_records(db, keys.clone().map(String::as_str).collect()).await?,
                false => Default::default(),
            };
            let of_page: Vec<_> = keys
                .map(|key| (key.clone(), read.remove(key).map(|stored| stored.record)))
                .collect();
            let (keyed, lost) = listing.rows_with_keys(&of_page);
            if lost > 0 {
                without_key.push(entry);
            }
            rows.extend(keyed.into_iter().map(|row| (entry, row)));
        }
    }
    Ok(rows)
}

/// Handles a list that was read without these rows: each is noted as missing from the list. Returns the keys of the
/// records that are gone as a result.
pub(in crate::mongodb) async fn note_rows_missing_from_list(
    db: &Db,
    keys: &[String],
    list: &str,
    began_ms: i64,
) -> Result<Vec<String>, Fault> {
    let by_record = group_by_record(keys.iter().map(String::as_str));
    let began = iso_time(began_ms);
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let note_missing = |record: &mut RecordDocument| {
            record.record.note_row_missing_from_list(list, began_ms);
            let gone = record.record.gone_from();
            // This is also true if the record is revised again because its write was confirmed too late.
            gone.is_some_and(|gone| gone.list == list && gone.at == began)
        };
        let is_gone = kept.as_mut().is_some_and(note_missing);
        indexes.iter().map(|_| Ok(is_gone)).collect()
    };
    let mut gone = Vec::new();
    for (index, is_gone) in read_modify_write(db, by_record, revise).await? {
        if is_gone == Ok(true) {
            gone.push(keys[index].clone());
        }
    }
    gone.sort_unstable();
    Ok(gone)
}

impl RecordDocument {
    /// Takes the values of a row. If that would make the record too large, the row is refused and nothing changes.
    fn put_row(&mut self, row: &RowValues<'_>, rules: &FillRules) -> EntryResult {
        let before = self.record.clone();
        if self.record.put_row(row, rules) {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        Ok(self.record.state_for_fetching())
    }
}
