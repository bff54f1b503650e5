//! The flags of `webfill crawl`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use webfill_store::DatasetName;
use webfill_wire::{Follow, Lane};

use super::retry::RetryEnd;
use super::run_record::WatchedRun;
use super::verdict::FailOn;
use crate::cli::{
    ProgressStyle, SummaryFormat, parse_contact, parse_count, parse_duration, parse_follow,
    parse_id, parse_seconds, whole_number,
};
use crate::dataset::DatasetOptions;
use crate::seeds::ListSeparator;

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
    /// `\;` is a separator within a value. A JSON list in a cell is read as a list. Other fields are always texts.
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
    #[arg(long, value_name = "N", value_parser = whole_number(0..=999_u16), allow_negative_numbers = true)]
    pub workers: Option<u16>,
    /// Concurrent fetches per worker [default: 64]
    #[arg(long, value_name = "N", value_parser = whole_number(1..=10_000_u32), allow_negative_numbers = true)]
    pub concurrency: Option<u32>,
    /// Maximum link depth; seeds have depth 0
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = whole_number(0..=u16::MAX),
        allow_negative_numbers = true
    )]
    pub depth: u16,
    /// Seconds between two requests to a site without a `Crawl-delay` in its robots.txt [default: 15]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_negative_numbers = true)]
    pub delay: Option<f64>,
    /// Skip robots.txt; only for loopback and private addresses
    #[arg(long)]
    pub ignore_robots: bool,
    /// URL of a page that explains the crawl, sent in the user agent; required for public addresses
    #[arg(long, value_name = "URL", value_parser = parse_contact)]
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
    /// Folder for WARC files of all fetches [default: no archive]
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
    #[arg(long, value_name = "mapped|all|none", value_parser = parse_follow, default_value = "mapped")]
    pub follow: Follow,
    /// Read the sitemaps and feeds of the seeds' sites, and crawl the listed pages as seeds
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
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub domain_max_pages: Option<u64>,
    /// Skip the domains in this file, or its first N: one per line, or `rank,domain`; may be .gz or .zip
    #[arg(long, value_name = "FILE[:N]")]
    pub exclude_sites: Option<String>,
    /// Application id
    #[arg(long, value_name = "ID", default_value = "local", value_parser = parse_id)]
    pub app: String,
    /// Crawl id; an existing id resumes that crawl [default: a new id]
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub crawl: Option<String>,
    /// Re-queue tasks of --crawl with these outcomes or HTTP statuses first, such as dns_error,503
    #[arg(
        long,
        value_name = "OUTCOME",
        value_delimiter = ',',
        requires = "crawl"
    )]
    pub retry: Vec<RetryEnd>,
    /// Stop gracefully after N pages
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub max_pages: Option<u64>,
    /// Stop gracefully after this time: 90s, 15m, 2h, 1d
    ///
    /// The wait for requests of earlier processes does not count.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub max_time: Option<Duration>,
    /// How long to wait for dead and failing sites before their URLs fail: 90s, 15m, 6h [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub patience: Option<Duration>,
    /// Write unreachable records to this CSV file at the end: id, url, outcome, status_code, site, why
    #[arg(long, value_name = "FILE")]
    pub dead: Option<PathBuf>,
    /// Refresh pages older than this, and the fields they filled: 90s, 15m, 2h, 1d [default: never]
    ///
    /// A finished crawl reads its seeds again. An input value that a page has replaced returns only if you change it.
    /// `--max-pages` and `--domain-max-pages` count the pages of all runs.
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::parse_age, allow_hyphen_values = true)]
    pub refresh_after: Option<Duration>,
    /// Whether the seeds are expected to differ from run to run. This is not a flag: `webfill fill` sets it.
    #[arg(skip)]
    pub seeds_vary: bool,
    /// Send conditional requests for stored pages [default: with --refresh-after]
    #[arg(long, value_name = "true|false")]
    pub conditional: Option<bool>,
    /// Conditions that make a finished crawl exit with 1, separated by commas
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
    /// The run of a watch, if this crawl is one.
    #[arg(skip)]
    pub watched_run: Option<WatchedRun>,
}
