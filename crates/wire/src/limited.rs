//! The mark of a page that its site refused because of the number or rate of requests, not because of the page.
//!
//! A worker that has found this in the headers of a failed response sends the mark as evidence. Otherwise an
//! `http_error` has no evidence. 429 and 503 need no mark.

use crate::{Outcome, TaskDone};

/// Whether the site refused the page because of the number or rate of requests; see the module.
pub fn is_rate_limited(done: &TaskDone) -> bool {
    done.outcome == Outcome::HttpError
        && (matches!(done.status_code, Some(429 | 503)) || done.evidence.is_some())
}
