//! A clock that does not jump: milliseconds since the epoch, read once from the wall clock at the
//! start and counted on by the monotonic clock. So setting the time does not cut a delay short.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub(crate) struct SteadyClock {
    started: Instant,
    started_at: Duration,
}

impl SteadyClock {
    pub(crate) fn start() -> SteadyClock {
        SteadyClock {
            started: Instant::now(),
            started_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        let now = self.started_at + self.started.elapsed();
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
    }

    /// By how much the wall clock is ahead by now: it was set, or the machine has slept.
    pub(crate) fn wall_ahead_ms(&self) -> i64 {
        self.wall_ms().saturating_sub(self.now_ms())
    }

    /// The wall clock, which applications use for the expiry of crawls.
    pub(crate) fn wall_ms(&self) -> i64 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        i64::try_from(wall.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
    }
}
