//! The firehose: publishes results of pages and notices about crawls to subscribed applications.
//!
//! Pages never travel through the dispatcher. When an outcome is committed, the dispatcher
//! announces only which page it belongs to; the firehose's thread reads the page from the store, in
//! batches, and publishes it. Announcements without a subscriber are ignored, and the store is
//! opened with the first page that has one.
//!
//! Nothing waits for the firehose: its queue is bounded, and announcements that find it full are dropped and counted.
//! Nor does it wait for slow subscribers, see [`webfill_wire::socket::PUBLISHED_AHEAD`]. After a crash queued
//! announcements are lost. An application that must miss nothing reads the store's changes instead.

mod result;
mod subscriptions;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;
use webfill_scheduler::effects::FinishedPage;
use webfill_service::Fault;
use webfill_store::{ExportError, StoreError, StoreUri, page_id};

use crate::followed_store::FollowedStore;
use crate::thread;
pub use subscriptions::Subscriptions;

/// The most announcements that may wait; further ones are dropped.
const QUEUED: usize = 20_000;

/// How many pages are read from the store at a time.
const BATCH: usize = 100;

/// How long to wait before a store that could not be read is retried.
const RETRY: Duration = Duration::from_millis(500);

/// Pages that the dispatcher itself writes may be stored a moment after their outcome. A page is read this many times
/// until it is there, [`READ_AGAIN_AFTER`] apart.
const MOST_READS: u32 = 5;
const READ_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The topic of an application's results.
pub(crate) fn results_topic(app_id: &str) -> String {
    format!("crawled.{app_id}")
}

/// The topic of notifications about an application's crawls.
pub(crate) fn notifications_topic(app_id: &str) -> String {
    format!("outbound.{app_id}")
}

/// Sends a message under a topic.
pub type Publish = Arc<dyn Fn(&str, Vec<u8>) + Send + Sync>;

/// The handle of the thread that publishes on the firehose.
pub struct Firehose {
    queue: mpsc::Sender<FinishedPage>,
    subscriptions: Subscriptions,
    publish: Publish,
    dropped: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Firehose {
    /// Starts the thread. The caller passes the frames that arrive on the socket of subscribers to
    /// `subscriptions`.
    pub fn start(
        store: StoreUri,
        subscriptions: Subscriptions,
        publish: Publish,
    ) -> Result<Firehose, Fault> {
        Firehose::start_with_queue(store, subscriptions, publish, QUEUED)
    }

    fn start_with_queue(
        store: StoreUri,
        subscriptions: Subscriptions,
        publish: Publish,
        queued: usize,
    ) -> Result<Firehose, Fault> {
        let (queue, announced) = mpsc::channel(queued);
        let dropped = Arc::new(AtomicU64::new(0));
        let mut reader = Reader {
            store: FollowedStore::new(store),
            announced,
            subscriptions: subscriptions.clone(),
            publish: Arc::clone(&publish),
            dropped: Arc::clone(&dropped),
        };
        let thread = thread::spawn("firehose", "the firehose", move || async move {
            reader.run().await;
        })?;
        Ok(Firehose {
            queue,
            subscriptions,
            publish,
            dropped,
            thread,
        })
    }

    /// Announces a page whose outcome is committed.
    pub fn announce(&self, finished: FinishedPage) {
        if !self
            .subscriptions
            .has_subscriber(&results_topic(&finished.app_id))
        {
            return;
        }
        if self.queue.try_send(finished).is_err()
            && self.dropped.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!(
                event = "firehose_behind",
                queued = QUEUED,
                "the firehose is behind and skips pages until it has caught up"
            );
        }
    }

    /// A handle that publishes notifications, also for other threads.
    pub fn notifications(&self) -> NotificationPublisher {
        NotificationPublisher {
            subscriptions: self.subscriptions.clone(),
            publish: Arc::clone(&self.publish),
        }
    }

    /// Publishes a notification about an application's crawls.
    pub fn publish_notification(&self, app_id: &str, notification: &Value) {
        self.notifications().publish(app_id, notification);
    }

    /// Publishes the queued pages, as far as the store can be read immediately, and ends the thread.
    pub fn finish(self, until: Option<Instant>) {
        drop(self.queue);
        if !thread::wait_for_end(self.thread, until) {
            tracing::error!(event = "firehose_panicked", "the firehose thread panicked");
        }
    }
}

/// A handle for other threads to publish notifications on the firehose.
#[derive(Clone)]
pub struct NotificationPublisher {
    pub subscriptions: Subscriptions,
    pub publish: Publish,
}

impl NotificationPublisher {
    /// Publishes a notification to an application.
    pub fn publish(&self, app_id: &str, notification: &Value) {
        let topic = notifications_topic(app_id);
        if self.subscriptions.has_subscriber(&topic) {
            (self.publish)(&topic, notification.to_string().into_bytes());
        }
    }
}

/// The state of the thread that publishes on the firehose.
struct Reader {
    /// The store, opened with the first page that has a subscriber.
    store: FollowedStore,
    announced: mpsc::Receiver<FinishedPage>,
    subscriptions: Subscriptions,
    publish: Publish,
    dropped: Arc<AtomicU64>,
}

impl Reader {
    async fn run(&mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.announced.recv_many(&mut batch, BATCH).await > 0 {
            self.publish_batch(std::mem::take(&mut batch)).await;
            if self.announced.is_empty() {
                self.log_dropped();
            }
        }
    }

    /// Logs how many announcements were dropped, once the queue is empty again.
    fn log_dropped(&self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(
                event = "firehose_left_out",
                dropped,
                "the firehose has caught up after skipping pages"
            );
        }
    }

    /// Publishes each page of a batch once, as long as it has a subscriber.
    async fn publish_batch(&mut self, batch: Vec<FinishedPage>) {
        let of_page = |page: FinishedPage| {
            let id = page_id(&page.app_id, &page.crawl_id, &page.url);
            (id, page)
        };
        let mut unpublished: HashMap<String, FinishedPage> =
            batch.into_iter().map(of_page).collect();
        let mut reads = 0;
        let mut is_away = false;
        loop {
            unpublished.retain(|_, page| {
                self.subscriptions
                    .has_subscriber(&results_topic(&page.app_id))
            });
            if unpublished.is_empty() || reads == MOST_READS {
                break;
            }
            let wait = match self.publish_stored(&mut unpublished).await {
                Ok(()) => {
                    reads += 1;
                    READ_AGAIN_AFTER
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_away, true) {
                        tracing::warn!(event = "firehose_waits", %error, "the firehose waits for the store");
                    }
                    RETRY
                }
            };
            if unpublished.is_empty() || self.announced.is_closed() {
                break;
            }
            tokio::time::sleep(wait).await;
        }
        if reads == MOST_READS && !unpublished.is_empty() {
            tracing::info!(
                event = "firehose_left_out",
                pages = unpublished.len(),
                "pages that are not stored are not published on the firehose"
            );
        }
    }

    /// Publishes the pages that are stored by now, and removes them from `unpublished`.
    async fn publish_stored(
        &mut self,
        unpublished: &mut HashMap<String, FinishedPage>,
    ) -> Result<(), StoreError> {
        let store = self.store.open().await?;
        let ids = unpublished.keys().cloned().collect();
        let publish = &self.publish;
        let mut each = |page: Value| {
            let id = page["_id"].as_str().unwrap_or_default();
            if let Some(finished) = unpublished.remove(id) {
                let message = result::result_message(page, finished.body);
                publish(&results_topic(&finished.app_id), message);
            }
            Ok(())
        };
        match store.pages(ids, &mut each).await {
            Ok(_) => Ok(()),
            Err(ExportError::Store(error)) => Err(error),
            Err(ExportError::Output(error)) => unreachable!("nothing is written: {error}"),
        }
    }
}

#[cfg(test)]
mod tests;
