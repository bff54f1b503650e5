//! Errors of CSS selectors.

/// Why a CSS selector is invalid, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, at offset {offset} of {selector:?}")]
pub struct SelectorError {
    pub(super) selector: String,
    pub(super) offset: usize,
    pub(super) reason: String,
}

impl SelectorError {
    /// The position of the fault, in bytes from the beginning of the selector.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The reason of the fault, without the selector.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
