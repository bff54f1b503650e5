//! Tests of tables in all formats.
//!
//! The tests are one program, because each program would link the whole crate again.

mod common;
mod hostile;
mod parquet;
mod reading;
mod understanding;
mod writing;
mod xlsx;
