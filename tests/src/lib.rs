//! Drives real webfill processes and judges them from outside: by the access log of a web server,
//! by the database, by `/proc`, by exit codes and what is printed.
//!
//! [`site`] is the web that is crawled, [`workplace`] the folder that a test crawls in, [`run`] one
//! run of the binary, [`stored`], [`documents`] and [`summary`] what it left behind, [`isolation`]
//! the namespaces of tests that must not touch the machine's network or disks, [`name_server`] who
//! answers for names there, [`socks`] a proxy. The tests themselves are in `crawls/`.

pub mod documentation;
pub mod documents;
pub mod isolation;
pub mod name_server;
pub mod process;
pub mod run;
pub mod site;
pub mod socks;
pub mod stored;
pub mod summary;
pub mod workplace;

pub use rustix::process::Signal;
