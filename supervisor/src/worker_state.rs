//! The view that the supervisor's core has of one of its workers. [`crate::worker_process`] has the operating
//! system's process.

use std::collections::HashSet;

use webfill_wire::{CrawlKey, Task};

#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    /// How often the worker's process was started. Distinguishes messages of a dead process from those of the present
    /// one.
    pub(crate) incarnation: u32,
    /// Whether the process has reported that it takes tasks.
    pub(crate) ready: bool,
    /// Tasks that are sent once the process is ready.
    pub(crate) waiting: Vec<Task>,
    /// Crawls whose settings were sent to the present process.
    pub(crate) crawls: HashSet<CrawlKey>,
    /// Sites whose tasks the former process held when it died. It may have requested their pages until its death, so
    /// the next process counts their delay from its own start.
    pub(crate) inherited: Vec<String>,
}
