//! The result of checking a page, as it is reported.

/// A check of a page with its verdict. Checks without a verdict have no `PageCheck`: for example, checks that failed,
/// and the first check that does not find the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCheck {
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// When the fetch started, in milliseconds since the epoch.
    pub at_ms: i64,
    pub verdict: Verdict,
}

/// The verdict on a checked page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// There was no version of the page yet.
    New,
    Unchanged,
    Changed,
    /// The page was not found in two consecutive checks.
    Gone,
    /// The page was gone and is back.
    Back,
}
