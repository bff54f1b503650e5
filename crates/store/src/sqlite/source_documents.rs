//! The table `origins`: the documents that records were read from, and the records to be written back (see
//! [`crate::source_document`]).

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Sqlite;
use super::columns::{from_json, to_json};
use super::fault::Fault;
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::record::StoredRecord;
use crate::source_document::{SourceDocument, UnwrittenRecord, check_same_document};
use crate::store::SourceDocuments;

/// A list of unwritten records ends when their texts have this size, in bytes. The record that exceeds it is included.
const MAX_BYTES: usize = 4 << 20;

/// Stores the document that a record was read from, once for each crawl. Values that the store has and the document
/// lacks are marked to be written back.
pub(super) fn add_source(
    conn: &Connection,
    crawl: i64,
    key: &str,
    source: &SourceDocument,
    stored: &StoredRecord,
) -> Result<(), Fault> {
    let find = "SELECT document, collection FROM origins WHERE record = ?1 AND crawl = ?2";
    let known: Option<(String, String)> = conn
        .prepare_cached(find)?
        .query_row(params![key, crawl], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((id, collection)) = known {
        let checked = check_same_document(&id, &collection, source);
        return checked.map_err(Fault::InvalidEntry);
    }
    let insert = "INSERT INTO origins (record, crawl, collection, document, fields, changes)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let changes = i64::from(!stored.filled_fields(&source.fields).is_empty());
    let fields = to_json(&source.fields)?;
    conn.prepare_cached(insert)?.execute(params![
        key,
        crawl,
        source.collection,
        source.id,
        fields,
        changes
    ])?;
    Ok(())
}

/// Marks a changed record as unwritten, for every crawl that writes records back to the user's dataset.
pub(super) fn mark_unwritten(conn: &Connection, key: &str) -> Result<(), Fault> {
    let note = "UPDATE origins SET changes = changes + 1 WHERE record = ?1";
    conn.prepare_cached(note)?.execute([key])?;
    Ok(())
}

/// Up to `limit` records that a crawl has read from this collection and that are to be written back.
pub(super) fn unwritten_records(
    conn: &Connection,
    crawl: &str,
    collection: &str,
    limit: u32,
) -> Result<Vec<UnwrittenRecord>, Fault> {
    let sql =
        "SELECT record, document, changes, origins.fields, records.fields, candidates, sources,
            history, missing, given, written
        FROM origins JOIN records ON records._id = record
        WHERE crawl = (SELECT key FROM crawls WHERE _id = ?1) AND changes > 0
            AND collection = ?2 LIMIT ?3";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![crawl, collection, limit])?;
    let mut unwritten = Vec::new();
    let mut bytes = 0;
    while bytes <= MAX_BYTES {
        let Some(row) = rows.next()? else { break };
        bytes += row.get_ref(4)?.as_str().map_or(0, str::len);
        unwritten.push(unwritten_record_from(row)?);
    }
    Ok(unwritten)
}

fn unwritten_record_from(row: &Row<'_>) -> Result<UnwrittenRecord, Fault> {
    let stored = StoredRecord {
        fields: from_json(row, 4)?,
        candidates: from_json(row, 5)?,
        sources: from_json(row, 6)?,
        history: from_json(row, 7)?,
        missing: from_json(row, 8)?,
        given: match row.get_ref(9)? {
            ValueRef::Null => None,
            _ => Some(from_json(row, 9)?),
        },
        written: from_json(row, 10)?,
        ..StoredRecord::default()
    };
    let writable: Vec<String> = from_json(row, 3)?;
    Ok(UnwrittenRecord {
        record: row.get(0)?,
        document: row.get(1)?,
        fields: stored.filled_fields(&writable),
        revision: row.get(2)?,
    })
}

/// Notes the values that are about to be written back to documents.
pub(super) fn begin_writing(conn: &Connection, records: &[UnwrittenRecord]) -> Result<(), Fault> {
    records.iter().try_for_each(|record| {
        change_written_values(conn, &record.record, |stored| {
            stored.note_writing(&record.fields)
        })
    })
}

fn change_written_values(
    conn: &Connection,
    key: &str,
    change: impl FnOnce(&mut StoredRecord),
) -> Result<(), Fault> {
    let find = "SELECT written FROM records WHERE _id = ?1";
    let mut find = conn.prepare_cached(find)?;
    let mut rows = find.query([key])?;
    let Some(row) = rows.next()? else {
        return Ok(());
    };
    let mut stored = StoredRecord {
        written: from_json(row, 0)?,
        ..StoredRecord::default()
    };
    let before = stored.written.clone();
    change(&mut stored);
    if stored.written != before {
        let keep = "UPDATE records SET written = ?2 WHERE _id = ?1";
        conn.prepare_cached(keep)?
            .execute(params![key, to_json(&stored.written)?])?;
    }
    Ok(())
}

/// Removes the mark "unwritten" from records that have not changed since they were read.
pub(super) fn confirm_written(
    conn: &Connection,
    crawl: &str,
    written: &[UnwrittenRecord],
) -> Result<(), Fault> {
    let confirm = "UPDATE origins SET changes = 0
        WHERE record = ?1 AND crawl = (SELECT key FROM crawls WHERE _id = ?2) AND changes = ?3";
    let mut confirm = conn.prepare_cached(confirm)?;
    for record in written {
        if confirm.execute(params![record.record, crawl, record.revision])? > 0 {
            change_written_values(conn, &record.record, |stored| {
                stored.note_written(&record.fields);
            })?;
        }
    }
    Ok(())
}

#[async_trait]
impl SourceDocuments for Sqlite {
    async fn unwritten(
        &self,
        crawl: &CrawlId,
        collection: &str,
        limit: u32,
    ) -> Result<Vec<UnwrittenRecord>, StoreError> {
        let (crawl, of) = (crawl.to_string(), collection.to_owned());
        self.read(move |conn| unwritten_records(conn, &crawl, &of, limit))
            .await
    }

    async fn begin_writing(&self, written: &mut Vec<UnwrittenRecord>) -> Result<(), StoreError> {
        let records = written.clone();
        self.write(move |conn| begin_writing(conn, &records)).await
    }

    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<UnwrittenRecord>,
    ) -> Result<(), StoreError> {
        let crawl = crawl.to_string();
        self.write(move |conn| confirm_written(conn, &crawl, &written))
            .await
    }
}
