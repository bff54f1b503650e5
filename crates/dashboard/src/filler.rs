//! The interface of a service that runs `webfill fill` on tables that visitors upload. The program around the dashboard
//! may offer one.

use std::path::Path;

/// Runs `webfill fill` on tables, one table at a time.
pub trait Filler: std::fmt::Debug + Send + Sync {
    /// Starts a run on a table. `contact` is the address of the page that explains the run to webmasters. The error is
    /// a text for users.
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
