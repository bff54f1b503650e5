//! Decides which pages are fetched, when and by which supervisor.
//!
//! [`intake`] judges each URL, the [`frontier`] keeps it in SQLite, and `dispatch` decides when and to which
//! supervisor it goes. [`mod@core`] is the state machine that combines them. Nothing here has a socket, a thread or a
//! clock: the dispatcher's process passes in messages and the time, and carries out the core's [`effects`], which
//! only a commit returns.
//!
//! Everything is committed before it is acknowledged. A process that dies at any moment continues from its last
//! commit when it is started again.
//!
//! The simulation (`tests/simulation/`) drives the core with simulated time and messages.

// Print only through `say!` and `terminal::printable_stdout`, because they escape control characters.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod application_limits;
mod backoff_table;
mod caller;
mod client;
pub mod control;
pub mod core;
pub mod counting;
mod crawl_registry;
mod dispatch;
pub mod effects;
pub mod excluded_sites;
pub mod frontier;
pub mod intake;
pub mod journal;
pub mod local_crawl;
mod mappings;
mod patience;
pub mod reload;
pub mod requester;
mod retry_table;
pub mod revisit;
pub mod rights;
pub mod scope;
mod seen;
mod site_state;
mod task_json;
pub mod watch_reports;
mod watch_sources;
mod wording;

pub use crate::core::{Core, CoreSettings, Environment};
pub use application_limits::ApplicationLimits;
pub use backoff_table::BackoffTable;
pub use caller::Caller;
pub use dispatch::GroupBounds;
pub use mappings::Mappings;
pub use patience::Patience;
pub use retry_table::RetryTable;
pub use watch_sources::{WatchSources, WatchesConfig};
