//! That no mapping is for a page, as its worker has seen.
//!
//! It travels as the evidence of an outcome `ok`: alone, or as a mark behind what else the worker has noticed about
//! the page ([`scripts`](crate::scripts), [`repeats`](crate::repeats)). Who knows nothing of it takes no notification.

use crate::{Evidence, Outcome, TaskDone};

const MARK: &str = "\tunmatched";

/// What a worker has noticed about a page, and that no mapping is for it.
pub fn with_unmatched(noticed: Option<Evidence>) -> Evidence {
    let mut noticed = noticed.unwrap_or(Evidence {
        url: String::new(),
        status_code: None,
        sign: String::new(),
        no_route: false,
    });
    noticed.sign.push_str(MARK);
    noticed
}

/// Whether the page of an outcome was read, and no mapping is for it.
pub fn is_unmatched(done: &TaskDone) -> bool {
    let evidence = done.evidence.as_ref();
    done.outcome == Outcome::Ok && evidence.is_some_and(|found| found.sign.ends_with(MARK))
}

/// What else was noticed.
pub(crate) fn without_mark(sign: &str) -> &str {
    sign.strip_suffix(MARK).unwrap_or(sign)
}
