//! The lease of the dispatcher that serves: a document with the number of its tenure, the *epoch*, and a counter, the
//! *turn*, that it raises. Others take it by raising the epoch, if epoch and turn are still what they saw.
//!
//! No clock is compared with another one. The holder counts from when it sent the renewal that succeeded, by its own
//! clock since boot. Another dispatcher counts from when it received an answer that shows a new turn, by its own. So
//! the holder's tenure is over before anybody else's begins, if the clocks of both run equally fast. The server's
//! clock would not do: after an election it is the clock of another machine.

/// The lease as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// 0: nobody has ever had it.
    pub epoch: u64,
    /// How often it was renewed in this epoch.
    pub turn: u64,
    /// The instance that took it: a state folder. One process at a time has its lock.
    pub holder: u64,
    /// Whether its holder gave it up.
    pub is_free: bool,
}

/// The lease as one that does not have it sees it.
#[derive(Debug)]
pub struct LeaseWatch {
    instance: u64,
    lasts_ms: u64,
    /// The lease as last read, and when a read first showed it so.
    seen: Option<(Lease, u64)>,
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

    /// Notes what a read has shown; `now_ms`: when its answer came.
    pub fn note(&mut self, lease: Lease, now_ms: u64) {
        match self.seen {
            Some((seen, _)) if (seen.epoch, seen.turn) == (lease.epoch, lease.turn) => {
                self.seen = Some((lease, self.seen.map_or(now_ms, |(_, since_ms)| since_ms)));
            }
            _ => self.seen = Some((lease, now_ms)),
        }
    }

    /// The lease to take, if it may be taken now: it is free, was this instance's own, or has not been renewed for
    /// so long that its holder knows that it is over.
    pub fn may_take(&self, now_ms: u64) -> Option<Lease> {
        let (lease, since_ms) = self.seen?;
        let is_over = now_ms >= since_ms + self.lasts_ms + SLACK_MS;
        let is_own = lease.holder == self.instance;
        (lease.epoch == 0 || lease.is_free || is_own || is_over).then_some(lease)
    }
}

/// The time in which the holder of the lease may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenure {
    pub epoch: u64,
    lasts_ms: u64,
    until_ms: u64,
}

impl Tenure {
    /// Begins with the request that took the lease, by when it was sent.
    pub fn begin(epoch: u64, lasts_ms: u64, sent_ms: u64) -> Tenure {
        Tenure {
            epoch,
            lasts_ms,
            until_ms: sent_ms + lasts_ms,
        }
    }

    /// Notes that a renewal that was sent at this time has succeeded.
    pub fn renewed(&mut self, sent_ms: u64) {
        self.until_ms = self.until_ms.max(sent_ms + self.lasts_ms);
    }

    /// Whether anything may leave the dispatcher. If not, it may again after a renewal.
    pub fn is_in_force(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }
}
