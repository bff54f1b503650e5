//! Milliseconds since the epoch that never jump: the wall clock is read once, at the start, and
//! the monotonic clock counts from there. A delay that is being waited for is thus never cut
//! short by somebody setting the time.

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
}
