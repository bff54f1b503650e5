//! Limits how often refused peers are logged, so that a peer that keeps trying cannot fill the disk with log lines.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The same refusal is logged only once in this period.
const PERIOD: Duration = Duration::from_secs(60);

/// The most refusals that are logged in one period.
const MAX_LOGGED: usize = 200;

/// The refusals that were logged recently.
#[derive(Debug)]
pub struct RefusalLog {
    /// When each refusal of the last period was logged.
    logged: HashMap<String, Instant>,
    suppressed: u64,
    /// When the present count of suppressed refusals began.
    since: Instant,
}

impl Default for RefusalLog {
    fn default() -> RefusalLog {
        RefusalLog {
            logged: HashMap::new(),
            suppressed: 0,
            since: Instant::now(),
        }
    }
}

impl RefusalLog {
    /// Records a refusal. Returns whether it must be logged now, because it was not logged in the last minute. `what`
    /// names the peer and the reason.
    pub fn record_if_new(&mut self, what: &str) -> bool {
        self.record_at(what, Instant::now())
    }

    fn record_at(&mut self, what: &str, now: Instant) -> bool {
        if now.duration_since(self.since) >= PERIOD {
            if self.suppressed > 0 {
                tracing::warn!(
                    event = "refusals_not_logged",
                    count = self.suppressed,
                    "refusals were too many or repeated and are not logged one by one"
                );
            }
            (self.suppressed, self.since) = (0, now);
        }
        self.logged
            .retain(|_, logged| now.duration_since(*logged) < PERIOD);
        let is_new = self.logged.len() < MAX_LOGGED && !self.logged.contains_key(what);
        match is_new {
            true => drop(self.logged.insert(what.to_owned(), now)),
            false => self.suppressed += 1,
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_refusal_is_logged_once_a_minute_and_the_number_is_limited() {
        let mut log = RefusalLog::default();
        let start = Instant::now();
        assert!(log.record_at("a", start) && log.record_at("b", start));
        assert!(!log.record_at("a", start));
        let logged = (0..1_000).filter(|n| log.record_at(&n.to_string(), start));
        assert_eq!(logged.count(), MAX_LOGGED - 2);
        assert!(log.record_at("a", start + PERIOD));
        assert!(!log.record_at("a", start + PERIOD));
    }

    #[test]
    fn refusals_of_each_peer_are_limited_separately() {
        let mut log = RefusalLog::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(log.record_at("a", start));
        assert!(log.record_at("b", after(59)));
        assert!(log.record_at("a", after(60)));
        assert!(!log.record_at("b", after(61)), "logged two seconds before");
        assert!(log.record_at("b", after(119)));
    }
}
