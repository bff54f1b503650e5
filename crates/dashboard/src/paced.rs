//! Readings that are repeated no more often than they are worth: of what took long to read, the last reading is
//! shown for longer, so that all readings together take about a hundredth of one core's time.

use std::time::{Duration, Instant};

/// A reading is shown for at least so many times as long as it took.
const TIMES: u32 = 100;

/// A value that was read, when, and how long that took.
#[derive(Debug)]
pub(crate) struct Paced<T> {
    least: Duration,
    read: Option<(T, Instant)>,
    /// From one reading to the next.
    pause: Duration,
    is_expired: bool,
}

impl<T> Paced<T> {
    /// A value that is read at most once in so long.
    pub(crate) fn every(least: Duration) -> Paced<T> {
        Paced {
            least,
            read: None,
            pause: least,
            is_expired: false,
        }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let at = self.read.as_ref().map(|(_, at)| *at);
        self.is_expired || at.is_none_or(|at| now.duration_since(at) >= self.pause)
    }

    /// A reading that was begun then has ended now.
    pub(crate) fn put(&mut self, value: T, began: Instant, now: Instant) {
        self.is_expired = false;
        self.pause = self
            .least
            .max(now.duration_since(began).saturating_mul(TIMES));
        self.read = Some((value, now));
    }

    /// What was read is a fault: waiting for somebody costs nothing, and it is looked soon whether it is over.
    pub(crate) fn look_again_within(&mut self, pause: Duration) {
        self.pause = self.pause.min(pause);
    }

    /// Something was done: the next reading is due.
    pub(crate) fn expire(&mut self) {
        self.is_expired = true;
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.read.as_ref().map(|(value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_read_seldom() {
        let second = Duration::from_secs(1);
        let began = Instant::now();
        let mut paced = Paced::every(2 * second);
        assert!(paced.is_due(began) && paced.get().is_none());
        let now = began + second / 1_000;
        paced.put(7, began, now);
        assert_eq!(paced.get(), Some(&7));
        assert!(!paced.is_due(now + second) && paced.is_due(now + 2 * second));
        paced.put(8, now, now + second);
        assert!(!paced.is_due(now + 100 * second) && paced.is_due(now + 101 * second));
        paced.expire();
        assert!(paced.is_due(now + second) && paced.get() == Some(&8));
        paced.put(9, now, now + second);
        paced.look_again_within(2 * second);
        assert!(!paced.is_due(now + 2 * second) && paced.is_due(now + 3 * second));
        paced.put(10, now, now + second);
        assert!(!paced.is_due(now + 3 * second));
    }
}
