//! `webfill watch`: crawls that run repeatedly, by the dispatcher of a fleet or by `run FILE` on this machine alone.

mod local;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use webfill_service::{ExitStatus, Fault};

use crate::cli::{ProgressStyle, SummaryFormat};
use crate::crawl;
use crate::demand::{
    self, ConnectionOptions, WatchAddOptions, WatchListOptions, WatchNameOptions, WatchShowOptions,
};

#[derive(Debug, Subcommand)]
pub enum WatchCommand {
    /// Add a watch to a running fleet, or replace the one with its name
    Add(WatchAddOptions),
    /// List the watches of a running fleet
    List(WatchListOptions),
    /// Show a watch of a running fleet and its last runs
    Show(WatchShowOptions),
    /// Run a watch on this machine whenever it is due, or a watch of a running fleet now
    Run(RunOptions),
    /// Pause a watch: start no run until it is resumed; a current run finishes
    Pause(WatchNameOptions),
    /// Resume a paused watch
    Resume(WatchNameOptions),
    /// Remove a watch; its results and the records of its runs stay
    Remove(WatchNameOptions),
    /// Feed a run; started by a dispatcher, never by hand
    #[command(hide = true)]
    Feed(FeedOptions),
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// JSON file of a watch, with paths relative to its folder; or the name of a watch of a running fleet
    #[arg(value_name = "FILE|NAME")]
    pub watch: String,
    /// On this machine: run it once, now, and exit with the code of the crawl
    #[arg(long)]
    pub once: bool,
    /// On this machine: format of the summary on standard output after a run
    #[arg(long, value_enum, default_value = "human")]
    pub summary: SummaryFormat,
    /// On this machine: progress display on standard error
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressStyle,
    /// When the run was due, in milliseconds since the epoch
    #[arg(long, hide = true, requires = "once")]
    pub due_ms: Option<i64>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// With a fleet: print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

impl RunOptions {
    /// The file of a watch that is run on this machine; `None` if the watch belongs to a fleet.
    fn local_file(&self) -> Option<PathBuf> {
        let path = Path::new(&self.watch);
        let is_local = self.once || path.is_file() || self.watch.ends_with(".json");
        let is_of_fleet = self.connection.dispatcher.is_some();
        (is_local && !is_of_fleet).then(|| path.to_owned())
    }
}

#[derive(Debug, Args)]
pub struct FeedOptions {
    #[arg(long)]
    pub config: PathBuf,
    #[arg(long)]
    pub endpoint: String,
    #[arg(long)]
    pub watch: String,
    #[arg(long)]
    pub run: u64,
}

pub fn run(command: WatchCommand) -> Result<ExitStatus, Fault> {
    match command {
        WatchCommand::Add(options) => demand::watch_add(options),
        WatchCommand::List(options) => demand::watch_list(options),
        WatchCommand::Show(options) => demand::watch_show(options),
        WatchCommand::Run(options) => match options.local_file() {
            Some(file) => local::run(&file, &options),
            None => demand::watch_run(WatchNameOptions {
                name: options.watch,
                connection: options.connection,
                json: options.json,
            }),
        },
        WatchCommand::Pause(options) => demand::watch_pause(options),
        WatchCommand::Resume(options) => demand::watch_resume(options),
        WatchCommand::Remove(options) => demand::watch_remove(options),
        WatchCommand::Feed(options) => {
            let FeedOptions {
                config,
                endpoint,
                watch,
                run,
            } = options;
            crawl::feed_run(&config, &endpoint, &watch, run, local::crawl_options_of)
        }
    }
}
