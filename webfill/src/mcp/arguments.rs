//! The arguments of the tools. Their doc comments are the descriptions that agents read.

use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use webfill_service::Fault;

/// Parses the arguments of a call.
pub fn parse_arguments<A: DeserializeOwned>(given: JsonObject) -> Result<A, Fault> {
    serde_json::from_value(Value::Object(given))
        .map_err(|error| Fault::usage(format!("the arguments: {error}")))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct FeedArguments {
    /// Crawl requests: one URL each. Required keys: `url`, `appid` (application), `crawlid` (crawl). Others: `maxdepth`
    /// (links to follow from the URL, default 0), `priority` (1 to 100), `allowed_domains`, `allow_regex`,
    /// `deny_regex`, `expires` (seconds since 1970). All are accepted, or none.
    #[schemars(length(min = 1, max = 1000))]
    pub requests: Vec<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct InfoArguments {
    /// The application.
    pub appid: String,
    /// The crawl; without it, all crawls of the application that have something pending.
    pub crawlid: Option<String>,
    /// Wait up to this many seconds for the crawl to finish, at most 600; default 0.
    #[serde(default)]
    #[schemars(range(max = 600))]
    pub wait_seconds: u64,
    /// `next` of the previous answer, for an application with many crawls.
    pub cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct NoArguments {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct WhyArguments {
    /// The URL, as it was fed or is linked.
    pub url: String,
    /// Only in crawls of this application; required if the key is limited to some applications.
    pub appid: Option<String>,
    /// Only in the crawl of this id.
    pub crawlid: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct CrawlArguments {
    /// The application.
    pub appid: String,
    /// The crawl.
    pub crawlid: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct RecordsArguments {
    /// Only records of this dataset.
    pub dataset: Option<String>,
    /// Only records with (`open`) or without (`resolved`) a missing field.
    pub state: Option<RecordStateArgument>,
    /// Only records whose id begins with this; needs `dataset`.
    pub id_prefix: Option<String>,
    /// The most records, 1 to 100; default 20.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
    /// `next` of the previous answer.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "rmcp::schemars")]
pub enum RecordStateArgument {
    Open,
    Resolved,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct RecordArguments {
    /// The dataset.
    pub dataset: String,
    /// The id of the record.
    pub id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct PagesArguments {
    /// Only pages of this application; needs `crawlid`.
    pub appid: Option<String>,
    /// Only pages of this crawl; needs `appid`.
    pub crawlid: Option<String>,
    /// Only pages of this site, such as `example.org`.
    pub site: Option<String>,
    /// Only pages with one of these outcomes, such as `ok` or `http_error`.
    #[serde(default)]
    pub outcomes: Vec<String>,
    /// The most pages, 1 to 100; default 20.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
    /// `next` of the previous answer.
    pub cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct PageArguments {
    /// The application.
    pub appid: String,
    /// The crawl.
    pub crawlid: String,
    /// The URL of the page, as it is listed.
    pub url: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct FillArguments {
    /// The table: a file (CSV, JSON lines, Parquet, XLSX) by its path in the allowed folder.
    pub table: String,
    /// Print what was understood and planned; request and write nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Column of the id; found by itself if left out.
    pub id: Option<String>,
    /// Columns of links; found by themselves if left out.
    #[serde(default)]
    pub url: Vec<String>,
    /// Columns to fill; if left out, all with gaps, except the id and the links.
    #[serde(default)]
    pub fields: Vec<String>,
    /// Columns to leave as they are.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Pages of each site to learn from, 2 to 400; default 30.
    #[schemars(range(min = 2, max = 400))]
    pub sample: Option<u16>,
    /// Fill only values that are right with at least this probability, 0.5 to below 1; default 0.95.
    pub precision: Option<f64>,
    /// Complete rows that are compared with their pages; default `sample`.
    pub check: Option<CheckArgument>,
    /// The file of doubts, by its path in the allowed folder, once a person has written `accept` or `reject` into its
    /// column `answer`.
    pub doubts: Option<String>,
    /// Wait up to this many seconds for the end, at most 600; default 30. It continues after that.
    #[serde(default = "default_wait_seconds")]
    #[schemars(range(max = 600))]
    pub wait_seconds: u64,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "rmcp::schemars")]
pub enum CheckArgument {
    None,
    Sample,
    All,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct TableArguments {
    /// The table, by its path in the allowed folder.
    pub table: String,
    /// Wait up to this many seconds for the end, at most 600; default 30.
    #[serde(default = "default_wait_seconds")]
    #[schemars(range(max = 600))]
    pub wait_seconds: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub struct ResultsArguments {
    /// The table, by its path in the allowed folder.
    pub table: String,
    /// `evidence`: where each value comes from, and why gaps are left. `doubts`: known values that their pages
    /// contradict, and proposed values to be judged.
    pub what: WhatArgument,
    /// Only entries of this column.
    pub column: Option<String>,
    /// Only evidence in this state, such as `filled`, `contradicted` or `below precision`.
    pub state: Option<String>,
    /// The most entries, 1 to 100; default 20.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
    /// `next` of the previous answer.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "rmcp::schemars")]
pub enum WhatArgument {
    Evidence,
    Doubts,
}

fn default_limit() -> u32 {
    20
}

fn default_wait_seconds() -> u64 {
    30
}
