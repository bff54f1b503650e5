//! The errors of a table: as a whole, in a row, in a cell.

use std::io;
use std::path::{Path, PathBuf};

/// Why a table cannot be read, understood or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be opened, or reading it failed.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no table, or a broken one.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The fault and its remedy.
        reason: String,
    },
    /// The output cannot be written. Nothing is left of it.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The output.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A wish names a column that does not exist, or that several columns could be.
    #[error("{0}")]
    Wish(String),
}

impl TableError {
    pub(crate) fn read(path: &Path, source: io::Error) -> TableError {
        TableError::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn unreadable(path: &Path, reason: impl Into<String>) -> TableError {
        TableError::Unreadable {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> TableError {
        TableError::Write {
            path: path.to_owned(),
            source,
        }
    }
}

/// A row that cannot be used. It is written to the output as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The line or row, as a person counts.
    pub number: u64,
    /// The fault.
    pub reason: String,
    /// How it begins.
    pub beginning: String,
    /// Reading failed here: no row follows, and the table cannot be written.
    pub is_end: bool,
}

/// A value that was not written, because it does not fit its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The line or row, as a person counts.
    pub row: u64,
    /// The column, counted from 0.
    pub column: usize,
    /// The value.
    pub value: String,
    /// Why it does not fit.
    pub reason: String,
}

/// The beginning of a text, for messages.
pub(crate) fn beginning(text: &[u8]) -> String {
    const SHOWN_BYTES: usize = 80;
    let shown = &text[..text.len().min(SHOWN_BYTES)];
    let text = String::from_utf8_lossy(shown);
    text.trim_end_matches(['\r', '\n', '\u{fffd}']).to_owned()
}
