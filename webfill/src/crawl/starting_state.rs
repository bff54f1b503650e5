//! The state of a crawl when it begins: its progress at the dispatcher, and its entry in the store.

use webfill_api::CrawlSpec;
use webfill_service::Fault;
use webfill_store::{CrawlId, CrawlState, DatasetName, Store, StoreError};

use crate::feeding;

/// The dispatcher's answer when the crawl is opened.
#[derive(serde::Deserialize)]
pub(super) struct OpenedCrawl {
    pub(super) crawl: u32,
    pub(super) fed_lines: u64,
    /// Whether the crawl was finished, so that its input is read again.
    pub(super) begins_again: bool,
    dataset: Option<String>,
    /// Whether the dispatcher can store the name of the crawl's dataset.
    #[serde(default)]
    pub(super) notes_dataset: bool,
}

impl OpenedCrawl {
    /// The dataset that the crawl began with.
    pub(super) fn dataset(&self) -> Result<Option<DatasetName>, Fault> {
        let name = self.dataset.as_deref().map(str::parse).transpose();
        name.map_err(Fault::error)
    }
}

/// Stores the crawl if it is not stored yet, because records can only be added to a stored crawl. The dispatcher
/// updates it later, but its first update may come after the first record.
pub(super) async fn put_crawl_if_missing(
    store: &dyn Store,
    spec: &CrawlSpec,
) -> Result<(), StoreError> {
    let id = CrawlId::new(&spec.app_id, &spec.crawl_id);
    if store.get_crawl(&id).await?.is_some() {
        return Ok(());
    }
    let now_ms = feeding::now_ms();
    let crawl = webfill_store::Crawl {
        id,
        request: serde_json::to_value(spec).unwrap_or_default(),
        state: CrawlState::Running,
        counts: serde_json::Map::new(),
        started_at_ms: now_ms,
        updated_at_ms: now_ms,
        finished_at_ms: None,
    };
    store.put_crawl(crawl).await
}
