//! The claim of a process to run a crawl, so that no other one runs it at the same time on the same
//! store.
//!
//! A claim is renewed every [`RENEW_EVERY`], by a *beat* that counts up. It lapses when its beat has not changed for
//! [`LAPSES_AFTER`]. The process that wants the claim measures this by its own clock, so clocks of two machines are
//! never compared.

use std::time::Duration;

use crate::crawl::CrawlId;

/// How often the process that runs a crawl renews its claim.
pub const RENEW_EVERY: Duration = Duration::from_secs(2);

/// A claim that was not renewed for this long, as observed by another process, is taken over.
pub const LAPSES_AFTER: Duration = Duration::from_secs(12);

/// How long after requesting a renewal its process may send requests to sites. It is shorter than [`LAPSES_AFTER`],
/// so the last requests have started some time before another process takes over.
pub const HOLDS_FOR: Duration = Duration::from_secs(10);

/// A claim to run a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlClaim {
    pub crawl: CrawlId,
    /// Identifies the process uniquely.
    pub owner: String,
    /// The state folder that it has locked. A process that has locked the same folder is the
    /// successor of a dead one.
    pub folder: String,
    /// Machine, folder and process in words, for people.
    pub holder: String,
    /// By the owner's clock, for people.
    pub since_ms: i64,
    /// Counts the renewals.
    pub beat: i64,
}

impl CrawlClaim {
    /// Whether this claim may replace a stored one. `watched` is a claim that has lapsed.
    pub fn may_replace(&self, stored: &CrawlClaim, watched: Option<&CrawlClaim>) -> bool {
        stored.owner == self.owner
            || stored.folder == self.folder
            || watched.is_some_and(|it| it.owner == stored.owner && it.beat == stored.beat)
    }
}
