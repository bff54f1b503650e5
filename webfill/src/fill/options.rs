//! The flags of `webfill fill`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use webfill_service::Fault;
use webfill_wire::Lane;

use super::project::Project;
use crate::cli::{ProgressStyle, parse_options_only};
use crate::crawl::{CrawlOptions, settings_with_flags};
use crate::settings::Settings;

/// The options that choose a collection of documents. They have no effect if the table is a file.
const OF_COLLECTION: [&str; 3] = ["records", "records_collection", "records_query"];

/// The options of fetching on this machine. They have no effect if a fleet fetches the pages.
const OF_THIS_MACHINE: [&str; 8] = [
    "contact",
    "delay",
    "workers",
    "ignore_robots",
    "allow_private_networks",
    "proxy",
    "resolve",
    "ca_file",
];

/// The options of a fleet. They have no effect if this machine fetches the pages.
const OF_FLEET: [&str; 3] = ["keys", "store", "app"];

#[derive(Debug, Clone, Args)]
pub struct FillOptions {
    /// Table to complete, such as books.csv
    #[arg(required_unless_present = "records")]
    pub table: Option<PathBuf>,
    #[command(flatten)]
    pub collection: CollectionOptions,
    /// Column of the id [default: found by its name and values]
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Columns of links, separated by commas [default: those whose cells are URLs]
    #[arg(long, value_name = "COLUMNS")]
    pub url: Vec<String>,
    /// Columns to fill, separated by commas [default: all with gaps, except the id and the links]
    #[arg(long, value_name = "COLUMNS")]
    pub fields: Vec<String>,
    /// Columns to leave unchanged, separated by commas
    #[arg(long, value_name = "COLUMNS")]
    pub keep: Vec<String>,
    /// Pages of each site and kind of URL to learn from; rows with the most known values first
    #[arg(
        long,
        value_name = "N",
        default_value_t = 30,
        value_parser = crate::cli::whole_number(2..=400_u16),
        allow_negative_numbers = true
    )]
    pub sample: u16,
    /// Fill only values that are right with at least this probability
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = parse_share)]
    pub precision: f64,
    /// Rows without gaps to compare with their pages
    #[arg(long, value_enum, default_value_t)]
    pub check: RowsToCheck,
    /// Edited file of doubts: values marked `accept` are written
    #[arg(long, value_name = "FILE")]
    pub doubts: Option<PathBuf>,
    /// HTML report, such as books.html: coverage and precision, doubts, examples
    #[arg(long, value_name = "FILE", value_parser = parse_report_name)]
    pub report: Option<PathBuf>,
    /// Show how the columns are understood, and the plan; request and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub web: FillWebOptions,
}

/// Says what to do if a table is named by its URL, which would otherwise be a missing file.
pub fn require_file_name(table: &Path) -> Result<(), Fault> {
    let name = table.to_string_lossy();
    match name.starts_with("http://") || name.starts_with("https://") {
        true => Err(Fault::usage(format!(
            "{name} is a URL, and a table is a file: download it, and give the name of the file"
        ))),
        false => Ok(()),
    }
}

/// Which rows without gaps are fetched too, to check their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum RowsToCheck {
    /// Only the rows to learn from, and no columns without gaps
    None,
    /// Some rows of each site
    #[default]
    Sample,
    /// All rows of sites where a column reaches --precision
    All,
}

/// How pages are fetched, as by `webfill crawl`.
#[derive(Debug, Clone, Args)]
pub struct FillWebOptions {
    /// Settings file; flags and WEBFILL_ variables override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Fetch the pages with a running fleet; address of its dispatcher's tasks socket, or several separated by commas
    #[arg(long, value_name = "tcp://HOST:PORT")]
    pub dispatcher: Option<String>,
    /// Folder of keys (see `webfill keys`); needed for a dispatcher on another machine
    #[arg(long, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// Store of the fleet, which keeps the pages [default: the setting `store`]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Application id of the requests to the fleet
    #[arg(long, value_name = "ID", default_value = "fill", value_parser = crate::cli::parse_id)]
    pub app: String,
    /// URL of a page that explains the crawl, sent in the user agent; required for public addresses
    #[arg(long, value_name = "URL", value_parser = crate::cli::parse_contact)]
    pub contact: Option<String>,
    /// Seconds between two requests to a site without a `Crawl-delay` in its robots.txt [default: 15]
    #[arg(long, value_name = "SECONDS", value_parser = crate::cli::parse_seconds, allow_negative_numbers = true)]
    pub delay: Option<f64>,
    /// How pages are fetched; `browser` runs their scripts in Chromium first [default: http]
    #[arg(long, value_name = "http|browser")]
    pub lane: Option<Lane>,
    /// Worker processes [default: one per core; in the lane browser, one]
    #[arg(long, value_name = "N", value_parser = crate::cli::whole_number(1..=999_u16), allow_negative_numbers = true)]
    pub workers: Option<u16>,
    /// Skip robots.txt; only for loopback and private addresses
    #[arg(long)]
    pub ignore_robots: bool,
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
    /// How long to wait for dead and failing sites before their URLs fail: 90s, 15m, 6h [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::parse_duration, allow_hyphen_values = true)]
    pub patience: Option<Duration>,
    /// Fetch pages again if they are older than this: 90s, 15m, 2h, 1d [default: never]
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::parse_age, allow_hyphen_values = true)]
    pub refresh_after: Option<Duration>,
    /// Progress display on standard error
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressStyle,
}

impl FillOptions {
    /// Refuses a typed option that has no effect on this table or without a fleet. Variables of the environment are not
    /// refused, because they may be set for other commands.
    pub fn refuse_options_without_effect(matches: &ArgMatches) -> Result<(), String> {
        let typed = |ids: &[&str]| {
            let is_typed = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
            let id = ids.iter().find(is_typed);
            id.map(|id| format!("--{}", id.replace('_', "-")))
        };
        let table = matches.get_one::<PathBuf>("table");
        if let Some((table, flag)) = table.zip(typed(&OF_COLLECTION)) {
            return Err(format!(
                "{flag} has no effect on a file: leave it out, or leave out {} to complete a collection",
                table.display()
            ));
        }
        let has_fleet = matches.contains_id("dispatcher");
        match has_fleet {
            true => typed(&OF_THIS_MACHINE).map_or(Ok(()), |flag| {
                Err(format!(
                    "{flag} has no effect with --dispatcher: leave it out, because the fleet has its own settings"
                ))
            }),
            false => typed(&OF_FLEET).map_or(Ok(()), |flag| {
                Err(format!(
                    "{flag} has no effect without a fleet: leave it out, or name the fleet with --dispatcher tcp://HOST:PORT"
                ))
            }),
        }
    }
}

impl FillWebOptions {
    /// The settings with these flags, checked as those of the crawl that will fetch the pages.
    pub fn settings(&self, project: &Project) -> Result<Settings, Fault> {
        if self.dispatcher.is_none() {
            let crawl = self.crawl_options(project, &project.seeds_file())?;
            return settings_with_flags(&crawl);
        }
        let settings = Settings::load(self.config.as_deref())?;
        settings.validate()?;
        Ok(settings)
    }

    /// The options of a crawl that fetches the URLs of a file and keeps the pages. The crawl follows no links and
    /// extracts nothing. Mappings are learned from the pages later, and read them then.
    pub fn crawl_options(&self, project: &Project, seeds: &Path) -> Result<CrawlOptions, Fault> {
        let options = parse_options_only(["--keep-bodies", "--follow", "none"]);
        let mut crawl: CrawlOptions = options.map_err(Fault::error)?;
        let mine = self.clone();
        crawl.seeds = Some(seeds.to_owned());
        crawl.seeds_vary = true;
        crawl.crawl = Some(Project::CRAWL.to_owned());
        crawl.app = Project::APP.to_owned();
        crawl.mappings = Some(project.no_mappings_folder());
        crawl.state = Some(project.state_folder());
        crawl.store = Some(project.store_uri());
        crawl.config = mine.config;
        crawl.contact = mine.contact;
        crawl.delay = mine.delay;
        crawl.lane = mine.lane;
        crawl.workers = mine.workers;
        crawl.ignore_robots = mine.ignore_robots;
        crawl.allow_private_networks = mine.allow_private_networks;
        crawl.proxy = mine.proxy;
        crawl.resolve = mine.resolve;
        crawl.ca_file = mine.ca_file;
        crawl.patience = mine.patience;
        crawl.refresh_after = mine.refresh_after;
        crawl.progress = mine.progress;
        Ok(crawl)
    }
}

/// Parses the name of a report file. Its ending distinguishes it from a table.
fn parse_report_name(text: &str) -> Result<PathBuf, String> {
    match text.ends_with(".html") {
        true => Ok(PathBuf::from(text)),
        false => Err("the name of a page ends in .html, such as books.html".into()),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.5..1.0).contains(&share) => Ok(share),
        _ => Err("not a share from 0.5 to below 1, such as 0.95".into()),
    }
}

#[derive(Debug, Clone, Args)]
pub struct CollectionOptions {
    /// MongoDB database of a collection to complete, instead of TABLE
    #[arg(
        long,
        value_name = "URI",
        env = "WEBFILL_RECORDS",
        hide_env_values = true
    )]
    pub records: Option<String>,
    /// Collection to complete; found values are written to it, existing ones stay
    #[arg(long, value_name = "NAME")]
    pub records_collection: Option<String>,
    /// Only documents that match this query, in extended JSON [default: {}]
    #[arg(long, value_name = "JSON")]
    pub records_query: Option<String>,
}
