//! How a delivery went.

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// It failed and is retried; with the reason.
    Failed(String),
    /// It failed and is not retried; with the reason.
    Dropped(String),
}
