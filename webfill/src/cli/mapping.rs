//! The command line of `webfill mapping`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::id;

#[derive(Debug, Subcommand)]
pub enum MappingCommand {
    /// Check mapping files; every fault is listed
    Check {
        /// Files or folders
        #[arg(default_value = "etl-mappings")]
        paths: Vec<PathBuf>,
    },
    /// Run mappings on pages: what one yields, or how often several fill each field
    Test(MappingTestOptions),
    /// Keep a page and what a mapping yields on it as a golden case, for `test --all`
    Save(MappingSaveOptions),
    /// Learn a mapping from pages and the records that link to them
    Learn(Box<MappingLearnOptions>),
    /// Learn fields anew that a changed layout has broken, from values of before
    Repair(Box<MappingRepairOptions>),
    /// Print the JSON Schema of mapping files, for editors
    Schema {
        /// That of golden cases instead
        #[arg(long)]
        case: bool,
    },
}

#[derive(Debug, Args)]
pub struct MappingTestOptions {
    /// The mapping file, or a folder of them
    #[arg(value_name = "MAPPING", default_value = "etl-mappings")]
    pub file: PathBuf,
    /// Saved pages, folders of them, or URLs; `-` is standard input
    #[arg(value_name = "PAGE", required_unless_present = "all")]
    pub pages: Vec<String>,
    /// Run all golden cases of the mappings, and end with 1 if one differs
    #[arg(long, conflicts_with_all = ["pages", "mapping", "fields", "url", "content_type", "trace", "rows"])]
    pub all: bool,
    /// The mapping of this name, whatever the page's URL [default: the one for --url, else the only one]
    #[arg(long, value_name = "NAME")]
    pub mapping: Option<String>,
    /// Only this field, and no links; repeatable [default: all]
    #[arg(long = "field", value_name = "NAME")]
    pub fields: Vec<String>,
    /// The page's URL; without it the mapping's patterns are not asked
    #[arg(long)]
    pub url: Option<String>,
    /// The page's Content-Type
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    #[command(flatten)]
    pub web: PageFetchOptions,
    /// Show what each processor reads and gives, and why a field is empty
    #[arg(long)]
    pub trace: bool,
    /// In the trace, the row at this position, counted from 0; repeatable [default: the first, and the first that lacks a field]
    #[arg(long = "row", value_name = "N", requires = "trace")]
    pub rows: Vec<usize>,
    /// `json`, or `text` for people [default: text for rows, a trace or several pages on a terminal, else json]
    #[arg(long, value_enum)]
    pub format: Option<TrialFormat>,
}

/// How pages of the web are fetched and kept.
#[derive(Debug, Clone, Default, Args)]
pub struct PageFetchOptions {
    /// Folder in which fetched pages are kept [default: pages, beside the mapping]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Fetch pages again that are kept
    #[arg(long)]
    pub again: bool,
    /// Settings file; flags and WEBFILL_ variables win over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Page that explains the crawl, sent in the user agent; required for public addresses
    #[arg(long, value_name = "URL", value_parser = super::contact)]
    pub contact: Option<String>,
    /// Permit loopback, private and link-local targets
    #[arg(long)]
    pub allow_private_networks: bool,
}

#[derive(Debug, Args)]
pub struct MappingSaveOptions {
    /// The mapping file, or a folder of them
    #[arg(value_name = "MAPPING")]
    pub file: PathBuf,
    /// A saved page, or a URL
    #[arg(value_name = "PAGE")]
    pub page: String,
    /// The page's URL [default: that in the folder of kept pages]
    #[arg(long)]
    pub url: Option<String>,
    /// The page's Content-Type
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// The case's name [default: after the URL]
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
    /// Fetch up to so many pages that the records link to, politely, and keep them
    #[arg(long, value_name = "N", requires = "records",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub fetch: Option<u16>,
    /// The fields to learn, separated by commas [default: all that the records know]
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// The mapping's name [default: after the site]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Learn `rows` of pages that list several records, found by their values where the records do not link to the page
    #[arg(long, requires = "records")]
    pub rows: bool,
    /// The dataset that learned rows are records of [default: the mapping's name]
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// A page and values that stand on it, taken as true; repeatable. `FIELD=` says that it has none
    #[arg(long, num_args = 2.., value_names = ["URL", "FIELD=VALUE"])]
    pub example: Vec<String>,
    /// What a page's field really is, whatever its record says; as --example
    #[arg(long, num_args = 2.., value_names = ["URL", "FIELD=VALUE"])]
    pub correct: Vec<String>,
    /// What a page's field is not; as --example
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
    /// Records: a file (CSV, JSON lines) as for `webfill crawl --seeds`, or a MongoDB database
    #[arg(long, value_name = "FILE|URI")]
    pub records: Option<String>,
    /// The collection that holds the records
    #[arg(long, value_name = "NAME", requires = "records")]
    pub records_collection: Option<String>,
    /// Only records that this query finds; extended JSON [default: {}]
    #[arg(long, value_name = "JSON", requires = "records_collection")]
    pub records_query: Option<String>,
    /// Of each document, what this projection yields [default: all of it]
    #[arg(long, value_name = "JSON", requires = "records_collection")]
    pub records_projection: Option<String>,
}

/// Where pages come from that were fetched before.
#[derive(Debug, Clone, Default, Args)]
pub struct PageSourceOptions {
    /// Folder of pages whose URLs are known: by its pages.jsonl, or by golden cases
    #[arg(long, value_name = "DIR")]
    pub pages: Option<PathBuf>,
    /// WARC file, or folder of them
    #[arg(long, value_name = "PATH")]
    pub warc: Option<PathBuf>,
    /// Crawl whose bodies were kept (--keep-bodies)
    #[arg(long, value_name = "ID", value_parser = id)]
    pub crawl: Option<String>,
    /// The crawl's application; that of watches is `watches`
    #[arg(long, value_name = "ID", default_value = "local", value_parser = id)]
    pub app: String,
    /// The store of the crawl [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
}

/// Where a mapping is written to, and what is told.
#[derive(Debug, Clone, Default, Args)]
pub struct MappingOutputOptions {
    /// Write the mapping to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// The report: `text` for people, on standard error unless the mapping goes to a file; or `json`
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
}

#[derive(Debug, Args)]
pub struct MappingRepairOptions {
    /// The mapping file
    #[arg(value_name = "MAPPING")]
    pub file: PathBuf,
    /// The mapping of this name, if the file has several
    #[arg(long, value_name = "NAME")]
    pub mapping: Option<String>,
    /// Crawl whose bodies were kept (--keep-bodies) [default: only the pages that the alarm has kept]
    #[arg(long, value_name = "ID", value_parser = id)]
    pub crawl: Option<String>,
    /// Folder of pages as they are now, as for `webfill mapping learn`; without --store, the records say all that is known
    #[arg(long, value_name = "DIR", conflicts_with = "crawl")]
    pub pages: Option<PathBuf>,
    /// WARC file with pages as they are now, or folder of them; as --pages
    #[arg(long, value_name = "PATH", conflicts_with_all = ["crawl", "pages"])]
    pub warc: Option<PathBuf>,
    /// The crawl's application; that of watches is `watches`
    #[arg(long, value_name = "ID", default_value = "local", value_parser = id)]
    pub app: String,
    /// The store of the crawl [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    #[command(flatten)]
    pub records: KnownRecordsOptions,
    /// Write the repaired mapping into MAPPING; the former one is kept beside it
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
