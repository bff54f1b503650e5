//! Claims of processes to crawls.

use async_trait::async_trait;

use crate::claim::CrawlClaim;
use crate::error::StoreError;

/// At most one process runs a crawl: the one with the claim to it.
#[async_trait]
pub trait Claims: Send + Sync {
    /// Claims a crawl for a process. If another claim is in force, it is returned, and nothing changes. `watched` is a
    /// claim that the caller has watched until it lapsed; it is replaced unless it has been renewed since.
    async fn claim_crawl(
        &self,
        claim: CrawlClaim,
        watched: Option<CrawlClaim>,
    ) -> Result<Option<CrawlClaim>, StoreError>;

    /// Renews a claim. Returns false if the claim no longer belongs to its owner: another process has taken it over,
    /// and perhaps released it.
    async fn renew_claim(&self, claim: CrawlClaim) -> Result<bool, StoreError>;

    /// Releases a claim, if it still belongs to its owner.
    async fn release_claim(&self, claim: CrawlClaim) -> Result<(), StoreError>;
}
