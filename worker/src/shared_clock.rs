//! Reserves requests to sites in the shared cache, so that workers keep the delays of sites together.
//!
//! With `politeness.clock = "shared"`, before each request a worker reserves its site's next request in the cache
//! ([`Cache::reserve`], one atomic step), and releases the reservation when the request has ended. So workers never
//! break a site's delay, even if tasks of one site go to several workers. The reservation of a dead worker expires.
//!
//! With `politeness.clock = "owner"` (the default), the worker that owns a site keeps the time of its next request in
//! memory, writes copies to the cache, and reserves nothing. Only *visits* are reserved: a robots.txt may redirect to a
//! site that another worker owns, or none. So visits from all workers take turns, and keep the delay after the owner's
//! last reported request. If the owner looks up the site in the cache during a visit, it waits for the end of the
//! visit.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use webfill_store::{Cache, Reservation, ReservationRelease, ReservationRequest};

/// The most time between the call that reserves and the start of the request. A reservation that is granted later is
/// released and made anew. A process that is frozen between the grant and the request for longer than this has lost its
/// lease, so the request is not sent (see [`crate::gate`]).
const RESERVE_TO_START: Duration = Duration::from_secs(30);

/// How long to wait before an unavailable cache is tried again.
const CACHE_RETRY: Duration = Duration::from_secs(1);

/// The reservations of requests to sites that this worker holds in the shared cache.
pub struct SharedClock {
    cache: Arc<dyn Cache>,
    longest_request: Duration,
    /// A random number that identifies this process among those that share the cache.
    process: u64,
    /// The number of reservations requested so far. The next reservation gets this number.
    reservations: Cell<u64>,
    held: RefCell<HashMap<String, HeldReservation>>,
}

/// A reservation, from the first call that requests it to its release.
struct HeldReservation {
    holder: String,
    is_granted: bool,
    was_used: bool,
}

impl SharedClock {
    pub fn new(cache: Arc<dyn Cache>, longest_request: Duration) -> SharedClock {
        SharedClock {
            cache,
            longest_request,
            process: RandomState::new().hash_one(std::process::id()),
            reservations: Cell::new(0),
            held: RefCell::default(),
        }
    }

    /// Reserves a site for a request. If the reservation is not granted, the error is the time to wait before the next
    /// try. A reservation that is already held is extended.
    pub async fn reserve(&self, site: &str, delay: Duration) -> Result<(), Duration> {
        let called = Instant::now();
        let longest = self.longest_request + RESERVE_TO_START;
        let request = ReservationRequest {
            site: site.to_owned(),
            holder: self.get_or_create_holder(site),
            delay_ms: delay.as_millis() as u64,
            longest_request_ms: longest.as_millis() as u64,
        };
        match self.cache.reserve(&request).await {
            Ok(Reservation::Granted) => {
                self.update_held(site, |held| held.is_granted = true);
                if called.elapsed() < RESERVE_TO_START {
                    return Ok(());
                }
                self.release(site, Duration::ZERO).await;
                Err(Duration::ZERO)
            }
            Ok(Reservation::Wait { wait_ms }) => Err(Duration::from_millis(wait_ms)),
            // The cache itself logs that it is unreachable.
            Err(_) => Err(CACHE_RETRY),
        }
    }

    /// Notes that the request was sent: the site's delay then counts from the release.
    pub fn note_use(&self, site: &str) {
        self.update_held(site, |held| held.was_used = true);
    }

    /// Releases the site's reservation, if there is one: no request may start for `blocked_for` from now. If the
    /// cache is unavailable, the reservation expires by itself.
    pub async fn release(&self, site: &str, blocked_for: Duration) {
        let Some(held) = self.held.borrow_mut().remove(site) else {
            return;
        };
        if !held.is_granted {
            return;
        }
        let release = ReservationRelease {
            site: site.to_owned(),
            holder: held.holder,
            blocked_for_ms: blocked_for.as_millis() as u64,
            was_used: held.was_used,
        };
        let _ = self.cache.release_reservation(&release).await;
    }

    fn get_or_create_holder(&self, site: &str) -> String {
        let mut held = self.held.borrow_mut();
        if let Some(held) = held.get(site) {
            return held.holder.clone();
        }
        let number = self.reservations.replace(self.reservations.get() + 1);
        let holder = format!("{:016x}:{number}", self.process);
        held.insert(
            site.to_owned(),
            HeldReservation {
                holder: holder.clone(),
                is_granted: false,
                was_used: false,
            },
        );
        holder
    }

    fn update_held(&self, site: &str, change: impl FnOnce(&mut HeldReservation)) {
        if let Some(held) = self.held.borrow_mut().get_mut(site) {
            change(held);
        }
    }
}
