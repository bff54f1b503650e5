//! Writes values found on pages back to the database that the records came from: every few seconds while the crawl
//! runs, and the rest at its end.
//!
//! The store knows which records are unwritten. A batch is begun in the store before it is written, and confirmed once
//! the database has it. So after a crash, at most one batch is written twice, and values that the user has changed
//! meanwhile stay. To make such repetitions rare, a batch is begun only while the database server answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use webfill_service::Fault;
use webfill_store::{CrawlId, Dataset, Store, StoreError, UnwrittenRecord, WriteBack};

use crate::feeding::store_fault;
use crate::summary::WriteBackCounts;

/// How often changed records are written back.
const EVERY: Duration = Duration::from_secs(3);

/// The most records in one batch.
const BATCH: u32 = 500;

/// How long the end of the crawl waits for unavailable database servers, and how often it retries them.
const PATIENCE: Duration = Duration::from_secs(120);
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// The most records refused by the database that one run logs.
const REFUSED_LOGGED: u64 = 20;

/// The source (store and crawl) and the target (dataset and collection).
pub struct WriteBackRoute {
    pub store: Arc<dyn Store>,
    pub crawl: CrawlId,
    pub dataset: Arc<Dataset>,
    /// The database and the collection that the dataset is read from, as `database.collection`.
    pub collection: String,
    pub to: WriteBack,
}

/// The handle of the thread that writes values back.
pub struct WriteBackThread {
    /// Dropping this sender makes the thread write the remaining values and end.
    going_on: Option<Sender<()>>,
    abandoned: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<WriteBackCounts, Fault>>>,
}

impl WriteBackThread {
    pub fn start(route: WriteBackRoute) -> Result<WriteBackThread, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start writing back: {error}")))?;
        let abandoned = Arc::new(AtomicBool::new(false));
        let (going_on, over) = mpsc::channel();
        let mut writer = Writer {
            route,
            runtime,
            abandoned: Arc::clone(&abandoned),
            written: WriteBackCounts::default(),
            is_away_logged: false,
        };
        let thread = std::thread::Builder::new()
            .name("write-back".into())
            .spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = over.recv_timeout(EVERY) {
                    writer.write_changed()?;
                }
                writer.write_rest()?;
                Ok(writer.written)
            })
            .map_err(|error| Fault::error(format!("cannot start writing back: {error}")))?;
        Ok(WriteBackThread {
            going_on: Some(going_on),
            abandoned,
            thread: Some(thread),
        })
    }

    /// Returns the fault that ended the thread, if one did.
    pub fn check_thread(&mut self) -> Result<(), Fault> {
        match &self.thread {
            Some(thread) if thread.is_finished() => self.join().map(drop),
            _ => Ok(()),
        }
    }

    /// Makes the thread write the remaining values and end. Call it when records no longer change.
    pub fn finish(mut self, give_up: &impl Fn() -> bool) -> Result<WriteBackCounts, Fault> {
        self.going_on = None;
        while self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            self.abandoned.store(give_up(), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(10));
        }
        self.join()
    }

    fn join(&mut self) -> Result<WriteBackCounts, Fault> {
        let thread = self.thread.take();
        let ended = thread.map_or(Ok(Ok(WriteBackCounts::default())), JoinHandle::join);
        ended.map_err(|_| Fault::error("the write-back thread panicked"))?
    }
}

struct Writer {
    route: WriteBackRoute,
    runtime: Runtime,
    abandoned: Arc<AtomicBool>,
    written: WriteBackCounts,
    is_away_logged: bool,
}

impl Writer {
    /// Writes the changed records. If a server is unavailable, the records are written at the next attempt.
    fn write_changed(&mut self) -> Result<(), Fault> {
        match self.write_all() {
            Ok(()) => self.is_away_logged = false,
            Err(error) if error.is_retry() => self.log_outage(&error),
            Err(error) => return Err(store_fault(error)),
        }
        Ok(())
    }

    /// Writes all changed records, and waits for unavailable servers.
    fn write_rest(&mut self) -> Result<(), Fault> {
        let patience = Instant::now() + PATIENCE;
        loop {
            let error = match self.write_all() {
                Ok(()) => return Ok(()),
                Err(error) if error.is_retry() => error,
                Err(error) => return Err(store_fault(error)),
            };
            self.log_outage(&error);
            if self.is_abandoned() || Instant::now() > patience {
                return Err(Fault::error(format!(
                    "not all values are written back; run the same command again to continue: {error}"
                )));
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }

    fn write_all(&mut self) -> Result<(), StoreError> {
        while !self.is_abandoned() {
            let WriteBackRoute {
                store,
                crawl,
                collection,
                dataset,
                to,
            } = &self.route;
            let reading = store.unwritten(crawl, collection, BATCH);
            let mut unwritten = self.runtime.block_on(reading)?;
            if unwritten.is_empty() {
                return Ok(());
            }
            self.runtime.block_on(dataset.check_writable(to))?;
            self.runtime.block_on(store.begin_writing(&mut unwritten))?;
            if !unwritten.is_empty() {
                self.write(unwritten)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, unwritten: Vec<UnwrittenRecord>) -> Result<(), StoreError> {
        let WriteBackRoute {
            store,
            crawl,
            dataset,
            to,
            ..
        } = &self.route;
        let writing = dataset.write_back(to, &unwritten);
        let refused = self.runtime.block_on(writing)?;
        let with_values = unwritten.iter().filter(|record| !record.fields.is_empty());
        let sent = with_values.count() as u64;
        // Confirm refused records, too. Otherwise every later batch would contain them again.
        let confirming = store.confirm_written(crawl, unwritten);
        self.runtime.block_on(confirming)?;
        self.written.records += sent.saturating_sub(refused.len() as u64);
        for (record, reason) in refused {
            self.record_refusal(&record, &reason);
        }
        Ok(())
    }

    fn record_refusal(&mut self, record: &str, reason: &str) {
        self.written.refused += 1;
        if self.written.refused <= REFUSED_LOGGED {
            tracing::warn!(
                event = "write_back_refused",
                record,
                reason,
                "the dataset rejected a record's values"
            );
        }
    }

    /// Logs an unavailable server, once for each outage.
    fn log_outage(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.is_away_logged, true) {
            tracing::warn!(
                event = "write_back_away",
                reason = %error,
                "write-back is waiting for its server"
            );
        }
    }

    fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}
