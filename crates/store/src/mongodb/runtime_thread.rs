//! A thread with a tokio runtime of its own, where the MongoDB driver runs.
//!
//! A call continues even if its caller is dropped. The thread ends when the [`RuntimeThread`] is dropped; calls in
//! progress are then aborted.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A handle to the thread with the MongoDB driver.
pub(super) struct RuntimeThread {
    handle: Handle,
    /// Ends the thread when dropped.
    _open: oneshot::Sender<()>,
}

impl RuntimeThread {
    pub(super) fn start() -> io::Result<RuntimeThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (open, closed) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name(String::from("store"))
            .spawn(move || {
                // Waits until the sender is dropped, which is reported as an error here.
                let _ = runtime.block_on(closed);
                runtime.shutdown_background();
            })?;
        Ok(RuntimeThread {
            handle,
            _open: open,
        })
    }

    /// Runs `work` on the thread; `None` if it panicked.
    pub(super) async fn run<R: Send + 'static>(
        &self,
        work: impl Future<Output = R> + Send + 'static,
    ) -> Option<R> {
        self.handle.spawn(work).await.ok()
    }

    /// Starts `work` on the thread without waiting for it.
    pub(super) fn start_task(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}
