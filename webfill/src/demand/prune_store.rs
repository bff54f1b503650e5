//! `webfill prune --store URI --older-than DURATION`: drops old pages from a store directly. It needs no dispatcher,
//! and a running one need not stop.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use webfill_service::Fault;
use webfill_store::{Cutoff, DropResult, Store, StoreError, StoreUri, open_existing};

/// Drops the pages that were fetched longer ago than `older_than`, with the log entries that name them, and samples of
/// pages of the same age.
pub(super) fn prune_store(store: &str, older_than: Duration) -> Result<Value, Fault> {
    let uri: StoreUri = store.parse().map_err(Fault::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = since_epoch.map_or(0, |passed| passed.as_millis() as i64);
    let cutoff = Cutoff::from_retention(now_ms, Some(older_than), None);
    let dropped = runtime.block_on(async {
        let store = open_existing(&uri).await?;
        drop_all_old_data(&*store, cutoff).await
    });
    let dropped = dropped.map_err(Fault::error)?;
    Ok(json!({
        "action": "prune",
        "total_pages": dropped.pages,
        "total_log_entries": dropped.log_entries,
        "total_samples": dropped.samples,
    }))
}

async fn drop_all_old_data(store: &dyn Store, cutoff: Cutoff) -> Result<DropResult, StoreError> {
    let mut all = DropResult::default();
    loop {
        let began = Instant::now();
        let dropped = store.drop_old(cutoff).await?;
        all.pages += dropped.pages;
        all.log_entries += dropped.log_entries;
        all.samples += dropped.samples;
        if !dropped.has_more {
            return Ok(all);
        }
        // Sleep as long as the deletion took, so that other processes can save meanwhile.
        tokio::time::sleep(began.elapsed()).await;
    }
}
