//! Intake, dedupe, frontier and dispatch of tasks.
//!
//! The dispatcher is the one place that knows every URL: [`intake`] judges it, the [`frontier`]
//! keeps it in SQLite, [`dispatch`] decides when and to whom it goes; [`core`] is the state machine
//! in which they work together, and [`mod@run`] gives it sockets, threads and a clock. Everything
//! that was accepted is on disk before anybody is told so; a dispatcher that dies at any moment
//! goes on from its last commit when it is started again.
//!
//! The core is public for the simulation (`tests/simulation/`), which drives it with simulated time
//! and messages instead of [`mod@run`].

mod application_limits;
mod clock;
mod config;
pub mod control;
mod core;
mod crawl_registry;
pub mod crawl_spec;
mod dispatch;
pub mod excluded_sites;
mod firehose;
pub mod frontier;
mod http;
pub mod intake;
mod outgoing;
mod request_reader;
mod retry_table;
mod run;
pub mod scope;
mod seen;
mod store_writer;

pub use crate::core::{Core, CoreSettings};
pub use application_limits::ApplicationLimits;
pub use config::{DispatcherConfig, DispatcherSetup, Endpoints};
pub use outgoing::{Client, OutgoingMessage};
pub use retry_table::RetryTable;
pub use run::run;
pub use store_writer::{BackfillWrite, StoreWrite};
