//! The mark that a worker sets on a page that only repeats other pages of its site.
//!
//! It is sent as the evidence of an outcome `ok`, as a word in [`Evidence::sign`]. Other evidence of such an outcome is
//! a [`ScriptsReport`](crate::ScriptsReport), or the mark of a page that [resembles a block](crate::likeness) or has
//! [no mapping](crate::unmatched). Receivers that do not know the mark ignore it.

use crate::{Evidence, Outcome, TaskDone};

const MARK: &str = "repeats\t";

/// The evidence that a page only repeats others. `seen` describes the observation in words for users.
pub fn evidence_of_repetition(url: &str, status_code: Option<u16>, seen: &str) -> Evidence {
    Evidence {
        url: url.to_owned(),
        status_code,
        sign: format!("{MARK}{seen}"),
        no_route: false,
    }
}

/// Whether an outcome says that its page only repeats others.
pub fn is_repetition(done: &TaskDone) -> bool {
    let evidence = done.evidence.as_ref();
    done.outcome == Outcome::Ok && evidence.is_some_and(|found| found.sign.starts_with(MARK))
}
