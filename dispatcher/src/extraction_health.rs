//! Judges how the extractions of mappings are doing, on a thread of its own beside the crawl: it follows the
//! store's changes, takes each good page in once, and keeps the result in the store, with the position up to
//! which it is. Nothing waits for it; what it has not read when the dispatcher ends, the next one reads.
//!
//! A state is stored together with its position, and only onto the revision that it was made of. So a death
//! at any moment neither loses nor repeats a page, and of two dispatchers with one store each page counts
//! once: who comes too late begins again with what the other has stored.
//!
//! What is raised is told after it is stored: in the log, on the firehose, in the answer to `status`. After a
//! crash in between it is told by the store only.

mod blocked;
mod judged;
mod known;
mod pinned;
mod told;

use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;
use webfill_notifications::Standing;
use webfill_scheduler::effects::StandingExtractions;
use webfill_service::Fault;
use webfill_store::{Cursor, ExportError, ExportFilter, Store, StoreError, StoreUri};

use crate::firehose::Notifications;
use crate::thread_end::ends_well;
use judged::Judged;

/// How often the store is asked for further pages, and how often states are stored at most.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Pages that are read at once, and bytes of their values.
const CHUNK_PAGES: usize = 256;
const CHUNK_BYTES: usize = 8 << 20;

/// States are stored after so many pages at the latest.
const SAVE_AFTER: u64 = 20_000;

/// How long a dispatcher goes on reading that ends without a word.
const LAST_READ: Duration = Duration::from_secs(10);

/// The thread's handle.
pub(crate) struct ExtractionHealth {
    stop: oneshot::Sender<Duration>,
    standing: Arc<RwLock<Option<StandingExtractions>>>,
    /// The mappings in force: an alert of another one is of no use to anybody.
    mappings: Vec<String>,
    thread: JoinHandle<()>,
}

impl ExtractionHealth {
    /// Starts the thread. The store exists.
    pub(crate) fn start(
        store: StoreUri,
        notifications: Notifications,
        mappings: Vec<String>,
    ) -> Result<ExtractionHealth, Fault> {
        let failed = |error: io::Error| {
            Fault::error(format!(
                "cannot start the thread that judges extractions: {error}"
            ))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let standing = Arc::new(RwLock::new(None));
        let follower = Follower {
            uri: store,
            store: None,
            judged: Judged::default(),
            notifications,
            standing: Arc::clone(&standing),
            is_away: false,
        };
        let thread = std::thread::Builder::new()
            .name("health".into())
            .spawn(move || runtime.block_on(follower.run(stopped)))
            .map_err(failed)?;
        Ok(ExtractionHealth {
            stop,
            standing,
            mappings,
            thread,
        })
    }

    /// The mappings that are in force from now on.
    pub(crate) fn set_mappings(&mut self, mappings: Vec<String>) {
        self.mappings = mappings;
    }

    /// What stands of mappings in force, as far as it is stored; `None`: it was not read yet.
    pub(crate) fn standing(&self) -> Option<StandingExtractions> {
        let standing = self.standing.read().unwrap_or_else(PoisonError::into_inner);
        let standing = standing.as_ref()?;
        Some(of_mappings(standing, &self.mappings))
    }

    /// Reads what is stored by now, if that does not take long, and ends the thread.
    /// It is waited for until then at most, if there is a time.
    pub(crate) fn finish(self, patience: Duration, until: Option<Instant>) {
        // The thread is gone only if it panicked.
        let _ = self.stop.send(patience);
        if !ends_well(self.thread, until) {
            tracing::error!(
                event = "health_panicked",
                "the thread that judges extractions panicked"
            );
        }
    }
}

/// The state of the thread.
struct Follower {
    uri: StoreUri,
    store: Option<Arc<dyn Store>>,
    judged: Judged,
    notifications: Notifications,
    standing: Arc<RwLock<Option<StandingExtractions>>>,
    /// The store could not be read last time.
    is_away: bool,
}

/// Some pages, each with the cursor behind it.
#[derive(Default)]
struct Chunk {
    pages: Vec<(Cursor, Value)>,
    bytes: usize,
    /// Where to continue, if these are the last pages.
    end: Option<Cursor>,
}

impl Follower {
    async fn run(mut self, mut stopped: oneshot::Receiver<Duration>) {
        loop {
            let asked = tokio::time::timeout(LOOK_EVERY, &mut stopped).await;
            let patience = asked.ok().map(|asked| asked.unwrap_or(LAST_READ));
            let is_last = patience.is_some();
            let until = patience.map(|patience| Instant::now() + patience);
            match self.catch_up(until, &mut stopped).await {
                Ok(()) => self.is_away = false,
                Err(error) => self.note_failure(&error),
            }
            if is_last {
                return;
            }
        }
    }

    fn note_failure(&mut self, error: &StoreError) {
        // What is in memory may not be what is stored.
        self.judged.forget();
        if !std::mem::replace(&mut self.is_away, true) {
            tracing::warn!(event = "health_waits", %error, "extractions are not judged until the store can be read");
        }
    }

    /// Judges what is stored by now.
    async fn catch_up(
        &mut self,
        until: Option<Instant>,
        stopped: &mut oneshot::Receiver<Duration>,
    ) -> Result<(), StoreError> {
        let store = self.open_store().await?;
        loop {
            if self.judged.load(&*store).await? {
                self.publish_standing();
            }
            let began = Instant::now();
            let chunk = self.read(&*store).await?;
            let is_end = chunk.end.is_some();
            self.judged.judge(&*store, chunk).await?;
            let is_over = match until {
                Some(until) => Instant::now() >= until,
                None => !stopped.is_empty(),
            };
            if is_end || is_over || self.judged.unsaved_pages() >= SAVE_AFTER {
                self.judged.settle(&*store, until.is_some()).await?;
                let saved = self.judged.save(&*store).await;
                // Who is told asks for more.
                self.publish_standing();
                saved
                    .told
                    .iter()
                    .for_each(|told| told.tell(&self.notifications));
                if let Some(error) = saved.error {
                    return Err(error);
                }
            }
            if is_end || is_over {
                return Ok(());
            }
            if until.is_none() {
                // A long store is read with half of a core.
                tokio::time::sleep(began.elapsed()).await;
            }
        }
    }

    /// Reads some pages after the position.
    async fn read(&mut self, store: &dyn Store) -> Result<Chunk, StoreError> {
        let filter = ExportFilter {
            extractions: true,
            ..ExportFilter::default()
        };
        let mut chunk = Chunk::default();
        let mut each = |cursor: Cursor, page: Value| {
            chunk.bytes += size(&page["fields"]);
            chunk.pages.push((cursor, page));
            match chunk.pages.len() >= CHUNK_PAGES || chunk.bytes >= CHUNK_BYTES {
                true => Err(io::ErrorKind::Interrupted.into()),
                false => Ok(()),
            }
        };
        match store
            .changes(self.judged.position(), &filter, &mut each)
            .await
        {
            Ok(end) => chunk.end = Some(end),
            Err(ExportError::Output(_)) => {}
            Err(ExportError::Store(error)) if error.is_fatal() && self.judged.begin_again() => {
                tracing::warn!(event = "health_begins_again", %error, "pages were dropped before their extractions were judged");
            }
            Err(ExportError::Store(error)) => return Err(error),
        }
        Ok(chunk)
    }

    async fn open_store(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(store) = &self.store {
            return Ok(Arc::clone(store));
        }
        let store = webfill_store::open_existing(&self.uri).await?;
        self.store = Some(Arc::clone(&store));
        Ok(store)
    }

    fn publish_standing(&self) {
        let standing = Arc::new(self.judged.standing());
        *self
            .standing
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(standing);
    }
}

fn of_mappings(standing: &StandingExtractions, mappings: &[String]) -> StandingExtractions {
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

/// About the bytes of a value in memory.
fn size(value: &Value) -> usize {
    32 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + size(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests;
