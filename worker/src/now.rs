//! A moment, read from the two clocks that politeness uses.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment by both clocks. A caller reads it once and passes it to all decisions made at this moment. Politeness
/// decisions never read a clock themselves, so the simulation can run them in simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The moment by the monotonic clock of this process, which is used to time its requests.
    pub instant: Instant,
    /// The same moment by the wall clock, in milliseconds since the epoch. Unlike the monotonic clock, it is comparable
    /// between machines.
    pub wall_ms: i64,
}

impl Now {
    /// Reads both clocks.
    pub fn read() -> Now {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            instant: Instant::now(),
            wall_ms: i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// The time until `instant`; zero if that has passed.
    pub fn time_until(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.instant)
    }
}

/// Milliseconds since the epoch by the wall clock.
pub fn now_ms() -> i64 {
    Now::read().wall_ms
}

/// A duration in milliseconds for a message, rounded up so that no wait becomes shorter.
pub fn millis_rounded_up(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}
