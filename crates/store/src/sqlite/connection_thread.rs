//! The thread that owns a process's connection to the file.
//!
//! Calls wait in a bounded channel, so callers that are faster than the store are slowed down. A queued call runs even
//! if its caller is dropped. When the [`ConnectionThread`] is dropped, the queued calls are finished, the file is
//! closed, and the thread ends.

use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::connection::Db;
use crate::error::StoreError;

/// How many calls may wait for the connection's thread. Beyond that, callers are blocked.
const QUEUED_CALLS: usize = 64;

type Call = Box<dyn FnOnce(&mut Db) + Send>;

/// A handle to the thread that owns the connection to the file.
pub(super) struct ConnectionThread {
    /// The queue of calls; `None` only while the handle is dropped.
    calls: Option<mpsc::Sender<Call>>,
    thread: Option<JoinHandle<()>>,
    store: String,
}

impl ConnectionThread {
    /// Starts the thread, which opens the file by `open`. `store` names the file in errors.
    pub(super) async fn start(
        store: String,
        open: impl FnOnce() -> Result<Db, StoreError> + Send + 'static,
    ) -> Result<ConnectionThread, StoreError> {
        let (calls, queue) = mpsc::channel(QUEUED_CALLS);
        let (opened, is_open) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(String::from("store"))
            .spawn(move || open_and_run_calls(open, opened, queue))
            .map_err(|error| ended_error(&store, &error.to_string()))?;
        is_open
            .await
            .unwrap_or_else(|_| Err(ended_error(&store, "its thread broke down")))?;
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
            // If the caller does not wait any more, the answer is dropped.
            let _ = answer.send(call(db));
        });
        let calls = self.calls.as_ref().expect("calls are taken on drop only");
        if calls.send(boxed).await.is_err() {
            return Err(ended_error(&self.store, "its thread broke down"));
        }
        answered
            .await
            .map_err(|_| ended_error(&self.store, "its thread broke down"))
    }
}

impl Drop for ConnectionThread {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            // The thread ends with an error only if a call has panicked, and the caller of that call has already got an
            // error.
            let _ = thread.join();
        }
    }
}

fn ended_error(store: &str, reason: &str) -> StoreError {
    StoreError::Fatal {
        store: store.to_owned(),
        reason: format!("can no longer be used: {reason}"),
    }
}

fn open_and_run_calls(
    open: impl FnOnce() -> Result<Db, StoreError>,
    opened: oneshot::Sender<Result<(), StoreError>>,
    mut queue: mpsc::Receiver<Call>,
) {
    let mut db = match open() {
        Ok(db) => db,
        Err(error) => {
            // If the caller does not wait any more, the file is not needed, so errors of `send` are ignored.
            let _ = opened.send(Err(error));
            return;
        }
    };
    if opened.send(Ok(())).is_err() {
        return;
    }
    while let Some(call) = queue.blocking_recv() {
        call(&mut db);
    }
}
