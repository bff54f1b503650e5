//! How far a file has applied the journal, and other data of the file about itself.

use rusqlite::{Connection, OptionalExtension, Result, params};

/// Tables about the file itself, which the journal leaves out.
pub(super) const OWN_TABLES: [&str; 1] = ["seen_runs"];

/// Rows of `meta` about the file itself, which the journal leaves out.
pub(super) const OWN_META: [&str; 4] = [
    APPLIED,
    APPLIED_EPOCH,
    "backup_made_at_ms",
    "file_created_at_ns",
];

/// The names in `meta` of the number of the last applied record, and of its epoch.
const APPLIED: &str = "journal_applied";
const APPLIED_EPOCH: &str = "journal_applied_epoch";

/// How far a file has applied the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Applied {
    /// The number of the last applied record; 0: none.
    pub number: u64,
    /// The epoch of that record.
    pub epoch: u64,
}

/// How far a file has applied the journal.
pub fn read_applied_position(db: &Connection) -> Result<Applied> {
    let number = |name: &str| -> Result<u64> {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        let value: Option<i64> = db.query_row(sql, [name], |row| row.get(0)).optional()?;
        Ok(value.unwrap_or(0) as u64)
    };
    Ok(Applied {
        number: number(APPLIED)?,
        epoch: number(APPLIED_EPOCH)?,
    })
}

/// Notes how far the file has applied the journal, in the transaction that applied it.
pub fn note_applied_position(db: &Connection, applied: Applied) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO meta VALUES (?1, ?2), (?3, ?4)";
    db.prepare_cached(sql)?.execute(params![
        APPLIED,
        applied.number as i64,
        APPLIED_EPOCH,
        applied.epoch as i64
    ])?;
    Ok(())
}

/// Removes the data about the original file from a copy, except how far the journal is applied.
pub(in crate::frontier) fn delete_own_rows(db: &Connection) -> Result<()> {
    for table in OWN_TABLES {
        db.execute(&format!("DELETE FROM {table}"), [])?;
    }
    let mut delete = db.prepare("DELETE FROM meta WHERE name = ?1")?;
    for name in OWN_META {
        if ![APPLIED, APPLIED_EPOCH].contains(&name) {
            delete.execute([name])?;
        }
    }
    Ok(())
}

/// Whether no dispatcher has ever used the file.
pub fn is_unused(db: &Connection) -> Result<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM epochs)";
    db.query_row(sql, [], |row| row.get(0))
}
