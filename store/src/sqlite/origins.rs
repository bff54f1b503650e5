//! The documents that records came from, and which of them lack what was found since.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::Fault;
use super::records::{from_json, to_json};
use crate::origin::{Origin, Unwritten, why_not_another};
use crate::record::StoredRecord;

/// What is handed out in one go ends behind the record with which it exceeds this, in bytes of
/// text.
const MAX_BYTES: usize = 4 << 20;

/// Notes where a record of a crawl came from, unless that is known. What the store has and the
/// document has not is to be written back.
pub(super) fn enter(
    conn: &Connection,
    crawl: i64,
    id: &str,
    origin: &Origin,
    stored: &StoredRecord,
) -> Result<(), Fault> {
    let find = "SELECT document FROM origins WHERE record = ?1 AND crawl = ?2";
    let known: Option<String> = conn
        .prepare_cached(find)?
        .query_row(params![id, crawl], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return match why_not_another(&known, origin) {
            Some(reason) => Err(Fault::Unfit(reason)),
            None => Ok(()),
        };
    }
    let insert = "INSERT INTO origins (record, crawl, document, fields, changes)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let changes = i64::from(!stored.filled(&origin.fields).is_empty());
    let fields = to_json(&origin.fields)?;
    conn.prepare_cached(insert)?
        .execute(params![id, crawl, origin.document, fields, changes])?;
    Ok(())
}

/// Marks a record that was changed, for every crawl that writes it back.
pub(super) fn note_change(conn: &Connection, id: &str) -> Result<(), Fault> {
    let note = "UPDATE origins SET changes = changes + 1 WHERE record = ?1";
    conn.prepare_cached(note)?.execute([id])?;
    Ok(())
}

/// Records with the mark.
pub(super) fn unwritten(
    conn: &Connection,
    crawl: &str,
    limit: u32,
) -> Result<Vec<Unwritten>, Fault> {
    let sql = "SELECT record, document, changes, origins.fields, records.fields, candidates
        FROM origins JOIN records ON records._id = record
        WHERE crawl = (SELECT key FROM crawls WHERE _id = ?1) AND changes > 0 LIMIT ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![crawl, limit])?;
    let mut unwritten = Vec::new();
    let mut bytes = 0;
    while bytes <= MAX_BYTES {
        let Some(row) = rows.next()? else { break };
        bytes += row.get_ref(4)?.as_str().map_or(0, str::len);
        unwritten.push(read(row)?);
    }
    Ok(unwritten)
}

fn read(row: &Row<'_>) -> Result<Unwritten, Fault> {
    let stored = StoredRecord {
        fields: from_json(row, 4)?,
        candidates: from_json(row, 5)?,
        ..StoredRecord::default()
    };
    let writable: Vec<String> = from_json(row, 3)?;
    Ok(Unwritten {
        record: row.get(0)?,
        document: row.get(1)?,
        fields: stored.filled(&writable),
        revision: row.get(2)?,
    })
}

/// Takes the mark from records that have not changed since they were read.
pub(super) fn confirm(conn: &Connection, crawl: &str, written: &[Unwritten]) -> Result<(), Fault> {
    let confirm = "UPDATE origins SET changes = 0
        WHERE record = ?1 AND crawl = (SELECT key FROM crawls WHERE _id = ?2) AND changes = ?3";
    let mut confirm = conn.prepare_cached(confirm)?;
    for record in written {
        confirm.execute(params![record.record, crawl, record.revision])?;
    }
    Ok(())
}
