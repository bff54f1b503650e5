//! That a site has refused a page because of the number or the time of the requests, whatever the page is.
//!
//! A worker that has read this in the headers of a failure sends it as its evidence; an `http_error` has none
//! otherwise. 429 and 503 say so by themselves.

use crate::{Outcome, TaskDone};

/// See the module.
pub fn is_limited(done: &TaskDone) -> bool {
    done.outcome == Outcome::HttpError
        && (matches!(done.status_code, Some(429 | 503)) || done.evidence.is_some())
}
