//! Judges changes of pages, on a thread of its own beside the crawl. It follows the store's order of saves, and
//! compares each check of a page with the earlier versions. Then it stores changes, versions and the position of the
//! last judged check together. Nothing waits for this thread: what it leaves undone, the next dispatcher does.
//!
//! A judgement is stored as a whole, and only on top of the one that it was made from. So a crash at any moment neither
//! loses nor doubles a change. Of two dispatchers with one store, the later one starts over with the data that the
//! other has stored. Stored changes are reported afterwards: in the log, on the firehose, and to the estimate of how
//! often pages change. After a crash in between, only the store has them.

mod comparison;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_changes::PageCheck;
use webfill_service::Fault;
use webfill_service::signals::{self, SignalRequest};
use webfill_store::{
    Change, ComparedPosition, Comparison, Cursor, ExportFilter, Store, StoreError, StoreUri,
    iso_time,
};

use crate::firehose::NotificationPublisher;
use crate::follow::{Chunk, Follow, FollowerLoop, FollowerThread, Turn};
use comparison::{Batch, CheckComparer};

/// Limits of a chunk: the number of checks read at a time, and the bytes of their versions.
const CHUNK_CHECKS: usize = 64;
const CHUNK_BYTES: usize = 2 << 20;

/// How often the position is stored while there are no checks.
const STORE_POSITION_EVERY: Duration = Duration::from_secs(30);

/// Receives the results of checks once they are stored. It must not block.
pub type CheckListener = Box<dyn Fn(Vec<PageCheck>) + Send>;

/// The handle of the thread that judges changes of pages.
pub struct ContentChanges(FollowerThread);

impl ContentChanges {
    /// Starts the thread. The store must exist.
    pub fn start(
        store: StoreUri,
        notifications: NotificationPublisher,
        listener: CheckListener,
    ) -> Result<ContentChanges, Fault> {
        let follower = Follower::new(notifications, listener);
        let what = "the thread that judges changes";
        let thread = FollowerLoop::new(store, follower).start("changes", what)?;
        Ok(ContentChanges(thread))
    }

    /// Reads the saves so far, if that does not take longer than `patience`, and ends the thread. Waits for its end,
    /// but not beyond `until` if that is given.
    pub fn finish(self, patience: Duration, until: Option<Instant>) {
        if !self.0.finish(patience, until) {
            tracing::error!(
                event = "changes_panicked",
                "the thread that judges changes panicked"
            );
        }
    }
}

/// The state of the thread that judges changes of pages.
struct Follower {
    notifications: NotificationPublisher,
    listener: CheckListener,
    /// Names this process as the writer of a judgement.
    writer: String,
    /// The stored position; `None` if it must be read from the store.
    stored: Option<ComparedPosition>,
    /// A judgement that the store failed to confirm. It may be stored nevertheless, so it is stored again.
    pending: Option<(Comparison, Vec<PageCheck>)>,
    /// Everything up to this position is judged.
    position: Cursor,
    position_stored: Instant,
}

impl Follow for Follower {
    async fn catch_up(&mut self, store: &dyn Store, turn: &Turn<'_>) -> Result<(), StoreError> {
        if let Some((judgement, checks)) = self.pending.take() {
            self.store_and_report(store, judgement, checks).await?;
        }
        loop {
            let began = Instant::now();
            let stored = self.load_position(store).await?;
            let chunk = self.read_chunk(store).await?;
            let is_end = chunk.end.is_some();
            let is_whole = self
                .judge_chunk(store, stored, chunk, turn.is_last())
                .await?;
            let is_stopped = turn.is_last() && signals::received_request() == SignalRequest::Stop;
            if is_stopped || turn.is_over() || (is_end && is_whole) {
                return Ok(());
            }
            turn.pause(began).await;
        }
    }

    fn on_store_failure(&mut self, error: &StoreError, is_first: bool) {
        self.stored = None;
        if is_first {
            tracing::warn!(event = "changes_wait", %error, "changes are not judged until the store can be read");
        }
    }
}

impl Follower {
    fn new(notifications: NotificationPublisher, listener: CheckListener) -> Follower {
        Follower {
            notifications,
            listener,
            writer: new_writer_name(),
            stored: None,
            pending: None,
            position: Cursor::start(),
            position_stored: Instant::now(),
        }
    }

    /// The position of the last stored judgement.
    async fn load_position(&mut self, store: &dyn Store) -> Result<ComparedPosition, StoreError> {
        if let Some(stored) = &self.stored {
            return Ok(stored.clone());
        }
        let stored = store.load_compared_position().await?;
        self.position = stored.cursor.clone();
        self.stored = Some(stored.clone());
        Ok(stored)
    }

    /// Judges and stores a chunk, and reports its results. Returns false if a part of the chunk is left.
    async fn judge_chunk(
        &mut self,
        store: &dyn Store,
        stored: ComparedPosition,
        chunk: Chunk,
        is_last: bool,
    ) -> Result<bool, StoreError> {
        let end = chunk.end.clone();
        let count = chunk.saves.len();
        let mut batch = CheckComparer::load(store, &chunk.saves)
            .await?
            .compare_all(&chunk.saves);
        let is_whole = batch.judged == count;
        if let Some(end) = end.filter(|_| is_whole) {
            batch.cursor = Some(end);
        }
        let Some(cursor) = batch.cursor.clone() else {
            return Ok(is_whole);
        };
        self.position = cursor.clone();
        let is_due = is_last || self.position_stored.elapsed() >= STORE_POSITION_EVERY;
        if count > 0 || (is_due && cursor != stored.cursor) {
            self.store_batch(store, stored, cursor, batch).await?;
        }
        Ok(is_whole)
    }

    async fn store_batch(
        &mut self,
        store: &dyn Store,
        stored: ComparedPosition,
        cursor: Cursor,
        batch: Batch,
    ) -> Result<(), StoreError> {
        let Batch {
            versions,
            mut changes,
            checks,
            ..
        } = batch;
        let mut last_number = stored.last_number;
        for change in &mut changes {
            last_number += 1;
            change.number = last_number;
        }
        let judgement = Comparison {
            to: ComparedPosition {
                revision: stored.revision + 1,
                cursor,
                last_number,
            },
            writer: self.writer.clone(),
            versions,
            changes,
        };
        self.store_and_report(store, judgement, checks).await
    }

    /// Stores a judgement. Once that is certain, reports its changes and checks.
    async fn store_and_report(
        &mut self,
        store: &dyn Store,
        judgement: Comparison,
        checks: Vec<PageCheck>,
    ) -> Result<(), StoreError> {
        self.position_stored = Instant::now();
        match store.put_judgement(judgement.clone()).await {
            Ok(true) => {}
            Ok(false) => {
                // Another process has judged these checks.
                self.stored = None;
                return Ok(());
            }
            Err(error) => {
                self.pending = Some((judgement, checks));
                return Err(error);
            }
        }
        self.position = judgement.to.cursor.clone();
        self.stored = Some(judgement.to);
        judgement
            .changes
            .iter()
            .for_each(|change| self.report_change(change));
        (self.listener)(checks);
        Ok(())
    }

    /// Reports a change in the log and to the application that owns the page.
    fn report_change(&self, change: &Change) {
        tracing::info!(
            event = "page_changed",
            url = change.url,
            crawl_id = change.crawl_id,
            kind = change.kind.as_str(),
            "a page has changed"
        );
        let notification = json!({
            "action": "page_changed",
            "appid": change.app_id,
            "crawlid": change.crawl_id,
            "number": change.number,
            "kind": change.kind.as_str(),
            "url": change.url,
            "at": iso_time(change.at_ms),
            "mapping": change.mapping,
            "old": change.old,
            "new": change.new,
            "difference": change.difference,
        });
        self.notifications.publish(&change.app_id, &notification);
    }

    /// Reads some checks after the position.
    async fn read_chunk(&mut self, store: &dyn Store) -> Result<Chunk, StoreError> {
        let filter = ExportFilter {
            checks: true,
            ..ExportFilter::default()
        };
        let mut chunk = Chunk::default();
        let most = (CHUNK_CHECKS, CHUNK_BYTES);
        let read = chunk.read(store, &self.position, &filter, most, approximate_bytes);
        match read.await {
            Ok(()) => {}
            Err(error) if error.is_fatal() && self.position != Cursor::start() => {
                tracing::warn!(event = "changes_begin_again", %error, "pages were dropped before they were judged");
                self.position = Cursor::start();
            }
            Err(error) => return Err(error),
        }
        Ok(chunk)
    }
}

/// The approximate size of a check's versions in bytes.
fn approximate_bytes(page: &Value) -> usize {
    let snapshot = page["snapshot"].as_str().map_or(0, str::len);
    let fields = page["fields"].as_object();
    snapshot + fields.map_or(0, |fields| 100 * fields.len())
}

/// A name that differs for each process and each start.
fn new_writer_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    format!("{random:016x}")
}

#[cfg(test)]
mod tests;
