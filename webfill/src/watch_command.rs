//! `webfill watch`: crawls that are run again and again, by the dispatcher of a fleet, or by
//! `run FILE`, which needs nothing but this machine.

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
    /// Add a watch to a running fleet, or change the one of its name
    Add(WatchAddOptions),
    /// List the watches of a running fleet
    List(WatchListOptions),
    /// Show a watch of a running fleet, and its last runs
    Show(WatchShowOptions),
    /// Run a watch on this machine, whenever it is due or once; or a watch of a running fleet, now
    Run(RunOptions),
    /// No further run begins until it is resumed; one that is under way goes to its end
    Pause(WatchNameOptions),
    /// Go on with a paused watch
    Resume(WatchNameOptions),
    /// Forget a watch; what it has found and the records of its runs stay
    Remove(WatchNameOptions),
    /// Feed a run; started by a dispatcher, never by hand
    #[command(hide = true)]
    Feed(FeedOptions),
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// A watch as a JSON file, whose relative paths begin at its folder; or the name of a watch of a
    /// running fleet
    #[arg(value_name = "FILE|NAME")]
    pub watch: String,
    /// On this machine: run it now, and end with the exit code of the crawl
    #[arg(long)]
    pub once: bool,
    /// On this machine: what is printed on standard output at the end of a run
    #[arg(long, value_enum, default_value = "human")]
    pub summary: SummaryFormat,
    /// On this machine: what is shown on standard error meanwhile
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressStyle,
    /// When the run was due, in milliseconds since the epoch
    #[arg(long, hide = true, requires = "once")]
    pub due_ms: Option<i64>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Of a fleet: the dispatcher's answer as it is
    #[arg(long)]
    pub json: bool,
}

impl RunOptions {
    /// The file of a watch that is run on this machine; `None` if it is one of a fleet.
    fn file(&self) -> Option<PathBuf> {
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
        WatchCommand::Run(options) => match options.file() {
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
            crawl::feed_run(&config, &endpoint, &watch, run, local::typed)
        }
    }
}
