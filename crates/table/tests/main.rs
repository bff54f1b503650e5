//! Tests of tables in all formats.
//!
//! One program, because each links all that it tests.

mod common;
mod hostile;
mod parquet;
mod reading;
mod understanding;
mod writing;
mod xlsx;
