//! The trait of every cache that workers share: robots.txt files and site clocks.

use std::time::Duration;

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

/// Asks for a site's next request.
///
/// A slot is a lock with an expiry. While it is granted, nobody else is; afterwards nobody before
/// the delay has passed, counted from the answer that [`SlotRelease`] tells of, or, if a dead
/// worker never tells, from the moment at which its request must have ended. Only durations cross
/// this interface: the cache's own clock judges them all, however wrong the workers' clocks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotClaim {
    pub site: String,
    /// Names this request among all others of all workers. A claim whose answer was lost is
    /// repeated under the same name, and then granted again.
    pub holder: String,
    /// Between the answer to the last request and the start of this one.
    pub delay_ms: u64,
    /// The request will have ended this long after the *call*, at the latest. Whoever is granted
    /// a slot too late for that gives it back unused.
    pub longest_request_ms: u64,
}

/// What comes of a [`SlotClaim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Start the request now.
    Granted,
    /// Nothing can be granted for so long: claim again then.
    Wait { wait_ms: u64 },
}

/// Gives a slot back: its request was answered, or ended without an answer, just now. If this is
/// late, the gap to the next request is only the longer for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRelease {
    pub site: String,
    /// As claimed.
    pub holder: String,
    /// Nobody may start for so long: the delay, or a longer `Retry-After` or back-off.
    pub blocked_for_ms: u64,
    /// Whether anything was sent to the site. If not, no delay begins.
    pub was_used: bool,
}

/// robots.txt files and site clocks, shared by all workers.
#[async_trait]
pub trait Cache: Send + Sync {
    /// How far apart the starts of calls of one kind should be, so that the backend keeps up;
    /// what is asked meanwhile is gathered into one call. `processes`: how many of this machine
    /// ask. Claims cannot be gathered, and are no such calls.
    fn call_pace(&self, processes: u16) -> Duration;

    /// The robots.txt files of origins, in the order asked; `None` for one that is unknown, or has
    /// expired by `now_ms`.
    async fn robots_of(
        &self,
        origins: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<RobotsEntry>>, StoreError>;

    /// The robots.txt of an origin, unless it has expired by `now_ms`.
    async fn robots(&self, origin: &str, now_ms: i64) -> Result<Option<RobotsEntry>, StoreError> {
        let mut found = self.robots_of(vec![origin.to_owned()], now_ms).await?;
        Ok(found.pop().flatten())
    }

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

    /// Claims a site's next request, in one atomic step. Clocks that were put count as well, and
    /// [`Cache::sites`] shows a site with a granted slot as blocked until the slot lapses.
    async fn claim_slot(&self, claim: &SlotClaim) -> Result<Slot, StoreError>;

    /// Gives a slot back. Harmless when repeated, and after the slot has lapsed: what the release
    /// tells of the site counts, and the slot of another holder stays.
    async fn release_slot(&self, release: &SlotRelease) -> Result<(), StoreError>;
}
