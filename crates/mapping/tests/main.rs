//! Tests of mappings as a user of the crate writes and applies them.
//!
//! The tests are one program, because each program would link the whole crate again.

mod committed;
mod documents;
mod extraction;
mod feeds;
mod golden;
mod hostile;
mod linked_data;
mod loading;
mod near_misses;
mod pagination;
mod parallel_lists;
mod real_pages;
mod rows;
mod values;
