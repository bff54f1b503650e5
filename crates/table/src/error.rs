//! Errors of a table as a whole, of a row, and of a cell.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a table cannot be read, understood or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The input file cannot be opened, or reading it failed.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a table, or is damaged.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The output cannot be written. No part of it is left.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The output.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The user names a column that does not exist, or a name that several columns have.
    #[error("{0}")]
    Wish(String),
}

impl TableError {
    pub(crate) fn read_error(path: &Path, source: io::Error) -> TableError {
        TableError::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn unreadable_file(path: &Path, reason: impl Into<String>) -> TableError {
        TableError::Unreadable {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn write_error(path: &Path, source: io::Error) -> TableError {
        TableError::Write {
            path: path.to_owned(),
            source,
        }
    }
}

/// A row that cannot be used, with the reason. It is written to the output unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The number of the line or row, counted from 1.
    pub number: u64,
    /// What is wrong with the row, for users.
    pub reason: String,
    /// The first bytes of the row as text, to recognise it in messages.
    pub beginning: String,
    /// Whether reading failed at this row. Then no further row is read, and the table cannot be written.
    pub is_end: bool,
}

/// A value that was not written, because it does not fit its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the line or row, counted from 1.
    pub row: u64,
    /// The column, counted from 0.
    pub column: usize,
    /// The value that was not written.
    pub value: String,
    /// Why the value does not fit its column, for users.
    pub reason: String,
}

/// The first bytes of a text, to show it in messages.
pub(crate) fn beginning(text: &[u8]) -> String {
    const SHOWN_BYTES: usize = 80;
    let shown = &text[..text.len().min(SHOWN_BYTES)];
    let text = String::from_utf8_lossy(shown);
    text.trim_end_matches(['\r', '\n', '\u{fffd}']).to_owned()
}
