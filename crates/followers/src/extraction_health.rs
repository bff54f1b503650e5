//! Judges the health of mappings' extractions, on a thread of its own beside the crawl. It follows the store's changes,
//! counts each good page once, and keeps the result in the store, with its position. Nothing waits for this thread:
//! what it leaves undone, the next dispatcher does.
//!
//! A state is stored together with its position, and only on top of the revision that it was made from. So a crash at
//! any moment neither loses nor repeats a page. Of two dispatchers with one store, each page counts once: the later one
//! starts over with the data that the other has stored.
//!
//! Alerts are reported after they are stored: in the log, on the firehose, in the answer to `status`. After a crash in
//! between, only the store has them.

mod blocked;
mod judged;
mod judged_mapping;
mod known;
mod pinned;
mod report;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_notifications::Standing;
use webfill_scheduler::effects::StandingExtractions;
use webfill_service::Fault;
use webfill_store::{ExportFilter, Store, StoreError, StoreUri};

use crate::firehose::NotificationPublisher;
use crate::follow::{Chunk, Follow, FollowerLoop, FollowerThread, Turn};
use judged::HealthStates;

/// Limits of a chunk: the number of pages read at a time, and the bytes of their values.
const CHUNK_PAGES: usize = 256;
const CHUNK_BYTES: usize = 8 << 20;

/// States are stored after this many pages at the latest.
const SAVE_AFTER: u64 = 20_000;

/// The handle of the thread that judges the health of extractions.
pub struct ExtractionHealth {
    standing: Arc<RwLock<Option<StandingExtractions>>>,
    /// The mappings in force. Alerts of other mappings are not shown, because nobody can act on them.
    mappings: Vec<String>,
    thread: FollowerThread,
}

impl ExtractionHealth {
    /// Starts the thread. The store must exist.
    pub fn start(
        store: StoreUri,
        notifications: NotificationPublisher,
        mappings: Vec<String>,
    ) -> Result<ExtractionHealth, Fault> {
        let standing = Arc::new(RwLock::new(None));
        let follower = Follower {
            judged: HealthStates::default(),
            notifications,
            standing: Arc::clone(&standing),
        };
        let what = "the thread that judges extractions";
        let thread = FollowerLoop::new(store, follower).start("health", what)?;
        Ok(ExtractionHealth {
            standing,
            mappings,
            thread,
        })
    }

    /// Sets the mappings that are in force from now on.
    pub fn set_mappings(&mut self, mappings: Vec<String>) {
        self.mappings = mappings;
    }

    /// The stored alerts of mappings in force; `None` if they have not been read yet.
    pub fn standing_alerts(&self) -> Option<StandingExtractions> {
        let standing = self.standing.read().unwrap_or_else(PoisonError::into_inner);
        let standing = standing.as_ref()?;
        Some(filter_by_mappings(standing, &self.mappings))
    }

    /// Reads the saves so far, if that does not take longer than `patience`, and ends the thread. Waits for its end,
    /// but not beyond `until` if that is given.
    pub fn finish(self, patience: Duration, until: Option<Instant>) {
        if !self.thread.finish(patience, until) {
            tracing::error!(
                event = "health_panicked",
                "the thread that judges extractions panicked"
            );
        }
    }
}

/// The state of the thread that judges the health of extractions.
struct Follower {
    judged: HealthStates,
    notifications: NotificationPublisher,
    standing: Arc<RwLock<Option<StandingExtractions>>>,
}

impl Follow for Follower {
    async fn catch_up(&mut self, store: &dyn Store, turn: &Turn<'_>) -> Result<(), StoreError> {
        loop {
            if self.judged.load(store).await? {
                self.update_standing_alerts();
            }
            let began = Instant::now();
            let chunk = self.read_chunk(store).await?;
            let is_end = chunk.end.is_some();
            self.judged.add_chunk(store, chunk).await?;
            let is_over = turn.is_over();
            if is_end || is_over || self.judged.unsaved_pages() >= SAVE_AFTER {
                self.judged.settle_alerts(store, turn.is_last()).await?;
                let saved = self.judged.save(store).await;
                // Published before the reports go out, because a recipient may ask for the details at once.
                self.update_standing_alerts();
                saved
                    .reports
                    .iter()
                    .for_each(|report| report.report(&self.notifications));
                if let Some(error) = saved.error {
                    return Err(error);
                }
            }
            if is_end || is_over {
                return Ok(());
            }
            turn.pause(began).await;
        }
    }

    fn on_store_failure(&mut self, error: &StoreError, is_first: bool) {
        self.judged.forget();
        if is_first {
            tracing::warn!(event = "health_waits", %error, "extractions are not judged until the store can be read");
        }
    }
}

impl Follower {
    /// Reads some pages after the position.
    async fn read_chunk(&mut self, store: &dyn Store) -> Result<Chunk, StoreError> {
        let filter = ExportFilter {
            extractions: true,
            ..ExportFilter::default()
        };
        let mut chunk = Chunk::default();
        let most = (CHUNK_PAGES, CHUNK_BYTES);
        let size = |page: &Value| approximate_bytes(&page["fields"]);
        let read = chunk.read(store, self.judged.position(), &filter, most, size);
        match read.await {
            Ok(()) => {}
            Err(error) if error.is_fatal() && self.judged.rewind() => {
                tracing::warn!(event = "health_begins_again", %error, "pages were dropped before their extractions were judged");
            }
            Err(error) => return Err(error),
        }
        Ok(chunk)
    }

    fn update_standing_alerts(&self) {
        let standing = Arc::new(self.judged.standing_judgements());
        *self
            .standing
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(standing);
    }
}

fn filter_by_mappings(standing: &StandingExtractions, mappings: &[String]) -> StandingExtractions {
    let is_in_force = |row: &&Value| mappings.iter().any(|name| row["mapping"] == **name);
    let rows = [&standing.alerts, &standing.warnings];
    if rows.into_iter().flatten().all(|row| is_in_force(&row)) {
        return Arc::clone(standing);
    }
    let of = |rows: &[Value]| rows.iter().filter(is_in_force).cloned().collect();
    Arc::new(Standing {
        alerts: of(&standing.alerts),
        warnings: of(&standing.warnings),
    })
}

/// The approximate size of a value in memory, in bytes.
fn approximate_bytes(value: &Value) -> usize {
    32 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(approximate_bytes).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + approximate_bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests;
