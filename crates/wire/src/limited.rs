//! The mark of a page that its site refused because of the number or rate of requests, not because of the page.
//!
//! A worker that has read this in the headers of a failure sends it as its evidence; an `http_error` has none
//! otherwise. 429 and 503 need no mark.

use crate::{Outcome, TaskDone};

/// See the module.
pub fn is_limited(done: &TaskDone) -> bool {
    done.outcome == Outcome::HttpError
        && (matches!(done.status_code, Some(429 | 503)) || done.evidence.is_some())
}
