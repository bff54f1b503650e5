//! The command line: subcommands and their flags. The doc comments are the help texts.
//! This module depends on the modules of the commands. These use only what it re-exports from its submodules.

mod export;
mod mapping;
mod parsers;
mod roles;
mod styles;
mod usage;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::audit::AuditOptions;
use crate::backup::BackupOptions;
use crate::changes::ChangesOptions;
use crate::crawl::CrawlOptions;
use crate::dashboard::DashboardOptions;
use crate::demand::{
    ActionOptions, CrawlOptions as CrawlActionOptions, DrainOptions, DumpOptions, FeedOptions,
    PruneOptions, ReloadOptions, RetryOptions, SiteOptions, SitesOptions, StatusOptions,
    WhyOptions,
};
use crate::demo::DemoOptions;
use crate::extract::ExtractOptions;
use crate::fill::FillOptions;
use crate::health::HealthOptions;
use crate::keys_command::KeysCommand;
use crate::lists::ListsOptions;
use crate::manual::ManualOptions;
use crate::mcp::McpOptions;
use crate::trace::TraceOptions;
use crate::watch_command::WatchCommand;
pub use export::{ExportFormat, ExportOptions, ExportWhat};
pub use mapping::{
    KnownRecordsOptions, MappingCommand, MappingLearnOptions, MappingOutputOptions,
    MappingRepairOptions, MappingSaveOptions, MappingTestOptions, PageFetchOptions, ReportFormat,
    TrialFormat,
};
pub use parsers::{
    parse_age, parse_contact, parse_count, parse_duration, parse_follow, parse_id, parse_options,
    parse_options_only, parse_seconds, whole_number,
};
pub use roles::{DispatcherOptions, ReadDocumentOptions, SupervisorOptions, WorkerOptions};
pub use styles::{ProgressStyle, SummaryFormat};
pub use usage::{print_usage, usage_sentence};

/// Complete a dataset from the web, politely.
#[derive(Debug, Parser)]
#[command(
    name = "webfill",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Drain and end when this process is no longer the parent; for programs that start webfill
    #[arg(long, value_name = "PID", global = true, hide = true)]
    pub parent_process: Option<u32>,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the command line of this process.
    pub fn from_process_arguments() -> Result<Cli, clap::Error> {
        let mut command = Cli::command();
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        if let Some(fill) = matches.subcommand_matches("fill") {
            FillOptions::refuse_options_without_effect(fill)
                .map_err(|refusal| command.error(ErrorKind::ArgumentConflict, refusal))?;
        }
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Crawl on this machine, with all processes included
    ///
    /// The first Ctrl-C drains the crawl: fetches in flight finish. The second stops it immediately. To resume, run
    /// the same command again, with the same --state and --crawl.
    Crawl(Box<CrawlOptions>),
    /// Complete a table from the pages that its rows link to
    ///
    /// Mappings are learned from the rows with the most known values; further pages are fetched only for columns that
    /// are precise enough. For books.csv this writes books.filled.csv, books.evidence.jsonl and .parquet (the source
    /// of each value), and books.doubts.csv (known values that their pages contradict). To resume, run the same
    /// command again; pages, mappings and answers are kept in books.webfill/.
    Fill(Box<FillOptions>),
    /// Serve a small web of four sites on loopback and complete a table from it
    ///
    /// Prints the command. You can run it again in the folder with your own flags.
    Demo(DemoOptions),
    /// Send crawl requests to a running dispatcher
    ///
    /// A crawl request is a JSON object with the keys of Scrapy Cluster. Exits with 0 when all requests are accepted
    /// and durable, and with 1 if some were refused; these are listed with line and reason.
    Feed(FeedOptions),
    /// Show pending tasks of an application or of one crawl
    Info(ActionOptions),
    /// Stop a crawl permanently: drop its pending tasks and accept no more
    Stop(CrawlActionOptions),
    /// Pause a crawl until it is resumed
    Pause(CrawlActionOptions),
    /// Resume a paused crawl
    Resume(CrawlActionOptions),
    /// Re-queue finished tasks of a crawl
    ///
    /// Earlier attempts stay in the `tries` of the pages.
    Retry(RetryOptions),
    /// Delete finished crawls or old pages and free their disk space
    Prune(PruneOptions),
    /// Show the state of a fleet
    Status(StatusOptions),
    /// Drain supervisors: they finish their fetches and exit
    ///
    /// They return their other tasks to the dispatcher, which keeps running. The command waits until they have left,
    /// which takes as long as their longest fetch. It exits with 1 if one of them was lost in the meantime;
    /// its tasks are kept.
    Drain(DrainOptions),
    /// Reload the mappings and some settings of a running dispatcher
    ///
    /// If anything has a fault, nothing changes, and the answer names file, line and JSON path.
    Reload(ReloadOptions),
    /// Show or set the rules for one site
    ///
    /// Without an option it shows the current rules and the state of the site.
    Site(SiteOptions),
    /// List sites with their states, and the end and reason of each backoff
    Sites(SitesOptions),
    /// Explain the state of a URL in the crawls of a fleet, and why it waits
    ///
    /// For each crawl that knows the URL: its outcome if it is done; its supervisor and the start of the lease; or the
    /// reasons for waiting and the number of tasks before it. An unknown URL is judged as if it were fed.
    Why(WhyOptions),
    /// Show the history of a URL from the dispatcher, the store and the logs
    ///
    /// The steps are in chronological order, as each process recorded them.
    Trace(TraceOptions),
    /// Stream results and notifications of a fleet, one JSON object per line
    ///
    /// A subscriber that is slow or disconnected misses messages, and never slows down the fleet. `webfill export
    /// pages --follow` misses nothing.
    Dump(DumpOptions),
    /// Show the health of mappings: the fields that are found less often, and since when
    Health(HealthOptions),
    /// List changes of pages
    Changes(ChangesOptions),
    /// Show the progress of lists of rows, and the rows that are gone
    ///
    /// The command only reads the store. For a fleet, run it where the store is reachable, and pass the value of the
    /// fleet's `store` setting as `--store`.
    Lists(ListsOptions),
    /// Export pages, records or changes as JSON lines, CSV or Parquet
    Export(ExportOptions),
    /// Run mappings again on the kept pages of a crawl, without fetching
    Extract(ExtractOptions),
    /// Back up the dispatcher's file and the store while the fleet is running
    ///
    /// A store in MongoDB is not copied: back it up with the tools of MongoDB.
    Backup(BackupOptions),
    /// Show the audit log: actions with their users and results
    Audit(AuditOptions),
    /// Check, test, learn and repair mappings
    #[command(subcommand)]
    Mapping(MappingCommand),
    /// Create keys and manage the dispatcher's allow list
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Manage watches: crawls that run on a schedule
    #[command(subcommand)]
    Watch(WatchCommand),
    /// Serve the web interface for a store or a folder of mappings
    ///
    /// The dispatcher of a fleet serves its own, below `/dashboard/` of its `--http` address.
    Dashboard(DashboardOptions),
    /// Serve agents by the Model Context Protocol on standard input and output
    ///
    /// Agents get only the tools of the options that you give: --dispatcher to feed and query a fleet with the rights of
    /// its key, --store to read a store, --folder to complete tables. Agents start this command themselves: add it to
    /// their configuration.
    Mcp(McpOptions),
    /// Run the dispatcher of a fleet
    Dispatcher(DispatcherOptions),
    /// Run a supervisor of a fleet
    Supervisor(SupervisorOptions),
    /// Run a worker; started by a supervisor, never by hand
    #[command(hide = true)]
    Worker(WorkerOptions),
    /// Read one document; started by a worker, never by hand
    #[command(hide = true)]
    ReadDocument(ReadDocumentOptions),
    /// Read pages for the mapping editor; started by the dashboard, never by hand
    #[command(hide = true)]
    DashboardJob,
    /// Write manual pages and completions of shells, for packages
    #[command(hide = true)]
    Manual(ManualOptions),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_argument_has_a_help_text() {
        let mut undescribed = Vec::new();
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let name = command.get_name();
            if command.get_about().is_none() {
                undescribed.push(name.to_owned());
            }
            let visible = command.get_arguments().filter(|one| !one.is_hide_set());
            let silent = visible.filter(|one| one.get_help().is_none());
            undescribed.extend(silent.map(|one| format!("{name} {}", one.get_id())));
            let below = command.get_subcommands().filter(|one| !one.is_hide_set());
            commands.extend(below.cloned());
        }
        assert_eq!(undescribed, [""; 0]);
    }
}
