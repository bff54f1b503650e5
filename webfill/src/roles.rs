//! The subcommands `dispatcher`, `supervisor`, `worker` and `read-document`. Each turns its flags, and settings if it
//! has any, into the configuration of its library crate, and runs it.

mod dispatcher;
mod process;
mod supervisor;
mod worker;

pub use dispatcher::{dispatcher_settings, run_dispatcher, to_distributed_mappings};
pub use supervisor::run_supervisor;
pub use worker::{read_document, run_worker};
