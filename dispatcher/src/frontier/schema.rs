//! The tables of the frontier, and whether a file holds them.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::{FrontierConfig, FrontierError};

/// "wbfl": marks the file as webfill's.
const APPLICATION_ID: i64 = 0x7762_666C;

/// Raised with every change that an older webfill could not read.
const VERSION: i64 = 1;

/// Pages of the write-ahead log after which it is written back: 32 MiB, because the fsyncs
/// that belong to it stop the dispatcher.
const CHECKPOINT_PAGES: i64 = 8_192;

/// How long another program may hold the write lock before that is an error.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// Task states as stored; `0` takes no byte in a row. Where a query is to use one of the indexes
/// of queued or leased tasks, it must name the state as a literal.
pub(super) const QUEUED: i64 = 0;
pub(super) const LEASED: i64 = 1;
pub(super) const DONE: i64 = 2;

const TABLES: &str = "
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE crawls (
    id         INTEGER PRIMARY KEY,
    app_id     TEXT NOT NULL,
    crawl_id   TEXT NOT NULL,
    spec       TEXT NOT NULL,               -- JSON
    ended      TEXT,                        -- the outcome of what is still queued
    fed_lines  INTEGER NOT NULL DEFAULT 0,
    seeds_ended INTEGER NOT NULL DEFAULT 0, -- 1: no further seeds will come
    discovered INTEGER NOT NULL DEFAULT 0,  -- = queued + leased + done + sum(skipped.n)
    queued     INTEGER NOT NULL DEFAULT 0,
    leased     INTEGER NOT NULL DEFAULT 0,
    done       INTEGER NOT NULL DEFAULT 0,
    pages      INTEGER NOT NULL DEFAULT 0,
    fields     INTEGER NOT NULL DEFAULT 0,
    links      INTEGER NOT NULL DEFAULT 0,
    bytes      INTEGER NOT NULL DEFAULT 0,
    sites      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (app_id, crawl_id)
) STRICT;

CREATE TABLE outcomes (
    crawl   INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (crawl, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE skipped (
    crawl  INTEGER NOT NULL,
    reason TEXT NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (crawl, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE sites (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    queued        INTEGER NOT NULL DEFAULT 0,
    top_priority  INTEGER NOT NULL DEFAULT 0,
    in_window     INTEGER NOT NULL DEFAULT 0, -- 1: the running dispatcher has it in memory
    due_at_ms     INTEGER NOT NULL DEFAULT 0,
    delay_ms      INTEGER,
    last_start_ms INTEGER,
    owner         TEXT
) STRICT;
CREATE INDEX sites_waiting ON sites (top_priority, due_at_ms) WHERE queued > 0 AND in_window = 0;
CREATE INDEX sites_in_window ON sites (id) WHERE in_window = 1;

CREATE TABLE crawl_sites (
    crawl    INTEGER NOT NULL,
    site     INTEGER NOT NULL,
    accepted INTEGER NOT NULL,                -- URLs that became tasks
    PRIMARY KEY (crawl, site)
) STRICT, WITHOUT ROWID;

-- Rows are never deleted. What changes stands before the URL.
CREATE TABLE tasks (
    id          INTEGER PRIMARY KEY,
    state       INTEGER NOT NULL DEFAULT 0,   -- 0 queued, 1 leased, 2 done
    crawl       INTEGER NOT NULL,
    site        INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    depth       INTEGER NOT NULL,
    redirects   INTEGER NOT NULL DEFAULT 0,   -- in a row before this URL
    attempt     INTEGER NOT NULL DEFAULT 0,   -- times handed out
    deaths      INTEGER NOT NULL DEFAULT 0,   -- workers killed
    outcome     TEXT,
    status_code INTEGER,
    parent      INTEGER,                      -- the task whose page holds the link
    seen_at_ms  INTEGER NOT NULL,
    done_at_ms  INTEGER,
    url         TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_queued ON tasks (site, priority DESC) WHERE state = 0;
CREATE INDEX tasks_leased ON tasks (site) WHERE state = 1;

CREATE TABLE records (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    resolved INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE task_records (
    task   INTEGER NOT NULL,
    record INTEGER NOT NULL,
    late   INTEGER NOT NULL DEFAULT 0,        -- 1: came after the task was handed out
    PRIMARY KEY (task, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_records_record ON task_records (record);
CREATE INDEX task_records_late ON task_records (task) WHERE late = 1;

CREATE TABLE seen_runs (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    state     TEXT NOT NULL,                  -- building, live, dropped
    slices    INTEGER NOT NULL,
    keys      INTEGER NOT NULL,
    last_task INTEGER NOT NULL
) STRICT;

CREATE TABLE seen_slices (
    id      INTEGER PRIMARY KEY,              -- run << 32 | slice
    entries BLOB NOT NULL                     -- ascending keys of 8 bytes, their tasks of 5
) STRICT;
";

/// Tables that files of the same version may lack: an older webfill does well without them.
const LATER_TABLES: &str = "
CREATE TABLE IF NOT EXISTS supervisors (      -- those that may hold leases
    name               TEXT PRIMARY KEY,
    home               INTEGER NOT NULL,
    longest_request_ms INTEGER NOT NULL,
    silent_ms          INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
";

/// Opens the file, creates the tables in a new one, and refuses what is not ours.
pub(super) fn open(path: &Path, config: &FrontierConfig) -> Result<Connection, FrontierError> {
    let at_path = |source| FrontierError::Open {
        path: path.to_owned(),
        source,
    };
    let db = Connection::open(path).map_err(at_path)?;
    match version(&db) {
        Ok(Some(VERSION)) => {}
        Ok(Some(found)) if found > VERSION => {
            let path = path.to_owned();
            return Err(FrontierError::Newer {
                path,
                found,
                known: VERSION,
            });
        }
        Ok(None) if is_empty(&db).map_err(at_path)? => create(&db).map_err(at_path)?,
        Ok(_) => {
            return Err(FrontierError::Foreign {
                path: path.to_owned(),
            });
        }
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            return Err(FrontierError::Foreign {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(at_path(error)),
    }
    tune(&db, config).map_err(at_path)?;
    db.execute_batch(LATER_TABLES).map_err(at_path)?;
    Ok(db)
}

/// `None` for a file without our mark.
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

/// All or nothing: a crash in between leaves an empty file.
fn create(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {VERSION};
         {TABLES}
         COMMIT;"
    ))
}

fn tune(db: &Connection, config: &FrontierConfig) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY_WAIT)?;
    db.set_prepared_statement_cache_capacity(64);
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "cache_size", -(config.page_cache_bytes as i64 / 1024))?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    db.pragma_update(None, "journal_size_limit", 2 * CHECKPOINT_PAGES * 4_096)
}
