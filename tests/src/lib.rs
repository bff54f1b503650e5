//! Runs real webfill processes and checks them from outside: by the access log of a web server, the database,
//! `/proc`, exit codes and output.
//!
//! | module | contents |
//! |---|---|
//! | [`site`] | the crawled web, and its access log |
//! | [`workplace`] | a test's folder: seeds, mappings, store, state |
//! | [`run`] | one run of the binary |
//! | [`units`] | processes that are stopped, replaced and started by command lines, as on real machines |
//! | [`stored`], [`documents`], [`summary`], [`warc`] | the results of a run: in SQLite, in MongoDB, on standard output, in its archive |
//! | [`memory_limit`] | a machine with little memory |
//! | [`isolation`] | namespaces for tests that must not use the machine's network or disks |
//! | [`regulator`] | sites that change from night to night, with a ledger of all changes |
//! | [`waiting`] | waiting for a condition |
//! | [`wall_clock`] | processes with a wrong clock |
//! | [`name_server`], [`socks`] | a DNS server and a SOCKS proxy |
//!
//! The tests themselves are in the folders beside `src/`, such as `crawls/` and `fleet/`.

pub mod callers;
pub mod documentation;
pub mod documents;
pub mod isolation;
pub mod memory_limit;
pub mod name_server;
pub mod office;
pub mod process;
pub mod ratings;
pub mod receiver;
pub mod regulator;
pub mod run;
pub mod shelves;
pub mod site;
pub mod socks;
pub mod stored;
pub mod summary;
pub mod units;
pub mod waiting;
pub mod wall_clock;
pub mod warc;
pub mod workplace;

pub use rustix::process::Signal;
