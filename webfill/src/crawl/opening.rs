//! Opens the store and the dataset of a crawl, and claims the crawl, before the dispatcher and the supervisor start.

use std::sync::Arc;

use webfill_service::Fault;
use webfill_service::state::StateFolder;
use webfill_store::{CrawlId, Dataset, Store, StoreError};

use super::claim::Claim;
use super::{Crawl, flags};
use crate::cli::ProgressStyle;
use crate::feeding;

/// The store, the dataset and the claim of a crawl. They stay open until its dispatcher and supervisor have ended.
pub(super) type OpenResources = (Arc<dyn Store>, Option<Arc<Dataset>>, Claim);

impl Crawl {
    /// Opens the store and the dataset, and claims the crawl. This happens before the dispatcher and the supervisor
    /// start, so that the claim is released only after they have ended.
    pub(super) fn open_and_claim(
        &self,
        state: &StateFolder,
        runtime: &tokio::runtime::Runtime,
    ) -> Result<OpenResources, Fault> {
        let store = runtime.block_on(self.open_store())?;
        let dataset = runtime.block_on(self.open_dataset())?;
        let claim = self.claim(&store, state)?;
        Ok((store, dataset, claim))
    }

    /// Opens the store. Without seeds, the crawl must exist in it; otherwise its id was mistyped.
    async fn open_store(&self) -> Result<Arc<dyn Store>, Fault> {
        let uri = self.settings.store_uri()?;
        let opened = webfill_store::open(&uri, None).await;
        let store = opened.map_err(unusable_store)?.store;
        let id = CrawlId::new(&self.spec.app_id, &self.spec.crawl_id);
        if !flags::has_seeds(&self.options) {
            let known = store.get_crawl(&id).await.map_err(feeding::store_fault)?;
            known.ok_or_else(|| {
                Fault::usage(format!(
                    "--crawl {}: no such crawl of application {} in {uri}; to start one, give URLs, --seeds FILE or --records URI",
                    id.crawl_id, id.app_id
                ))
            })?;
        }
        Ok(store)
    }

    fn claim(&self, store: &Arc<dyn Store>, state: &StateFolder) -> Result<Claim, Fault> {
        let id = CrawlId::new(&self.spec.app_id, &self.spec.crawl_id);
        let reports = self.options.progress != ProgressStyle::None;
        let longest_request = webfill_worker::longest_request(&self.settings.fetch);
        Claim::acquire(store, id, state, longest_request, reports)
    }

    pub(super) async fn open_dataset(&self) -> Result<Option<Arc<Dataset>>, Fault> {
        let Some(plan) = &self.dataset else {
            return Ok(None);
        };
        plan.open().await.map(Some).map_err(unusable_store)
    }
}

/// The fault of a store or dataset that cannot be opened at the start: a usage error if it is [`StoreError::Fatal`].
pub(super) fn unusable_store(error: StoreError) -> Fault {
    match error {
        StoreError::Fatal { .. } => Fault::usage(error),
        other => feeding::store_fault(other),
    }
}
