//! Tells of refused peers, but not more often than a person wants to read it: somebody who knocks
//! all day would otherwise fill the disk with the log of it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The same refusal is told once in this time.
const TELL_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Different refusals told in that time, at most.
const MOST_TOLD: usize = 200;

pub(super) struct Refusals {
    since: Instant,
    told: HashSet<String>,
    untold: u64,
}

impl Refusals {
    pub(super) fn new() -> Refusals {
        Refusals {
            since: Instant::now(),
            told: HashSet::new(),
            untold: 0,
        }
    }

    /// Whether this one is to be told now. `what` says what makes it the same as another.
    pub(super) fn is_news(&mut self, what: &str, now: Instant) -> bool {
        if now.duration_since(self.since) >= TELL_AGAIN_AFTER {
            if self.untold > 0 {
                tracing::warn!(
                    event = "refusals_not_told",
                    count = self.untold,
                    "refusals were too many or repeated, and are not told one by one"
                );
            }
            *self = Refusals {
                since: now,
                ..Refusals::new()
            };
        }
        let is_news = self.told.len() < MOST_TOLD && self.told.insert(what.to_owned());
        self.untold += u64::from(!is_news);
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_refusal_is_told_once_a_minute_and_many_are_not_told_at_all() {
        let mut refusals = Refusals::new();
        let start = Instant::now();
        assert!(refusals.is_news("a", start) && refusals.is_news("b", start));
        assert!(!refusals.is_news("a", start));
        let told = (0..1_000).filter(|n| refusals.is_news(&n.to_string(), start));
        assert_eq!(told.count(), MOST_TOLD - 2);
        assert!(refusals.is_news("a", start + TELL_AGAIN_AFTER));
        assert!(!refusals.is_news("a", start + TELL_AGAIN_AFTER));
    }
}
