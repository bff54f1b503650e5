//! Measures the elapsed time and the CPU time of this thread.

use std::time::{Duration, Instant};

use webfill_bench::core_time::time_on_core;

use crate::failure::Failure;

/// The number of links judged in a lap, the elapsed time, and the CPU time.
#[derive(Default)]
pub struct Lap {
    pub links: u64,
    pub time: Duration,
    pub core: Duration,
    pub longest: Duration,
}

impl Lap {
    pub fn add(&mut self, other: Lap) {
        self.links += other.links;
        self.time += other.time;
        self.core += other.core;
        self.longest = self.longest.max(other.time);
    }

    pub fn rate(&self) -> f64 {
        self.links as f64 / self.time.as_secs_f64()
    }

    /// The number of links judged in a second of CPU time. On an idle machine, the rate by the clock is the same.
    pub fn core_rate(&self) -> f64 {
        self.links as f64 / self.core.as_secs_f64()
    }
}

/// A stopwatch for this thread.
pub struct Watch {
    begun: Instant,
    core: Duration,
}

impl Watch {
    pub fn start() -> Result<Watch, Failure> {
        Ok(Watch {
            begun: Instant::now(),
            core: time_on_core()?,
        })
    }

    /// The elapsed time and the CPU time since the start or the previous lap.
    pub fn lap(&mut self) -> Result<Lap, Failure> {
        let now = Watch::start()?;
        let time = now.begun - self.begun;
        let lap = Lap {
            links: 0,
            time,
            core: now.core - self.core,
            longest: time,
        };
        *self = now;
        Ok(lap)
    }
}
