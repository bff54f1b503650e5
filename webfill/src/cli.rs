//! The command line: subcommands and their flags. The doc comments are the help texts.

mod export;
mod mapping;
mod roles;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use webfill_service::ExitStatus;
use webfill_store::DatasetName;
use webfill_wire::{Follow, Lane};

use crate::audit::AuditOptions;
use crate::backup::BackupOptions;
use crate::changes::ChangesOptions;
use crate::crawl::{FailOn, RetriedEnd, WatchedRun};
use crate::dashboard::DashboardOptions;
use crate::dataset::DatasetOptions;
use crate::demand::{
    ActionOptions, CrawlOptions as CrawlActionOptions, DrainOptions, DumpOptions, FeedOptions,
    PruneOptions, ReloadOptions, RetryOptions, SiteOptions, SitesOptions, StatusOptions,
    WhyOptions,
};
use crate::extract::ExtractOptions;
use crate::fill::FillOptions;
use crate::health::HealthOptions;
use crate::keys_command::KeysCommand;
use crate::lists::ListsOptions;
use crate::manual::ManualOptions;
use crate::seeds::ListSeparator;
use crate::settings::limits::check_contact;
use crate::trace::TraceOptions;
use crate::watch_command::WatchCommand;
pub use export::{ExportFormat, ExportOptions, ExportWhat};
pub use mapping::{
    KnownRecordsOptions, MappingCommand, MappingLearnOptions, MappingOutputOptions,
    MappingRepairOptions, MappingSaveOptions, MappingTestOptions, PageFetchOptions, ReportFormat,
    TrialFormat,
};
pub use roles::{DispatcherOptions, ReadDocumentOptions, SupervisorOptions, WorkerOptions};

/// Complete a dataset from the web, politely.
#[derive(Debug, Parser)]
#[command(
    name = "webfill",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Crawl on this machine, with all processes included
    ///
    /// The first Ctrl-C drains the crawl: fetches in flight finish. The second stops it at once. Run the same command
    /// again, with the same --state and --crawl, to resume.
    Crawl(Box<CrawlOptions>),
    /// Complete a table from the pages that its rows link to
    ///
    /// Mappings are learned from the rows that know most; the rest of the pages is fetched only for columns that they
    /// are read for precisely enough. For books.csv this writes books.filled.csv, books.evidence.jsonl and .parquet
    /// (where each value comes from), and books.doubts.csv (known values that their pages contradict). Run the same
    /// command again to resume it; pages, mappings and answers are kept in books.webfill/.
    Fill(Box<FillOptions>),
    /// Serve a small web of four sites on loopback and complete a table from it
    ///
    /// Prints the command, which you can run again in the folder with your own flags.
    Demo(DemoOptions),
    /// Send crawl requests to a running dispatcher
    ///
    /// A crawl request is a JSON object with the keys of Scrapy Cluster. Exits with 0 when all requests are accepted
    /// and durable, and with 1 if some were refused; these are listed with line and reason.
    Feed(FeedOptions),
    /// Show pending tasks of an application or of one crawl
    Info(ActionOptions),
    /// Stop a crawl for good: drop its pending tasks and accept no more
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
    /// which takes as long as their longest fetch. It exits with 1 if one of them was lost meanwhile; its tasks are
    /// not lost.
    Drain(DrainOptions),
    /// Reload the mappings and some settings of a running dispatcher
    ///
    /// If anything has a fault, nothing changes, and the answer says file, line and JSON path.
    Reload(ReloadOptions),
    /// Show or set the rules for one site
    ///
    /// Without an option it shows the current rules and the state of the site.
    Site(SiteOptions),
    /// List sites with their states: which are backing off, until when and why
    Sites(SitesOptions),
    /// Explain where a URL is in the crawls of a fleet and what it is waiting for
    ///
    /// For each crawl that knows the URL: its outcome if it is done, the supervisor that has it and since when, or
    /// what it is waiting for and how many tasks are before it. A URL that no crawl knows is judged as if it were
    /// fed.
    Why(WhyOptions),
    /// Show the history of a URL from the dispatcher, the store and the logs
    ///
    /// In chronological order, with what each process recorded.
    Trace(TraceOptions),
    /// Stream results and notifications of a fleet, one JSON object per line
    ///
    /// A subscriber that is slow or disconnected misses messages, and never slows down the fleet. `webfill export
    /// pages --follow` misses nothing.
    Dump(DumpOptions),
    /// Show the health of mappings: which fields are found less often, and since when
    Health(HealthOptions),
    /// List changes on pages
    Changes(ChangesOptions),
    /// Show how far lists of rows were read, and which of their rows are gone
    ///
    /// Everything is read from the store: a dispatcher keeps no lists. For a fleet, run this where its store can be
    /// reached, and give `--store` the value of the fleet's `store` setting.
    Lists(ListsOptions),
    /// Export pages, records or changes as JSON lines, CSV or Parquet
    Export(ExportOptions),
    /// Run mappings again on the kept pages of a crawl, without fetching
    Extract(ExtractOptions),
    /// Back up the dispatcher's file and the store while the fleet is running
    ///
    /// A store in MongoDB is not copied: back it up with the tools of MongoDB.
    Backup(BackupOptions),
    /// Show who fed, changed or was refused what
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

#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("of_records").args(["seeds", "records"]).multiple(true)))]
pub struct CrawlOptions {
    /// URLs to start from
    pub urls: Vec<String>,
    /// Seeds and records: one URL per line, JSON lines, or CSV with a header; `-` for standard input; may be .gz
    #[arg(long, value_name = "FILE")]
    pub seeds: Option<PathBuf>,
    /// Dataset of the records [default: the seeds file's name without endings;
    /// database.collection for --records; stdin for a pipe]
    ///
    /// A name has 1 to 200 bytes, without `/` and control characters. Crawls with the same dataset share its records.
    #[arg(long = "dataset", value_name = "NAME")]
    pub dataset_name: Option<DatasetName>,
    #[command(flatten)]
    pub dataset: DatasetOptions,
    /// Separator of list values in a CSV cell, such as `;`, for fields that are lists in their mapping
    ///
    /// Write `\;` for a separator that belongs to a value. A cell that is a JSON list is read as one. Cells of other
    /// fields are texts, whatever characters they contain.
    #[arg(long, value_name = "TEXT", requires = "seeds")]
    pub list_separator: Option<ListSeparator>,
    /// Settings file; flags and WEBFILL_ variables override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of mapping files [default: etl-mappings]
    #[arg(long, value_name = "DIR")]
    pub mappings: Option<PathBuf>,
    /// Store of records, pages and crawls: sqlite:FILE or mongodb://... [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Cache of robots.txt files and site clocks [default: the store]
    #[arg(long, value_name = "URI")]
    pub cache: Option<String>,
    /// State folder: the dispatcher's files, sockets and logs [default: .webfill]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// How pages are fetched; `browser` runs their scripts in Chromium first [default: http]
    #[arg(long, value_name = "http|browser")]
    pub lane: Option<Lane>,
    /// Worker processes [default: one per core; in the lane browser, one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=999))]
    pub workers: Option<u16>,
    /// Concurrent fetches per worker [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: Option<u32>,
    /// Maximum link depth; seeds have depth 0
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    pub depth: u16,
    /// Seconds between two requests to a site without a `Crawl-delay` in its robots.txt [default: 15]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub delay: Option<f64>,
    /// Skip robots.txt; only for loopback and private addresses
    #[arg(long)]
    pub ignore_robots: bool,
    /// URL of a page that explains the crawl, sent in the user agent; required for public addresses
    #[arg(long, value_name = "URL", value_parser = contact)]
    pub contact: Option<String>,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    pub allow_private_networks: bool,
    /// HTTP(S) or SOCKS5 proxy for all fetches; proxy variables of the environment are ignored
    #[arg(long, value_name = "URL")]
    pub proxy: Option<String>,
    /// Connect to ADDR instead of resolving HOST, as in curl; repeatable; `*` matches every host
    #[arg(long, value_name = "HOST:PORT:ADDR[:PORT]")]
    pub resolve: Vec<String>,
    /// PEM file of certificate authorities to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Folder for WARC files of everything that is fetched [default: nothing is archived]
    #[arg(long, value_name = "DIR")]
    pub warc: Option<PathBuf>,
    /// Read documents as pages, too: PDF, DOCX, XLSX, XLS, ODT, ODS, RTF, plain text
    #[arg(long)]
    pub documents: bool,
    /// Folder for the original files of documents, one copy each; implies --documents [default: none are kept]
    #[arg(long, value_name = "DIR")]
    pub keep_documents: Option<PathBuf>,
    /// Keep page bodies, so that `webfill extract` can read them again without fetching
    #[arg(long)]
    pub keep_bodies: bool,
    /// Detect new, changed, removed and returned pages; `webfill changes` lists them
    #[arg(long)]
    pub changes: bool,
    /// Links to follow: those that mappings select with `url_parsers`, all, or none
    #[arg(long, value_name = "mapped|all|none", value_parser = follow, default_value = "mapped")]
    pub follow: Follow,
    /// Read the sitemaps and feeds of the seeds' sites and crawl the pages that they list as seeds
    #[arg(long)]
    pub sitemaps: bool,
    /// Crawl only these domains and their subdomains; repeatable, or separated by commas
    #[arg(long, value_name = "DOMAIN", value_delimiter = ',')]
    pub allowed_domains: Vec<String>,
    /// Crawl only URLs that match one of these patterns; repeatable
    #[arg(long, value_name = "REGEX")]
    pub allow_regex: Vec<String>,
    /// Skip URLs that match one of these patterns, even if they are allowed; repeatable
    #[arg(long, value_name = "REGEX")]
    pub deny_regex: Vec<String>,
    /// Skip URLs with these path extensions, instead of the built-in list of images, archives and the like
    #[arg(long, value_name = "EXT", value_delimiter = ',')]
    pub deny_extensions: Option<Vec<String>>,
    /// Maximum number of pages of one site
    #[arg(long, value_name = "N")]
    pub domain_max_pages: Option<u64>,
    /// Skip the domains in this file, or its first N: one per line, or `rank,domain`; may be .gz or .zip
    #[arg(long, value_name = "FILE[:N]")]
    pub exclude_sites: Option<String>,
    /// Application id
    #[arg(long, value_name = "ID", default_value = "local", value_parser = id)]
    pub app: String,
    /// Crawl id; an existing id resumes that crawl [default: a new id]
    #[arg(long, value_name = "ID", value_parser = id)]
    pub crawl: Option<String>,
    /// Re-queue tasks of --crawl with these outcomes or HTTP statuses first, such as dns_error,503
    #[arg(
        long,
        value_name = "OUTCOME",
        value_delimiter = ',',
        requires = "crawl"
    )]
    pub retry: Vec<RetriedEnd>,
    /// Stop gracefully after N pages
    #[arg(long, value_name = "N")]
    pub max_pages: Option<u64>,
    /// Stop gracefully after this time: 90s, 15m, 2h, 1d
    ///
    /// Waiting for requests of earlier processes to end does not count.
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub max_time: Option<std::time::Duration>,
    /// How long to wait for dead and failing sites before their URLs fail: 90s, 15m, 6h [default: 2m]
    #[arg(long, alias = "max-rest", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub patience: Option<std::time::Duration>,
    /// Write unreachable records to this CSV file at the end: id, url, outcome, status_code, site, why
    #[arg(long, value_name = "FILE")]
    pub dead: Option<PathBuf>,
    /// Refresh pages, and the fields they filled, that are older than this: 90s, 15m, 2h, 1d [default: never]
    ///
    /// A finished crawl reads its seeds again from the start. A value of the input that a page has replaced does not
    /// return unless you change it. `--max-pages` and `--domain-max-pages` count the pages of all runs of a crawl.
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub refresh_after: Option<std::time::Duration>,
    /// Each run gives other seeds, and it is no surprise that they have changed. No flag: `webfill fill` sets it.
    #[arg(skip)]
    pub seeds_vary: bool,
    /// Send conditional requests for stored pages [default: with --refresh-after]
    #[arg(long, value_name = "true|false")]
    pub conditional: Option<bool>,
    /// Exit with 1 if one of these is true of the finished crawl; separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        default_value = "nothing-fetched,all-broken"
    )]
    pub fail_on: Vec<FailOn>,
    /// Format of the summary on standard output
    #[arg(long, value_enum, default_value = "human")]
    pub summary: SummaryFormat,
    /// Progress display on standard error
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressStyle,
    /// The run of a watch that this crawl is.
    #[arg(skip)]
    pub watched_run: Option<WatchedRun>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SummaryFormat {
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressStyle {
    /// A bar on a terminal; elsewhere a line after 5 s and then one a minute
    Auto,
    Bar,
    Plain,
    None,
}

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// New folder for the table and all outputs [default: one among the temporary files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// Prints one sentence for a mistyped command, or the whole help text for `--help`.
pub fn tell_usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // An error means that the reader has closed the pipe, which is not a fault.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            webfill_service::say!("{}", error.to_string().trim_end());
            ExitCode::from(ExitStatus::Usage.code())
        }
        _ => {
            webfill_service::say!("webfill: {}", usage_sentence(error));
            ExitCode::from(ExitStatus::Usage.code())
        }
    }
}

/// What is wrong with a typed command, in one sentence.
pub fn usage_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut sentence = lines
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    for line in
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
    {
        sentence.push_str(if line.starts_with("tip:") { "; " } else { " " });
        sentence.push_str(line.trim_start_matches("tip: "));
    }
    sentence
}

pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds between 0 and 86400".into()),
    }
}

/// `90s`, `15m`, `2h`, `1d`, or seconds alone.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    let millis = webfill_api::duration_ms(text)?;
    Ok(std::time::Duration::from_millis(millis as u64))
}

/// The same, but the unit is required, because its use cannot be undone.
pub fn age(text: &str) -> Result<std::time::Duration, String> {
    let age = duration(text)?;
    match text.ends_with(|last: char| last.is_ascii_alphabetic()) {
        true => Ok(age),
        false => Err(format!(
            "`{text}` has no unit: write {text}d for days, {text}h for hours or {text}s for seconds"
        )),
    }
}

fn follow(text: &str) -> Result<Follow, String> {
    text.parse()
}

/// Ids are parts of keys and of file names.
pub fn id(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    match text.len() {
        1..=128 if text.chars().all(allowed) => Ok(text.to_owned()),
        _ => Err("an id has 1 to 128 letters, digits, or - _ . :".into()),
    }
}

pub fn contact(text: &str) -> Result<String, String> {
    check_contact(text).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn help_says_what_each_command_and_each_argument_is() {
        use clap::CommandFactory;
        let mut untold = Vec::new();
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let name = command.get_name();
            if command.get_about().is_none() {
                untold.push(name.to_owned());
            }
            let visible = command.get_arguments().filter(|one| !one.is_hide_set());
            let silent = visible.filter(|one| one.get_help().is_none());
            untold.extend(silent.map(|one| format!("{name} {}", one.get_id())));
            let below = command.get_subcommands().filter(|one| !one.is_hide_set());
            commands.extend(below.cloned());
        }
        assert_eq!(untold, [""; 0]);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("90").unwrap().as_secs(), 90);
        assert_eq!(duration("15m").unwrap().as_secs(), 900);
        assert_eq!(duration("1.5h").unwrap().as_secs(), 5_400);
        for wrong in ["", "m", "-1s", "5 weeks", "1w", "infs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
