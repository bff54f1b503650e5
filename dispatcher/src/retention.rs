//! Applies the store's retention limits: data beyond them is dropped in steps, between the writes of the [store
//! writer](crate::store_writer).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use webfill_store::{DropResult, RetentionConfig, Store};

/// How often old data is dropped. Between two rounds, the stored data may exceed its limits.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// The wait after a failure of the store, which may be over soon.
const RETRY: Duration = Duration::from_secs(60);

/// The wait after a step, as a multiple of the step's duration. With 3, the steps take at most a quarter of the time.
const REST_AFTER_STEP: u32 = 3;

pub(crate) struct Retention {
    config: RetentionConfig,
    next: Instant,
    /// How many rows were dropped in the present round.
    dropped: DropResult,
}

impl Retention {
    pub(crate) fn new(config: RetentionConfig) -> Retention {
        Retention {
            config,
            next: Instant::now(),
            dropped: DropResult::default(),
        }
    }

    /// Waits until the next step is due.
    pub(crate) async fn wait_until_due(&self) {
        tokio::time::sleep_until(self.next).await;
    }

    pub(crate) async fn drop_old_data(&mut self, store: &dyn Store) {
        let cutoff = self.config.cutoff(now_ms());
        let began = Instant::now();
        let wait = match store.drop_old(cutoff).await {
            Ok(dropped) => self.add_dropped(dropped, began.elapsed()),
            Err(error) => {
                tracing::warn!(event = "retention_failed", %error, "cannot drop old pages, retrying in a minute");
                RETRY
            }
        };
        self.next = Instant::now() + wait;
    }

    /// Adds the rows that a step has dropped. Returns the wait before the next step.
    fn add_dropped(&mut self, dropped: DropResult, took: Duration) -> Duration {
        self.dropped.pages += dropped.pages;
        self.dropped.log_entries += dropped.log_entries;
        self.dropped.samples += dropped.samples;
        if dropped.has_more {
            return took * REST_AFTER_STEP;
        }
        let dropped = std::mem::take(&mut self.dropped);
        if dropped != DropResult::default() {
            tracing::info!(
                event = "old_pages_dropped",
                pages = dropped.pages,
                log_entries = dropped.log_entries,
                samples = dropped.samples,
                "dropped pages beyond the retention limits"
            );
        }
        EVERY
    }
}

/// The machine's clock, which may have been corrected since the start.
fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.map_or(0, |passed| passed.as_millis() as i64)
}
