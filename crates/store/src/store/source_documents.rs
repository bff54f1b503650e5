//! Documents of the user's collections that records were read from.

use async_trait::async_trait;

use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::source_document::UnwrittenRecord;

/// Writes records that were read from a collection back to it.
#[async_trait]
pub trait SourceDocuments: Send + Sync {
    /// Records that a crawl has read from a collection and that have changed since they were last written back, in any
    /// order. There are at most `limit`, and fewer if they are large; none only if no record is unwritten.
    async fn unwritten(
        &self,
        crawl: &CrawlId,
        collection: &str,
        limit: u32,
    ) -> Result<Vec<UnwrittenRecord>, StoreError>;

    /// Notes values of [unwritten](SourceDocuments::unwritten) records that are about to be written. Whatever happens
    /// next, these values may be in the dataset and are not the user's. The values that they replace count as the
    /// user's until the write is confirmed. Records that others have changed meanwhile are removed from `written`, and
    /// must be read again.
    async fn begin_writing(&self, written: &mut Vec<UnwrittenRecord>) -> Result<(), StoreError>;

    /// Marks records as written back. A record that has changed meanwhile stays unwritten.
    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<UnwrittenRecord>,
    ) -> Result<(), StoreError>;
}
