//! Limits the rate at which refused peers are logged, so that a peer that keeps trying cannot fill the
//! disk with log lines.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The same refusal is logged once in this period.
const PERIOD: Duration = Duration::from_secs(60);

/// The most refusals that are logged in one period.
const MAX_LOGGED: usize = 200;

pub(super) struct RefusalLog {
    since: Instant,
    logged: HashSet<String>,
    suppressed: u64,
}

impl RefusalLog {
    pub(super) fn new() -> RefusalLog {
        RefusalLog {
            since: Instant::now(),
            logged: HashSet::new(),
            suppressed: 0,
        }
    }

    /// Records a refusal. Returns whether it must be logged now: it is the first of its kind in this
    /// period. `what` identifies the kind.
    pub(super) fn record_if_new(&mut self, what: &str, now: Instant) -> bool {
        if now.duration_since(self.since) >= PERIOD {
            if self.suppressed > 0 {
                tracing::warn!(
                    event = "refusals_not_told",
                    count = self.suppressed,
                    "refusals were too many or repeated, and are not told one by one"
                );
            }
            *self = RefusalLog {
                since: now,
                ..RefusalLog::new()
            };
        }
        let is_new = self.logged.len() < MAX_LOGGED && self.logged.insert(what.to_owned());
        self.suppressed += u64::from(!is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_refusal_is_logged_once_a_period_and_the_number_is_limited() {
        let mut log = RefusalLog::new();
        let start = Instant::now();
        assert!(log.record_if_new("a", start) && log.record_if_new("b", start));
        assert!(!log.record_if_new("a", start));
        let logged = (0..1_000).filter(|n| log.record_if_new(&n.to_string(), start));
        assert_eq!(logged.count(), MAX_LOGGED - 2);
        assert!(log.record_if_new("a", start + PERIOD));
        assert!(!log.record_if_new("a", start + PERIOD));
    }
}
