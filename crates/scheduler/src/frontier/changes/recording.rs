//! Notes the rows that a connection changes.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, Result};

use super::changed_rows::{Cell, ChangedRow, ChangedTable, SEQUENCES, encode};
use super::tables::{MOST_KEYS, Table, sequences, tables};

/// Notes changed rows on one connection.
#[derive(Debug)]
pub(in crate::frontier) struct Recorder {
    tables: Vec<Table>,
    sequences: BTreeMap<String, i64>,
}

impl Recorder {
    /// Begins to note the changes that this connection makes.
    pub(in crate::frontier) fn begin(db: &Connection) -> Result<Recorder> {
        // Without this, a row that an INSERT OR REPLACE deletes would not be noted.
        db.pragma_update(None, "recursive_triggers", true)?;
        db.execute_batch(
            "CREATE TEMP TABLE changed_rows (
                 tbl INTEGER, key0, key1, key2, columns INTEGER NOT NULL, PRIMARY KEY (tbl, key0, key1, key2)
             ) WITHOUT ROWID",
        )?;
        let tables = tables(db)?;
        for (number, table) in tables.iter().enumerate() {
            db.execute_batch(&table.triggers_sql(number))?;
        }
        Ok(Recorder {
            tables,
            sequences: sequences(db)?,
        })
    }

    /// The changes since the last call. Empty if there are none.
    pub(in crate::frontier) fn take_changes(&mut self, db: &Connection) -> Result<Vec<u8>> {
        let mut changed = Vec::new();
        let mut select = db.prepare_cached("SELECT DISTINCT tbl FROM changed_rows")?;
        let numbers = select.query_map([], |row| row.get::<_, i64>(0))?;
        let numbers: Vec<i64> = numbers.collect::<Result<_>>()?;
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let sql = "SELECT key0, key1, key2, columns FROM changed_rows WHERE tbl = ?1";
        for number in numbers {
            let table = &self.tables[number as usize];
            let mut select = db.prepare_cached(sql)?;
            let noted = select.query_map([number], |row| {
                let key = [row.get(0)?, row.get(1)?, row.get(2)?];
                Ok((key, row.get(3)?))
            })?;
            let noted: Vec<([Value; MOST_KEYS], i64)> = noted.collect::<Result<_>>()?;
            changed.extend(table.read_rows(db, &noted)?);
        }
        // A number in SQLite's own table changes only together with a row of the table that it counts for.
        changed.extend(self.take_changed_sequences(db)?);
        db.prepare_cached("DELETE FROM changed_rows")?.execute([])?;
        Ok(match changed.is_empty() {
            true => Vec::new(),
            false => encode(&changed),
        })
    }

    fn take_changed_sequences(&mut self, db: &Connection) -> Result<Option<ChangedTable>> {
        let now = sequences(db)?;
        let changed = now
            .iter()
            .filter(|(name, last)| self.sequences.get(*name) != Some(last));
        let rows: Vec<ChangedRow> = changed
            .map(|(name, last)| ChangedRow::Whole {
                values: vec![Cell::Text(name.clone()), Cell::Integer(*last)],
            })
            .collect();
        self.sequences = now;
        Ok((!rows.is_empty()).then(|| ChangedTable {
            name: SEQUENCES.to_owned(),
            columns: vec![String::from("name"), String::from("seq")],
            keys: 1,
            rows,
        }))
    }
}
