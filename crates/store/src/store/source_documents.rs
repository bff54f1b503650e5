//! Documents of the user's collections that records were read from.

use async_trait::async_trait;

use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::source_document::Unwritten;

/// Records that were read from a collection are written back to it.
#[async_trait]
pub trait SourceDocuments: Send + Sync {
    /// Records that a crawl has read from a collection and that have changed since they were last written back, in any
    /// order. At most `limit`, fewer if they are large; an empty list only if there are none.
    async fn unwritten(
        &self,
        crawl: &CrawlId,
        collection: &str,
        limit: u32,
    ) -> Result<Vec<Unwritten>, StoreError>;

    /// Notes values of [unwritten](SourceDocuments::unwritten) records that are about to be written. Whatever happens
    /// next, they may be in the dataset and are not the user's. But the values that they replace count as the user's
    /// until the write is confirmed. Removes records that others have changed meanwhile; those must be read again.
    async fn begin_writing(&self, written: &mut Vec<Unwritten>) -> Result<(), StoreError>;

    /// Marks records as written back. A record that has changed meanwhile stays unwritten.
    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<Unwritten>,
    ) -> Result<(), StoreError>;
}
