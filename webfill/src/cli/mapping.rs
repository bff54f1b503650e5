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
    /// Run mappings on saved pages: what one page yields, or how often several fill each field
    Test(MappingTestOptions),
    /// Print the JSON Schema of mapping files, for editors
    Schema,
}

#[derive(Debug, Args)]
pub struct MappingTestOptions {
    /// The mapping file, or a folder of them
    #[arg(value_name = "MAPPING")]
    pub file: PathBuf,
    /// Saved pages, or folders of them; `-` is standard input
    #[arg(value_name = "PAGE", required = true)]
    pub pages: Vec<PathBuf>,
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
