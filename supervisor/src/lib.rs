//! Runs worker processes, and passes tasks to them from a bounded queue.
//!
//! A supervisor grants its dispatcher credit for as many tasks as its queue has room for, gives each site to one of its
//! N workers, and passes their outcomes on. A worker that dies is started again, and its tasks go back to the
//! dispatcher. The worker's crash marker, a small file, names the task that is blamed. Nothing is kept on disk: if the
//! supervisor dies, its leases expire at the dispatcher.
//!
//! [`supervisor`] makes the decisions. It has no sockets, processes or clock, so that the simulation can run it.
//! [`mod@run`] is the process around it.

// Print only through `say!` and `terminal::printable_stdout`, because they escape control characters.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod claim;
mod config;
mod counts;
mod following;
mod health;
mod mappings;
mod metrics;
mod own_report;
mod queue;
mod readiness;
mod recalls;
mod run;
mod session;
pub mod supervisor;
mod unacknowledged;
mod worker_process;
mod worker_state;

pub use config::{DispatcherSockets, SupervisorConfig, SupervisorSetup};
pub use metrics::sample_page as sample_metrics;
pub use run::run;
