//! Measures time by the clock, and time on the core.

use std::time::{Duration, Instant};

use webfill_bench::core_time::time_on_core;

use crate::failure::Failure;

/// The number of links judged in a lap, and the time that this took: by the clock, and on the core.
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

    /// The rate by the time on the core. It is the rate of an otherwise idle machine.
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

    /// The time since the start or the previous lap.
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
