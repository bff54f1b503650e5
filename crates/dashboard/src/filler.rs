//! Starts `webfill fill` for tables that visitors have dropped: a service that the surrounding program may offer.

use std::path::Path;

/// Starts runs, one at a time.
pub trait Filler: std::fmt::Debug + Send + Sync {
    /// Starts a run on a table. `contact` is the page that explains it to webmasters. The error is for people.
    fn start(&self, table: &Path, contact: Option<&str>) -> Result<(), String>;

    /// The run on a table; `None` if this process has started none.
    fn run_state(&self, table: &Path) -> Option<FillRun>;
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FillRun {
    Running,
    Ended,
    /// It has ended with this error.
    Failed(String),
}
