//! A clock that does not jump: milliseconds since the epoch, read once from the wall clock at the start and then
//! advanced by the monotonic clock. So setting the wall clock does not shorten a delay.

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

    /// Starts a clock that shows at least `at_ms`, a time that another machine's clock may have shown.
    pub(crate) fn start_after(at_ms: i64) -> SteadyClock {
        let clock = SteadyClock::start();
        let at = Duration::from_millis(u64::try_from(at_ms).unwrap_or_default());
        SteadyClock {
            started_at: clock.started_at.max(at),
            ..clock
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        let now = self.started_at + self.started.elapsed();
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
    }

    /// How far the wall clock is ahead of this one, because it was set or the machine has slept.
    pub(crate) fn wall_ahead_ms(&self) -> i64 {
        self.wall_ms().saturating_sub(self.now_ms())
    }

    /// The time of the wall clock. Applications set the expiry of crawls by this clock.
    pub(crate) fn wall_ms(&self) -> i64 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        i64::try_from(wall.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
    }
}
