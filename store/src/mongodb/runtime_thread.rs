//! The thread that the driver lives on.
//!
//! A call that has begun goes on when its caller goes away. The thread ends when the [`RuntimeThread`] is
//! dropped, and what is under way then is given up.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime on a thread of its own.
pub(super) struct RuntimeThread {
    handle: Handle,
    /// Dropped to end the thread.
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
                // An error is what ends it: the other half was dropped.
                let _ = runtime.block_on(closed);
                runtime.shutdown_background();
            })?;
        Ok(RuntimeThread {
            handle,
            _open: open,
        })
    }

    /// Runs `work` there; `None` if it panicked.
    pub(super) async fn run<R: Send + 'static>(
        &self,
        work: impl Future<Output = R> + Send + 'static,
    ) -> Option<R> {
        self.handle.spawn(work).await.ok()
    }

    /// Lets `work` run there without waiting for it.
    pub(super) fn start_task(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}
