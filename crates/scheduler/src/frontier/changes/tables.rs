//! The tables of a file whose rows belong to the journal, and the triggers that note changed rows.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Result, Statement, params_from_iter};

use super::applied::{OWN_META, OWN_TABLES};
use super::changed_rows::{Cell, ChangedRow, ChangedTable, SEQUENCES, equality_condition};

/// The largest number of columns in a key.
pub(super) const MOST_KEYS: usize = 3;

#[derive(Debug)]
pub(super) struct Table {
    name: String,
    columns: Vec<String>,
    /// The positions of the key's columns.
    key: Vec<usize>,
}

pub(super) fn tables(db: &Connection) -> Result<Vec<Table>> {
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

pub(super) fn sequences(db: &Connection) -> Result<BTreeMap<String, i64>> {
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
    fn all_columns_mask(&self) -> i64 {
        (1 << self.columns.len()) - 1
    }

    pub(super) fn triggers_sql(&self, number: usize) -> String {
        let name = &self.name;
        let all = self.all_columns_mask().to_string();
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
    pub(super) fn read_rows(
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
            equality_condition(&columns[..self.key.len()])
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
            Some(values) if changed == self.all_columns_mask() => ChangedRow::Whole { values },
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
