//! Feeds a bounded queue of tasks to worker processes and watches them.
//!
//! A supervisor asks its dispatcher for as many tasks as its queue has room for, gives each site
//! to one of its N workers, and passes their outcomes on. A worker that dies is started again;
//! what it held goes back to the dispatcher, and the page it worked on is blamed. Nothing is kept
//! on disk: a supervisor that dies leaves its leases to the dispatcher.
//!
//! [`supervisor`] is the core, which knows neither sockets nor processes nor clocks, so that it
//! can be simulated; [`mod@run`] gives it these.

mod config;
mod queue;
mod recalls;
mod run;
mod session;
mod slot;
pub mod supervisor;
mod unheard;
mod workers;

pub use config::{SupervisorConfig, SupervisorSetup};
pub use run::run;
