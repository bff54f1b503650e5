//! How results and progress are printed: values of flags that several commands have.

use clap::ValueEnum;

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
    /// A JSON object per line, at most 10 a second (docs/reference/progress.schema.json)
    Json,
    None,
}
