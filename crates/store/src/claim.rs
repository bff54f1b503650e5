//! The claim of a process to run a crawl. The claim keeps any other process from running the crawl at the same time on
//! the same store.
//!
//! A claim is renewed every [`RENEW_EVERY`], by a *beat* that counts up. It lapses when its beat has not changed for
//! [`LAPSES_AFTER`]. The process that wants the claim measures this by its own clock, so clocks of two machines are
//! never compared.

use std::time::Duration;

use crate::crawl::CrawlId;

/// How often the process that runs a crawl renews its claim.
pub const RENEW_EVERY: Duration = Duration::from_secs(2);

/// After how long without a renewal, as observed by another process, a claim is taken over.
pub const LAPSES_AFTER: Duration = Duration::from_secs(12);

/// For how long a process may send requests to sites after it has requested a renewal. Shorter than [`LAPSES_AFTER`],
/// so that its last requests start some time before another process takes over.
pub const HOLDS_FOR: Duration = Duration::from_secs(10);

/// A claim to run a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlClaim {
    pub crawl: CrawlId,
    /// Identifies the process uniquely.
    pub owner: String,
    /// The state folder that the process has locked. Only one process at a time can lock it, so a process with the same
    /// folder succeeds a dead one.
    pub folder: String,
    /// Machine, folder and process in words, for users.
    pub holder: String,
    /// When the claim was made, by the owner's clock. For users only.
    pub since_ms: i64,
    /// The number of renewals.
    pub beat: i64,
}

impl CrawlClaim {
    /// Whether this claim may replace the stored one. `watched` is a claim that the caller has watched until it lapsed.
    pub fn may_replace(&self, stored: &CrawlClaim, watched: Option<&CrawlClaim>) -> bool {
        stored.owner == self.owner
            || stored.folder == self.folder
            || watched.is_some_and(|it| it.owner == stored.owner && it.beat == stored.beat)
    }
}
