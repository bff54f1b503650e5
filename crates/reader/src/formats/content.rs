//! The result of every reader: the content of a document, or why there is none.

use std::fmt::Display;

use crate::report::Metadata;

/// The content that a reader has found in a document.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) text: String,
    pub(crate) metadata: Metadata,
    /// The number of pages that could not be read, although others could.
    pub(crate) unread: usize,
}

/// Why a document yields no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    Encrypted,
    Broken(String),
    TooLarge(String),
}

impl Trouble {
    pub(crate) fn broken(error: impl Display) -> Trouble {
        Trouble::Broken(error.to_string())
    }
}
