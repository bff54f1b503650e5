//! The result of an attempt to deliver a notification.

/// The result of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// The delivery failed for this reason and is retried.
    Failed(String),
    /// The delivery failed for this reason and is not retried.
    Dropped(String),
}
