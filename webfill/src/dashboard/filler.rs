//! Runs `webfill fill` for tables that users drop on the dashboard. The runs end with this process.

use std::path::{Path, PathBuf};

use webfill_dashboard::{FillRun, Filler};
use webfill_service::ExitStatus;

use crate::mcp::Fills;

/// Starts `webfill fill` for tables dropped on the dashboard, and reports the states of these runs.
#[derive(Debug)]
pub struct TableFiller {
    config: Option<PathBuf>,
    fills: Fills,
}

impl TableFiller {
    /// `config` is the settings file of the runs.
    pub fn new(config: Option<PathBuf>) -> TableFiller {
        TableFiller {
            config,
            fills: Fills::default(),
        }
    }
}

impl Filler for TableFiller {
    fn start(&self, table: &Path, contact: Option<&str>) -> Result<(), String> {
        let config = self.config.as_deref();
        let config = config.map(|config| format!("--config={}", config.display()));
        let contact = contact.map(|contact| format!("--contact={contact}"));
        let mut arguments: Vec<String> = config.into_iter().chain(contact).collect();
        let path = table
            .to_str()
            .ok_or("the path of the folder is not UTF-8")?;
        arguments.extend([String::from("--"), path.to_owned()]);
        let name = table.file_name().unwrap_or_default().to_string_lossy();
        let started = self.fills.start(table, &name, &arguments, false);
        started.map(drop).map_err(|fault| fault.message)
    }

    fn run_state(&self, table: &Path) -> Option<FillRun> {
        let state = self.fills.get(table)?.state.borrow().clone();
        Some(match state.end {
            None => FillRun::Running,
            Some(end) if end.code == Some(ExitStatus::Done.code().into()) => FillRun::Ended,
            Some(end) => FillRun::Failed(end.said),
        })
    }
}
