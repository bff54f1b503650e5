//! The changes of a commit as rows, for the journal that a standby applies.
//!
//! A record of changes names, for each row that a transaction has changed, the columns that differ with their final
//! values; a deleted row has none. So applying it depends on no decision of the program that wrote it, and applying it
//! twice does no harm. Two files that were equal before are equal after: a row that is not named is the same in both,
//! and any other gets the same values. Tables and columns are named, so a file with further columns can take changes
//! of a program that does not know them.
//!
//! Rows are noted by temporary triggers, which belong to the connection and not to the file. What a file knows of
//! itself is left out: the runs of its index of seen URLs, when it was created, and how far the journal is applied.

use std::collections::BTreeMap;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::journal::ReadCommit;

/// Tables that belong to one file.
const OWN_TABLES: [&str; 1] = ["seen_runs"];

/// Rows of `meta` that belong to one file.
const OWN_META: [&str; 4] = [
    APPLIED,
    APPLIED_EPOCH,
    "backup_made_at_ms",
    "file_created_at_ns",
];

/// The names in `meta` of the number of the last applied record, and of its epoch.
const APPLIED: &str = "journal_applied";
const APPLIED_EPOCH: &str = "journal_applied_epoch";

/// SQLite's own table of the last ids of tables that never reuse one. It takes no triggers.
const SEQUENCES: &str = "sqlite_sequence";

/// The largest number of columns in a key.
const MOST_KEYS: usize = 3;

/// Notes changed rows on one connection.
#[derive(Debug)]
pub(super) struct Recorder {
    tables: Vec<Table>,
    sequences: BTreeMap<String, i64>,
}

#[derive(Debug)]
struct Table {
    name: String,
    columns: Vec<String>,
    /// The positions of the key's columns.
    key: Vec<usize>,
}

/// The changed rows of a table.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ChangedTable {
    name: String,
    /// The names of the columns whose values follow, those of the key first.
    columns: Vec<String>,
    /// How many columns are the key.
    keys: usize,
    rows: Vec<ChangedRow>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum ChangedRow {
    Gone {
        key: Vec<Cell>,
    },
    /// A new row, or one of which everything may have changed.
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
enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// How far a file has applied the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Applied {
    /// The number of the last applied record; 0: none.
    pub number: u64,
    /// The epoch of that record.
    pub epoch: u64,
}

impl Recorder {
    /// Begins to note the changes that this connection makes.
    pub(super) fn begin(db: &Connection) -> Result<Recorder> {
        // Without this, a row that an INSERT OR REPLACE deletes would not be noted.
        db.pragma_update(None, "recursive_triggers", true)?;
        db.execute_batch(
            "CREATE TEMP TABLE changed_rows (
                 tbl INTEGER, key0, key1, key2, columns INTEGER NOT NULL, PRIMARY KEY (tbl, key0, key1, key2)
             ) WITHOUT ROWID",
        )?;
        let tables = tables(db)?;
        for (number, table) in tables.iter().enumerate() {
            db.execute_batch(&table.triggers(number))?;
        }
        Ok(Recorder {
            tables,
            sequences: sequences(db)?,
        })
    }

    /// The changes since the last call. Empty if there are none.
    pub(super) fn take(&mut self, db: &Connection) -> Result<Vec<u8>> {
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
            changed.extend(table.read(db, &noted)?);
        }
        // A number in SQLite's own table changes only together with a row of the table that it counts for.
        changed.extend(self.changed_sequences(db)?);
        db.prepare_cached("DELETE FROM changed_rows")?.execute([])?;
        Ok(match changed.is_empty() {
            true => Vec::new(),
            false => encode(&changed),
        })
    }

    fn changed_sequences(&mut self, db: &Connection) -> Result<Option<ChangedTable>> {
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

fn tables(db: &Connection) -> Result<Vec<Table>> {
    let sql = "SELECT name FROM main.sqlite_schema
               WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    let mut select = db.prepare(sql)?;
    let names: Vec<String> = select
        .query_map([], |row| row.get(0))?
        .collect::<Result<_>>()?;
    let shared = names
        .into_iter()
        .filter(|name| !OWN_TABLES.contains(&name.as_str()));
    shared.map(|name| Table::read_schema(db, name)).collect()
}

fn sequences(db: &Connection) -> Result<BTreeMap<String, i64>> {
    let mut select = db.prepare_cached("SELECT name, seq FROM sqlite_sequence")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let all: BTreeMap<String, i64> = rows.collect::<Result<_>>()?;
    let shared = all
        .into_iter()
        .filter(|(name, _)| !OWN_TABLES.contains(&name.as_str()));
    Ok(shared.collect())
}

impl Table {
    fn read_schema(db: &Connection, name: String) -> Result<Table> {
        let sql = "SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid";
        let mut select = db.prepare(sql)?;
        let columns = select.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let columns: Vec<(String, i64)> = columns.collect::<Result<_>>()?;
        let mut key: Vec<usize> = (0..columns.len())
            .filter(|position| columns[*position].1 > 0)
            .collect();
        key.sort_by_key(|position| columns[*position].1);
        assert!(
            (1..=MOST_KEYS).contains(&key.len()),
            "the journal knows rows by their keys, and {name} has {} columns in its key",
            key.len()
        );
        Ok(Table {
            name,
            columns: columns.into_iter().map(|(name, _)| name).collect(),
            key,
        })
    }

    /// All columns, as a set of bits.
    fn all(&self) -> i64 {
        (1 << self.columns.len()) - 1
    }

    fn triggers(&self, number: usize) -> String {
        let name = &self.name;
        let all = self.all().to_string();
        let note = |row: &str, columns: &str| {
            let mut keys: Vec<String> = self
                .key
                .iter()
                .map(|at| format!("{row}.{}", self.columns[*at]))
                .collect();
            keys.resize(MOST_KEYS, String::from("0"));
            format!(
                "INSERT INTO changed_rows VALUES ({number}, {}, {columns})
                 ON CONFLICT DO UPDATE SET columns = columns | excluded.columns;",
                keys.join(", ")
            )
        };
        let differs = |at: &usize| {
            let column = &self.columns[*at];
            format!("OLD.{column} IS NOT NEW.{column}")
        };
        let changed: Vec<String> = (0..self.columns.len())
            .map(|at| format!("(({}) << {at})", differs(&at)))
            .collect();
        let moves: Vec<String> = self.key.iter().map(differs).collect();
        let keys: Vec<&str> = self
            .key
            .iter()
            .map(|at| self.columns[*at].as_str())
            .collect();
        let (inserted, deleted) = (self.condition("NEW"), self.condition("OLD"));
        format!(
            "CREATE TEMP TRIGGER note_new_{name} AFTER INSERT ON main.{name} {inserted} BEGIN {} END;
             CREATE TEMP TRIGGER note_gone_{name} AFTER DELETE ON main.{name} {deleted} BEGIN {} END;
             CREATE TEMP TRIGGER note_changed_{name} AFTER UPDATE ON main.{name} {inserted} BEGIN {} END;
             CREATE TEMP TRIGGER note_moved_{name} AFTER UPDATE OF {} ON main.{name} WHEN {} BEGIN {} {} END;",
            note("NEW", &all),
            note("OLD", &all),
            note("NEW", &changed.join(" | ")),
            keys.join(", "),
            moves.join(" OR "),
            note("OLD", &all),
            note("NEW", &all),
        )
    }

    /// The condition that a row belongs to the journal.
    fn condition(&self, row: &str) -> String {
        match self.name.as_str() {
            "meta" => format!("WHEN {row}.name NOT IN ('{}')", OWN_META.join("', '")),
            _ => String::new(),
        }
    }

    /// Reads the noted rows as they are now.
    fn read(
        &self,
        db: &Connection,
        noted: &[([Value; MOST_KEYS], i64)],
    ) -> Result<Option<ChangedTable>> {
        let rest = (0..self.columns.len()).filter(|at| !self.key.contains(at));
        let order: Vec<usize> = self.key.iter().copied().chain(rest).collect();
        let columns: Vec<String> = order.iter().map(|at| self.columns[*at].clone()).collect();
        let sql = format!(
            "SELECT {} FROM main.{} WHERE {}",
            columns.join(", "),
            self.name,
            equal_to(&columns[..self.key.len()])
        );
        let mut select = db.prepare_cached(&sql)?;
        let mut rows = Vec::with_capacity(noted.len());
        for (key, changed) in noted {
            rows.extend(self.read_row(&mut select, &order, key, *changed)?);
        }
        Ok((!rows.is_empty()).then(|| ChangedTable {
            name: self.name.clone(),
            columns,
            keys: self.key.len(),
            rows,
        }))
    }

    fn read_row(
        &self,
        select: &mut Statement<'_>,
        order: &[usize],
        key: &[Value; MOST_KEYS],
        changed: i64,
    ) -> Result<Option<ChangedRow>> {
        if changed == 0 {
            return Ok(None);
        }
        let key = &key[..self.key.len()];
        let values: Option<Vec<Cell>> = select
            .query_row(params_from_iter(key), |row| {
                (0..order.len())
                    .map(|at| row.get_ref(at).map(Cell::of))
                    .collect()
            })
            .optional()?;
        let key = || key.iter().map(|value| Cell::of(value.into())).collect();
        Ok(Some(match values {
            None => ChangedRow::Gone { key: key() },
            Some(values) if changed == self.all() => ChangedRow::Whole { values },
            Some(values) => {
                let with_places = values.into_iter().enumerate();
                let differing = with_places.filter(|(at, _)| (changed >> order[*at]) & 1 == 1);
                ChangedRow::Some {
                    key: key(),
                    values: differing.collect(),
                }
            }
        }))
    }
}

fn equal_to(columns: &[String]) -> String {
    let equal: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| format!("{column} = ?{}", at + 1))
        .collect();
    equal.join(" AND ")
}

fn encode(changed: &Vec<ChangedTable>) -> Vec<u8> {
    postcard::to_stdvec(changed).expect("it holds only types that postcard can encode")
}

/// Applies the changes of a commit, within the caller's transaction. An error means that the file differs from the
/// one in which the changes were made: it must be dropped, and made anew from a snapshot.
pub fn apply_changes(db: &Connection, changes: &[u8]) -> Result<()> {
    let changed: Vec<ChangedTable> =
        postcard::from_bytes(changes).map_err(|error| unequal(error.to_string()))?;
    // Rows are deleted before others are inserted, so that no value that must be unique is there twice.
    for table in &changed {
        table.delete(db)?;
    }
    for table in &changed {
        table.update(db)?;
    }
    for table in &changed {
        if table.name == SEQUENCES {
            // SQLite has already raised these numbers for rows that were inserted above, so they are replaced.
            table.delete(db)?;
        }
        table.insert(db)?;
    }
    Ok(())
}

impl ChangedTable {
    fn delete(&self, db: &Connection) -> Result<()> {
        let key = equal_to(&self.columns[..self.keys]);
        let sql = format!("DELETE FROM {} WHERE {key}", self.name);
        let mut delete = db.prepare_cached(&sql)?;
        for row in &self.rows {
            match row {
                ChangedRow::Gone { key } => delete.execute(params_from_iter(key))?,
                ChangedRow::Whole { values } => {
                    delete.execute(params_from_iter(&values[..self.keys]))?
                }
                ChangedRow::Some { .. } => 0,
            };
        }
        Ok(())
    }

    fn update(&self, db: &Connection) -> Result<()> {
        for row in &self.rows {
            let ChangedRow::Some { key, values } = row else {
                continue;
            };
            let set: Vec<String> = values
                .iter()
                .enumerate()
                .map(|(place, (at, _))| {
                    let column = self.columns.get(*at).map_or("", String::as_str);
                    format!("{column} = ?{}", self.keys + place + 1)
                })
                .collect();
            let sql = format!(
                "UPDATE {} SET {} WHERE {}",
                self.name,
                set.join(", "),
                equal_to(&self.columns[..self.keys])
            );
            let all = key.iter().chain(values.iter().map(|(_, value)| value));
            if db.prepare_cached(&sql)?.execute(params_from_iter(all))? != 1 {
                return Err(unequal(format!("{} has no row {key:?}", self.name)));
            }
        }
        Ok(())
    }

    fn insert(&self, db: &Connection) -> Result<()> {
        let places: Vec<String> = (1..=self.columns.len()).map(|n| format!("?{n}")).collect();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.name,
            self.columns.join(", "),
            places.join(", ")
        );
        let mut insert = db.prepare_cached(&sql)?;
        for row in &self.rows {
            if let ChangedRow::Whole { values } = row {
                insert.execute(params_from_iter(values))?;
            }
        }
        Ok(())
    }
}

fn unequal(reason: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(reason.into())
}

impl Cell {
    fn of(value: ValueRef<'_>) -> Cell {
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

/// How far a file has applied the journal.
pub fn applied(db: &Connection) -> Result<Applied> {
    let number = |name: &str| -> Result<u64> {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        let value: Option<i64> = db.query_row(sql, [name], |row| row.get(0)).optional()?;
        Ok(value.unwrap_or(0) as u64)
    };
    Ok(Applied {
        number: number(APPLIED)?,
        epoch: number(APPLIED_EPOCH)?,
    })
}

/// Notes how far the file has applied the journal, in the transaction in which it did so.
pub fn note_applied(db: &Connection, applied: Applied) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO meta VALUES (?1, ?2), (?3, ?4)";
    db.prepare_cached(sql)?.execute(params![
        APPLIED,
        applied.number as i64,
        APPLIED_EPOCH,
        applied.epoch as i64
    ])?;
    Ok(())
}

/// Removes what a copy knows of the file that it was made from, except for how far the journal is applied.
pub(super) fn forget_own(db: &Connection) -> Result<()> {
    for table in OWN_TABLES {
        db.execute(&format!("DELETE FROM {table}"), [])?;
    }
    let mut delete = db.prepare("DELETE FROM meta WHERE name = ?1")?;
    for name in OWN_META {
        if ![APPLIED, APPLIED_EPOCH].contains(&name) {
            delete.execute([name])?;
        }
    }
    Ok(())
}

/// Applies commits of the journal in one transaction, and notes the position.
pub fn apply_commits(db: &mut Connection, commits: &[ReadCommit]) -> Result<()> {
    let Some(last) = commits.last() else {
        return Ok(());
    };
    let transaction = db.transaction()?;
    for commit in commits.iter().filter(|commit| !commit.changes.is_empty()) {
        apply_changes(&transaction, &commit.changes)?;
    }
    let position = Applied {
        number: last.number,
        epoch: last.epoch,
    };
    note_applied(&transaction, position)?;
    transaction.commit()
}

/// Whether no dispatcher has ever used the file.
pub fn is_unused(db: &Connection) -> Result<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM epochs)";
    db.query_row(sql, [], |row| row.get(0))
}

/// The shared contents of a file, row by row, to compare two files.
pub fn shared_rows(db: &Connection) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    for table in tables(db)? {
        let columns = table.columns.join(", ");
        let condition = table.condition(&table.name).replacen("WHEN", "WHERE", 1);
        let sql = format!(
            "SELECT {columns} FROM {} {condition} ORDER BY {columns}",
            table.name
        );
        let mut select = db.prepare(&sql)?;
        let mut found = select.query([])?;
        while let Some(row) = found.next()? {
            let cells: Result<Vec<Cell>> = (0..table.columns.len())
                .map(|at| row.get_ref(at).map(Cell::of))
                .collect();
            rows.push(format!("{} {:?}", table.name, cells?));
        }
    }
    for (name, last) in sequences(db)? {
        rows.push(format!("{SEQUENCES} {name} {last}"));
    }
    Ok(rows)
}
