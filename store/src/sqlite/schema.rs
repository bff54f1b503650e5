//! How the file is opened, and the tables in it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::{Fault, store_error, store_name};
use crate::error::StoreError;

/// Marks the file as webfill's ("wbfl"), so that no other program's database is taken for it.
const APPLICATION_ID: i32 = 0x7762_666c;
/// Raised when the tables change.
const SCHEMA_VERSION: i32 = 1;

/// How long a call waits for the other writers before it is answered with a retryable error.
const BUSY_FOR: Duration = Duration::from_secs(30);

/// Column `_id` is the key, as in MongoDB. Large columns come last, so that reading the others
/// does not walk through them. `pages` needs no further index: its keys begin with the crawl.
const TABLES: &str = "
CREATE TABLE records (
    _id TEXT PRIMARY KEY,
    fields TEXT NOT NULL,        -- {name: value}
    sources TEXT NOT NULL,       -- {name: {url, mapping, at}}
    missing TEXT NOT NULL,       -- [name]
    resolved_at TEXT
) STRICT;
CREATE TABLE pages (
    _id TEXT PRIMARY KEY,        -- crawl id, '/', hash of the canonical URL
    app_id TEXT NOT NULL,
    crawl_id TEXT NOT NULL,
    url TEXT NOT NULL,
    final_url TEXT,
    site TEXT NOT NULL,
    depth INTEGER NOT NULL,
    parent TEXT,
    outcome TEXT NOT NULL,
    status_code INTEGER,
    mapping TEXT,
    content_type TEXT,
    bytes INTEGER NOT NULL,
    content_hash TEXT,
    started_at TEXT NOT NULL,
    elapsed_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    worker TEXT NOT NULL,
    attrs TEXT,                  -- the application's JSON
    fields TEXT NOT NULL,        -- {name: value}
    links TEXT NOT NULL          -- [url]
) STRICT;
CREATE TABLE crawls (
    key INTEGER PRIMARY KEY,     -- stands for the crawl in crawl_records
    _id TEXT NOT NULL UNIQUE,    -- app id, '/', crawl id
    app_id TEXT NOT NULL,
    crawl_id TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    counts TEXT NOT NULL,
    started_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    finished_at TEXT,
    records_total INTEGER NOT NULL DEFAULT 0,
    records_resolved INTEGER NOT NULL DEFAULT 0
) STRICT;
-- Which crawls a record is in: those whose records_resolved it counts towards.
CREATE TABLE crawl_records (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
CREATE TABLE robots (
    _id TEXT PRIMARY KEY,        -- origin
    status INTEGER,
    fetched_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX robots_by_expiry ON robots (expires_at);
CREATE TABLE sites (
    _id TEXT PRIMARY KEY,        -- site
    last_start TEXT NOT NULL,
    delay_ms INTEGER NOT NULL,
    blocked_until TEXT,
    owner TEXT
) STRICT, WITHOUT ROWID;
";

/// What to do about a file that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    Create,
    MustExist,
}

/// Opens the file, checks that it is webfill's, and creates the tables in an empty one.
pub(super) fn open(path: &Path, mode: OpenMode) -> Result<Connection, StoreError> {
    check_path(path, mode)?;
    let deadline = Instant::now() + BUSY_FOR;
    loop {
        let error = match try_open(path, mode) {
            Ok(conn) => return Ok(conn),
            Err(error) => error,
        };
        // SQLite does not wait by itself while another process switches the file to the
        // write-ahead log or recovers it.
        if !error.is_retry() || Instant::now() > deadline {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// SQLite says "unable to open" for all of these; people deserve better.
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

fn try_open(path: &Path, mode: OpenMode) -> Result<Connection, StoreError> {
    let store = store_name(path);
    let mut conn = connect(path, mode).map_err(|fault| store_error(&store, fault))?;
    let identity = identify(&mut conn).map_err(|error| store_error(&store, error.into()))?;
    let reason = match identity {
        Identity::Ours => return Ok(conn),
        Identity::Foreign => {
            String::from("the file is another program's database: use another file")
        }
        Identity::Newer(version) => format!(
            "the file was written by a newer webfill (format {version}, this one knows \
             {SCHEMA_VERSION}): use that one, or another file"
        ),
    };
    Err(StoreError::Fatal { store, reason })
}

/// Opens a connection with the settings that every one needs.
pub(super) fn connect(path: &Path, mode: OpenMode) -> Result<Connection, Fault> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, mode == OpenMode::Create);
    let mut conn = Connection::open_with_flags(path, flags)?;
    wait_for_other_writers(&mut conn)?;
    conn.set_prepared_statement_cache_capacity(32);
    // Rows of pages have some 3 KiB, of which a default page of 4 KiB would hold but one.
    conn.execute_batch("PRAGMA page_size = 8192")?;
    let journal: String = conn.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))?;
    if journal != "wal" {
        return Err(Fault::Unusable(String::from(
            "its file system has no shared memory for a write-ahead log: use a local disk",
        )));
    }
    conn.execute_batch(
        "PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -4096;
         PRAGMA wal_autocheckpoint = 4000;",
    )?;
    Ok(conn)
}

/// Waits in short, uneven steps: SQLite's own grow to 100 ms, in which many short transactions
/// of others find their way past the one that waits.
fn wait_for_other_writers(conn: &mut Connection) -> rusqlite::Result<()> {
    let mut waiting_since = Instant::now();
    conn.busy_handler(Some(move |attempts: i32| {
        if attempts == 0 {
            waiting_since = Instant::now();
        }
        let steps = 1 + u64::from(attempts.unsigned_abs().min(15));
        let uneven = u64::from(waiting_since.elapsed().subsec_nanos() % 100);
        std::thread::sleep(Duration::from_micros(100 * steps + uneven));
        waiting_since.elapsed() < BUSY_FOR
    }))
}

enum Identity {
    Ours,
    Foreign,
    Newer(i32),
}

/// Judges the file by its marks, and writes them and the tables into an empty one.
fn identify(conn: &mut Connection) -> rusqlite::Result<Identity> {
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get(0));
    let (application, version): (i32, i32) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    let identity = match (application, tables) {
        (APPLICATION_ID, _) if version > SCHEMA_VERSION => Identity::Newer(version),
        (APPLICATION_ID, _) => Identity::Ours,
        (_, 0) => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            Identity::Ours
        }
        _ => Identity::Foreign,
    };
    transaction.commit()?;
    Ok(identity)
}
