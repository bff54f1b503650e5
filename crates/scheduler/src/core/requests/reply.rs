//! The result of carrying out a request.

use serde_json::Value;
use webfill_api::Refusal;

/// Whether a request is answered now or later.
pub(in crate::core) enum Reply {
    Now(Value),
    /// The answer follows when a recall, the closing of a crawl, the reopening of its tasks, a reload or a drain has
    /// ended.
    Later,
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        Reply::Now(refusal.to_answer())
    }
}
