//! The tables of the frontier, and the check that a file is a frontier.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};
use webfill_service::state::PRIVATE;

use super::{FrontierConfig, FrontierError};

/// "wbfl", which marks the file as webfill's.
const APPLICATION_ID: i64 = 0x7762_666C;

/// The version of the file's format.
const VERSION: i64 = 1;

/// The write-ahead log is checkpointed after this many pages (32 MiB), and not more often, because the fsyncs of a
/// checkpoint block the dispatcher.
const CHECKPOINT_PAGES: i64 = 8_192;

/// After another program has held the write lock for this long, calls fail.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// Task states as stored; `0` takes up no byte in a row. A query uses the partial indexes of queued or leased tasks
/// only if it has the state as a literal.
pub(super) const QUEUED: i64 = 0;
pub(super) const LEASED: i64 = 1;
pub(super) const DONE: i64 = 2;

const TABLES: &str = include_str!("schema/tables.sql");

/// Creates the file with private permissions. An empty file is a valid database, and the files that SQLite adds get
/// the same mode.
pub(super) fn create_private_file(path: &Path) {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(PRIVATE);
    // If the file cannot be created, SQLite reports why.
    let _ = options.open(path);
}

/// Opens the file. Creates the tables in an empty one, and refuses a file that is no frontier.
pub(super) fn open(path: &Path, config: &FrontierConfig) -> Result<Connection, FrontierError> {
    let at_path = |source| FrontierError::opening(path, source);
    create_private_file(path);
    #[cfg_attr(not(test), allow(unused_mut))]
    let mut db = Connection::open(path).map_err(at_path)?;
    match check_format(&db, path) {
        Err(FrontierError::Foreign { .. }) if is_empty(&db).unwrap_or_default() => {
            create_tables(&db).map_err(at_path)?;
        }
        checked => checked?,
    }
    configure_connection(&db, config).map_err(at_path)?;
    #[cfg(test)]
    plans::record_statements(&mut db);
    Ok(db)
}

/// Opens the frontier's file for commits that are lost if the power is, but leave it intact.
pub(super) fn open_unsynced(path: &Path) -> Result<Connection, FrontierError> {
    let db = open(path, &FrontierConfig::default())?;
    let unsynced = db.pragma_update(None, "synchronous", "NORMAL");
    unsynced.map_err(|source| FrontierError::Open {
        path: path.to_owned(),
        source,
    })?;
    Ok(db)
}

/// Refuses a file that webfill has not created, or that has another format.
pub(super) fn check_format(db: &Connection, path: &Path) -> Result<(), FrontierError> {
    let foreign = || FrontierError::Foreign {
        path: path.to_owned(),
    };
    match version(db) {
        Ok(Some(VERSION)) => Ok(()),
        Ok(Some(found)) => Err(FrontierError::OtherFormat {
            path: path.to_owned(),
            found,
            known: VERSION,
        }),
        Ok(None) => Err(foreign()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Err(foreign()),
        Err(source) => Err(FrontierError::opening(path, source)),
    }
}

/// The version of the format; `None` for a file without [`APPLICATION_ID`].
fn version(db: &Connection) -> rusqlite::Result<Option<i64>> {
    let application: i64 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application == APPLICATION_ID).then_some(version))
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

/// Creates the tables in one transaction, so that a crash leaves an empty file. With incremental vacuum, free pages
/// can be returned little by little; it must be set before there is any table.
fn create_tables(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {VERSION};
         {TABLES}
         COMMIT;"
    ))
}

fn configure_connection(db: &Connection, config: &FrontierConfig) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY_WAIT)?;
    // This is more than the number of statements, so each is prepared only once.
    db.set_prepared_statement_cache_capacity(256);
    // Otherwise SQLite would prepare some statements again whenever values are bound: those whose plan depends on the
    // values, because of a partial index or a LIMIT.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A commit is on the disk before its messages leave, even if the machine crashes.
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "cache_size", -(config.page_cache_bytes as i64 / 1024))?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    db.pragma_update(None, "journal_size_limit", 2 * CHECKPOINT_PAGES * 4_096)
}

/// Creates the frontier's tables in a test's database.
#[cfg(test)]
pub(super) fn create_tables_for_tests(db: &Connection) {
    create_tables(db).unwrap();
}

#[cfg(test)]
pub(super) mod plans;
#[cfg(test)]
mod tests;
