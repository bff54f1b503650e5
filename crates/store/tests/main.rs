//! Tests of both stores as a user of the crate opens them. MongoDB is a real server.
//!
//! The tests are one program, because each program would link everything that it tests.

mod conformance;
mod mongodb;
mod mongodb_browse;
mod mongodb_connections;
mod mongodb_dataset;
mod mongodb_faults;
mod mongodb_journal;
mod mongodb_page_log;
mod mongodb_refusals;
mod mongodb_standby;
mod sqlite;
mod sqlite_files;
