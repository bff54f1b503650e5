//! A connection to the file: it waits for other connections, and keeps the write-ahead log short.
//!
//! SQLite resets its log only while no connection reads or writes it. With several busy writers this never happens,
//! and the log would grow without limit. So a connection that finds the log longer than [`LONG_LOG_PAGES`] runs a
//! checkpoint that blocks the writers until the log is reset, for at most [`CHECKPOINT_FOR`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::{Fault, store_error, store_name};
use crate::error::StoreError;
use crate::open_mode::OpenMode;

/// How long a call waits for other writers before it fails with a retryable error.
pub(super) const BUSY_FOR: Duration = Duration::from_secs(30);

/// How long a checkpoint of the write-ahead log may block the writers. It cannot end before readers have left the log.
const CHECKPOINT_FOR: Duration = Duration::from_millis(200);

/// The write-ahead log is reset once it has this length, in pages of 8 KiB.
const LONG_LOG_PAGES: i64 = 4_000;

/// The connection, with the store's name for error messages.
pub(super) struct Db {
    conn: Connection,
    store: String,
    /// How long the busy handler waits, in milliseconds.
    patience_ms: Arc<AtomicU64>,
    /// The next checkpoint is attempted once the log has this length.
    checkpoint_at_pages: i64,
}

impl Db {
    /// Connects to the file. Does not change it yet, because it may belong to another program.
    pub(super) fn connect(path: &Path, mode: OpenMode) -> Result<Db, Fault> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, mode == OpenMode::Create);
        let mut conn = Connection::open_with_flags(path, flags)?;
        // The capacity is greater than the number of statements, so that each is prepared only once.
        conn.set_prepared_statement_cache_capacity(128);
        // Without this option, SQLite would prepare some statements again whenever a value is bound: those whose plan
        // depends on the values, because of a partial index or a LIMIT.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let patience_ms = Arc::new(AtomicU64::new(BUSY_FOR.as_millis() as u64));
        set_busy_handler(&mut conn, Arc::clone(&patience_ms))?;
        Ok(Db {
            conn,
            store: store_name(path),
            patience_ms,
            checkpoint_at_pages: LONG_LOG_PAGES,
        })
    }

    /// Sets the options of a connection to webfill's own file.
    pub(super) fn configure(&self) -> Result<(), Fault> {
        // A row of `pages` has about 3 KiB, so a database page of the default size, 4 KiB, would hold only one row.
        self.conn.execute_batch("PRAGMA page_size = 8192")?;
        let set_journal = "PRAGMA journal_mode = WAL";
        let journal: String = self.conn.query_row(set_journal, (), |row| row.get(0))?;
        if journal != "wal" {
            return Err(Fault::Unusable(String::from(
                "its file system has no shared memory for a write-ahead log: use a local disk",
            )));
        }
        // With `FULL`, each commit is on disk before its call is answered. So a crawled page is on disk before the
        // dispatcher's file marks its task as done.
        self.conn.execute_batch(
            "PRAGMA synchronous = FULL;
             PRAGMA cache_size = -4096;
             PRAGMA wal_autocheckpoint = 0;",
        )?;
        Ok(())
    }

    /// Runs `read` on the connection, without a transaction.
    pub(super) fn read<R>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, Fault>,
    ) -> Result<R, StoreError> {
        read(&self.conn).map_err(|fault| self.error(fault))
    }

    /// Runs `write` in one transaction, which is rolled back if it fails.
    pub(super) fn write<R>(
        &mut self,
        write: impl FnOnce(&Connection) -> Result<R, Fault>,
    ) -> Result<R, StoreError> {
        self.transaction(write).map_err(|fault| self.error(fault))
    }

    /// Like [`Db::write`], but returns the [`Fault`] as it is.
    pub(super) fn transaction<R>(
        &mut self,
        write: impl FnOnce(&Connection) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let begin = TransactionBehavior::Immediate;
        let transaction = self.conn.transaction_with_behavior(begin)?;
        let written = write(&transaction)?;
        transaction.commit()?;
        if let Err(error) = self.shorten_log_if_long() {
            // The data is committed in any case. If the cause persists, the next call reports it.
            tracing::debug!(store = self.store, %error, "cannot shorten the write-ahead log");
        }
        Ok(written)
    }

    pub(super) fn error(&self, fault: Fault) -> StoreError {
        store_error(&self.store, fault)
    }

    /// Copies a long log into the file and resets it. Most of the log is copied while the other writers continue. They
    /// are blocked only for the rest.
    fn shorten_log_if_long(&mut self) -> rusqlite::Result<()> {
        let (_, log_pages) = self.checkpoint("NOOP")?;
        if log_pages < self.checkpoint_at_pages {
            return Ok(());
        }
        self.checkpoint_at_pages = log_pages + LONG_LOG_PAGES;
        let (is_busy, _) = self.checkpoint("PASSIVE")?;
        if is_busy {
            // The first checkpoint was refused because another process is running one.
            return Ok(());
        }
        self.set_busy_timeout(CHECKPOINT_FOR);
        let restarted = self.checkpoint("RESTART");
        self.set_busy_timeout(BUSY_FOR);
        if let (false, _) = restarted? {
            self.checkpoint_at_pages = LONG_LOG_PAGES;
        }
        Ok(())
    }

    /// Runs a checkpoint. Returns whether other connections prevented it, and the length of the log in pages.
    fn checkpoint(&self, mode: &str) -> rusqlite::Result<(bool, i64)> {
        self.conn
            .prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?
            .query_row((), |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn set_busy_timeout(&self, patience: Duration) {
        let patience_ms = patience.as_millis() as u64;
        self.patience_ms.store(patience_ms, Ordering::Relaxed);
    }
}

/// Sets a busy handler that waits in short, uneven steps. The steps of SQLite's own handler grow to 100 ms, during
/// which many short transactions of other processes overtake the waiting one.
fn set_busy_handler(conn: &mut Connection, patience_ms: Arc<AtomicU64>) -> rusqlite::Result<()> {
    let mut waiting_since = Instant::now();
    conn.busy_handler(Some(move |attempts: i32| {
        if attempts == 0 {
            waiting_since = Instant::now();
        }
        let steps = 1 + u64::from(attempts.unsigned_abs().min(15));
        let uneven = u64::from(waiting_since.elapsed().subsec_nanos() % 100);
        std::thread::sleep(Duration::from_micros(100 * steps + uneven));
        waiting_since.elapsed() < Duration::from_millis(patience_ms.load(Ordering::Relaxed))
    }))
}
