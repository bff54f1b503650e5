//! Intake, dedupe, frontier and dispatch of tasks.
//!
//! The dispatcher is the one place that knows every URL: [`intake`] judges it, the [`frontier`]
//! keeps it in SQLite, [`dispatch`] decides when and to whom it goes. Everything that was
//! accepted is on disk before anybody is told so; a dispatcher that dies at any moment goes on
//! from its last commit when it is started again.

mod clock;
mod config;
pub mod control;
mod crawl_book;
pub mod crawl_spec;
mod dispatch;
mod dispatcher;
pub mod excluded_sites;
pub mod frontier;
pub mod intake;
mod ledger;
mod run;
pub mod scope;
mod seen;

pub use config::{DispatcherConfig, DispatcherSetup, Endpoints};
pub use run::run;
