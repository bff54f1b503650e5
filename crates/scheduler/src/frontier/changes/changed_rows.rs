//! Changed rows, as the journal holds them.

use rusqlite::Result;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

/// SQLite's own table of the last ids of tables that never reuse one. It takes no triggers.
pub(super) const SEQUENCES: &str = "sqlite_sequence";

/// The changed rows of a table.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ChangedTable {
    pub(super) name: String,
    /// The names of the columns whose values follow, those of the key first.
    pub(super) columns: Vec<String>,
    /// How many columns are the key.
    pub(super) keys: usize,
    pub(super) rows: Vec<ChangedRow>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum ChangedRow {
    Gone {
        key: Vec<Cell>,
    },
    /// A new row, or a row of which all columns may have changed.
    Whole {
        values: Vec<Cell>,
    },
    /// Some columns of a row: the key, and each value with the position of its column.
    Some {
        key: Vec<Cell>,
        values: Vec<(usize, Cell)>,
    },
}

/// A value as SQLite stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

pub(super) fn equality_condition(columns: &[String]) -> String {
    let equal: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| format!("{column} = ?{}", at + 1))
        .collect();
    equal.join(" AND ")
}

pub(super) fn encode(changed: &Vec<ChangedTable>) -> Vec<u8> {
    postcard::to_stdvec(changed).expect("it holds only types that postcard can encode")
}

impl Cell {
    pub(super) fn of(value: ValueRef<'_>) -> Cell {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_owned()),
        }
    }
}

impl rusqlite::ToSql for Cell {
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
