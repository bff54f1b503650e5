//! The result of a check of a page, as it is reported.

/// A check with a judged page. Errors are not judged, and neither is a page that is missing for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCheck {
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// Start of the fetch, milliseconds since the epoch.
    pub at_ms: i64,
    pub verdict: Verdict,
}

/// See [`PageCheck`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// There was no version of the page yet.
    New,
    Unchanged,
    Changed,
    /// It was not found in two consecutive checks.
    Gone,
    /// It is back after it was gone.
    Back,
}
