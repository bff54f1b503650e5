//! The mark of a page that only repeats others of its site, as noticed by a worker.
//!
//! It is sent as the evidence of an outcome `ok`, with a mark of its own in [`Evidence::sign`]. The only other
//! evidence of such an outcome is a [`ScriptsReport`](crate::ScriptsReport) or the mark that the page has [no
//! mapping](crate::unmatched). Receivers that do not know the mark ignore it.

use crate::{Evidence, Outcome, TaskDone};

const MARK: &str = "repeats\t";

/// The evidence of a page that only repeats others. `seen`: what was seen, for people.
pub fn evidence_of_repetition(url: &str, status_code: Option<u16>, seen: &str) -> Evidence {
    Evidence {
        url: url.to_owned(),
        status_code,
        sign: format!("{MARK}{seen}"),
        no_route: false,
    }
}

/// Whether the page of an outcome only repeats others.
pub fn is_repetition(done: &TaskDone) -> bool {
    let evidence = done.evidence.as_ref();
    done.outcome == Outcome::Ok && evidence.is_some_and(|found| found.sign.starts_with(MARK))
}
