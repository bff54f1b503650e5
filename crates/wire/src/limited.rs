//! The mark of a page that its site refused because of too many requests, not because of the page itself.
//!
//! A worker that finds this in the headers of a failed response sends the mark as evidence; an `http_error` has no
//! other evidence. The statuses 429 and 503 need no mark.

use crate::{Outcome, TaskDone};

/// Whether the site refused the page because of the number or rate of requests.
pub fn is_rate_limited(done: &TaskDone) -> bool {
    done.outcome == Outcome::HttpError
        && (matches!(done.status_code, Some(429 | 503)) || done.evidence.is_some())
}
