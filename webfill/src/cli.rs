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
use crate::dataset::DatasetOptions;
use crate::demand::{
    ActionOptions, CrawlOptions as CrawlActionOptions, DrainOptions, DumpOptions, FeedOptions,
    PruneOptions, ReloadOptions, RetryOptions, SiteOptions, SitesOptions, StatusOptions,
    WhyOptions,
};
use crate::desk::DeskOptions;
use crate::extract::ExtractOptions;
use crate::health::HealthOptions;
use crate::keys_command::KeysCommand;
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

/// Fills the gaps of a dataset from the web, politely.
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
    /// Crawl on this machine: a dispatcher, a supervisor and N workers as processes of their own
    Crawl(Box<CrawlOptions>),
    /// Serve a small site on loopback, crawl it, print the records; needs nothing
    Demo(DemoOptions),
    /// Feed crawl requests to a running dispatcher
    Feed(FeedOptions),
    /// Tell what is pending of an application, or of one of its crawls
    Info(ActionOptions),
    /// Stop a crawl for good: what is pending is purged, and no more is accepted
    Stop(CrawlActionOptions),
    /// Let a crawl rest: nothing of it is fetched until it is resumed
    Pause(CrawlActionOptions),
    /// Go on with a paused crawl
    Resume(CrawlActionOptions),
    /// Queue tasks of a crawl again that have ended
    Retry(RetryOptions),
    /// Drop finished crawls, with all that is known of their URLs, and give their space back
    Prune(PruneOptions),
    /// Tell how a fleet is doing
    Status(StatusOptions),
    /// Drain supervisors of a running fleet: they finish what they fetch, and end
    Drain(DrainOptions),
    /// Have a running dispatcher read its mappings and some settings again
    Reload(ReloadOptions),
    /// Tell or change what holds for one site in a running fleet
    Site(SiteOptions),
    /// List sites of a running fleet with their states: which rest until when, and why
    Sites(SitesOptions),
    /// Tell where a URL is in the crawls of a running fleet, and why
    Why(WhyOptions),
    /// Tell the story of a URL, step by step, out of the dispatcher, the store and the logs
    Trace(TraceOptions),
    /// Follow the firehose: what becomes of pages and crawls, one JSON object per line
    Dump(DumpOptions),
    /// Tell how the extractions of mappings are doing: which fields fall, since when
    Health(HealthOptions),
    /// Tell what has changed on pages
    Changes(ChangesOptions),
    /// Write the pages, records or changes of a store as JSON lines, CSV or Parquet
    Export(ExportOptions),
    /// Run mappings again over the pages of a crawl that were kept, without fetching
    Extract(ExtractOptions),
    /// Copy the dispatcher's file and the store into a folder, while the fleet is at work
    Backup(BackupOptions),
    /// Tell who has fed, changed or been refused what
    Audit(AuditOptions),
    /// Check, try and describe mappings
    #[command(subcommand)]
    Mapping(MappingCommand),
    /// Make keys, and say whom a dispatcher lets in
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Watches: crawls that are run again and again, by a schedule
    #[command(subcommand)]
    Watch(WatchCommand),
    /// Serve the desk, the web page of operators, over a store or a folder of mappings; the dispatcher of a
    /// fleet serves its own
    Desk(DeskOptions),
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
    /// Read pages for the workbench; started by the desk, never by hand
    #[command(hide = true)]
    DeskJob,
    /// Write manual pages and completions of shells, for packages
    #[command(hide = true)]
    Manual(ManualOptions),
}

#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("of_records").args(["seeds", "records"]).multiple(true)))]
pub struct CrawlOptions {
    /// URLs to begin with
    pub urls: Vec<String>,
    /// Seeds: a URL per line, JSON lines, or CSV with a header; `-` is standard input; .gz is read as such
    #[arg(long, value_name = "FILE")]
    pub seeds: Option<PathBuf>,
    /// The dataset that records belong to [default: the seeds file's name without endings;
    /// database.collection for --records; stdin for a pipe]
    #[arg(long = "dataset", value_name = "NAME")]
    pub dataset_name: Option<DatasetName>,
    #[command(flatten)]
    pub dataset: DatasetOptions,
    /// In CSV seeds, what stands between the values of fields that are lists by their mapping, such as `;`
    #[arg(long, value_name = "TEXT", requires = "seeds")]
    pub list_separator: Option<ListSeparator>,
    /// Settings file; flags and WEBFILL_ variables win over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of mapping files [default: etl-mappings]
    #[arg(long, value_name = "DIR")]
    pub mappings: Option<PathBuf>,
    /// Where records, pages and crawls are kept [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Where robots.txt files and site clocks are kept [default: the store]
    #[arg(long, value_name = "URI")]
    pub cache: Option<String>,
    /// Folder of the dispatcher's files, sockets and logs [default: .webfill]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// `browser`: pages are read when their scripts have run, in Chromium [default: http]
    #[arg(long, value_name = "http|browser")]
    pub lane: Option<Lane>,
    /// Worker processes; 0 is the default [default: one per core; in the lane browser, one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=999))]
    pub workers: Option<u16>,
    /// Fetches in flight per worker [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: Option<u32>,
    /// Link depth; seeds are 0
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    pub depth: u16,
    /// Seconds between two requests to a site whose robots.txt names none [default: 15]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub delay: Option<f64>,
    /// Do not ask for robots.txt; only honoured for loopback and private addresses
    #[arg(long)]
    pub ignore_robots: bool,
    /// Page that explains the crawl, sent in the user agent; required for public addresses
    #[arg(long, value_name = "URL", value_parser = contact)]
    pub contact: Option<String>,
    /// Permit loopback, private and link-local targets
    #[arg(long)]
    pub allow_private_networks: bool,
    /// HTTP(S) or SOCKS5 proxy for all fetches; the environment's proxy variables are not consulted
    #[arg(long, value_name = "URL")]
    pub proxy: Option<String>,
    /// HOST:PORT:ADDR[:PORT] as curl's, repeatable; `*` as HOST is a wildcard
    #[arg(long, value_name = "HOST:PORT:ADDR[:PORT]")]
    pub resolve: Vec<String>,
    /// PEM file of certificate authorities to trust beside the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Folder in which everything that is fetched is archived, as WARC files [default: nothing is archived]
    #[arg(long, value_name = "DIR")]
    pub warc: Option<PathBuf>,
    /// Take documents for pages, too: PDF, DOCX, XLSX, XLS, ODT, ODS, RTF, plain text
    #[arg(long)]
    pub documents: bool,
    /// Folder in which the bytes of documents are kept, once each; implies --documents [default: none are kept]
    #[arg(long, value_name = "DIR")]
    pub keep_documents: Option<PathBuf>,
    /// Keep the bodies of pages, so that `webfill extract` can read them again without fetching
    #[arg(long)]
    pub keep_bodies: bool,
    /// Look for changes: pages that are new, changed, gone or back are told by `webfill changes`
    #[arg(long)]
    pub changes: bool,
    /// Links followed: those of url_parsers, every link, or none
    #[arg(long, value_name = "mapped|all|none", value_parser = follow, default_value = "mapped")]
    pub follow: Follow,
    /// Read the sitemaps and feeds of seeds' sites, and the pages that they list as if they were seeds
    #[arg(long)]
    pub sitemaps: bool,
    /// Only these domains and their subdomains; repeatable or separated by commas
    #[arg(long, value_name = "DOMAIN", value_delimiter = ',')]
    pub allowed_domains: Vec<String>,
    /// Only URLs that match one of these patterns; repeatable
    #[arg(long, value_name = "REGEX")]
    pub allow_regex: Vec<String>,
    /// No URL that matches one of these patterns, allowed or not; repeatable
    #[arg(long, value_name = "REGEX")]
    pub deny_regex: Vec<String>,
    /// Path extensions not fetched, instead of the built-in list; repeatable or separated by commas
    #[arg(long, value_name = "EXT", value_delimiter = ',')]
    pub deny_extensions: Option<Vec<String>>,
    /// Pages of one site, at most
    #[arg(long, value_name = "N")]
    pub domain_max_pages: Option<u64>,
    /// Domains never crawled: one per line or `rank,domain`; of the first N; .gz and .zip are read as such
    #[arg(long, value_name = "FILE[:N]")]
    pub exclude_sites: Option<String>,
    /// Application id
    #[arg(long, value_name = "ID", default_value = "local", value_parser = id)]
    pub app: String,
    /// Crawl id; an id used before resumes that crawl [default: a fresh id]
    #[arg(long, value_name = "ID", value_parser = id)]
    pub crawl: Option<String>,
    /// First queue the crawl's tasks again that ended in these outcomes, or with these HTTP statuses; separated by commas
    #[arg(
        long,
        value_name = "OUTCOME",
        value_delimiter = ',',
        requires = "crawl"
    )]
    pub retry: Vec<RetriedEnd>,
    /// Stop politely after so many pages
    #[arg(long, value_name = "N")]
    pub max_pages: Option<u64>,
    /// Stop politely after this long: 90s, 15m, 2h, 1d
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub max_time: Option<std::time::Duration>,
    /// Wait so long for dead and failing sites, before their URLs end in their outcome: 90s, 15m, 6h [default: 2m]
    #[arg(long, alias = "max-rest", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub patience: Option<std::time::Duration>,
    /// At the end, list the records in this CSV file that are unreachable, each with its reason
    #[arg(long, value_name = "FILE")]
    pub dead: Option<PathBuf>,
    /// Fetch pages, and fields that they have filled, again after this long: 90s, 15m, 2h, 1d [default: never]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub refresh_after: Option<std::time::Duration>,
    /// Ask for stored pages on the condition that they have changed [default: with --refresh-after]
    #[arg(long, value_name = "true|false")]
    pub conditional: Option<bool>,
    /// End with 1 if one of these holds of the finished crawl; separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        default_value = "nothing-fetched,all-broken"
    )]
    pub fail_on: Vec<FailOn>,
    /// What is printed on standard output at the end
    #[arg(long, value_enum, default_value = "human")]
    pub summary: SummaryFormat,
    /// What is shown on standard error meanwhile
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
    /// A bar on a terminal, a plain line a minute elsewhere
    Auto,
    Bar,
    Plain,
    None,
}

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Where the records are kept [default: a temporary file]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Keep the temporary folder and say where it is
    #[arg(long)]
    pub keep: bool,
}

/// Prints one sentence for a mistyped command, or the whole text for `--help`.
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

/// The same, but with its unit: what it is for cannot be taken back.
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

fn contact(text: &str) -> Result<String, String> {
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
