//! What can be typed to export what is stored.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use webfill_store::DatasetName;

use crate::seeds::ListSeparator;

#[derive(Debug, Args)]
pub struct ExportOptions {
    /// What to write
    #[arg(value_enum)]
    pub what: ExportWhat,
    /// The store to read
    #[arg(
        long,
        value_name = "URI",
        default_value = "sqlite:webfill.db",
        env = "WEBFILL_STORE"
    )]
    pub store: String,
    /// How it is written
    #[arg(long, value_enum, default_value = "jsonl")]
    pub format: ExportFormat,
    /// In CSV, put an apostrophe before texts that a spreadsheet would run as formulas, such as `=1+1`,
    /// `+49 30` or `@name`
    #[arg(long)]
    pub spreadsheet: bool,
    /// In CSV and Parquet, add columns with the URLs of each record, and with the page that each value is from
    #[arg(long)]
    pub sources: bool,
    /// With each row of a page, the record for which the page was fetched: its id as `parent`, and these of its
    /// fields, such as `--with-parent=city,name`
    #[arg(long, value_name = "FIELDS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pub with_parent: Option<Vec<String>>,
    /// In CSV, write lists that pages have brought with this between their values, such as `;`, instead of as JSON
    #[arg(long, value_name = "TEXT")]
    pub list_separator: Option<ListSeparator>,
    /// Only this application's
    #[arg(long, value_name = "ID")]
    pub app: Option<String>,
    /// Only this crawl's
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
    /// Only records of this dataset
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<DatasetName>,
    /// A file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only pages saved behind this one, in the order of their saves; each line has a `cursor` to go
    /// on from, 0 is the beginning
    #[arg(long, value_name = "CURSOR")]
    pub since: Option<String>,
    /// Go on with the pages that are saved from now on, until interrupted
    #[arg(long)]
    pub follow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportWhat {
    /// Records with their fields
    Records,
    /// Pages with the fields that were read on them
    Pages,
    /// What has changed on pages
    Changes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Jsonl,
    Csv,
    Parquet,
}
