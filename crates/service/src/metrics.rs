//! Metrics of processes for Prometheus, and probes: the requests that a process answers without a key.
//!
//! A process publishes its metrics at its own pace and keeps them behind a lock. A scrape gets the latest ones, written
//! by [`Exposition`] and served by [`serve`] on a thread of its own. So a scrape never waits for the process, nor the
//! process for a scrape.
//!
//! No library with a registry of metrics is used, because hardly any metric is counted where it is served. Metrics come
//! from other processes, from snapshots and from a database, so a registry would have to be filled again for each
//! scrape. A test checks the result with `promtool`.

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
pub use loops::{add_loop_age, add_messages, add_store};
pub use probes::{Probe, ProbesConfig, serve_probes};
pub use process::{ReportedProcess, add_build, add_processes, add_starts};
pub use server::serve;
