//! The command line of `webfill mapping`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
    /// Print the JSON Schema of mapping files, for editors
    Schema,
}

#[derive(Debug, Args)]
pub struct MappingTestOptions {
    /// The mapping file, or a folder of them
    #[arg(value_name = "MAPPING")]
    pub file: PathBuf,
    /// Saved pages, folders of them, or URLs; `-` is standard input
    #[arg(value_name = "PAGE", required = true)]
    pub pages: Vec<String>,
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
    /// Show what each processor reads and gives, and why a field is empty
    #[arg(long)]
    pub trace: bool,
    /// `json`, or `text` for people [default: text for a trace or several pages on a terminal, else json]
    #[arg(long, value_enum)]
    pub format: Option<TrialFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrialFormat {
    Text,
    Json,
}
