//! What a look at a page has shown, as others are told.

/// A look whose page was judged. An error is none, and neither is a page that is missing for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// Start of the fetch, milliseconds since the epoch.
    pub at_ms: i64,
    pub verdict: Verdict,
}

/// See [`Look`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// There was no version of the page yet.
    New,
    Unchanged,
    Changed,
    /// It was not found twice in a row.
    Gone,
    /// It is there again after it was gone.
    Back,
}
