//! Chaos tests: crawls under continuous faults. The web is generated, so the expected results are known. They are
//! compared with the access log, the store and the frontier's file (the database of tasks).
//!
//! - `mixed`: faults of all kinds, generated from a seed, which `make chaos` runs for minutes;
//! - `alone`: one kind of fault at a time;
//! - `points`: kills at certain moments of a task;
//! - `power_loss`: crawls that continue from the possible states of the disk after a loss of power;
//! - `resources`: full disks, little memory, damaged files.

mod alone;
mod crew;
mod egress;
mod graph;
mod judge;
mod mixed;
mod plan;
mod points;
mod power_loss;
mod proxy;
mod resources;
mod round;
mod trouble;
