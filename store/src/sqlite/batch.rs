//! Many entries in one transaction, where an unfit one fails alone.

use rusqlite::Connection;

use super::connection::Db;
use super::fault::Fault;
use crate::error::StoreError;

/// Keeps every entry in one transaction. Unfit entries are rare, so the batch is first tried
/// without savepoints, which would cost each entry a copy of every page it touches.
pub(super) fn write_each<T, R>(
    db: &mut Db,
    entries: &[T],
    name: impl Fn(&T) -> String,
    keep: impl Fn(&Connection, &T) -> Result<R, Fault>,
) -> Vec<Result<R, StoreError>> {
    let all = |conn: &Connection| entries.iter().map(|entry| keep(conn, entry)).collect();
    match db.transaction(all) {
        Ok(kept) => Vec::into_iter(kept).map(Ok).collect(),
        Err(Fault::InvalidEntry(_)) => write_each_in_savepoint(db, entries, name, keep),
        Err(fault) => super::fail_all(entries.len(), &db.error(fault)),
    }
}

/// The same, each entry in a savepoint of its own.
fn write_each_in_savepoint<T, R>(
    db: &mut Db,
    entries: &[T],
    name: impl Fn(&T) -> String,
    keep: impl Fn(&Connection, &T) -> Result<R, Fault>,
) -> Vec<Result<R, StoreError>> {
    let each = |conn: &Connection| {
        entries
            .iter()
            .map(|entry| in_savepoint(conn, || keep(conn, entry), || name(entry)))
            .collect()
    };
    match db.transaction(each) {
        Ok(kept) => kept,
        Err(fault) => super::fail_all(entries.len(), &db.error(fault)),
    }
}

fn in_savepoint<R>(
    conn: &Connection,
    keep: impl FnOnce() -> Result<R, Fault>,
    name: impl FnOnce() -> String,
) -> Result<Result<R, StoreError>, Fault> {
    conn.execute_batch("SAVEPOINT entry")?;
    let kept = match keep() {
        Ok(kept) => Ok(kept),
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
    Ok(kept)
}
