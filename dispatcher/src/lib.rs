//! Intake, dedupe, frontier and dispatch of tasks.
//!
//! The dispatcher is the only process that knows every URL: [`intake`] judges it, the [`frontier`]
//! stores it in SQLite, [`dispatch`] decides when and to which supervisor it goes. [`mod@core`] is
//! the state machine that combines them, and [`mod@run`] gives it sockets, threads and a clock.
//!
//! Everything is committed before it is acknowledged. A dispatcher that dies at any moment
//! continues from its last commit when it is started again.
//!
//! The core is public for the simulation (`tests/simulation/`), which drives it with simulated time
//! and messages instead of [`mod@run`].

// Printed is by `say!` and `terminal::stdout`, which let no control characters through.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod application_limits;
mod audit;
mod backends;
mod backoff_table;
mod caller;
mod change_reader;
mod clock;
mod config;
mod content_changes;
pub mod control;
mod core;
mod crawl_registry;
mod delivery;
mod dispatch;
pub mod excluded_sites;
mod extraction_health;
mod fair_queue;
mod feeders;
mod firehose;
pub mod frontier;
mod health;
mod http;
mod in_words;
mod incoming;
pub mod intake;
pub mod local_crawl;
pub mod local_notifications;
mod mappings;
mod metrics;
mod outgoing;
mod patience;
mod permits;
mod postponed;
mod reload;
mod request_reader;
mod requester;
mod retention;
mod retry_table;
pub mod revisit;
mod rights;
pub mod row_lists;
mod run;
pub mod run_changes;
pub mod scope;
mod seen;
mod site_state;
mod store_writer;
mod task_told;
mod thread_end;
mod watch_sources;

pub use crate::core::{Core, CoreSettings};
pub use application_limits::ApplicationLimits;
pub use audit::Audited;
pub use backoff_table::BackoffTable;
pub use caller::Caller;
pub use config::{DispatcherConfig, DispatcherSetup, Endpoints};
pub use dispatch::GroupBounds;
pub use feeders::FeederSetup;
pub use mappings::Mappings;
pub use outgoing::{Client, Committed, OutgoingMessage};
pub use patience::Patience;
pub use reload::{ReadAgain, Reloaded};
pub use requester::{Requester, Way, Who};
pub use retry_table::RetryTable;
pub use run::run;
pub use store_writer::{BackfillWrite, SiteStatesWrite, StoreWrite};
pub use watch_sources::{WatchSources, WatchesConfig};
