//! Counts the changes to records' values that reading pages again has made. Each field of a record counts once,
//! however many pages it is on.

use std::hash::{BuildHasher, RandomState};

use rusqlite::{Row, params};
use serde_json::Value;

use super::scratch::Scratch;
use crate::error::StoreError;
use crate::record::has_value;
use crate::reread::{ValueChange, ValueCounts};

const SCHEMA: &str = "
CREATE TABLE changed (
    record TEXT NOT NULL,
    field TEXT NOT NULL,
    -- Hashes of its value before all changes, or null if there was none, and after them.
    was INTEGER,
    now INTEGER NOT NULL,
    PRIMARY KEY (record, field)
) WITHOUT ROWID";

/// Counts the changes of records' values. Each field of a record counts once. The data is in a temporary file, which is
/// deleted on drop.
#[derive(Debug)]
pub struct ValueChangeCounter {
    scratch: Scratch,
    hasher: RandomState,
}

impl ValueChangeCounter {
    pub fn new() -> Result<ValueChangeCounter, StoreError> {
        Ok(ValueChangeCounter {
            scratch: Scratch::new(SCHEMA)?,
            hasher: RandomState::new(),
        })
    }

    /// Adds changes in the order they were made.
    pub fn add(&self, changes: &[ValueChange]) -> Result<(), StoreError> {
        let sql = "INSERT INTO changed (record, field, was, now) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (record, field) DO UPDATE SET now = excluded.now";
        self.scratch.with_database(|db| {
            let mut insert = db.prepare_cached(sql)?;
            for change in changes {
                let was = change.old.as_ref().filter(|old| has_value(old));
                let was = was.map(|old| self.hash(old));
                let now = self.hash(&change.new);
                insert.execute(params![change.record, change.field, was, now])?;
            }
            Ok(())
        })
    }

    /// How many records have new or changed values after all changes, and how many new and changed values each field
    /// has.
    pub fn counts(&self) -> Result<(u64, ValueCounts), StoreError> {
        let of_records = "SELECT count(DISTINCT record) FROM changed WHERE was IS NOT now";
        let of_fields = "SELECT field, sum(was IS NULL), sum(was IS NOT NULL) FROM changed
            WHERE was IS NOT now GROUP BY field";
        self.scratch.with_database(|db| {
            let number = |row: &Row<'_>, column| row.get(column).map(i64::unsigned_abs);
            let records = db.query_row(of_records, (), |row| number(row, 0))?;
            let mut find = db.prepare(of_fields)?;
            let counts = find.query_map((), |row| {
                Ok((row.get(0)?, (number(row, 1)?, number(row, 2)?)))
            })?;
            Ok((records, counts.collect::<rusqlite::Result<_>>()?))
        })
    }

    fn hash(&self, value: &Value) -> i64 {
        self.hasher.hash_one(value.to_string()).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(record: &str, field: &str, old: Value, new: Value) -> ValueChange {
        ValueChange {
            record: record.to_owned(),
            field: field.to_owned(),
            old: Some(old),
            new,
        }
    }

    #[test]
    fn a_value_counts_once_and_not_if_it_changed_back() {
        let tally = ValueChangeCounter::new().unwrap();
        assert_eq!(tally.counts().unwrap(), (0, ValueCounts::new()));
        let (ada, bob) = ("people/ada", "people/bob");
        let first = [
            change(ada, "town", json!(null), json!("Ockham")),
            change(ada, "price", json!("12"), json!("13")),
            change(bob, "price", json!("5"), json!("6")),
        ];
        let second = [
            change(ada, "town", json!("Ockham"), json!("London")),
            change(ada, "price", json!("13"), json!("14")),
            change(bob, "price", json!("6"), json!("5")),
        ];
        tally.add(&first).unwrap();
        let of_first = [("price", (0, 2)), ("town", (1, 0))];
        assert_eq!(tally.counts().unwrap(), (2, counts(&of_first)));
        tally.add(&second).unwrap();
        let of_both = [("price", (0, 1)), ("town", (1, 0))];
        assert_eq!(tally.counts().unwrap(), (1, counts(&of_both)));
    }

    fn counts(of: &[(&str, (u64, u64))]) -> ValueCounts {
        let counts = of
            .iter()
            .map(|(field, counts)| ((*field).to_owned(), *counts));
        counts.collect()
    }
}
