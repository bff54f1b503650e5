//! The MongoDB backend: one database that the processes of many machines write.
//!
//! The driver runs on a thread of its own ([`runtime_thread`]), so that its connections and its monitoring of the
//! servers do not depend on the callers' runtimes.
//!
//! A call is a few commands, whatever the size of its batch. It is answered once a majority of the members has its
//! writes. Every write is an idempotent statement on one document, with a condition that detects concurrent writes;
//! there are no transactions, except behind the [`fence`] of a group of dispatchers. So a call that was interrupted, by
//! a timeout or by the election of a new primary, is repeated.
//!
//! BSON is used only in this folder and in the types that it exports.

mod bodies;
mod browse;
mod cache;
mod changes;
mod claims;
mod command;
mod conditions;
mod connection;
mod content_changes;
mod crawls;
mod dataset;
mod dispatchers;
mod export;
mod fault;
mod fence;
mod field_counts;
mod health;
mod indexes;
mod journal;
mod journal_cut;
mod lease;
mod list_query;
mod lists;
mod members;
mod page_log;
mod pages;
mod records;
mod reread;
mod reservations;
mod retention;
mod retraction;
mod runtime_thread;
mod samples;
mod site_states;
mod snapshots;
mod source_documents;
mod uri;
mod validators;
mod value;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::error::StoreError;
use crate::open_mode::{OpenMode, Uses};
use crate::record::FillRules;

use command::Db;
pub use dataset::{Dataset, DatasetDocument, DatasetSource, Documents, WriteBack};
use fault::Fault;
use runtime_thread::RuntimeThread;
pub use uri::{DatabasePlace, MongoUri};

/// A store and a cache in one database.
pub(crate) struct Mongo {
    db: Db,
    thread: RuntimeThread,
    rules: RwLock<Arc<FillRules>>,
    written_bodies: Arc<bodies::Written>,
}

impl Mongo {
    /// Connects to the server, and creates indexes if `mode` allows it.
    pub(crate) async fn open(
        uri: &MongoUri,
        mode: OpenMode,
        uses: Uses,
    ) -> Result<Mongo, StoreError> {
        let opened = uri.clone();
        Mongo::start(
            uri,
            async move { connection::open(&opened, mode, uses).await },
        )
        .await
    }

    /// Connects to the server, and creates nothing. No command is sent.
    pub(crate) async fn connect(uri: &MongoUri) -> Result<Mongo, StoreError> {
        let connected = uri.clone();
        Mongo::start(uri, async move {
            let db = connection::connect(&connected).await;
            db.map_err(|fault| fault.into_error(&connected.to_string()))
        })
        .await
    }

    /// Starts the driver's thread, and opens the database on it.
    async fn start(
        uri: &MongoUri,
        opening: impl Future<Output = Result<Db, StoreError>> + Send + 'static,
    ) -> Result<Mongo, StoreError> {
        let store = uri.to_string();
        let thread = RuntimeThread::start().map_err(|error| StoreError::Fatal {
            store: store.clone(),
            reason: format!("cannot start its thread: {error}"),
        })?;
        let opened = thread.run(opening).await;
        Ok(Mongo {
            db: opened.ok_or_else(|| panic_error(&store))??,
            thread,
            rules: RwLock::default(),
            written_bodies: Arc::default(),
        })
    }

    fn rules(&self) -> Arc<FillRules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a call on the driver's thread.
    async fn call<R, W>(&self, call: impl FnOnce(Db) -> W) -> Result<R, StoreError>
    where
        R: Send + 'static,
        W: Future<Output = Result<R, Fault>> + Send + 'static,
    {
        let done = self.thread.run(call(self.db.clone())).await;
        let done = done.ok_or_else(|| panic_error(&self.db.store))?;
        done.map_err(|fault| fault.into_error(&self.db.store))
    }

    /// Like [`Mongo::call`], for a batch. If the call fails as a whole, each entry gets the error.
    async fn call_for_each<R, W>(
        &self,
        entries: usize,
        call: impl FnOnce(Db) -> W,
    ) -> Vec<Result<R, StoreError>>
    where
        R: Send + 'static,
        W: Future<Output = Result<Vec<Result<R, StoreError>>, Fault>> + Send + 'static,
    {
        let called = self.call(call).await;
        called.unwrap_or_else(|error| fail_all(entries, &error))
    }
}

/// The time between two calls of a process. The processes of a machine share a rate that a server can sustain, so the
/// more processes there are, the longer the time is. It is at most 700 ms, well below a polite delay, so that a site's
/// next task arrives before it is due.
fn call_interval(processes: u16) -> Duration {
    let ms = 125 * u64::from(processes);
    Duration::from_millis(ms.clamp(250, 700))
}

fn panic_error(store: &str) -> StoreError {
    StoreError::Fatal {
        store: store.to_owned(),
        reason: String::from("can no longer be used: a call has failed unexpectedly"),
    }
}

/// The same error for each entry of a batch that failed as a whole.
fn fail_all<R>(entries: usize, error: &StoreError) -> Vec<Result<R, StoreError>> {
    (0..entries).map(|_| Err(error.clone())).collect()
}
