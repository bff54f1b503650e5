//! The command line of `webfill mapping`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::parsers::{parse_contact, parse_id, whole_number};

#[derive(Debug, Subcommand)]
pub enum MappingCommand {
    /// Check mapping files and list every fault
    Check {
        /// Files or folders
        #[arg(default_value = "etl-mappings")]
        paths: Vec<PathBuf>,
    },
    /// Run mappings on pages and show the extracted values
    Test(MappingTestOptions),
    /// Save a page and its extracted values as a golden case for `test --all`
    Save(MappingSaveOptions),
    /// Learn a mapping from pages and the records that link to them
    Learn(Box<MappingLearnOptions>),
    /// Relearn the fields that a changed layout has broken, from their earlier values
    Repair(Box<MappingRepairOptions>),
    /// Print the JSON Schema of mapping files, for editors
    Schema {
        /// Print the schema of golden cases instead
        #[arg(long)]
        case: bool,
    },
}

#[derive(Debug, Args)]
pub struct MappingTestOptions {
    /// Mapping file, or a folder of them
    #[arg(value_name = "MAPPING", default_value = "etl-mappings")]
    pub file: PathBuf,
    /// Saved pages, folders of them, or URLs; `-` is standard input
    #[arg(value_name = "PAGE", required_unless_present = "all")]
    pub pages: Vec<String>,
    /// Run all golden cases of the mappings; exit with 1 if one differs
    #[arg(long, conflicts_with_all = ["pages", "mapping", "fields", "url", "content_type", "trace", "rows"])]
    pub all: bool,
    /// Use the mapping of this name for any URL [default: the one for --url, else the only one]
    #[arg(long, value_name = "NAME")]
    pub mapping: Option<String>,
    /// Only this field, and no links; repeatable [default: all]
    #[arg(long = "field", value_name = "NAME")]
    pub fields: Vec<String>,
    /// URL of the page; without it, URL patterns are not checked
    #[arg(long)]
    pub url: Option<String>,
    /// Content-Type of the page
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    #[command(flatten)]
    pub web: PageFetchOptions,
    /// Show the input and output of each processor, and why a field is empty
    #[arg(long)]
    pub trace: bool,
    /// Row to trace, counted from 0; repeatable, at most 20 [default: the first, and the first that lacks a field]
    #[arg(long = "row", value_name = "N", requires = "trace")]
    pub rows: Vec<usize>,
    /// Output format [default: text for rows, a trace or several pages on a terminal, else json]
    #[arg(long, value_enum)]
    pub format: Option<TrialFormat>,
}

/// How pages of the web are fetched and kept.
#[derive(Debug, Clone, Default, Args)]
pub struct PageFetchOptions {
    /// Folder for fetched pages [default: pages, beside the mapping]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Fetch pages again even if they are stored
    #[arg(long)]
    pub again: bool,
    /// Settings file; flags and WEBFILL_ variables override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// URL of a page that explains the crawl, sent in the user agent; required for public addresses
    #[arg(long, value_name = "URL", value_parser = parse_contact)]
    pub contact: Option<String>,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    pub allow_private_networks: bool,
}

#[derive(Debug, Args)]
pub struct MappingSaveOptions {
    /// Mapping file, or a folder of them
    #[arg(value_name = "MAPPING")]
    pub file: PathBuf,
    /// A saved page, or a URL
    #[arg(value_name = "PAGE")]
    pub page: String,
    /// URL of the page [default: the one in the folder of kept pages]
    #[arg(long)]
    pub url: Option<String>,
    /// Content-Type of the page
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Name of the case [default: made from the URL]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub web: PageFetchOptions,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("page_source").args(["pages", "warc", "crawl", "fetch"]))]
pub struct MappingLearnOptions {
    #[command(flatten)]
    pub records: KnownRecordsOptions,
    #[command(flatten)]
    pub from: PageSourceOptions,
    /// Fetch and keep up to N pages that the records link to
    #[arg(long, value_name = "N", requires = "records",
          value_parser = whole_number(1..=1_000_u16))]
    pub fetch: Option<u16>,
    /// Fields to learn, separated by commas [default: all fields with known values]
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// Name of the mapping [default: made from the site]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Learn `rows` for pages that list several records; without links to the page, records are found by their values
    #[arg(long, requires = "records")]
    pub rows: bool,
    /// Dataset of the learned rows [default: the mapping's name]
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// A page and true values on it; repeatable; `FIELD=` means that the page has none
    #[arg(long, num_args = 2.., value_names = ["URL", "FIELD=VALUE"])]
    pub example: Vec<String>,
    /// True value of a field on a page, overriding its record; in the format of --example
    #[arg(long, num_args = 2.., value_names = ["URL", "FIELD=VALUE"])]
    pub correct: Vec<String>,
    /// Wrong value of a field on a page; in the format of --example
    #[arg(long, num_args = 2.., value_names = ["URL", "FIELD=VALUE"])]
    pub reject: Vec<String>,
    #[command(flatten)]
    pub to: MappingOutputOptions,
    #[command(flatten)]
    pub web: PageFetchOptions,
}

/// Records whose values are known.
#[derive(Debug, Clone, Default, Args)]
pub struct KnownRecordsOptions {
    /// Records with known values: a file as for `webfill crawl --seeds`, or a MongoDB database
    #[arg(long, value_name = "FILE|URI")]
    pub records: Option<String>,
    /// Collection of the records
    #[arg(long, value_name = "NAME", requires = "records")]
    pub records_collection: Option<String>,
    /// Only documents that match this query, in extended JSON [default: {}]
    #[arg(long, value_name = "JSON", requires = "records_collection")]
    pub records_query: Option<String>,
    /// Part of each document to read; expressions are allowed [default: all of it]
    #[arg(long, value_name = "JSON", requires = "records_collection")]
    pub records_projection: Option<String>,
}

/// Where pages that were fetched before come from.
#[derive(Debug, Clone, Default, Args)]
pub struct PageSourceOptions {
    /// Folder of pages with their URLs in its pages.jsonl, or of golden cases
    #[arg(long, value_name = "DIR")]
    pub pages: Option<PathBuf>,
    /// WARC file, or a folder of them
    #[arg(long, value_name = "PATH")]
    pub warc: Option<PathBuf>,
    /// Crawl that was run with --keep-bodies
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub crawl: Option<String>,
    /// Application of the crawl; `watches` for runs of watches
    #[arg(long, value_name = "ID", default_value = "local", value_parser = parse_id)]
    pub app: String,
    /// Store of the crawl [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
}

/// Where a mapping is written to, and the format of the report.
#[derive(Debug, Clone, Default, Args)]
pub struct MappingOutputOptions {
    /// Output file of the mapping [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Format of the report, which goes to standard error unless the mapping goes to a file
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
}

#[derive(Debug, Args)]
pub struct MappingRepairOptions {
    /// Mapping file
    #[arg(value_name = "MAPPING")]
    pub file: PathBuf,
    /// Name of the mapping, if the file has several
    #[arg(long, value_name = "NAME")]
    pub mapping: Option<String>,
    /// Crawl that was run with --keep-bodies [default: only the pages kept for the alert]
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub crawl: Option<String>,
    /// Folder of current pages, as for `webfill mapping learn`; without --store, known values come from --records
    #[arg(long, value_name = "DIR", conflicts_with = "crawl")]
    pub pages: Option<PathBuf>,
    /// WARC file of current pages, or a folder of them
    #[arg(long, value_name = "PATH", conflicts_with_all = ["crawl", "pages"])]
    pub warc: Option<PathBuf>,
    /// Application of the crawl; `watches` for runs of watches
    #[arg(long, value_name = "ID", default_value = "local", value_parser = parse_id)]
    pub app: String,
    /// Store of the crawl [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    #[command(flatten)]
    pub records: KnownRecordsOptions,
    /// Replace MAPPING with the repaired one; the old one is kept beside it as MAPPING.1 and so on
    #[arg(long, conflicts_with = "output")]
    pub apply: bool,
    #[command(flatten)]
    pub to: MappingOutputOptions,
    /// Settings file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrialFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    #[default]
    Text,
    Json,
}
