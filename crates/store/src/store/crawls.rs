//! Crawls, and counts of the values that each has found.

use async_trait::async_trait;

use crate::crawl::{Crawl, CrawlId};
use crate::error::StoreError;
use crate::field_counts::FieldCounts;
use crate::record::RecordCounts;

/// Stores crawls, and counts the values that they have found.
#[async_trait]
pub trait Crawls: Send + Sync {
    /// Stores a crawl. The first start time is kept; everything else is replaced.
    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError>;

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError>;

    /// The latest crawl of the same application that began before this one.
    async fn crawl_before(&self, crawl: &CrawlId) -> Result<Option<CrawlId>, StoreError>;

    /// Counts the records of a crawl. SQLite stores the counts. MongoDB counts index entries, which takes about a
    /// second for a million; if it takes longer, callers should call this less often.
    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError>;

    /// Counts the values that the mappings extracted from the pages of a crawl, and the fields that its records lack.
    /// Reads the whole crawl, which takes seconds for a million pages.
    async fn field_counts(&self, crawl: &CrawlId) -> Result<FieldCounts, StoreError>;
}
