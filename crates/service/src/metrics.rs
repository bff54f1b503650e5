//! Figures of processes for Prometheus, and probes: what may be asked of a process without a key.
//!
//! A process publishes what it knows at its own pace, and keeps it behind a lock; who asks gets what was
//! published last, written by [`Exposition`] and served by [`serve`] on a thread of its own. So a scrape waits
//! for nobody, and nobody for a scrape.
//!
//! The text format is written here rather than by a library's registry, because hardly a figure is counted
//! where it is served: they come from other processes, from snapshots and from a database, and a registry would
//! be filled anew at each scrape. What `promtool` says of the result is a test.

mod config;
mod disks;
mod exposition;
mod loops;
mod probes;
mod process;
mod server;

pub use config::MetricsConfig;
pub use disks::{add_disk_low, add_disks};
pub use exposition::{Exposition, Family};
pub use loops::{add_loop_age, add_messages};
pub use probes::{Probe, ProbesConfig, serve_probes};
pub use process::{Watched, add_build, add_processes, add_starts};
pub use server::serve;
