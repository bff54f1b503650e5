//! The tables of a file whose rows belong to the journal, and the triggers that note changed rows.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Result, Row, params_from_iter};

use super::applied::{OWN_META, OWN_TABLES};
use super::changed_rows::{Cell, Change, SEQUENCES, equality_condition};
use super::encoding::{Encoder, Group};
use super::noted_rows::{IntegerKey, Key, MOST_KEYS, TableRows};

/// The name of the SQL function that triggers call to note a changed row.
pub(super) const NOTE_ROW: &str = "note_changed_row";

/// Of the tables that change most, the columns that the most frequent statements set. A change of one of these rows is
/// noted as a change of all of these columns. They are short.
const OFTEN_CHANGED: [(&str, &[&str]); 3] = [
    (
        "task_rows",
        &[
            "state",
            "priority",
            "attempt",
            "deaths",
            "outcome",
            "status_code",
            "done_at_ms",
            "not_before_ms",
            "epoch",
        ],
    ),
    (
        "sites",
        &[
            "queued",
            "top_priority",
            "in_window",
            "due_at_ms",
            "delay_ms",
            "last_start_ms",
            "owner",
            "backoff_until_ms",
            "address",
        ],
    ),
    (
        CRAWL_SITES,
        &["accepted", "queued", "top_priority", "turn", "taken"],
    ),
];

/// Tables that change often although SQLite does not identify their rows by numbers, so that no hook sees them. Code
/// that inserts into them, or sets columns of [`OFTEN_CHANGED`], must note the row itself (see [`CodeNotes`]).
///
/// [`CodeNotes`]: super::recording::CodeNotes
pub(super) const NOTED_BY_CODE: [&str; 2] = [CRAWL_SITES, TASK_RECORDS];
pub(super) const CRAWL_SITES: &str = "crawl_sites";
pub(super) const TASK_RECORDS: &str = "task_records";

#[derive(Debug)]
pub(super) struct Table {
    name: String,
    columns: Vec<String>,
    /// The positions of the key's columns.
    key: Vec<usize>,
    /// Whether SQLite identifies the table's rows by a number, which is the key.
    has_numbers: bool,
    /// Whether the key is one or two integers.
    has_integer_keys: bool,
    /// The columns of [`OFTEN_CHANGED`], as a set of bits.
    often_changed: i64,
}

pub(super) fn tables(db: &Connection) -> Result<Vec<Table>> {
    let sql = "SELECT name, wr FROM pragma_table_list
               WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
               ORDER BY name";
    let mut select = db.prepare(sql)?;
    let found = select.query_map([], |row| Ok((row.get(0)?, !row.get::<_, bool>(1)?)))?;
    let found: Vec<(String, bool)> = found.collect::<Result<_>>()?;
    let shared = found
        .into_iter()
        .filter(|(name, _)| !OWN_TABLES.contains(&name.as_str()));
    shared
        .map(|(name, has_numbers)| Table::read_schema(db, name, has_numbers))
        .collect()
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
    fn read_schema(db: &Connection, name: String, has_numbers: bool) -> Result<Table> {
        let sql = "SELECT name, pk, type FROM pragma_table_info(?1) ORDER BY cid";
        let mut select = db.prepare(sql)?;
        let columns = select.query_map([&name], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
        })?;
        let columns: Vec<(String, i64, String)> = columns.collect::<Result<_>>()?;
        let mut key: Vec<usize> = (0..columns.len())
            .filter(|position| columns[*position].1 > 0)
            .collect();
        key.sort_by_key(|position| columns[*position].1);
        let are_integers = key.iter().all(|position| columns[*position].2 == "INTEGER");
        let is_number = key.len() == 1 && are_integers;
        assert!(
            (1..=MOST_KEYS).contains(&key.len()) && (is_number || !has_numbers),
            "the journal knows rows by their keys: {name} needs an integer as its key, or at most {MOST_KEYS} columns \
             and WITHOUT ROWID"
        );
        let often_changed: &[&str] = match OFTEN_CHANGED.iter().find(|(table, _)| *table == name) {
            Some((_, often_changed)) => often_changed,
            None => &[],
        };
        let bits = columns.iter().enumerate();
        let bits = bits.filter(|(_, (column, ..))| often_changed.contains(&column.as_str()));
        Ok(Table {
            often_changed: bits.map(|(at, _)| 1 << at).sum(),
            columns: columns.into_iter().map(|(column, ..)| column).collect(),
            name,
            has_integer_keys: key.len() <= 2 && are_integers,
            key,
            has_numbers,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn has_numbers(&self) -> bool {
        self.has_numbers
    }

    /// Whether one or two integers are the key of the table's rows.
    pub(super) fn has_integer_keys(&self) -> bool {
        self.has_integer_keys
    }

    /// How many integers are the key of the table's rows; `None` if they are more than two, or not all are integers.
    pub(super) fn integers_in_key(&self) -> Option<usize> {
        self.has_integer_keys.then_some(self.key.len())
    }

    /// All columns, as a set of bits.
    pub(super) fn all_columns_mask(&self) -> i64 {
        (1 << self.columns.len()) - 1
    }

    /// The columns whose changes triggers do not note.
    pub(super) fn often_changed_mask(&self) -> i64 {
        self.often_changed
    }

    pub(super) fn triggers_sql(&self, number: usize) -> String {
        let name = &self.name;
        let all = self.all_columns_mask().to_string();
        let moves: Vec<String> = self.key.iter().map(|at| self.differs(*at)).collect();
        let keys: Vec<&str> = self
            .key
            .iter()
            .map(|at| self.columns[*at].as_str())
            .collect();
        let (inserted, deleted) = (self.condition("NEW"), self.condition("OLD"));
        let is_new_seen = self.has_numbers || NOTED_BY_CODE.contains(&name.as_str());
        let note_new = match is_new_seen {
            true => String::new(),
            false => format!(
                "CREATE TEMP TRIGGER note_new_{name} AFTER INSERT ON main.{name} {inserted} BEGIN {} END;",
                self.note_sql(number, "NEW", &all)
            ),
        };
        format!(
            "{note_new}
             CREATE TEMP TRIGGER note_gone_{name} AFTER DELETE ON main.{name} {deleted} BEGIN {} END;
             CREATE TEMP TRIGGER note_changed_{name} AFTER UPDATE {} ON main.{name} {inserted} BEGIN {} END;
             CREATE TEMP TRIGGER note_moved_{name} AFTER UPDATE OF {} ON main.{name} WHEN {} BEGIN {} {} END;",
            self.note_sql(number, "OLD", &all),
            self.of_seldom_changed(),
            self.note_sql(number, "NEW", &self.differing_columns()),
            keys.join(", "),
            moves.join(" OR "),
            self.note_sql(number, "OLD", &all),
            self.note_sql(number, "NEW", &all),
        )
    }

    fn note_sql(&self, number: usize, row: &str, columns: &str) -> String {
        let mut keys: Vec<String> = self
            .key
            .iter()
            .map(|at| format!("{row}.{}", self.columns[*at]))
            .collect();
        keys.resize(MOST_KEYS, String::from("0"));
        format!(
            "SELECT {NOTE_ROW}({number}, {columns}, {});",
            keys.join(", ")
        )
    }

    fn differs(&self, at: usize) -> String {
        let column = &self.columns[at];
        format!("OLD.{column} IS NOT NEW.{column}")
    }

    /// The columns that differ, as a set of bits, in SQL.
    fn differing_columns(&self) -> String {
        let changed: Vec<String> = (0..self.columns.len())
            .map(|at| format!("(({}) << {at})", self.differs(at)))
            .collect();
        changed.join(" | ")
    }

    /// The part of a trigger's SQL that limits it to the columns that seldom change. Statements that set none of them
    /// do without the trigger.
    fn of_seldom_changed(&self) -> String {
        if self.often_changed == 0 {
            return String::new();
        }
        let seldom = (0..self.columns.len()).filter(|at| (self.often_changed >> at) & 1 == 0);
        let seldom: Vec<&str> = seldom.map(|at| self.columns[at].as_str()).collect();
        format!("OF {}", seldom.join(", "))
    }

    /// The condition that a row belongs to the journal.
    fn condition(&self, row: &str) -> String {
        match self.name.as_str() {
            "meta" => format!("WHEN {row}.name NOT IN ('{}')", OWN_META.join("', '")),
            _ => String::new(),
        }
    }

    /// Reads the noted rows as they are now.
    pub(super) fn encode_rows(
        &self,
        db: &Connection,
        noted: TableRows,
        changes: &mut Encoder,
    ) -> Result<()> {
        let mut gone = self.group(Change::Gone, 0);
        match noted {
            TableRows::ByIntegers(rows) => {
                for (columns, keys) in by_columns(merged(rows)) {
                    let mut group = self.group(self.change_of(columns), columns);
                    self.read_by_integers(db, &keys, &mut group, &mut gone)?;
                    changes.add(&group);
                }
            }
            TableRows::ByKey(rows) => {
                for (columns, keys) in by_columns(rows) {
                    let mut group = self.group(self.change_of(columns), columns);
                    self.read_by_key(db, &keys, &mut group, &mut gone)?;
                    changes.add(&group);
                }
            }
        }
        changes.add(&gone);
        Ok(())
    }

    fn change_of(&self, columns: i64) -> Change {
        match columns == self.all_columns_mask() {
            true => Change::Whole,
            false => Change::Some,
        }
    }

    /// Begins a group of changed rows, with the columns of the key and those in `columns`, but without rows.
    fn group(&self, change: Change, columns: i64) -> Group<'_> {
        let others = (0..self.columns.len()).filter(|at| (columns >> at) & 1 == 1);
        let others = others.filter(|at| !self.key.contains(at));
        let named = self.key.iter().copied().chain(others);
        let named = named.map(|at| self.columns[at].as_str());
        Group::new(&self.name, change, named.collect(), self.key.len())
    }

    /// Reads rows by their keys, which are sorted. Rows that are fed together have neighbouring numbers, so a statement
    /// reads a whole run of them.
    fn read_by_integers(
        &self,
        db: &Connection,
        keys: &[IntegerKey],
        group: &mut Group<'_>,
        gone: &mut Group<'_>,
    ) -> Result<()> {
        let condition = match group.columns[..self.key.len()] {
            [number] => format!("{number} BETWEEN ?2 AND ?3 ORDER BY {number}"),
            [first, number] => {
                format!("{first} = ?1 AND {number} BETWEEN ?2 AND ?3 ORDER BY {number}")
            }
            _ => unreachable!("the key is one or two integers"),
        };
        let number_at = self.key.len() - 1;
        let mut push_gone = |key: &IntegerKey| {
            for part in &key[key.len() - self.key.len()..] {
                gone.push(ValueRef::Integer(*part));
            }
        };
        let mut select = self.select(db, group, &condition)?;
        for run in keys.chunk_by(|key, next| [key[0], key[1] + 1] == *next) {
            let ([first, from], [_, to]) = (run[0], run[run.len() - 1]);
            let mut found = select.query([first, from, to])?;
            let mut expected = run.iter();
            while let Some(row) = found.next()? {
                let number: i64 = row.get(number_at)?;
                let missing = expected.by_ref().take_while(|key| key[1] != number);
                missing.for_each(&mut push_gone);
                push_row(row, group)?;
            }
            expected.for_each(&mut push_gone);
        }
        Ok(())
    }

    fn read_by_key(
        &self,
        db: &Connection,
        keys: &[Key],
        group: &mut Group<'_>,
        gone: &mut Group<'_>,
    ) -> Result<()> {
        let condition = equality_condition(&group.columns[..self.key.len()]);
        let mut select = self.select(db, group, &condition)?;
        for key in keys {
            let key = &key[..self.key.len()];
            let mut found = select.query(params_from_iter(key))?;
            match found.next()? {
                Some(row) => push_row(row, group)?,
                None => key.iter().for_each(|part| gone.push(part.as_value())),
            }
        }
        Ok(())
    }

    fn select<'db>(
        &self,
        db: &'db Connection,
        group: &Group<'_>,
        condition: &str,
    ) -> Result<CachedStatement<'db>> {
        db.prepare_cached(&format!(
            "SELECT {} FROM main.{} WHERE {condition}",
            group.columns.join(", "),
            self.name,
        ))
    }
}

/// Each row once, sorted by key, with all columns that were noted for it.
fn merged(mut rows: Vec<(IntegerKey, i64)>) -> Vec<(IntegerKey, i64)> {
    rows.sort_unstable();
    rows.dedup_by(|row, before| {
        let is_same = row.0 == before.0;
        if is_same {
            before.1 |= row.1;
        }
        is_same
    });
    rows
}

/// The keys of the rows in their order, grouped by the columns that have changed.
fn by_columns<K>(rows: impl IntoIterator<Item = (K, i64)>) -> BTreeMap<i64, Vec<K>> {
    let mut by_columns: BTreeMap<i64, Vec<K>> = BTreeMap::new();
    for (key, columns) in rows {
        by_columns.entry(columns).or_default().push(key);
    }
    by_columns
}

fn push_row(row: &Row<'_>, group: &mut Group<'_>) -> Result<()> {
    for at in 0..group.columns.len() {
        group.push(row.get_ref(at)?);
    }
    Ok(())
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
