//! Changed rows, as the journal holds them.

use std::borrow::Cow;

use rusqlite::Result;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

/// SQLite's own table of the last ids of tables that never reuse one. It takes no triggers.
pub(super) const SEQUENCES: &str = "sqlite_sequence";

/// Rows of a table that have changed in the same way. [`Encoder`](super::encoding::Encoder) writes them in this form.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct ChangedRows<'a> {
    #[serde(borrow)]
    pub(super) table: Cow<'a, str>,
    pub(super) change: Change,
    /// The names of the columns whose values follow, those of the key first.
    #[serde(borrow)]
    pub(super) columns: Vec<Cow<'a, str>>,
    /// How many columns are the key.
    pub(super) keys: usize,
    /// The values, row by row.
    #[serde(borrow)]
    pub(super) values: Vec<Cell<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    /// The rows are gone. Only their keys follow.
    Gone,
    /// The rows are new, or everything in them may have changed.
    Whole,
    /// Some columns of the rows have changed.
    Some,
}

/// A value as SQLite stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
    #[serde(borrow)]
    Blob(Cow<'a, [u8]>),
}

impl<'a> ChangedRows<'a> {
    /// Whether each row has all columns.
    pub(super) fn is_complete(&self) -> bool {
        (1..=self.columns.len()).contains(&self.keys)
            && self.values.len().is_multiple_of(self.columns.len())
    }

    /// The values of each row.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[Cell<'a>]> {
        self.values.chunks(self.columns.len())
    }
}

pub(super) fn equality_condition(columns: &[impl AsRef<str>]) -> String {
    let equal: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| format!("{} = ?{}", column.as_ref(), at + 1))
        .collect();
    equal.join(" AND ")
}

impl<'a> Cell<'a> {
    pub(super) fn of(value: ValueRef<'a>) -> Cell<'a> {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text)),
            ValueRef::Blob(bytes) => Cell::Blob(bytes.into()),
        }
    }
}

impl rusqlite::ToSql for Cell<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Integer(number) => ValueRef::Integer(*number),
            Cell::Real(number) => ValueRef::Real(*number),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
