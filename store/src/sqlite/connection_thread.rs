//! The thread that owns a process's connection to the file.
//!
//! Calls queue up in a bounded channel, so a store that is slower than its callers pushes back. A
//! caller that goes away does not undo its call. The thread ends, and the file is closed in good
//! order, when the [`ConnectionThread`] is dropped and what was queued is done.

use std::path::PathBuf;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::cache;
use super::connection::Db;
use super::fault::store_name;
use super::schema;
use crate::error::StoreError;
use crate::uri::OpenMode;

/// Calls waiting for the thread before callers wait for a place.
const QUEUED_CALLS: usize = 64;

type Call = Box<dyn FnOnce(&mut Db) + Send>;

/// A handle on the thread.
pub(super) struct ConnectionThread {
    /// Taken only when dropped.
    calls: Option<mpsc::Sender<Call>>,
    thread: Option<JoinHandle<()>>,
    store: String,
}

impl ConnectionThread {
    /// Starts the thread, which opens the file.
    pub(super) async fn start(
        path: PathBuf,
        mode: OpenMode,
    ) -> Result<ConnectionThread, StoreError> {
        let store = store_name(&path);
        let (calls, queue) = mpsc::channel(QUEUED_CALLS);
        let (opened, is_open) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(String::from("store"))
            .spawn(move || serve(path, mode, opened, queue))
            .map_err(|error| ended(&store, &error.to_string()))?;
        is_open
            .await
            .unwrap_or_else(|_| Err(ended(&store, "its thread broke down")))?;
        Ok(ConnectionThread {
            calls: Some(calls),
            thread: Some(thread),
            store,
        })
    }

    /// Runs `call` on the thread.
    pub(super) async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Db) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        let (answer, answered) = oneshot::channel();
        let boxed: Call = Box::new(move |db| {
            // A caller that went away does not mind.
            let _ = answer.send(call(db));
        });
        let calls = self.calls.as_ref().expect("calls are taken on drop only");
        if calls.send(boxed).await.is_err() {
            return Err(ended(&self.store, "its thread broke down"));
        }
        answered
            .await
            .map_err(|_| ended(&self.store, "its thread broke down"))
    }
}

impl Drop for ConnectionThread {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            // It broke down in a call, whose caller was told.
            let _ = thread.join();
        }
    }
}

fn ended(store: &str, reason: &str) -> StoreError {
    StoreError::Fatal {
        store: store.to_owned(),
        reason: format!("cannot be used any more: {reason}"),
    }
}

fn serve(
    path: PathBuf,
    mode: OpenMode,
    opened: oneshot::Sender<Result<(), StoreError>>,
    mut queue: mpsc::Receiver<Call>,
) {
    let mut db = match schema::open(&path, mode) {
        Ok(db) => db,
        Err(error) => {
            // If nobody waits any more, nobody needs the file either.
            let _ = opened.send(Err(error));
            return;
        }
    };
    if mode == OpenMode::Create
        && let Err(error) = db.write(cache::forget_idle_sites)
    {
        tracing::warn!(%error, "cannot forget idle sites, will try at the next start");
    }
    if opened.send(Ok(())).is_err() {
        return;
    }
    while let Some(call) = queue.blocking_recv() {
        call(&mut db);
    }
}
