//! The clocks of sites where all workers share them (`politeness.clock = "shared"`): each request
//! claims its site's next slot in the cache, by one atomic step, and gives it back when it was
//! answered. So even workers that share sites without any routing never break a delay.
//!
//! Without it a site's clock is its owner's, and the cache has a copy that is written behind.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use webfill_store::{Cache, Slot, SlotClaim, SlotRelease};

/// Between a claim and the start of its request. What takes longer is given back and claimed anew,
/// and a process that was stopped for longer has lost its lease (see the gate).
const CLAIM_TO_START: Duration = Duration::from_secs(30);

/// A cache that is away is asked again after this long.
const CACHE_AWAY: Duration = Duration::from_secs(1);

/// The slots that this worker holds.
pub struct SharedClock {
    cache: Arc<dyn Cache>,
    longest_request: Duration,
    /// Tells this process from all others that share the cache.
    process: u64,
    claims: Cell<u64>,
    held: RefCell<HashMap<String, Held>>,
}

/// A claim of a site's next request, and later the slot.
struct Held {
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
            claims: Cell::new(0),
            held: RefCell::default(),
        }
    }

    /// Claims `requests` in a row to a site, or says how long to wait before claiming again. A
    /// slot that is held already is held on for them.
    pub async fn claim(&self, site: &str, delay: Duration, requests: u32) -> Result<(), Duration> {
        let called = Instant::now();
        let longest = self.longest_request * requests + CLAIM_TO_START;
        let claim = SlotClaim {
            site: site.to_owned(),
            holder: self.holder(site),
            delay_ms: delay.as_millis() as u64,
            longest_request_ms: longest.as_millis() as u64,
        };
        let slot = self.cache.claim_slot(&claim).await;
        match slot {
            Ok(Slot::Granted) => {
                self.change(site, |held| held.is_granted = true);
                if called.elapsed() < CLAIM_TO_START {
                    return Ok(());
                }
                self.release(site, Duration::ZERO).await;
                Err(Duration::ZERO)
            }
            Ok(Slot::Wait { wait_ms }) => Err(Duration::from_millis(wait_ms)),
            // It says itself that it is away.
            Err(_) => Err(CACHE_AWAY),
        }
    }

    /// A request was sent to the site: its delay begins when the slot is given back.
    pub fn note_use(&self, site: &str) {
        self.change(site, |held| held.was_used = true);
    }

    /// Gives a slot back, if one is held: nobody may start for `blocked_for` from now. A slot that
    /// cannot be given back, because the cache is away, lapses.
    pub async fn release(&self, site: &str, blocked_for: Duration) {
        let Some(held) = self.held.borrow_mut().remove(site) else {
            return;
        };
        if !held.is_granted {
            return;
        }
        let release = SlotRelease {
            site: site.to_owned(),
            holder: held.holder,
            blocked_for_ms: blocked_for.as_millis() as u64,
            was_used: held.was_used,
        };
        let _ = self.cache.release_slot(&release).await;
    }

    fn holder(&self, site: &str) -> String {
        let mut held = self.held.borrow_mut();
        if let Some(held) = held.get(site) {
            return held.holder.clone();
        }
        let number = self.claims.replace(self.claims.get() + 1);
        let holder = format!("{:016x}:{number}", self.process);
        held.insert(
            site.to_owned(),
            Held {
                holder: holder.clone(),
                is_granted: false,
                was_used: false,
            },
        );
        holder
    }

    fn change(&self, site: &str, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.held.borrow_mut().get_mut(site) {
            change(held);
        }
    }
}
