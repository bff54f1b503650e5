//! A moment, read from the two clocks that politeness uses.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment, read once by the caller and passed to every decision made at it. Politeness decisions never read a clock
/// themselves, so the simulation can run them in simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The moment by the monotonic clock of this process, which paces its requests.
    pub instant: Instant,
    /// The same moment by the wall clock, in milliseconds since the epoch. Workers of all machines share it.
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

    /// The time until a moment; zero if it has passed.
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
