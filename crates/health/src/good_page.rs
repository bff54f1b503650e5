//! A page whose extraction is judged.

use serde_json::{Map, Value};

use crate::rows::RowsOfPage;

/// A page with the outcome `ok` from which the mapping has extracted, and whose site does not block.
#[derive(Debug, Clone, Copy)]
pub struct GoodPage<'a> {
    /// Its key in the store.
    pub id: &'a str,
    pub url: &'a str,
    /// The site that would block.
    pub site: &'a str,
    /// When it was fetched, ISO 8601.
    pub at: &'a str,
    /// The same in milliseconds since the epoch.
    pub at_ms: i64,
    pub mapping_version: Option<&'a str>,
    /// Its sketch, see [`crate::is_similar`].
    pub template: Option<&'a str>,
    /// The source that led to it: its record, the page with the link, or itself as a seed.
    pub source: &'a str,
    pub content_hash: Option<&'a str>,
    /// How often its task was delivered.
    pub attempts: u64,
    pub fields: &'a Map<String, Value>,
    /// The rows that it lists of each dataset, including datasets without rows.
    pub rows: &'a [RowsOfPage],
    /// Fields whose value does not come from their first chain, with the number of the alternative that served, from
    /// 1.
    pub alternatives: &'a Map<String, Value>,
    /// Fields that a record of the page already had, and whether the page has the same value.
    pub known_values: &'a [(String, bool)],
}
