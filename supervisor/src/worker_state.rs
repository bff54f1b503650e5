//! The supervisor's core's view of one of its workers. The operating system's process is
//! [`crate::worker_process`]'s.

use std::collections::HashSet;

use webfill_wire::{CrawlKey, Task};

#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    /// How often the worker's process was started; distinguishes messages of a dead process from those of the present
    /// one.
    pub(crate) incarnation: u32,
    /// The process has reported that it takes tasks.
    pub(crate) ready: bool,
    /// Tasks that are sent once the process is ready.
    pub(crate) waiting: Vec<Task>,
    /// Crawls whose settings were sent to the present process.
    pub(crate) crawls: HashSet<CrawlKey>,
    /// Sites whose tasks the former process held when it died. It may have requested pages of them
    /// until its death, so the next process must keep the delay from its own start on.
    pub(crate) inherited: Vec<String>,
}
