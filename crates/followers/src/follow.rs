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

/// How often the store is checked for new saves.
const FOLLOW_EVERY: Duration = Duration::from_secs(2);

/// How long a follower continues to read if the process ends without a signal.
const LAST_READ: Duration = Duration::from_secs(10);

/// The work of a follower, as the loop calls it.
pub(crate) trait Follow: Send + 'static {
    /// Reads everything that was saved in the store up to now.
    async fn catch_up(&mut self, store: &dyn Store, turn: &Turn<'_>) -> Result<(), StoreError>;

    /// Called when the store failed, so memory and store may differ. `is_first` is false if the previous attempt failed
    /// as well.
    fn on_store_failure(&mut self, error: &StoreError, is_first: bool);
}

/// One turn of the loop: how long a follower may read.
pub(crate) struct Turn<'t> {
    /// When the turn ends, if it is the last one.
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

    /// Whether the time of the turn is up, or the last turn is to begin.
    pub(crate) fn is_over(&self) -> bool {
        match self.until {
            Some(until) => Instant::now() >= until,
            None => !self.stopped.is_empty(),
        }
    }

    /// Pauses between two chunks, so that a long store takes only half of a core. The last turn does not pause.
    pub(crate) async fn pause(&self, began: Instant) {
        if !self.is_last() {
            tokio::time::sleep(began.elapsed()).await;
        }
    }
}

/// A follower of the store, with its connection to the store.
pub(crate) struct FollowerLoop<F> {
    store: FollowedStore,
    pub(crate) follower: F,
}

impl<F: Follow> FollowerLoop<F> {
    pub(crate) fn new(store: StoreUri, follower: F) -> FollowerLoop<F> {
        FollowerLoop {
            store: FollowedStore::new(store),
            follower,
        }
    }

    /// Starts the thread under this name. The store must exist.
    pub(crate) fn start(self, name: &str, what: &str) -> Result<FollowerThread, Fault> {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(name, what, move || self.run(stopped))?;
        Ok(FollowerThread { stop, thread })
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<Duration>) {
        loop {
            let asked = tokio::time::timeout(FOLLOW_EVERY, &mut stopped).await;
            let patience = asked.ok().map(|asked| asked.unwrap_or(LAST_READ));
            let turn = Turn::new(patience.map(|patience| Instant::now() + patience), &stopped);
            match self.catch_up(&turn).await {
                Ok(()) => self.store.note_available(),
                Err(error) => {
                    let is_first = self.store.note_unavailable();
                    self.follower.on_store_failure(&error, is_first);
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
    /// Makes the thread read the saves so far, if that does not take longer than `patience`, and end. Waits for its
    /// end, but not beyond `until` if that is given. Returns false if the thread panicked.
    pub(crate) fn finish(self, patience: Duration, until: Option<Instant>) -> bool {
        // Sending fails only if the thread panicked.
        let _ = self.stop.send(patience);
        thread::wait_for_end(self.thread, until)
    }
}

/// Some saves (documents written to the store), each with the position after it.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) saves: Vec<(Cursor, Value)>,
    bytes: usize,
    /// Where to continue, if the chunk reaches the last save.
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
