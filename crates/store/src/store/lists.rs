//! Lists that continue from page to page, as they are stored.

use async_trait::async_trait;

use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::list::{ListedPage, ListedRows, MarkedGone};

/// The pages of lists, and the rows that lists hold or no longer hold.
#[async_trait]
pub trait StoredLists: Send + Sync {
    /// The first pages of a crawl's lists, in the order of their keys, after the key `after`.
    async fn first_pages(
        &self,
        crawl: &CrawlId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ListedPage>, StoreError>;

    /// Which of the pages with these [keys](crate::page_id) are stored, in any order.
    async fn listed_pages(&self, ids: Vec<String>) -> Result<Vec<ListedPage>, StoreError>;

    /// Counts the rows of a dataset that a list holds, and how many of them were not seen since the last reading of the
    /// list began.
    async fn listed_rows(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
    ) -> Result<ListedRows, StoreError>;

    /// Marks rows that were in a list before its last reading began at `began_ms`, and that were not seen there since.
    /// Rows that no other list holds are gone. This is one bounded step, in the order of the records' keys, after the
    /// key `after`. The caller must know that the list was read to its end; see [`crate::check_and_mark_missing_rows`].
    async fn mark_gone(
        &self,
        list: &str,
        dataset: &str,
        began_ms: i64,
        after: &str,
    ) -> Result<MarkedGone, StoreError>;
}
