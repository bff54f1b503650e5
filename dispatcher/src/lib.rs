//! Intake, dedupe, frontier and dispatch of tasks.
//!
//! The dispatcher is the one place that knows every URL: [`intake`] judges it, the [`frontier`]
//! keeps it in SQLite, [`dispatch`] decides when and to whom it goes; [`dispatcher`] is the core
//! in which they work together, and [`mod@run`] gives it sockets, threads and a clock. Everything
//! that was accepted is on disk before anybody is told so; a dispatcher that dies at any moment
//! goes on from its last commit when it is started again.

mod app_limits;
mod clerk;
mod clock;
mod config;
pub mod control;
mod crawl_book;
pub mod crawl_spec;
mod dispatch;
mod dispatcher;
pub mod excluded_sites;
pub mod frontier;
mod herald;
mod http;
pub mod intake;
mod ledger;
mod letter;
mod retry_table;
mod run;
pub mod scope;
mod seen;
#[cfg(test)]
mod simulation;

pub use app_limits::AppLimits;
pub use config::{DispatcherConfig, DispatcherSetup, Endpoints};
pub use retry_table::RetryTable;
pub use run::run;
