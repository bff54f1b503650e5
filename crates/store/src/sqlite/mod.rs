//! The SQLite backend: one file that the processes of one machine write, through the write-ahead log (WAL).
//!
//! Each process has one connection for its calls, owned by one thread ([`connection_thread`]). Calls reach it through a
//! bounded queue. Browsing, bodies and exports have connections of their own. A call that writes is one transaction,
//! begun with BEGIN IMMEDIATE so that two processes cannot deadlock. With `synchronous = FULL`, the writes of an
//! answered call survive the death of every process and a loss of power.
//!
//! In this crate, only this folder uses rusqlite.

pub(crate) mod backup;
mod batch;
mod bodies;
mod bodies_file;
mod browse;
mod browsing;
mod cache;
mod changes;
mod claims;
mod columns;
mod connection;
mod connection_thread;
mod content_changes;
mod crawls;
mod export;
mod fault;
mod field_counts;
mod following;
mod health;
mod list_pages;
mod lists;
mod objects;
mod pages;
mod records;
mod reread;
mod reservations;
mod retention;
mod rows;
mod samples;
mod schema;
mod scratch;
mod site_states;
mod source_documents;
mod tally;
mod trial;
mod validators;

pub use following::{FollowedChange, FollowedFile};

pub use tally::ValueChangeCounter;
pub use trial::Trial;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, PoisonError, RwLock};

use rusqlite::Connection;

use crate::error::StoreError;
use crate::open_mode::OpenMode;
use crate::record::FillRules;

use batch::{repeat_error, write_each};
use bodies_file::BodiesFile;
use browsing::Browsing;
use connection::Db;
use connection_thread::ConnectionThread;
use fault::{Fault, store_name};

/// A store and a cache in one SQLite file.
pub(crate) struct Sqlite {
    thread: ConnectionThread,
    path: PathBuf,
    bodies: BodiesFile,
    browsing: Browsing,
    rules: RwLock<Arc<FillRules>>,
    /// How far earlier calls of [`Retention::drop_old`](crate::Retention::drop_old) have checked whether pages are too
    /// old.
    retained_to: AtomicI64,
}

impl Sqlite {
    /// Opens the file, and creates it if `mode` allows it.
    pub(crate) async fn open(path: PathBuf, mode: OpenMode) -> Result<Sqlite, StoreError> {
        let file = path.clone();
        let open = move || open_file(&file, mode);
        let thread = ConnectionThread::start(store_name(&path), open).await?;
        Ok(Sqlite {
            thread,
            bodies: BodiesFile::next_to_store(&path),
            browsing: Browsing::at_path(&path),
            path,
            rules: RwLock::default(),
            retained_to: AtomicI64::default(),
        })
    }

    fn rules(&self) -> Arc<FillRules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `read` on the connection's thread, without a transaction.
    async fn read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.thread.call(move |db| db.read(read)).await?
    }

    /// Runs `write` on the connection's thread, in one transaction.
    async fn write<R: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.thread.call(move |db| db.write(write)).await?
    }

    /// Writes all entries in one transaction. `name` gives the name of an entry in errors. See [`write_each`].
    async fn write_each<T: Send + 'static, R: Send + 'static>(
        &self,
        entries: Vec<T>,
        name: fn(&T) -> String,
        write: impl Fn(&Connection, &T) -> Result<R, Fault> + Send + 'static,
    ) -> Vec<Result<R, StoreError>> {
        let count = entries.len();
        let write_all = move |db: &mut Db| write_each(db, &entries, name, write);
        let written = self.thread.call(write_all).await;
        written.unwrap_or_else(|error| repeat_error(count, &error))
    }
}

fn open_file(path: &Path, mode: OpenMode) -> Result<Db, StoreError> {
    let mut db = schema::open(path, mode)?;
    if mode == OpenMode::Create
        && let Err(error) = db.write(cache::delete_idle_sites)
    {
        tracing::warn!(%error, "cannot forget idle sites, will try at the next start");
    }
    Ok(db)
}
