//! Validators for conditional requests: the server sends a page again only if it has changed (RFC 9110, section 13).

use serde::{Deserialize, Serialize};

/// The validators of a page that was completely read. Other pages have none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// The `ETag` header, as the server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The `Last-Modified` header, as the server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// When the page was last sent, in milliseconds since the epoch.
    pub fetched_at_ms: i64,
    /// How the page was read: the program's version, which links were followed, whether the text was kept.
    pub read_as: String,
}

/// A stored page that can be requested conditionally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPage {
    /// The key of the page; see [`crate::page_id`].
    pub id: String,
    pub mapping: Option<String>,
    pub mapping_version: Option<String>,
    pub validators: Validators,
}
