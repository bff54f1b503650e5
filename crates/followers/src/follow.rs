//! The loop that follows the store's order of saves. Every two seconds, and once more at the end, it reads the new
//! saves. If the store cannot be read, it retries.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;
use webfill_service::Fault;
use webfill_store::{Cursor, ExportError, ExportFilter, Store, StoreError, StoreUri};

use crate::followed_store::FollowedStore;
use crate::thread;

/// How often the store is asked for new saves.
const FOLLOW_EVERY: Duration = Duration::from_secs(2);

/// How long it continues to read if the process ends without a signal to it.
const LAST_READ: Duration = Duration::from_secs(10);

/// The loop's work on the store.
pub(crate) trait Follow: Send + 'static {
    /// Reads the saves so far.
    async fn catch_up(&mut self, store: &dyn Store, turn: &Turn<'_>) -> Result<(), StoreError>;

    /// The store failed: memory and store may differ. `is_first`: it did not fail before.
    fn store_failed(&mut self, error: &StoreError, is_first: bool);
}

/// For how long a follower may read.
pub(crate) struct Turn<'t> {
    /// The turn is the last one, and ends then.
    until: Option<Instant>,
    stopped: &'t oneshot::Receiver<Duration>,
}

impl Turn<'_> {
    pub(crate) fn new(until: Option<Instant>, stopped: &oneshot::Receiver<Duration>) -> Turn<'_> {
        Turn { until, stopped }
    }

    pub(crate) fn is_last(&self) -> bool {
        self.until.is_some()
    }

    /// Whether its time is up, or the last turn is to begin.
    pub(crate) fn is_over(&self) -> bool {
        match self.until {
            Some(until) => Instant::now() >= until,
            None => !self.stopped.is_empty(),
        }
    }

    /// Between two chunks: a long store is read with half of a core, unless the process ends.
    pub(crate) async fn pause(&self, began: Instant) {
        if !self.is_last() {
            tokio::time::sleep(began.elapsed()).await;
        }
    }
}

/// A follower with its store.
pub(crate) struct Following<F> {
    store: FollowedStore,
    pub(crate) follower: F,
}

impl<F: Follow> Following<F> {
    pub(crate) fn new(store: StoreUri, follower: F) -> Following<F> {
        Following {
            store: FollowedStore::new(store),
            follower,
        }
    }

    /// Starts the thread of that name. The store exists.
    pub(crate) fn start(self, name: &str, what: &str) -> Result<FollowerThread, Fault> {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::start(name, what, move || self.run(stopped))?;
        Ok(FollowerThread { stop, thread })
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<Duration>) {
        loop {
            let asked = tokio::time::timeout(FOLLOW_EVERY, &mut stopped).await;
            let patience = asked.ok().map(|asked| asked.unwrap_or(LAST_READ));
            let turn = Turn::new(patience.map(|patience| Instant::now() + patience), &stopped);
            match self.catch_up(&turn).await {
                Ok(()) => self.store.note_there(),
                Err(error) => {
                    let is_first = self.store.note_away();
                    self.follower.store_failed(&error, is_first);
                }
            }
            if turn.is_last() {
                return;
            }
        }
    }

    pub(crate) async fn catch_up(&mut self, turn: &Turn<'_>) -> Result<(), StoreError> {
        let store = self.store.open().await?;
        self.follower.catch_up(&*store, turn).await
    }
}

/// The handle of a follower's thread.
pub(crate) struct FollowerThread {
    stop: oneshot::Sender<Duration>,
    thread: JoinHandle<()>,
}

impl FollowerThread {
    /// Makes it read the saves so far, if that does not take long, and ends it. Waits for it until then at most, if a
    /// time is given. Returns false if it has panicked.
    pub(crate) fn finish(self, patience: Duration, until: Option<Instant>) -> bool {
        // The thread is gone only if it panicked.
        let _ = self.stop.send(patience);
        thread::ends_well(self.thread, until)
    }
}

/// Some saves, each with the cursor after it.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) saves: Vec<(Cursor, Value)>,
    bytes: usize,
    /// Where to continue, if these are the last ones.
    pub(crate) end: Option<Cursor>,
}

impl Chunk {
    /// Reads the saves after a position, up to `most` saves and bytes.
    pub(crate) async fn read(
        &mut self,
        store: &dyn Store,
        position: &Cursor,
        filter: &ExportFilter,
        most: (usize, usize),
        size: impl Fn(&Value) -> usize + Send + Sync,
    ) -> Result<(), StoreError> {
        let mut each = |cursor: Cursor, save: Value| {
            self.bytes += size(&save);
            self.saves.push((cursor, save));
            match self.saves.len() >= most.0 || self.bytes >= most.1 {
                true => Err(io::ErrorKind::Interrupted.into()),
                false => Ok(()),
            }
        };
        match store.changes(position, filter, &mut each).await {
            Ok(end) => self.end = Some(end),
            Err(ExportError::Output(_)) => {}
            Err(ExportError::Store(error)) => return Err(error),
        }
        Ok(())
    }
}
