//! Notes the rows that a connection changes.
//!
//! SQLite reports most of them to a hook, by their numbers, which costs next to nothing. A trigger makes a statement take
//! two to three times as long: SQLite then keeps what it needs to undo the statement alone. The hook does not see tables
//! whose rows have no numbers. Two of them change with each task, so code notes their rows. Triggers are left for
//! everything else: other tables, deleted rows, and columns that seldom change.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::hooks::Action;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};
use webfill_wire::CrawlKey;

use super::changed_rows::{Change, SEQUENCES};
use super::encoding::{Encoder, Group};
use super::noted_rows::{IntegerKey, KeyPart, MOST_KEYS, NotedRows};
use super::tables::{CRAWL_SITES, NOTE_ROW, TASK_RECORDS, Table, sequences, tables};
use crate::frontier::SiteId;

/// Notes changed rows on one connection.
#[derive(Debug)]
pub(in crate::frontier) struct Recorder {
    tables: Vec<Table>,
    noted: Arc<Mutex<NotedRows>>,
    sequences: BTreeMap<String, i64>,
}

impl Recorder {
    /// Begins to note the changes that this connection makes.
    pub(in crate::frontier) fn begin(db: &mut Connection) -> Result<Recorder> {
        // Without this, a row that an INSERT OR REPLACE deletes would not be noted.
        db.pragma_update(None, "recursive_triggers", true)?;
        let tables = tables(db)?;
        let by_integers = tables.iter().map(Table::has_integer_keys);
        let noted = Arc::new(Mutex::new(NotedRows::of_tables(by_integers)));
        begin_hook(db, &tables, Arc::clone(&noted))?;
        begin_triggers(db, &tables, Arc::clone(&noted))?;
        Ok(Recorder {
            tables,
            noted,
            sequences: sequences(db)?,
        })
    }

    /// With these, code notes changes that are not noted otherwise.
    pub(in crate::frontier) fn code_notes(&self) -> CodeNotes {
        let find = |name: &str| {
            let mut tables = self.tables.iter().enumerate();
            let found = tables.find(|(_, table)| table.name() == name);
            let (number, table) = found.expect("the schema has the table");
            (number, table.all_columns_mask())
        };
        CodeNotes {
            noted: Arc::clone(&self.noted),
            crawl_sites: find(CRAWL_SITES),
            task_records: find(TASK_RECORDS),
        }
    }

    /// The changes since the last call. Empty if there are none.
    pub(in crate::frontier) fn take_changes(&mut self, db: &Connection) -> Result<Vec<u8>> {
        let noted = {
            let mut noted = lock(&self.noted);
            if noted.is_empty() {
                return Ok(Vec::new());
            }
            noted.take()
        };
        let mut changes = Encoder::default();
        for (table, noted) in self.tables.iter().zip(noted) {
            table.encode_rows(db, noted, &mut changes)?;
        }
        // A number in SQLite's own table changes only together with a row of the table that it counts for.
        self.encode_changed_sequences(db, &mut changes)?;
        Ok(changes.finish())
    }

    fn encode_changed_sequences(&mut self, db: &Connection, changes: &mut Encoder) -> Result<()> {
        let now = sequences(db)?;
        let changed = now
            .iter()
            .filter(|(name, last)| self.sequences.get(*name) != Some(last));
        let mut group = Group::new(SEQUENCES, Change::Whole, vec!["name", "seq"], 1);
        for (name, last) in changed {
            group.push(ValueRef::Text(name.as_bytes()));
            group.push(ValueRef::Integer(*last));
        }
        changes.add(&group);
        self.sequences = now;
        Ok(())
    }
}

/// Notes of code about rows that neither the hook nor a trigger sees.
#[derive(Debug, Clone)]
pub(in crate::frontier) struct CodeNotes {
    noted: Arc<Mutex<NotedRows>>,
    /// The number and the columns of each table.
    crawl_sites: (usize, i64),
    task_records: (usize, i64),
}

impl CodeNotes {
    /// Notes that a crawl's row of a site is new, or has changed.
    pub(in crate::frontier) fn note_crawl_site(&self, crawl: CrawlKey, site: SiteId) {
        self.note(self.crawl_sites, [i64::from(crawl), site.0]);
    }

    /// Notes that a record's row of a task is new.
    pub(in crate::frontier) fn note_task_record(&self, task: i64, record: i64) {
        self.note(self.task_records, [task, record]);
    }

    fn note(&self, (table, columns): (usize, i64), key: IntegerKey) {
        lock(&self.noted).note_integers(table, key, columns);
    }
}

/// Notes new rows, and changes of the columns that often change, of tables whose rows have numbers.
fn begin_hook(db: &mut Connection, tables: &[Table], noted: Arc<Mutex<NotedRows>>) -> Result<()> {
    let hooked = tables.iter().enumerate();
    let hooked = hooked.filter(|(_, table)| table.has_numbers());
    let hooked: HashMap<String, (usize, i64, i64)> = hooked
        .map(|(number, table)| {
            let (all, often_changed) = (table.all_columns_mask(), table.often_changed_mask());
            (table.name().to_owned(), (number, all, often_changed))
        })
        .collect();
    let note = move |action: Action, database: &str, table: &str, row: i64| {
        let Some((number, all, often_changed)) = hooked.get(table).copied() else {
            return;
        };
        let columns = match action {
            Action::SQLITE_INSERT => all,
            Action::SQLITE_UPDATE => often_changed,
            // All other changes are noted by a trigger.
            _ => 0,
        };
        if columns != 0 && database == "main" {
            lock(&noted).note_integers(number, [0, row], columns);
        }
    };
    db.update_hook(Some(note))
}

/// Makes triggers note all changes that the hook does not note.
fn begin_triggers(db: &Connection, tables: &[Table], noted: Arc<Mutex<NotedRows>>) -> Result<()> {
    let arguments = (2 + MOST_KEYS) as i32;
    let flags = FunctionFlags::SQLITE_UTF8;
    let integers: Vec<Option<usize>> = tables.iter().map(Table::integers_in_key).collect();
    let note = move |row: &Context<'_>| note_row(&noted, &integers, row);
    db.create_scalar_function(NOTE_ROW, arguments, flags, note)?;
    for (number, table) in tables.iter().enumerate() {
        db.execute_batch(&table.triggers_sql(number))?;
    }
    Ok(())
}

/// The function that the triggers call: with the number of the table, the columns that differ, and the key.
fn note_row(
    noted: &Mutex<NotedRows>,
    integers: &[Option<usize>],
    row: &Context<'_>,
) -> Result<bool> {
    let (table, columns): (i64, i64) = (row.get(0)?, row.get(1)?);
    if columns == 0 {
        return Ok(true);
    }
    let table = table as usize;
    match integers[table] {
        Some(1) => lock(noted).note_integers(table, [0, row.get(2)?], columns),
        Some(_) => lock(noted).note_integers(table, [row.get(2)?, row.get(3)?], columns),
        None => {
            let part = |at: usize| {
                let unknown =
                    || Error::UserFunctionError("a key is neither a number nor a text".into());
                KeyPart::of(row.get_raw(2 + at)).ok_or_else(unknown)
            };
            let key = [part(0)?, part(1)?, part(2)?];
            lock(noted).note(table, key, columns);
        }
    }
    Ok(true)
}

fn lock(noted: &Mutex<NotedRows>) -> MutexGuard<'_, NotedRows> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}
