//! The dispatcher's process: the core, which decides ([`webfill_scheduler`]), with sockets, threads and clocks.
//!
//! [`mod@run`] is the loop. Each turn passes all arrivals to the core and carries out its effects after the commit:
//! it sends messages and answers, writes to the store and to the audit log, delivers notifications, and starts
//! feeders. The followers of the store run on threads of their own.

// All output must go through `say!` and `terminal::printable_stdout`, because they escape control characters.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod audit;
mod backends;
mod clock;
mod config;
mod delivery;
mod fair_queue;
mod feeders;
mod hand_over;
mod health;
mod http;
mod incoming;
mod journal;
mod metrics;
mod permits;
mod postponed;
mod reload;
mod request_reader;
mod retention;
mod run;
mod snapshots;
mod store_writer;
mod tenure_gate;

pub use config::{DispatcherConfig, DispatcherSetup, Endpoints, JournalSetup};
pub use feeders::FeederSetup;
pub use hand_over::hand_over;
pub use metrics::sample_page as sample_metrics;
pub use reload::ReadAgain;
pub use run::run;
