//! Reloads the mappings and the settings that can change while the dispatcher runs. They are read and checked on a
//! separate thread, because that may take seconds. If they have a fault, nothing changes.

use std::sync::mpsc;

use webfill_scheduler::reload::{ReloadRequest, ReloadResult, Reloaded};
use webfill_service::Fault;

/// Reads and checks everything that can be reloaded.
pub type ReadAgain = Box<dyn FnMut() -> Result<Reloaded, Fault> + Send>;

/// The reloading thread's handle; the thread ends when this is dropped.
pub(crate) struct Reloader {
    asked: mpsc::Sender<ReloadRequest>,
}

impl Reloader {
    pub(crate) fn start(
        mut read: ReadAgain,
        on_read: impl Fn(ReloadResult) + Send + 'static,
    ) -> Result<Reloader, Fault> {
        let (asked, questions) = mpsc::channel();
        std::thread::Builder::new()
            .name("reloader".into())
            .spawn(move || {
                for asked in questions {
                    let found = read().map(Box::new);
                    on_read(ReloadResult { asked, found });
                }
            })
            .map_err(|error| Fault::error(format!("cannot start the reloader: {error}")))?;
        Ok(Reloader { asked })
    }

    pub(crate) fn request_reload(&self, asked: ReloadRequest) {
        // The thread ends only when this handle is dropped, so sending does not fail.
        let _ = self.asked.send(asked);
    }
}
