//! The facts about a page that the crawl has stored besides its body.

use serde::{Deserialize, Serialize};
use webfill_wire::Outcome;

use super::transient_ends;

/// A stored page without its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredPage {
    pub outcome: Outcome,
    pub status: Option<u64>,
    /// Where it leads to, if it is a redirect.
    pub redirect: Option<String>,
    pub content_type: Option<String>,
    pub content_hash: Option<String>,
    /// When it was fetched, in ISO 8601.
    pub at: String,
}

impl StoredPage {
    /// How the fetch ended: the status if that is an error, otherwise the outcome.
    pub fn end(&self) -> String {
        match (self.outcome, self.status) {
            (Outcome::HttpError, Some(status)) => status.to_string(),
            (outcome, _) => outcome.to_string(),
        }
    }

    /// Whether the page may be there the next time. One that was not requested, because its site answered others with
    /// errors for too long, has no status.
    pub fn may_return(&self) -> bool {
        let is_unasked = self.outcome == Outcome::HttpError && self.status.is_none();
        is_unasked || transient_ends::ENDS.contains(&self.end().as_str())
    }
}
