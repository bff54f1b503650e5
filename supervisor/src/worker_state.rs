//! What the supervisor knows about one of its workers for its decisions. The operating system's process is in
//! [`crate::worker_process`].

use std::collections::HashSet;

use webfill_wire::{CrawlKey, Task};

#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    /// How many times the worker's process was started. This number distinguishes messages of a dead process from those
    /// of the present one.
    pub(crate) incarnation: u32,
    /// Whether the process has reported that it takes tasks.
    pub(crate) ready: bool,
    /// Tasks that are sent as soon as the process is ready.
    pub(crate) waiting: Vec<Task>,
    /// Crawls whose settings were sent to the present process.
    pub(crate) crawls: HashSet<CrawlKey>,
    /// Sites whose tasks the former process held when it died. It may have sent requests to these sites until its
    /// death, so the next process counts their delays from its own start.
    pub(crate) inherited: Vec<String>,
}
