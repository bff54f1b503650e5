//! One worker slot, as the supervisor's decisions see it.

use std::collections::HashSet;

use webfill_wire::{CrawlKey, Task};

#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Counts the starts of its process.
    pub(crate) incarnation: u32,
    /// The process has said that it is ready.
    pub(crate) ready: bool,
    /// Tasks that wait for it to be ready.
    pub(crate) waiting: Vec<Task>,
    /// Crawls that it has been told of.
    pub(crate) crawls: HashSet<CrawlKey>,
    /// Sites that the process before may have been asking when it died.
    pub(crate) inherited: Vec<String>,
}
