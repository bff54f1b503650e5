//! Validators for the next request for a page, so that its server sends it only if it has changed (RFC 9110, section
//! 13).

use serde::{Deserialize, Serialize};

/// Kept with a page that was read in full; other pages have none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// As the server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// As the server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// When the page was last sent, in milliseconds since the epoch.
    pub fetched_at_ms: i64,
    /// How it was read: the program's version, which links, whether its text was kept.
    pub read_as: String,
}

/// A stored page that can be requested conditionally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPage {
    /// See [`crate::page_id`].
    pub id: String,
    pub mapping: Option<String>,
    pub mapping_version: Option<String>,
    pub validators: Validators,
}
