//! Tests of mappings as a user of the crate writes and applies them.
//!
//! One program, because each links all that it tests.

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
