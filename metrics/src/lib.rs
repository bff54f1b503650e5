//! Figures of processes for Prometheus.
//!
//! A process publishes what it knows at its own pace, and keeps it behind a lock; who asks gets what was
//! published last, written by [`Exposition`] and served by [`serve`] on a thread of its own. So a scrape waits
//! for nobody, and nobody for a scrape.
//!
//! The text format is written here rather than by a library's registry, because hardly a figure is counted
//! where it is served: they come from other processes, from snapshots and from a database, and a registry would
//! be filled anew at each scrape. What `promtool` says of the result is a test.

mod config;
mod exposition;
mod process;
mod server;

pub use config::MetricsConfig;
pub use exposition::{Exposition, Family};
pub use process::{add_build, add_process};
pub use server::serve;
