//! The tables of the frontier, their migration, and the check that a file is a frontier.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};
use webfill_service::state::PRIVATE;

use self::notices::SINCE_6_NOTICES;
use self::since_6::SINCE_6_WATCHES;
use self::since_7::{SINCE_7, WITHOUT_OLDER_RUNS};
use super::stored_urls::WHOLE_URL;
use super::{FrontierConfig, FrontierError};
use crate::seen::older_runs::move_to_files;
use crate::seen::runs;

/// "wbfl": marks the file as webfill's.
const APPLICATION_ID: i64 = 0x7762_666C;

/// Raised with every change of the tables that an older webfill cannot read.
const VERSION: i64 = 7;

/// The write-ahead log is checkpointed after this many pages (32 MiB); not more often, because the
/// checkpoint's fsyncs block the dispatcher.
const CHECKPOINT_PAGES: i64 = 8_192;

/// How long another program may hold the write lock before that is an error.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// Task states as stored; `0` takes no byte in a row. A query uses the partial indexes of queued or
/// leased tasks only if it names the state as a literal.
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
    paused     INTEGER NOT NULL DEFAULT 0,  -- 1: what is queued stays queued
    expires_at_ms INTEGER,
    waiting    TEXT NOT NULL DEFAULT '{}',  -- JSON: how many are queued, by priority
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
    top_priority  INTEGER NOT NULL DEFAULT 0, -- of what can be handed out; 0: nothing can
    in_window     INTEGER NOT NULL DEFAULT 0, -- 1: the running dispatcher has it in memory
                                              -- 2: parked, until something can be handed out
    due_at_ms     INTEGER NOT NULL DEFAULT 0,
    delay_ms      INTEGER,
    last_start_ms INTEGER,
    owner         TEXT,
    rule_delay_ms INTEGER,                    -- set by hand, as are the next two
    block_until_ms INTEGER NOT NULL DEFAULT 0,
    pages_left    INTEGER,                    -- so many may still be handed out
    rest_until_ms INTEGER NOT NULL DEFAULT 0, -- it rests until then, and is probed after; 0: it is open
    address       TEXT                        -- that its requests are counted for
) STRICT;
CREATE INDEX sites_in_window ON sites (id) WHERE in_window = 1;

CREATE TABLE crawl_sites (
    crawl    INTEGER NOT NULL,
    site     INTEGER NOT NULL,
    accepted INTEGER NOT NULL,                -- URLs that became tasks
    queued   INTEGER NOT NULL DEFAULT 0,
    top_priority INTEGER NOT NULL DEFAULT 0,  -- of what can be handed out; 0: nothing can
    turn     INTEGER NOT NULL DEFAULT 0,      -- who was served last has the highest
    PRIMARY KEY (crawl, site)
) STRICT, WITHOUT ROWID;

-- What changes stands before the URL.
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
    seen_at_ms  INTEGER NOT NULL,             -- 0 since version 5: nobody has asked for it
    done_at_ms  INTEGER,
    url         TEXT NOT NULL,
    attrs       INTEGER,                      -- what its application handed over with it
    not_before_ms INTEGER NOT NULL DEFAULT 0  -- when it is to be tried again; 0: it does not wait
) STRICT;
CREATE INDEX tasks_leased ON tasks (site) WHERE state = 1;

CREATE TABLE records (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,            -- its key in the store
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

/// The tables and indexes that version 2 added. A query uses a partial index only if it names the
/// index's condition literally.
const SINCE_2: &str = "
CREATE TABLE tries (                          -- those that were followed by another
    task        INTEGER NOT NULL,
    ended_at_ms INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    status_code INTEGER,
    PRIMARY KEY (task, ended_at_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE attrs (                          -- objects of applications
    id   INTEGER PRIMARY KEY,
    json TEXT NOT NULL
) STRICT;

CREATE INDEX crawls_expiring ON crawls (expires_at_ms)
    WHERE expires_at_ms IS NOT NULL AND ended IS NULL;
CREATE INDEX crawl_sites_turns ON crawl_sites (site, top_priority DESC, turn)
    WHERE top_priority > 0;
CREATE INDEX crawl_sites_queued ON crawl_sites (crawl) WHERE queued > 0;
CREATE INDEX crawl_sites_held ON crawl_sites (crawl) WHERE queued > 0 AND top_priority = 0;
CREATE INDEX tasks_queued ON tasks (site, crawl, priority DESC)
    WHERE state = 0 AND not_before_ms = 0;
CREATE INDEX tasks_to_retry ON tasks (not_before_ms) WHERE state = 0 AND not_before_ms > 0;
CREATE INDEX tasks_to_retry_at ON tasks (site, crawl) WHERE state = 0 AND not_before_ms > 0;
";

/// The tables and indexes that version 3 added.
const SINCE_3: &str = "
ALTER TABLE tries ADD COLUMN
    counts INTEGER NOT NULL DEFAULT 1;        -- 0: not against the task's retries any more

CREATE TABLE site_states (                    -- of sites that are or were lately in trouble
    site        INTEGER PRIMARY KEY,
    given_up_to INTEGER,                      -- the last task that is given up; NULL: none is
    reason      TEXT NOT NULL,                -- of the last failure
    failures    INTEGER NOT NULL,             -- in a row, while it is open
    rest_index  INTEGER NOT NULL,             -- of the current or next rest in its reason's list
    since_ms    INTEGER NOT NULL,             -- when the current rest began
    url         TEXT NOT NULL,                -- the evidence: what was requested,
    status_code INTEGER,                      -- what was answered,
    sign        TEXT NOT NULL,                -- and what was seen
    suspects    TEXT NOT NULL DEFAULT '[]'    -- JSON: tasks that failed before the rest began
) STRICT;

CREATE TABLE unsaved_site_states (            -- changed since the store got them
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of the changes
    site   INTEGER NOT NULL UNIQUE
) STRICT;

CREATE INDEX sites_waiting ON sites (top_priority, max(due_at_ms, block_until_ms, rest_until_ms))
    WHERE top_priority > 0 AND in_window = 0;
CREATE INDEX sites_resting ON sites (rest_until_ms) WHERE rest_until_ms > 0;
";

/// The tables and columns that version 4 added.
const SINCE_4: &str = "
CREATE TABLE epochs (                         -- one for each start of a dispatcher on this file
    id    INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL UNIQUE             -- later ones are greater, on copies of this file as well
) STRICT;
ALTER TABLE tasks ADD COLUMN
    epoch INTEGER NOT NULL DEFAULT 0;         -- epochs.id: when it was last handed out
ALTER TABLE crawls ADD COLUMN
    dataset TEXT;                             -- of its records, once it is known
";

/// What version 5 added: stored URLs are short (see [`stored_urls`](super::stored_urls)), and `tasks`
/// is a view that has them whole; runs of the seen index are packed; crawls have the time of their last
/// change. What is in the file stays as it is, so that this takes no time: rows and runs of older
/// versions are read as well.
fn since_5() -> String {
    format!(
        "ALTER TABLE tasks RENAME TO task_rows;
         CREATE VIEW tasks AS SELECT id, state, crawl, site, priority, depth, redirects, attempt,
             deaths, outcome, status_code, parent, seen_at_ms, done_at_ms, {WHOLE_URL} AS url,
             attrs, not_before_ms, epoch FROM task_rows;
         ALTER TABLE seen_runs ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE crawls ADD COLUMN changed_at_ms INTEGER NOT NULL DEFAULT 0;
         UPDATE crawls SET changed_at_ms = coalesce(
             (SELECT value FROM meta WHERE name = 'committed_at_ms'), 0);"
    )
}

/// Migrates from version 3 to 4: records have the keys that the store has given them. The names are
/// removed first, because the new one of a record may be the old one of another.
const FROM_3: &str = "
UPDATE crawls SET dataset = 'unnamed';
CREATE TABLE older_records AS SELECT id, name, resolved FROM records;
DELETE FROM records;
INSERT INTO records SELECT id, 'unnamed/' || name, resolved FROM older_records;
DROP TABLE older_records;
";

/// Migrates from version 2 to 3: sites that rest, and their addresses.
const FROM_2: &str = "
ALTER TABLE sites ADD COLUMN rest_until_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sites ADD COLUMN address TEXT;
DROP INDEX IF EXISTS sites_waiting;
";

/// Migrates from version 1 to 2: pauses, site rules, retries, turns.
const FROM_1: &str = "
ALTER TABLE crawls ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawls ADD COLUMN expires_at_ms INTEGER;
ALTER TABLE crawls ADD COLUMN waiting TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sites ADD COLUMN rule_delay_ms INTEGER;
ALTER TABLE sites ADD COLUMN block_until_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sites ADD COLUMN pages_left INTEGER;
ALTER TABLE crawl_sites ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawl_sites ADD COLUMN top_priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawl_sites ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN attrs INTEGER;
ALTER TABLE tasks ADD COLUMN not_before_ms INTEGER NOT NULL DEFAULT 0;
DROP INDEX sites_waiting;
DROP INDEX tasks_queued;

CREATE TEMP TABLE waiting AS
    SELECT crawl, site, priority, count(*) AS n FROM tasks WHERE state = 0 GROUP BY 1, 2, 3;
UPDATE crawl_sites SET queued = sums.n, top_priority = sums.top FROM
    (SELECT crawl, site, sum(n) AS n, max(priority) AS top FROM temp.waiting GROUP BY 1, 2) AS sums
    WHERE sums.crawl = crawl_sites.crawl AND sums.site = crawl_sites.site;
UPDATE crawls SET waiting = sums.waiting FROM
    (SELECT crawl, json_group_object(priority, n) AS waiting FROM
        (SELECT crawl, priority, sum(n) AS n FROM temp.waiting GROUP BY 1, 2) GROUP BY 1) AS sums
    WHERE sums.crawl = crawls.id;
UPDATE crawls SET expires_at_ms = json_extract(spec, '$.expires_at_ms');
DROP TABLE temp.waiting;
";

/// Tables that files of the same version may lack; an older webfill ignores them.
const LATER_TABLES: &str = "
CREATE TABLE IF NOT EXISTS supervisors (      -- those that may hold leases
    name               TEXT PRIMARY KEY,
    home               INTEGER NOT NULL,
    longest_request_ms INTEGER NOT NULL,
    silent_ms          INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tasks_crashed ON task_rows (done_at_ms) WHERE outcome = 'crashed';
CREATE INDEX IF NOT EXISTS sites_due ON sites (due_at_ms) WHERE due_at_ms > 0;
CREATE INDEX IF NOT EXISTS sites_of_unknown_delay ON sites (last_start_ms)
    WHERE delay_ms IS NULL AND last_start_ms NOT NULL;
CREATE INDEX IF NOT EXISTS sites_limited ON sites (id) WHERE pages_left NOT NULL;
CREATE INDEX IF NOT EXISTS crawls_unfinished ON crawls (id) WHERE queued + leased > 0;
CREATE INDEX IF NOT EXISTS crawls_pending ON crawls (app_id, crawl_id) WHERE queued + leased > 0;
CREATE TABLE IF NOT EXISTS known_pages (      -- of watches
    task   INTEGER PRIMARY KEY,
    crawl  INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,                  -- when it is looked at, should no run find it
    lost   INTEGER NOT NULL,                  -- looks at it since a run has found it
    missed INTEGER NOT NULL                   -- looks in a row at which it was missing
) STRICT;
CREATE INDEX IF NOT EXISTS known_pages_due ON known_pages (crawl, due_ms);
CREATE TABLE IF NOT EXISTS unmatched_pages (  -- a further counter of crawls
    crawl INTEGER PRIMARY KEY,
    n     INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS listed_rows (      -- further counters of crawls: rows of pages
    crawl  INTEGER PRIMARY KEY,
    n      INTEGER NOT NULL,
    stored INTEGER NOT NULL                   -- those whose values are in the store
) STRICT;
CREATE TABLE IF NOT EXISTS site_rules (       -- what else was set by hand
    site       INTEGER PRIMARY KEY,
    most_pages INTEGER,                       -- of the limit that sites.pages_left counts down
    lane       TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS doubtful_pages (   -- since the last good page of their site
    site INTEGER NOT NULL,
    task INTEGER NOT NULL,
    place  INTEGER NOT NULL,                  -- in the order in which they came
    answer INTEGER,                           -- one that resembles a challenge; NULL: one without content
    fields INTEGER NOT NULL DEFAULT 0,        -- values that were stored with the page
    PRIMARY KEY (site, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken_back (       -- pages whose values the store still has to take back
    task INTEGER PRIMARY KEY
) STRICT;
";

/// An empty file is a database; those that SQLite puts beside it have its mode.
pub(super) fn create_private(path: &Path) {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(PRIVATE);
    // If it cannot be created, SQLite finds out why.
    let _ = options.open(path);
}

/// Opens the file: creates the tables in an empty one, migrates an older one, refuses any other.
pub(super) fn open(path: &Path, config: &FrontierConfig) -> Result<Connection, FrontierError> {
    let at_path = |source| FrontierError::Open {
        path: path.to_owned(),
        source,
    };
    create_private(path);
    #[cfg_attr(not(test), allow(unused_mut))]
    let mut db = Connection::open(path).map_err(at_path)?;
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
        Ok(Some(found @ 1..VERSION)) => migrate(&db, path, found).map_err(at_path)?,
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
    #[cfg(test)]
    plans::watch(&mut db);
    Ok(db)
}

/// `None` for a file without [`APPLICATION_ID`].
fn version(db: &Connection) -> rusqlite::Result<Option<i64>> {
    let application: i64 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application == APPLICATION_ID).then_some(version))
}

/// Whether the file is a frontier of this version.
pub(super) fn is_current(db: &Connection) -> rusqlite::Result<bool> {
    Ok(version(db)? == Some(VERSION))
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

/// Creates the tables in one transaction: a crash leaves an empty file. Free pages can be given back
/// little by little; that must be said before there is any table.
fn create(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {VERSION};
         {TABLES}
         {SINCE_2}
         {SINCE_3}
         {SINCE_4}
         {}
         {SINCE_6_WATCHES}
         {SINCE_6_NOTICES}
         {SINCE_7}
         {WITHOUT_OLDER_RUNS}
         COMMIT;",
        since_5()
    ))
}

/// Migrates in one transaction: a crash leaves the file of its version.
fn migrate(db: &Connection, path: &Path, found: i64) -> rusqlite::Result<()> {
    tracing::info!(
        event = "migrating",
        "bringing the frontier's tables up to date"
    );
    db.pragma_update(None, "temp_store", "MEMORY")?;
    let steps = [[FROM_1, SINCE_2], [FROM_2, SINCE_3], [SINCE_4, FROM_3]];
    let steps = steps.into_iter().skip(found as usize - 1);
    let steps: String = steps.flatten().collect();
    let to_5 = if found < 5 { since_5() } else { String::new() };
    let to_6 = if found < 6 {
        format!("{SINCE_6_WATCHES} {SINCE_6_NOTICES}")
    } else {
        String::new()
    };
    db.execute_batch(&format!("BEGIN IMMEDIATE; {steps} {to_5} {to_6} {SINCE_7}"))
        .and_then(|()| move_to_files(db, &path.with_file_name(runs::FOLDER)))
        .and_then(|()| {
            db.execute_batch(&format!(
                "{WITHOUT_OLDER_RUNS} PRAGMA user_version = {VERSION}; COMMIT;"
            ))
        })
        .inspect_err(|_| drop(db.execute_batch("ROLLBACK")))
}

fn tune(db: &Connection, config: &FrontierConfig) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY_WAIT)?;
    // More than there are: each is prepared once.
    db.set_prepared_statement_cache_capacity(256);
    // Otherwise a statement that is planned by the values bound to it (where an index is partial, or
    // there is a LIMIT) is prepared again each time that one is bound.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // What is told after a commit is on the disk by then, whatever becomes of the machine.
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "cache_size", -(config.page_cache_bytes as i64 / 1024))?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    db.pragma_update(None, "journal_size_limit", 2 * CHECKPOINT_PAGES * 4_096)
}

/// The tables alone.
#[cfg(test)]
pub(super) fn create_for_tests(db: &Connection) {
    create(db).unwrap();
}

mod notices;
#[cfg(test)]
pub(super) mod plans;
mod since_6;
mod since_7;
#[cfg(test)]
mod tests;
