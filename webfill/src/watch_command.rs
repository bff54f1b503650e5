//! `webfill watch`: crawls that are run again and again. `run FILE` needs nothing but this machine.

mod local;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use webfill_startup::{ExitStatus, Fault};

use crate::cli::{ProgressStyle, SummaryFormat};

#[derive(Debug, Subcommand)]
pub enum WatchCommand {
    /// Run a watch on this machine, whenever it is due; or once, now
    Run(RunOptions),
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// The watch, as JSON; its relative paths begin at its folder
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Run it now, and end with the exit code of the crawl
    #[arg(long)]
    pub once: bool,
    /// What is printed on standard output at the end of a run
    #[arg(long, value_enum, default_value = "human")]
    pub summary: SummaryFormat,
    /// What is shown on standard error meanwhile
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressStyle,
    /// When the run was due, in milliseconds since the epoch
    #[arg(long, hide = true, requires = "once")]
    pub due_ms: Option<i64>,
}

pub fn run(command: WatchCommand) -> Result<ExitStatus, Fault> {
    match command {
        WatchCommand::Run(options) => local::run(&options.file, &options),
    }
}
