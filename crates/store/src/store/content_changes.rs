//! Changes of the content of pages.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;

use crate::change::{
    Change, ChangeFilter, ChangeKind, ComparedPosition, Comparison, KnownVersions,
};
use crate::crawl::CrawlId;
use crate::error::StoreError;

/// Compares snapshots of pages with earlier versions, one after the other, and stores the numbered changes.
#[async_trait]
pub trait ContentChanges: Send + Sync {
    /// How far snapshots have been compared.
    async fn load_compared_position(&self) -> Result<ComparedPosition, StoreError>;

    /// The versions that the pages with these keys are compared with, in any order.
    async fn versions(&self, ids: Vec<String>) -> Result<Vec<KnownVersions>, StoreError>;

    /// Which of these page keys have versions to compare with.
    async fn with_versions(&self, ids: Vec<String>) -> Result<HashSet<String>, StoreError>;

    /// Stores the results of a comparison atomically, if they directly follow the last stored results. Returns whether
    /// they are stored. A writer that got no answer may repeat the call.
    async fn put_judgement(&self, judgement: Comparison) -> Result<bool, StoreError>;

    /// The changes after a number, in the order of their numbers, at most `limit`. Changes that are not visible yet
    /// will have greater numbers.
    async fn content_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError>;

    /// How many changes of each kind there are.
    async fn count_content_changes(
        &self,
        filter: &ChangeFilter,
    ) -> Result<BTreeMap<ChangeKind, u64>, StoreError>;

    /// How many documents a run of a crawl has seen for the first time. They are the documents that changes report as
    /// new since the run began. The first run of a crawl reports nothing as new, so all documents fetched since it
    /// began count.
    async fn count_new_documents(
        &self,
        crawl: &CrawlId,
        began_ms: i64,
        is_first: bool,
    ) -> Result<u64, StoreError>;
}
