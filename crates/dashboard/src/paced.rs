//! Limits how often slow readings are repeated. The slower a reading, the longer its result is shown, so that reading
//! takes about a hundredth of the time. The data still never become too old.
//!
//! The cost of a reading is the shortest of its last durations, because a busy machine makes a reading longer, never
//! shorter. Otherwise a reading that once waited for a second would be shown for more than a minute.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a result is shown, as a multiple of the time that reading it takes.
const TIMES: u32 = 100;

/// The longest pause between two readings, as a multiple of the shortest.
const MOST_PAUSES: u32 = 10;

/// The cost of a reading is the shortest of this many last durations.
const DURATIONS: usize = 5;

/// A value that is read again from time to time, the more rarely the longer that takes.
#[derive(Debug)]
pub(crate) struct Paced<T> {
    least: Duration,
    read: Option<(T, Instant)>,
    /// The durations of the last readings.
    durations: VecDeque<Duration>,
    /// The present pause between two readings.
    pause: Duration,
    is_expired: bool,
}

impl<T> Paced<T> {
    /// A value that is read again after at least the interval `least`, and at most ten times that interval.
    pub(crate) fn with_interval(least: Duration) -> Paced<T> {
        Paced {
            least,
            read: None,
            durations: VecDeque::with_capacity(DURATIONS),
            pause: least,
            is_expired: false,
        }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let at = self.read.as_ref().map(|(_, at)| *at);
        self.is_expired || at.is_none_or(|at| now.duration_since(at) >= self.pause)
    }

    /// Stores the value of a reading that took from `began` to `now`.
    pub(crate) fn store_reading(&mut self, value: T, began: Instant, now: Instant) {
        self.is_expired = false;
        self.durations.truncate(DURATIONS - 1);
        self.durations.push_front(now.duration_since(began));
        let cost = self.durations.iter().min().copied().unwrap_or_default();
        let most = self.least.saturating_mul(MOST_PAUSES);
        self.pause = cost.saturating_mul(TIMES).clamp(self.least, most);
        self.read = Some((value, now));
    }

    /// Shortens the pause to at most `pause` after a failed reading. Such a reading costs no processor time, so it may
    /// soon be repeated.
    pub(crate) fn retry_within(&mut self, pause: Duration) {
        self.pause = self.pause.min(pause);
    }

    /// Makes the next reading due now, for example because an action has changed the value.
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

    const SECOND: Duration = Duration::from_secs(1);

    /// A value with an interval of two seconds, whose last readings took these durations. The last one ends now.
    fn paced_with_durations(durations: &[Duration], now: Instant) -> Paced<usize> {
        let mut paced = Paced::with_interval(2 * SECOND);
        for (number, duration) in durations.iter().enumerate() {
            paced.store_reading(number, now, now + *duration);
            paced.read = Some((number, now));
        }
        paced
    }

    #[test]
    fn slow_readings_are_repeated_rarely() {
        let now = Instant::now();
        let fresh: Paced<usize> = Paced::with_interval(2 * SECOND);
        assert!(fresh.is_due(now) && fresh.get().is_none());
        let fast = paced_with_durations(&[SECOND / 1_000], now);
        assert_eq!(fast.get(), Some(&0));
        assert!(!fast.is_due(now + SECOND) && fast.is_due(now + 2 * SECOND));
        let slow = paced_with_durations(&[SECOND / 10; 3], now);
        assert!(!slow.is_due(now + 9 * SECOND) && slow.is_due(now + 10 * SECOND));
    }

    #[test]
    fn a_reading_that_had_to_wait_is_repeated_as_soon_as_the_others() {
        let now = Instant::now();
        let paced = paced_with_durations(&[SECOND / 1_000, 5 * SECOND], now);
        assert!(paced.is_due(now + 2 * SECOND));
        let durations = [&[SECOND / 1_000][..], &[SECOND / 10; DURATIONS]].concat();
        let slower_since = paced_with_durations(&durations, now);
        assert!(!slower_since.is_due(now + 9 * SECOND) && slower_since.is_due(now + 10 * SECOND));
    }

    #[test]
    fn however_slow_readings_are_they_are_repeated_within_ten_intervals() {
        let now = Instant::now();
        let paced = paced_with_durations(&[60 * SECOND], now);
        assert!(!paced.is_due(now + 19 * SECOND) && paced.is_due(now + 20 * SECOND));
    }

    #[test]
    fn an_action_or_a_fault_makes_the_next_reading_due_sooner() {
        let now = Instant::now();
        let mut paced = paced_with_durations(&[SECOND], now);
        paced.expire();
        assert!(paced.is_due(now) && paced.get() == Some(&0));
        let mut paced = paced_with_durations(&[SECOND], now);
        paced.retry_within(2 * SECOND);
        assert!(!paced.is_due(now + SECOND) && paced.is_due(now + 2 * SECOND));
    }
}
