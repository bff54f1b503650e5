//! The tables, and how a file is opened or created.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::{BUSY_FOR, Db};
use super::fault::{Fault, store_error, store_name};
use crate::error::StoreError;
use crate::open_mode::OpenMode;

/// Marks the file as webfill's ("wbfl"), to distinguish it from the databases of other programs.
const APPLICATION_ID: i32 = 0x7762_666c;
/// The format of the file.
const SCHEMA_VERSION: i32 = 1;

const TABLES: &str = include_str!("schema/tables.sql");

/// Opens the file and checks that it is webfill's. Creates the tables in an empty file.
pub(super) fn open(path: &Path, mode: OpenMode) -> Result<Db, StoreError> {
    check_path(path, mode)?;
    let deadline = Instant::now() + BUSY_FOR;
    loop {
        let error = match try_open(path, mode) {
            Ok(db) => return Ok(db),
            Err(error) => error,
        };
        // While another process switches the file to the write-ahead log or recovers it, SQLite fails at once instead
        // of waiting. So the loop waits.
        if !error.is_retry() || Instant::now() > deadline {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Refuses paths that SQLite would only report as "unable to open", with a better message.
fn check_path(path: &Path, mode: OpenMode) -> Result<(), StoreError> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let reason = if path.is_dir() {
        String::from("it is a folder: name a file in it")
    } else if mode == OpenMode::MustExist && !path.exists() {
        String::from("there is no such file")
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        format!("the folder {} does not exist: create it", folder.display())
    } else {
        return Ok(());
    };
    Err(StoreError::Fatal {
        store: store_name(path),
        reason,
    })
}

fn try_open(path: &Path, mode: OpenMode) -> Result<Db, StoreError> {
    let refused = |fault| store_error(&store_name(path), fault);
    let mut db = Db::connect(path, mode).map_err(refused)?;
    // The file is identified first, so that no setting changes another program's file.
    let identity = db.read(|conn| identify(&*conn.unchecked_transaction()?))?;
    if let Some(reason) = identity.refusal_text() {
        return Err(refused(Fault::Unusable(reason)));
    }
    db.configure().map_err(refused)?;
    if identity == Identity::Empty {
        db.write(create_tables)?;
    }
    Ok(db)
}

/// The kind of a file, according to its `application_id` and `user_version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    Empty,
    Ours,
    OtherFormat { version: i32 },
    Foreign,
}

impl Identity {
    fn refusal_text(self) -> Option<String> {
        match self {
            Identity::Empty | Identity::Ours => None,
            Identity::OtherFormat { version } => Some(format!(
                "the file has format {version}, this webfill reads format {SCHEMA_VERSION}: use the webfill that \
                 wrote it, or another file"
            )),
            Identity::Foreign => Some(String::from(
                "the file is another program's database: use another file",
            )),
        }
    }
}

/// Identifies a file. Must be run in a transaction, because another process may be creating the tables.
fn identify(conn: &Connection) -> Result<Identity, Fault> {
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get(0));
    let (application, version): (i32, i32) = (pragma("application_id")?, pragma("user_version")?);
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = conn.query_row(count, (), |row| row.get(0))?;
    Ok(match (application, tables) {
        (APPLICATION_ID, _) if version == SCHEMA_VERSION => Identity::Ours,
        (APPLICATION_ID, _) => Identity::OtherFormat { version },
        (0, 0) => Identity::Empty,
        _ => Identity::Foreign,
    })
}

/// Creates the tables in an empty file, unless another process has done so meanwhile.
fn create_tables(conn: &Connection) -> Result<(), Fault> {
    if identify(conn)? == Identity::Empty {
        conn.execute_batch(TABLES)?;
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
        conn.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
