//! The command line of `webfill export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use webfill_store::DatasetName;

use crate::seeds::ListSeparator;

#[derive(Debug, Args)]
pub struct ExportOptions {
    /// Kind of data to write
    #[arg(value_enum)]
    pub what: ExportWhat,
    /// Store to read
    #[arg(
        long,
        value_name = "URI",
        default_value = "sqlite:webfill.db",
        env = "WEBFILL_STORE"
    )]
    pub store: String,
    /// Output format
    #[arg(long, value_enum, default_value = "jsonl")]
    pub format: ExportFormat,
    /// In CSV, put an apostrophe before texts that a spreadsheet would run as formulas, such as `=1+1`
    #[arg(long)]
    pub spreadsheet: bool,
    /// Add a column `urls` with each record's URLs, and a column `source.FIELD` with the page of each value
    ///
    /// For records in CSV and Parquet. JSON lines always have both.
    #[arg(long)]
    pub sources: bool,
    /// Add the id and these fields of the record that a row's page was fetched for
    ///
    /// The columns are `parent` and `parent.FIELD`, as in `--with-parent=city,name`. In JSON lines the fields are in
    /// `parent_fields`; `row` always has the parent's key.
    #[arg(long, value_name = "FIELDS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pub with_parent: Option<Vec<String>>,
    /// Include rows that are gone from their lists, with the column `gone_at`
    #[arg(long)]
    pub with_gone: bool,
    /// Separator of list values in a CSV cell, such as `;` [default: lists are JSON]
    ///
    /// `webfill crawl --list-separator` reads the lists back. A separator within a value gets a backslash; a list that
    /// could not be read back is written as JSON.
    #[arg(long, value_name = "TEXT")]
    pub list_separator: Option<ListSeparator>,
    /// Only data of this application
    #[arg(long, value_name = "ID")]
    pub app: Option<String>,
    /// Only data of this crawl
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
    /// Only records of this dataset
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<DatasetName>,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only pages saved after this cursor, in the order of saving; 0 is the start
    ///
    /// Each line has its `cursor`. Continue from the cursor of the last processed line to miss no page.
    #[arg(long, value_name = "CURSOR")]
    pub since: Option<String>,
    /// Keep printing pages as they are saved, until interrupted
    #[arg(long)]
    pub follow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportWhat {
    /// Records with their fields
    Records,
    /// Pages with the fields that were read on them
    Pages,
    /// Changes of pages
    Changes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Jsonl,
    Csv,
    Parquet,
}
