//! The mark that a worker sets on a page that it accepts although the page resembles a block page.
//!
//! It is sent as the evidence of an outcome `ok`, as the mark of [`repeats`](crate::repeats) is.

use crate::unmatched::without_unmatched_mark;
use crate::{Evidence, Outcome, TaskDone};

const MARK: &str = "resembles\t";

/// The evidence of a page that resembles a block page. `answer` is the hash that such pages are compared by.
pub fn evidence_of_likeness(url: &str, status_code: Option<u16>, answer: u64) -> Evidence {
    Evidence {
        url: url.to_owned(),
        status_code,
        sign: format!("{MARK}{answer:x}"),
        no_route: false,
    }
}

/// The hash of the response if the page resembles a block page, otherwise `None`.
pub fn likeness_of(done: &TaskDone) -> Option<u64> {
    let evidence = done
        .evidence
        .as_ref()
        .filter(|_| done.outcome == Outcome::Ok)?;
    let answer = without_unmatched_mark(&evidence.sign).strip_prefix(MARK)?;
    u64::from_str_radix(answer, 16).ok()
}
