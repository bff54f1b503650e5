//! The [`Cache`] trait: the robots.txt files and site clocks that workers share while they crawl.
//!
//! A *site clock* says when a site may next be requested. There are two ways to share it:
//!
//! - copied ([`Cache::put_sites`], [`Cache::sites`]): the site's owner keeps the clock and writes copies of it;
//!   another worker starts from the copy when it takes over the site;
//! - reserved ([`Cache::reserve`], [`Cache::release_reservation`]): the cache keeps the clock, and each request needs
//!   a [`Reservation`] first. Used with `politeness.clock = "shared"`.
//!
//! If the cache is lost, the crawl's results do not suffer: robots.txt is fetched again, and a site without a clock may
//! be requested immediately.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::site_clock::poll_ms;

/// How long a site's clock is kept after its last change.
pub const SITE_KEPT_MS: i64 = 30 * 24 * 3_600_000;

/// How long after its fetch a robots.txt is used; then it is deleted. RFC 9309 2.4: a copy older than 24 hours should
/// not be used "unless the robots.txt file is unreachable". We do not use it even then.
pub const ROBOTS_KEPT_MS: i64 = 24 * 3_600_000;

/// The response to a request for an origin's robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsEntry {
    /// Scheme, host and port.
    pub origin: String,
    /// The final HTTP status; `None` if there was no response.
    pub status: Option<u16>,
    /// The body as received, decoded from any content encoding.
    pub body: Vec<u8>,
    pub fetched_at_ms: i64,
    /// Until when the entry is *fresh*, so that robots.txt need not be requested. After that, up to [`ROBOTS_KEPT_MS`]
    /// after its fetch, it stands in for an unavailable file.
    pub expires_at_ms: i64,
}

impl RobotsEntry {
    /// Whether robots.txt need not be requested.
    pub fn is_fresh(&self, now_ms: i64) -> bool {
        self.expires_at_ms > now_ms
    }

    /// Whether the rules may be used at all: the entry is fresh, or stands in for an unavailable file.
    pub fn is_usable(&self, now_ms: i64) -> bool {
        self.fetched_at_ms.saturating_add(ROBOTS_KEPT_MS) > now_ms
    }
}

/// When a site was last requested, and when it may be requested next. Times are wall-clock times, because several
/// machines share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteClockEntry {
    pub site: String,
    /// When the last fetch started, in milliseconds since the epoch.
    pub last_start_ms: i64,
    /// The delay between two fetches that is in force for the site.
    pub delay_ms: u64,
    /// The time between two fetches that the site accepts, as learnt from its refusals; `None` if it never refused
    /// one.
    pub accepted_ms: Option<u64>,
    /// No fetch may start before this time, because of `Retry-After` or a backoff.
    pub blocked_until_ms: Option<i64>,
    /// The worker that gets the site's tasks, as `SUPERVISOR/WORKER`, if it made the last request.
    pub owner: Option<String>,
    /// Set while a request with a reservation is in flight: when the reservation lapses if it is not released before.
    /// Ignored when writing: reservations are made by [`Cache::reserve`].
    pub reserved_until_ms: Option<i64>,
}

impl SiteClockEntry {
    /// How long to wait before this clock is read again. `None` unless a request is in flight; when that request ends,
    /// the clock changes.
    pub fn recheck_after(&self, now_ms: i64) -> Option<Duration> {
        self.reserved_until_ms
            .filter(|until_ms| *until_ms > now_ms)?;
        Some(Duration::from_millis(poll_ms(self.delay_ms)))
    }
}

/// Requests permission to send the next request to a site.
///
/// A reservation is a lock with an expiry, and a site has at most one at a time. The next one is granted once the
/// delay has passed since the last request ended. That is the time of the [`ReservationRelease`], or, if the holder
/// died without one, the time when its reservation lapsed. Only durations cross this interface, and the cache's own
/// clock measures all of them. So wrong clocks of workers do no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRequest {
    pub site: String,
    /// Identifies this request among those of all workers. If the answer is lost, the request is repeated with the
    /// same holder and granted again.
    pub holder: String,
    /// The minimum time between the response to the last request and the start of this one.
    pub delay_ms: u64,
    /// How long after this call the request ends at the latest. The reservation lapses then. If it is granted too late
    /// for the request to end in time, the worker releases it unused.
    pub longest_request_ms: u64,
}

/// The answer to a [`ReservationRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// Start the request now.
    Granted,
    /// Nothing can be granted for this long. Try again then.
    Wait { wait_ms: u64 },
}

/// Ends a reservation: its request was just answered, or has just failed. A late release only makes the gap to the
/// next request longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRelease {
    pub site: String,
    /// The holder named in the [`ReservationRequest`].
    pub holder: String,
    /// For how long no request may start: the delay, or a longer `Retry-After` or backoff.
    pub blocked_for_ms: u64,
    /// Whether a request was sent to the site. If not, no delay begins.
    pub was_used: bool,
}

/// robots.txt files and site clocks, shared by all workers.
#[async_trait]
pub trait Cache: Send + Sync {
    /// The minimum time between the starts of two calls of the same method, so that the backend keeps up. The caller
    /// batches its requests in the meantime. `processes` is the number of processes on this machine that use the cache.
    /// Reservations cannot be batched and are not paced.
    fn call_pace(&self, processes: u16) -> Duration;

    /// The robots.txt files of origins, in the requested order, fresh or not; `None` for one that is unknown, or was
    /// fetched longer than [`ROBOTS_KEPT_MS`] ago.
    async fn robots_of(
        &self,
        origins: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<RobotsEntry>>, StoreError>;

    /// The robots.txt of one origin.
    async fn robots(&self, origin: &str, now_ms: i64) -> Result<Option<RobotsEntry>, StoreError> {
        let mut found = self.robots_of(vec![origin.to_owned()], now_ms).await?;
        Ok(found.pop().flatten())
    }

    /// Stores robots.txt files. One that was fetched before the stored one is ignored. Each call also deletes some
    /// expired ones, which limits the size of the cache.
    async fn put_robots(&self, entries: Vec<RobotsEntry>, now_ms: i64) -> Result<(), StoreError>;

    /// The clocks of sites, in the requested order; `None` for one that is unknown, or has not changed for
    /// [`SITE_KEPT_MS`].
    async fn sites(
        &self,
        sites: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<Option<SiteClockEntry>>, StoreError>;

    /// The clock of one site.
    async fn site(&self, site: &str, now_ms: i64) -> Result<Option<SiteClockEntry>, StoreError> {
        let mut found = self.sites(vec![site.to_owned()], now_ms).await?;
        Ok(found.pop().flatten())
    }

    /// Updates clocks. The last start and the block only move forward. The delay, the accepted time and the owner are
    /// those of the entry with the latest start.
    async fn put_sites(&self, entries: Vec<SiteClockEntry>) -> Result<(), StoreError>;

    /// Reserves a site's next request, in one atomic step. Clocks written by [`Cache::put_sites`] count as well, and
    /// [`Cache::sites`] returns the reservation.
    async fn reserve(&self, request: &ReservationRequest) -> Result<Reservation, StoreError>;

    /// Ends a reservation. The call may be repeated, and may come after the reservation has lapsed. The site's clock
    /// moves in any case, and another holder's reservation stays.
    async fn release_reservation(&self, release: &ReservationRelease) -> Result<(), StoreError>;
}
