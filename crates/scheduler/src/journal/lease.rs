//! The lease of the dispatcher that serves: a document with the number of its tenure, the *epoch*, and a counter, the
//! *turn*, that it raises. Others take it by raising the epoch, if epoch and turn are still what they saw.
//!
//! No clock is compared with another one. The holder counts from when it sent the renewal that succeeded, by its own
//! clock since boot. Another dispatcher counts from when it received an answer that shows a new turn, by its own. So
//! the holder's tenure is over before anybody else's begins, if the clocks of both run equally fast. The store's own
//! clock cannot be used: after an election it is the clock of another machine.

use super::Lease;

/// The lease, as seen by a dispatcher that does not hold it.
#[derive(Debug)]
pub struct LeaseWatch {
    instance: u64,
    lasts_ms: u64,
    seen: Option<Seen>,
}

/// The lease as last read.
#[derive(Debug, Clone, Copy)]
struct Seen {
    lease: Lease,
    /// When a read of the lease first showed this epoch and turn.
    since_ms: u64,
    /// When the lease was last read.
    read_ms: u64,
    /// The lease is not taken before this time, because its holder could not renew it for a while.
    spared_until_ms: u64,
}

/// How much the clocks of two machines may differ in a lease's time.
const SLACK_MS: u64 = 500;

impl LeaseWatch {
    pub fn new(instance: u64, lasts_ms: u64) -> LeaseWatch {
        LeaseWatch {
            instance,
            lasts_ms,
            seen: None,
        }
    }

    /// Notes what a read has shown; `now_ms`: when its answer came. While no read is answered, nobody can renew the
    /// lease either. Afterwards its holder has half a lease to do so, so that an election of the store causes no
    /// takeover.
    pub fn note_lease(&mut self, lease: Lease, now_ms: u64) {
        let known = self
            .seen
            .filter(|seen| (seen.lease.epoch, seen.lease.turn) == (lease.epoch, lease.turn));
        let was_unread = known.is_some_and(|seen| now_ms > seen.read_ms + self.lasts_ms / 2);
        self.seen = Some(Seen {
            lease,
            since_ms: known.map_or(now_ms, |seen| seen.since_ms),
            read_ms: now_ms,
            spared_until_ms: match was_unread {
                true => now_ms + self.lasts_ms / 2,
                false => known.map_or(0, |seen| seen.spared_until_ms),
            },
        });
    }

    /// The lease to take, if it may be taken now: it is free, was this instance's own, or was not renewed for so long
    /// that its holder has noticed its end.
    pub fn lease_to_take(&self, now_ms: u64) -> Option<Lease> {
        let Seen {
            lease,
            since_ms,
            spared_until_ms,
            ..
        } = self.seen?;
        let is_over = now_ms >= spared_until_ms.max(since_ms + self.lasts_ms + SLACK_MS);
        let is_own = lease.holder == self.instance;
        (lease.epoch == 0 || lease.is_free || is_own || is_over).then_some(lease)
    }
}

/// The time when the holder of the lease may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenure {
    pub epoch: u64,
    lasts_ms: u64,
    until_ms: u64,
}

impl Tenure {
    /// Begins a tenure, which counts from when the request that took the lease was sent.
    pub fn begin(epoch: u64, lasts_ms: u64, sent_ms: u64) -> Tenure {
        Tenure {
            epoch,
            lasts_ms,
            until_ms: sent_ms + lasts_ms,
        }
    }

    /// Notes that a renewal that was sent at this time has succeeded.
    pub fn on_renewed(&mut self, sent_ms: u64) {
        self.until_ms = self.until_ms.max(sent_ms + self.lasts_ms);
    }

    /// When the tenure ends, if there is no further renewal.
    pub fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// Whether messages and store writes may leave the dispatcher. If not, they may after the next renewal.
    pub fn is_in_force(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }
}
