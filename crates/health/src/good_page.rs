//! [`GoodPage`]: a page that is evidence for the health of its mapping.

use serde_json::{Map, Value};

use crate::rows::RowsOfPage;

/// A page with the outcome `ok` that the mapping has extracted from, and whose site does not block the crawler.
#[derive(Debug, Clone, Copy)]
pub struct GoodPage<'a> {
    /// The page's key in the store.
    pub id: &'a str,
    pub url: &'a str,
    /// The site of the page, which is checked for blocking.
    pub site: &'a str,
    /// When the page was fetched, in ISO 8601.
    pub at: &'a str,
    /// When the page was fetched, in milliseconds since the epoch.
    pub at_ms: i64,
    pub mapping_version: Option<&'a str>,
    /// A sketch of the page's layout as a text of digits; see [`crate::is_similar`].
    pub template: Option<&'a str>,
    /// The source that led to the page: its record, the page with the link, or the page itself if it is a seed.
    pub source: &'a str,
    pub content_hash: Option<&'a str>,
    /// How often the page's task was given to a worker.
    pub attempts: u64,
    pub fields: &'a Map<String, Value>,
    /// The rows of each dataset on the page, including datasets without rows.
    pub rows: &'a [RowsOfPage],
    /// The fields whose value comes from an alternative chain (extraction rule), each with the number of the
    /// alternative, from 1.
    pub alternatives: &'a Map<String, Value>,
    /// Fields that a record of the page already had, and whether the page has the same value.
    pub known_values: &'a [(String, bool)],
}
