//! A service that starts `webfill fill` for tables that visitors have dropped on the page. The surrounding program may
//! offer it.

use std::path::Path;

/// Starts one run at a time.
pub trait Filler: std::fmt::Debug + Send + Sync {
    /// Starts a run on a table. `contact` is the address of the page that explains the run to webmasters. The error is
    /// for people.
    fn start(&self, table: &Path, contact: Option<&str>) -> Result<(), String>;

    /// The state of the run on a table; `None` if this process has started none.
    fn run_state(&self, table: &Path) -> Option<FillRun>;
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FillRun {
    Running,
    Ended,
    /// The run has ended with this error.
    Failed(String),
}
