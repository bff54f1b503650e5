//! Short ids for the names of sites and records. The tables are authoritative; recently used names are cached in two
//! generations, which bounds the memory.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result};

/// The maximum number of names in each generation. Both together take some ten megabytes.
const GENERATION: usize = 50_000;

/// The cached ids of the names in one table.
#[derive(Debug)]
pub(super) struct Names {
    select: &'static str,
    insert: &'static str,
    young: HashMap<Box<str>, i64>,
    old: HashMap<Box<str>, i64>,
}

impl Names {
    pub(super) fn for_sites() -> Names {
        Names::new(
            "SELECT id FROM sites WHERE name = ?1",
            "INSERT INTO sites (name) VALUES (?1)",
        )
    }

    pub(super) fn for_records() -> Names {
        Names::new(
            "SELECT id FROM records WHERE name = ?1",
            "INSERT INTO records (name) VALUES (?1)",
        )
    }

    fn new(select: &'static str, insert: &'static str) -> Names {
        Names {
            select,
            insert,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// The id of a name. A name that is not in the table is added.
    pub(super) fn id_or_insert(&mut self, db: &Connection, name: &str) -> Result<i64> {
        if let Some(id) = self.young.get(name) {
            return Ok(*id);
        }
        let id = match self.old.get(name) {
            Some(id) => *id,
            None => self.read_or_insert(db, name)?,
        };
        self.remember(name, id);
        Ok(id)
    }

    fn read_or_insert(&self, db: &Connection, name: &str) -> Result<i64> {
        let mut select = db.prepare_cached(self.select)?;
        if let Some(id) = select.query_row([name], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        db.prepare_cached(self.insert)?.insert([name])
    }

    fn remember(&mut self, name: &str, id: i64) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name.into(), id);
    }
}
