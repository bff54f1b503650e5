//! The mark that a worker sets on a page that has no mapping.
//!
//! It is sent as the evidence of an outcome `ok`: alone, or after the worker's other findings about the page
//! ([`scripts`](crate::scripts), [`repeats`](crate::repeats)). Receivers that do not know the mark ignore it.

use crate::{Evidence, Outcome, TaskDone};

const MARK: &str = "\tunmatched";

/// Adds the mark to the evidence that a worker sends about a page.
pub fn with_unmatched_mark(noticed: Option<Evidence>) -> Evidence {
    let mut noticed = noticed.unwrap_or(Evidence {
        url: String::new(),
        status_code: None,
        sign: String::new(),
        no_route: false,
    });
    noticed.sign.push_str(MARK);
    noticed
}

/// Whether the page of an outcome was read but has no mapping.
pub fn is_unmatched(done: &TaskDone) -> bool {
    let evidence = done.evidence.as_ref();
    done.outcome == Outcome::Ok && evidence.is_some_and(|found| found.sign.ends_with(MARK))
}

/// Removes the mark from the text of an evidence, so that only other findings are left.
pub(crate) fn without_unmatched_mark(sign: &str) -> &str {
    sign.strip_suffix(MARK).unwrap_or(sign)
}
