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

/// For each table, the keys of the noted rows. With each, the columns that may have changed, as a set of bits.
#[derive(Debug)]
pub(super) struct NotedRows(Vec<BTreeMap<Key, i64>>);

impl NotedRows {
    pub(super) fn of_tables(count: usize) -> NotedRows {
        NotedRows(vec![BTreeMap::new(); count])
    }

    pub(super) fn note(&mut self, table: usize, key: Key, columns: i64) {
        *self.0[table].entry(key).or_default() |= columns;
    }

    /// Takes all noted rows of each table.
    pub(super) fn take(&mut self) -> Vec<BTreeMap<Key, i64>> {
        self.0.iter_mut().map(std::mem::take).collect()
    }
}

/// The key of a row that is known by its number.
pub(super) fn number_key(number: i64) -> Key {
    [number, 0, 0].map(KeyPart::Integer)
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

    pub(super) fn to_cell(&self) -> Cell<'static> {
        match self {
            KeyPart::Integer(number) => Cell::Integer(*number),
            KeyPart::Text(text) => Cell::Text(text.clone().into()),
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
