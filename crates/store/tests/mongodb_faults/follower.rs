//! A reader of changes that continues after every fault of the servers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use webfill_store::{Cursor, ExportError, ExportFilter, Store};

/// Collects the URLs of all pages as they become visible.
pub(crate) struct Follower {
    stopping: Arc<AtomicBool>,
    task: JoinHandle<HashSet<String>>,
}

impl Follower {
    pub(crate) fn start(store: Arc<dyn Store>) -> Follower {
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        Follower {
            task: tokio::spawn(async move { follow(&*store, &stop).await }),
            stopping,
        }
    }

    /// Stops the follower, and returns the URLs of all pages that it has seen.
    pub(crate) async fn finish(self) -> HashSet<String> {
        self.stopping.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

/// Reads pages until it is stopped. After an error it continues after the last page, as a restarted reader does.
async fn follow(store: &dyn Store, stop: &AtomicBool) -> HashSet<String> {
    let mut seen = HashSet::new();
    let mut cursor = Cursor::start();
    loop {
        let is_last = stop.load(Ordering::SeqCst);
        let after = cursor.clone();
        let mut each = |behind, page: Value| {
            seen.insert(page["url"].as_str().unwrap().to_owned());
            cursor = behind;
            Ok(())
        };
        let everything = ExportFilter::default();
        match store.changes(&after, &everything, &mut each).await {
            Ok(_) if is_last => return seen,
            Ok(end) => cursor = end,
            Err(ExportError::Store(error)) if error.is_retry() => {}
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
