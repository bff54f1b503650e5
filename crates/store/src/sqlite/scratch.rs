//! Temporary databases for data that may be too large for memory. SQLite holds a small one in memory, and deletes its
//! file when it is closed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::error::StoreError;

#[derive(Debug)]
pub(super) struct Scratch(Mutex<Connection>);

impl Scratch {
    pub(super) fn new(schema: &str) -> Result<Scratch, StoreError> {
        let open = || -> rusqlite::Result<Connection> {
            // An empty name opens a temporary database that only this connection sees.
            let db = Connection::open("")?;
            db.pragma_update(None, "journal_mode", "OFF")?;
            db.execute_batch(schema)?;
            Ok(db)
        };
        Ok(Scratch(Mutex::new(open().map_err(scratch_error)?)))
    }

    /// Reads from or writes to the database.
    pub(super) fn with_database<R>(
        &self,
        call: impl FnOnce(&Connection) -> rusqlite::Result<R>,
    ) -> Result<R, StoreError> {
        let db: MutexGuard<'_, Connection> = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        call(&db).map_err(scratch_error)
    }
}

fn scratch_error(error: rusqlite::Error) -> StoreError {
    StoreError::Fatal {
        store: String::from("a temporary file"),
        reason: format!(
            "{error}: free some space in /var/tmp, or set SQLITE_TMPDIR to another folder"
        ),
    }
}
