//! The rows that have changed since the last record, by their keys.

use std::collections::BTreeMap;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Result, ToSql};

/// The largest number of columns in a key.
pub(super) const MOST_KEYS: usize = 3;

/// The key of a row. Shorter keys end with zeros.
pub(super) type Key = [KeyPart; MOST_KEYS];

/// A key of one or two integers. A key of one begins with a zero.
pub(super) type IntegerKey = [i64; 2];

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
    /// In the order of their changes. A row may be there repeatedly.
    ByIntegers(Vec<(IntegerKey, i64)>),
    ByKey(BTreeMap<Key, i64>),
}

impl NotedRows {
    /// The argument says of each table whether one or two integers are the key of its rows.
    pub(super) fn of_tables(by_integers: impl IntoIterator<Item = bool>) -> NotedRows {
        let tables = by_integers
            .into_iter()
            .map(|by_integers| match by_integers {
                true => TableRows::ByIntegers(Vec::new()),
                false => TableRows::ByKey(BTreeMap::new()),
            });
        NotedRows(tables.collect())
    }

    /// Notes a row by its key.
    pub(super) fn note(&mut self, table: usize, key: Key, columns: i64) {
        match &mut self.0[table] {
            TableRows::ByKey(rows) => *rows.entry(key).or_default() |= columns,
            TableRows::ByIntegers(_) => {
                unreachable!("the rows of this table are noted by integers")
            }
        }
    }

    /// Notes a row by its key of integers.
    pub(super) fn note_integers(&mut self, table: usize, key: IntegerKey, columns: i64) {
        let TableRows::ByIntegers(rows) = &mut self.0[table] else {
            unreachable!("the rows of this table have other keys");
        };
        match rows.last_mut() {
            Some((last, noted)) if *last == key => *noted |= columns,
            _ => rows.push((key, columns)),
        }
    }

    /// Whether no row is noted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|rows| match rows {
            TableRows::ByIntegers(rows) => rows.is_empty(),
            TableRows::ByKey(rows) => rows.is_empty(),
        })
    }

    /// Takes all noted rows of each table.
    pub(super) fn take(&mut self) -> Vec<TableRows> {
        let tables = self.0.iter_mut().map(|rows| match rows {
            TableRows::ByIntegers(rows) => TableRows::ByIntegers(std::mem::take(rows)),
            TableRows::ByKey(rows) => TableRows::ByKey(std::mem::take(rows)),
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

    pub(super) fn as_value(&self) -> ValueRef<'_> {
        match self {
            KeyPart::Integer(number) => ValueRef::Integer(*number),
            KeyPart::Text(text) => ValueRef::Text(text.as_bytes()),
        }
    }
}

impl ToSql for KeyPart {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.as_value()))
    }
}
