//! The rows that have changed since the last record, by their keys.

use std::collections::BTreeMap;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Result, ToSql};

use super::changed_rows::Cell;

/// The largest number of columns in a key.
pub(super) const MOST_KEYS: usize = 3;

/// The key of a row. Shorter keys end with zeros.
pub(super) type Key = [KeyPart; MOST_KEYS];

/// A value of a key's column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyPart {
    Integer(i64),
    Text(String),
}

/// The noted rows of each table.
#[derive(Debug)]
pub(super) struct NotedRows(Vec<TableRows>);

/// The noted rows of a table. With each, the columns that may have changed, as a set of bits.
#[derive(Debug)]
pub(super) enum TableRows {
    /// Rows whose key is SQLite's number of them, in the order of their changes. A row may be there repeatedly.
    Numbered(Vec<(i64, i64)>),
    Keyed(BTreeMap<Key, i64>),
}

impl NotedRows {
    /// `has_numbers` says of each table whether the key of its rows is their number.
    pub(super) fn of_tables(has_numbers: impl IntoIterator<Item = bool>) -> NotedRows {
        let tables = has_numbers
            .into_iter()
            .map(|has_numbers| match has_numbers {
                true => TableRows::Numbered(Vec::new()),
                false => TableRows::Keyed(BTreeMap::new()),
            });
        NotedRows(tables.collect())
    }

    /// Notes a row by its key.
    pub(super) fn note(&mut self, table: usize, key: Key, columns: i64) {
        match &mut self.0[table] {
            TableRows::Keyed(rows) => *rows.entry(key).or_default() |= columns,
            TableRows::Numbered(_) => {
                let [KeyPart::Integer(number), ..] = key else {
                    unreachable!("a row's number is an integer");
                };
                self.note_number(table, number, columns);
            }
        }
    }

    /// Notes a row by its number.
    pub(super) fn note_number(&mut self, table: usize, number: i64, columns: i64) {
        let TableRows::Numbered(rows) = &mut self.0[table] else {
            unreachable!("the rows of this table have no numbers");
        };
        match rows.last_mut() {
            Some((last, noted)) if *last == number => *noted |= columns,
            _ => rows.push((number, columns)),
        }
    }

    /// Whether no row is noted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|rows| match rows {
            TableRows::Numbered(rows) => rows.is_empty(),
            TableRows::Keyed(rows) => rows.is_empty(),
        })
    }

    /// Takes all noted rows of each table.
    pub(super) fn take(&mut self) -> Vec<TableRows> {
        let tables = self.0.iter_mut().map(|rows| match rows {
            TableRows::Numbered(rows) => TableRows::Numbered(std::mem::take(rows)),
            TableRows::Keyed(rows) => TableRows::Keyed(std::mem::take(rows)),
        });
        tables.collect()
    }
}

impl KeyPart {
    /// The part of a key with this value; `None` for a kind of value that no key has.
    pub(super) fn of(value: ValueRef<'_>) -> Option<KeyPart> {
        match value {
            ValueRef::Integer(number) => Some(KeyPart::Integer(number)),
            ValueRef::Text(text) => Some(KeyPart::Text(String::from_utf8_lossy(text).into_owned())),
            _ => None,
        }
    }

    pub(super) fn as_cell(&self) -> Cell<'_> {
        match self {
            KeyPart::Integer(number) => Cell::Integer(*number),
            KeyPart::Text(text) => Cell::Text(text.as_str().into()),
        }
    }
}

impl ToSql for KeyPart {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            KeyPart::Integer(number) => ValueRef::Integer(*number),
            KeyPart::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}
