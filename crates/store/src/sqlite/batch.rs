//! Writes many entries in one transaction. If an entry cannot be stored, only that entry fails.

use rusqlite::Connection;

use super::connection::Db;
use super::fault::Fault;
use crate::error::StoreError;

/// Writes all entries in one transaction. Entries that cannot be stored are rare, so the batch is first tried without
/// savepoints: a savepoint costs a copy of every database page that an entry changes.
pub(super) fn write_each<T, R>(
    db: &mut Db,
    entries: &[T],
    name: impl Fn(&T) -> String,
    write: impl Fn(&Connection, &T) -> Result<R, Fault>,
) -> Vec<Result<R, StoreError>> {
    let all = |conn: &Connection| entries.iter().map(|entry| write(conn, entry)).collect();
    match db.transaction(all) {
        Ok(written) => Vec::into_iter(written).map(Ok).collect(),
        Err(Fault::InvalidEntry(_)) => write_each_in_savepoint(db, entries, name, write),
        Err(fault) => repeat_error(entries.len(), &db.error(fault)),
    }
}

/// Like [`write_each`], with a savepoint for each entry.
fn write_each_in_savepoint<T, R>(
    db: &mut Db,
    entries: &[T],
    name: impl Fn(&T) -> String,
    write: impl Fn(&Connection, &T) -> Result<R, Fault>,
) -> Vec<Result<R, StoreError>> {
    let each = |conn: &Connection| {
        entries
            .iter()
            .map(|entry| write_in_savepoint(conn, || write(conn, entry), || name(entry)))
            .collect()
    };
    match db.transaction(each) {
        Ok(written) => written,
        Err(fault) => repeat_error(entries.len(), &db.error(fault)),
    }
}

fn write_in_savepoint<R>(
    conn: &Connection,
    write: impl FnOnce() -> Result<R, Fault>,
    name: impl FnOnce() -> String,
) -> Result<Result<R, StoreError>, Fault> {
    conn.execute_batch("SAVEPOINT entry")?;
    let written = match write() {
        Ok(written) => Ok(written),
        Err(Fault::InvalidEntry(reason)) => {
            conn.execute_batch("ROLLBACK TO entry")?;
            Err(StoreError::Entry {
                entry: name(),
                reason,
            })
        }
        Err(fault) => return Err(fault),
    };
    conn.execute_batch("RELEASE entry")?;
    Ok(written)
}

/// The same error for each entry of a batch that failed as a whole.
pub(super) fn repeat_error<R>(entries: usize, error: &StoreError) -> Vec<Result<R, StoreError>> {
    (0..entries).map(|_| Err(error.clone())).collect()
}
