//! Chaos: crawls to which faults happen all the time, judged from outside. The web that is crawled
//! is known, so is what a crawl of it must leave; the witnesses are the access log of its server,
//! the store and the frontier's file, opened by this process.
//!
//! `mixed` deals out faults from a seed, `alone` does one kind at a time, `points` kills at named
//! points, `resources` takes away disks, memory and time. `make chaos` runs `mixed` for minutes.

mod alone;
mod crew;
mod graph;
mod judge;
mod mixed;
mod plan;
mod points;
mod proxy;
mod resources;
mod round;
