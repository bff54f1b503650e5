//! The tables, and how a file is opened, created or upgraded.

mod since_8;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use self::since_8::{ACCEPTED_PACE, ALTERNATIVES, CHANGES, ROWS, URLS, USERS_VALUES, VALIDATORS};
use super::connection::{BUSY_FOR, Db};
use super::fault::{Fault, store_error, store_name};
use crate::error::StoreError;
use crate::uri::OpenMode;

/// Marks the file as webfill's ("wbfl"), which distinguishes it from other programs' databases.
const APPLICATION_ID: i32 = 0x7762_666c;
/// Raised when the tables change.
const SCHEMA_VERSION: i32 = 13;

/// The column `_id` is the key, as in MongoDB. Large columns come last, so that reading the others
/// does not have to skip them.
const TABLES: &str = "
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
    owner TEXT,
    answered_at TEXT,            -- when the last reservation was released
    slot_holder TEXT,            -- the reservation: holder, start and expiry
    slot_granted_at TEXT,
    slot_lapses_at TEXT
) STRICT, WITHOUT ROWID;
";

/// Records, with the crawls that they are in and the documents that they come from.
const RECORDS: &str = "
CREATE TABLE records (
    _id TEXT PRIMARY KEY,        -- dataset, '/', record id
    dataset TEXT NOT NULL,
    record_id TEXT NOT NULL,
    fields TEXT NOT NULL,        -- {name: value}
    sources TEXT NOT NULL,       -- {name: {url, mapping, at}}
    missing TEXT NOT NULL,       -- [name]
    resolved_at TEXT,
    candidates TEXT NOT NULL DEFAULT '{}'    -- {name: [{value, url, mapping, at}]}
) STRICT;
-- Which crawls a record is in: those whose records_resolved it counts towards.
CREATE TABLE crawl_records (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    position INTEGER,            -- where in its input the crawl has read it first
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
-- The documents that records came from, for the crawls that write back.
CREATE TABLE origins (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    collection TEXT,             -- database, '.', collection; NULL: not known
    document TEXT NOT NULL,      -- its _id, as extended JSON
    fields TEXT NOT NULL,        -- [name]: what may be written
    changes INTEGER NOT NULL,    -- of the record, since it was last written
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
CREATE INDEX unwritten_origins ON origins (crawl) WHERE changes > 0;
";

/// Upgrades a file from version 1 to version 2.
const FROM_VERSION_1: &str = "
ALTER TABLE records ADD COLUMN candidates TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sites ADD COLUMN answered_at TEXT;
ALTER TABLE sites ADD COLUMN slot_holder TEXT;
ALTER TABLE sites ADD COLUMN slot_granted_at TEXT;
ALTER TABLE sites ADD COLUMN slot_lapses_at TEXT;
CREATE TABLE origins (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    document TEXT NOT NULL,
    fields TEXT NOT NULL,
    changes INTEGER NOT NULL,
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
CREATE INDEX unwritten_origins ON origins (crawl) WHERE changes > 0;
";

/// Pages. Whenever a page changes, it gets the highest position so far plus one. So the table is in
/// the order of changes, and its index only grows at its end. Positions of deleted pages are not
/// used again.
const PAGES: &str = "
CREATE TABLE pages (
    position INTEGER PRIMARY KEY,
    _id TEXT NOT NULL UNIQUE,    -- app id, '/', crawl id, '/', hash of the URL
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
    tries TEXT NOT NULL,         -- [{ended_at, outcome, status_code}]
    attrs TEXT,                  -- the application's JSON
    fields TEXT NOT NULL,        -- {name: value}
    links TEXT NOT NULL,         -- [url]
    headers TEXT,                -- {name: [value]}
    body TEXT
) STRICT;
-- One row: the id of the store, used in cursors, and the highest position that was deleted.
CREATE TABLE changes (
    store TEXT NOT NULL,
    deleted INTEGER NOT NULL
) STRICT;
INSERT INTO changes VALUES (lower(hex(randomblob(4))), 0);
CREATE TRIGGER page_deleted AFTER DELETE ON pages BEGIN
    UPDATE changes SET deleted = max(deleted, OLD.position);
END;
";

/// A copy of what the dispatcher knows of sites in trouble.
const SITE_STATES: &str = "
CREATE TABLE site_states (
    _id TEXT PRIMARY KEY,        -- site
    state TEXT NOT NULL,         -- resting, given_up
    reason TEXT NOT NULL,
    since TEXT NOT NULL,
    until TEXT,                  -- NULL: a person wakes it, or it was given up
    url TEXT NOT NULL,           -- the evidence: what was requested,
    status_code INTEGER,         -- what was answered,
    sign TEXT NOT NULL,          -- and what was seen
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What version 6 added: which process runs a crawl.
const CLAIMS: &str = "
CREATE TABLE claims (
    _id TEXT PRIMARY KEY,        -- app id, '/', crawl id
    owner TEXT NOT NULL,         -- the process
    folder TEXT NOT NULL,        -- its state folder
    holder TEXT NOT NULL,        -- both in words
    since TEXT NOT NULL,
    beat INTEGER NOT NULL        -- counts the renewals
) STRICT, WITHOUT ROWID;
";

/// What version 5 added: by these a page's later save is told from an earlier one.
const DELIVERIES: &str = "
ALTER TABLE pages ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0; -- of the delivery; attempts: its number
ALTER TABLE pages ADD COLUMN task INTEGER NOT NULL DEFAULT 0;  -- at its dispatcher
";

/// What version 6 added: pages say which version of a mapping has read them.
const MAPPING_VERSION: &str = "
ALTER TABLE pages ADD COLUMN mapping_version TEXT; -- of the mapping that read the page
";

/// What version 6 added: up to which position pages may have been dropped as too old.
const CUT: &str = "
ALTER TABLE changes ADD COLUMN cut INTEGER NOT NULL DEFAULT 0; -- readers before it are refused
";

/// What version 6 added: what values of records were before they changed.
const HISTORY: &str = "
ALTER TABLE records ADD COLUMN history TEXT NOT NULL DEFAULT '{}'; -- {name: [{value, url, mapping, at, until}]}
";

/// What version 7 added: how extractions are doing, and what that is judged by.
const HEALTH: &str = "
ALTER TABLE pages ADD COLUMN template TEXT; -- digits that pages of one layout share
ALTER TABLE pages ADD COLUMN records TEXT NOT NULL DEFAULT '[]'; -- [key]: the first that it was for
CREATE TABLE health (
    _id TEXT PRIMARY KEY,        -- 'mapping/', mapping; or 'cursor'
    revision INTEGER NOT NULL,   -- counts the changes
    writer TEXT NOT NULL,        -- the process that has changed it last
    cursor TEXT NOT NULL,        -- up to which page it is
    state TEXT NOT NULL          -- JSON
) STRICT, WITHOUT ROWID;
CREATE TABLE samples (
    _id TEXT PRIMARY KEY,        -- mapping, '/', place
    mapping TEXT NOT NULL,
    alarm TEXT,                  -- when it was raised; NULL: another page may replace this one
    page TEXT NOT NULL,          -- its _id
    url TEXT NOT NULL,
    at TEXT NOT NULL,
    fields TEXT NOT NULL,        -- [name]: found on it
    text BLOB NOT NULL           -- compressed
) STRICT;
";

/// What version 7 added: what is known of pages that are documents.
const DOCUMENTS: &str = "
ALTER TABLE pages ADD COLUMN document TEXT; -- {status, type, sha256, bytes, title, ...}
";

/// Upgrades a file from version 2 to version 3: the statements before and after the table of pages
/// is created anew. In version 2, the order of rowids is the order in which pages became visible.
const FROM_VERSION_2: [&str; 2] = [
    "ALTER TABLE pages RENAME TO older_pages;",
    "INSERT INTO pages SELECT rowid, _id, app_id, crawl_id, url, final_url, site, depth, parent,
        outcome, status_code, mapping, content_type, bytes, content_hash, started_at, elapsed_ms,
        attempts, worker, '[]', attrs, fields, links, NULL, NULL FROM older_pages ORDER BY rowid;
    DROP TABLE older_pages;",
];

/// Upgrades a file from version 4 to version 5: pages are of an application, and records of a dataset.
/// These are the statements before and after the tables of records are created anew: new keys in
/// place could meet old ones.
const FROM_VERSION_4: [&str; 2] = [
    "UPDATE pages SET _id = app_id || '/' || _id;
    ALTER TABLE records RENAME TO older_records;
    ALTER TABLE crawl_records RENAME TO older_crawl_records;
    ALTER TABLE origins RENAME TO older_origins;
    DROP INDEX unwritten_origins;",
    "INSERT INTO records (rowid, _id, dataset, record_id, fields, sources, missing, resolved_at,
        candidates) SELECT rowid, 'unnamed/' || _id, 'unnamed', _id, fields, sources, missing,
        resolved_at, candidates FROM older_records ORDER BY rowid;
    INSERT INTO crawl_records SELECT 'unnamed/' || record, crawl, NULL FROM older_crawl_records;
    INSERT INTO origins SELECT 'unnamed/' || record, crawl, NULL, document, fields, changes
        FROM older_origins;
    DROP TABLE older_records;
    DROP TABLE older_crawl_records;
    DROP TABLE older_origins;",
];

/// Opens the file and checks that it is webfill's. Creates the tables in an empty file, and upgrades
/// an older one.
pub(super) fn open(path: &Path, mode: OpenMode) -> Result<Db, StoreError> {
    check_path(path, mode)?;
    let deadline = Instant::now() + BUSY_FOR;
    loop {
        let error = match try_open(path, mode) {
            Ok(db) => return Ok(db),
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

/// Checks what SQLite would only report as "unable to open".
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
    // A foreign file is refused before any setting changes it.
    let identity = db.read(|conn| identify(&*conn.unchecked_transaction()?))?;
    if let Some(reason) = identity.refusal() {
        return Err(refused(Fault::Unusable(reason)));
    }
    db.configure().map_err(refused)?;
    match identity {
        Identity::Empty => db.write(create_tables)?,
        Identity::Older { .. } => db.write(upgrade)?,
        Identity::Ours | Identity::Newer { .. } | Identity::Foreign => {}
    }
    Ok(db)
}

/// Whose file it is, by its `application_id` and `user_version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    Empty,
    Older { version: i32 },
    Ours,
    Newer { version: i32 },
    Foreign,
}

impl Identity {
    fn refusal(self) -> Option<String> {
        match self {
            Identity::Empty | Identity::Older { .. } | Identity::Ours => None,
            Identity::Newer { version } => Some(format!(
                "the file was written by a newer webfill (format {version}, this one knows \
                 {SCHEMA_VERSION}): use that one, or another file"
            )),
            Identity::Foreign => Some(String::from(
                "the file is another program's database: use another file",
            )),
        }
    }
}

/// To be run in a transaction, because another process may be creating the tables.
fn identify(conn: &Connection) -> Result<Identity, Fault> {
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get(0));
    let (application, version): (i32, i32) = (pragma("application_id")?, pragma("user_version")?);
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = conn.query_row(count, (), |row| row.get(0))?;
    Ok(match (application, tables) {
        (APPLICATION_ID, _) if version > SCHEMA_VERSION => Identity::Newer { version },
        (APPLICATION_ID, _) if version < SCHEMA_VERSION => Identity::Older { version },
        (APPLICATION_ID, _) => Identity::Ours,
        (0, 0) => Identity::Empty,
        _ => Identity::Foreign,
    })
}

/// Creates the tables in an empty file, unless another process has done so meanwhile.
fn create_tables(conn: &Connection) -> Result<(), Fault> {
    if identify(conn)? == Identity::Empty {
        for tables in [
            TABLES,
            RECORDS,
            PAGES,
            SITE_STATES,
            DELIVERIES,
            MAPPING_VERSION,
            CLAIMS,
            CUT,
            HISTORY,
            HEALTH,
            DOCUMENTS,
            VALIDATORS,
            CHANGES,
            ALTERNATIVES,
            URLS,
            ACCEPTED_PACE,
            USERS_VALUES,
            ROWS,
        ] {
            conn.execute_batch(tables)?;
        }
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
        conn.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    Ok(())
}

/// Upgrades a file of an older version, unless another process has done so meanwhile.
fn upgrade(conn: &Connection) -> Result<(), Fault> {
    if let Identity::Older { version } = identify(conn)? {
        if version < 2 {
            conn.execute_batch(FROM_VERSION_1)?;
        }
        if version < 3 {
            let [before, after] = FROM_VERSION_2;
            for statements in [before, PAGES, after] {
                conn.execute_batch(statements)?;
            }
        }
        if version < 4 {
            conn.execute_batch(SITE_STATES)?;
        }
        if version < 5 {
            let [before, after] = FROM_VERSION_4;
            for statements in [DELIVERIES, before, RECORDS, after] {
                conn.execute_batch(statements)?;
            }
        }
        if version < 6 {
            for statements in [MAPPING_VERSION, CLAIMS, CUT, HISTORY] {
                conn.execute_batch(statements)?;
            }
        }
        if version < 7 {
            conn.execute_batch(HEALTH)?;
            conn.execute_batch(DOCUMENTS)?;
        }
        if version < 8 {
            conn.execute_batch(VALIDATORS)?;
            conn.execute_batch(CHANGES)?;
        }
        if version < 9 {
            conn.execute_batch(ALTERNATIVES)?;
        }
        if version < 10 {
            conn.execute_batch(URLS)?;
        }
        if version < 11 {
            conn.execute_batch(ACCEPTED_PACE)?;
        }
        if version < 12 {
            conn.execute_batch(USERS_VALUES)?;
        }
        conn.execute_batch(ROWS)?;
        conn.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
