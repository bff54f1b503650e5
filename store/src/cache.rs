//! The trait of every cache that workers share: robots.txt files and site clocks.

use async_trait::async_trait;

use crate::error::StoreError;

/// A site whose clock was last touched longer ago than this is forgotten.
pub const SITE_KEPT_MS: i64 = 30 * 24 * 3_600_000;

/// What an origin answered for robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsEntry {
    /// Scheme, host and port.
    pub origin: String,
    /// The final HTTP status; none if there was no answer.
    pub status: Option<u16>,
    /// As received, decoded from any content encoding.
    pub body: Vec<u8>,
    pub fetched_at_ms: i64,
    /// From then on the entry is as good as absent.
    pub expires_at_ms: i64,
}

/// A site's clock, by wall time since it is shared between machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteEntry {
    pub site: String,
    /// Start of the last fetch, milliseconds since the epoch.
    pub last_start_ms: i64,
    /// The delay in force between two fetches.
    pub delay_ms: u64,
    /// No fetch before then: `Retry-After` or a back-off.
    pub blocked_until_ms: Option<i64>,
    /// The supervisor that the site's tasks go to.
    pub owner: Option<String>,
}

/// robots.txt files and site clocks, shared by all workers.
#[async_trait]
pub trait Cache: Send + Sync {
    /// The robots.txt of an origin, unless it has expired by `now_ms`.
    async fn robots(&self, origin: &str, now_ms: i64) -> Result<Option<RobotsEntry>, StoreError>;

    /// Keeps robots.txt files; one fetched before the kept one is ignored. Each call also purges
    /// some that have expired by `now_ms`, so that the cache does not grow for ever.
    async fn put_robots(&self, entries: Vec<RobotsEntry>, now_ms: i64) -> Result<(), StoreError>;

    /// The clocks of sites, in the order asked; `None` for one that is unknown, or untouched for
    /// [`SITE_KEPT_MS`].
    async fn sites(
        &self,
        sites: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<SiteEntry>>, StoreError>;

    /// Moves clocks. Last start and block only ever move forward; delay and owner are those of
    /// the put with the latest start.
    async fn put_sites(&self, entries: Vec<SiteEntry>) -> Result<(), StoreError>;
}
