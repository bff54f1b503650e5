//! Limits how often slow readings are repeated. A slow reading is shown for longer, so that no reading takes more than
//! about a hundredth of the time.

use std::time::{Duration, Instant};

/// A reading is shown for at least this many times its own duration.
const TIMES: u32 = 100;

/// A value, when it was read, and how long that took.
#[derive(Debug)]
pub(crate) struct Paced<T> {
    least: Duration,
    read: Option<(T, Instant)>,
    /// The time between readings.
    pause: Duration,
    is_expired: bool,
}

impl<T> Paced<T> {
    /// A value that is read at most once in this time.
    pub(crate) fn with_interval(least: Duration) -> Paced<T> {
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

    /// Stores a reading that began at `began` and has ended now.
    pub(crate) fn store_reading(&mut self, value: T, began: Instant, now: Instant) {
        self.is_expired = false;
        self.pause = self
            .least
            .max(now.duration_since(began).saturating_mul(TIMES));
        self.read = Some((value, now));
    }

    /// Shortens the pause after a failed reading: it has cost no processor time, so it may be repeated soon.
    pub(crate) fn retry_within(&mut self, pause: Duration) {
        self.pause = self.pause.min(pause);
    }

    /// Makes the next reading due, because an action was done.
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
    fn slow_readings_are_repeated_rarely() {
        let second = Duration::from_secs(1);
        let began = Instant::now();
        let mut paced = Paced::with_interval(2 * second);
        assert!(paced.is_due(began) && paced.get().is_none());
        let now = began + second / 1_000;
        paced.store_reading(7, began, now);
        assert_eq!(paced.get(), Some(&7));
        assert!(!paced.is_due(now + second) && paced.is_due(now + 2 * second));
        paced.store_reading(8, now, now + second);
        assert!(!paced.is_due(now + 100 * second) && paced.is_due(now + 101 * second));
        paced.expire();
        assert!(paced.is_due(now + second) && paced.get() == Some(&8));
        paced.store_reading(9, now, now + second);
        paced.retry_within(2 * second);
        assert!(!paced.is_due(now + 2 * second) && paced.is_due(now + 3 * second));
        paced.store_reading(10, now, now + second);
        assert!(!paced.is_due(now + 3 * second));
    }
}
