//! Applies the changes of commits to a file.

use rusqlite::{Connection, Result, params_from_iter};

use super::applied::{Applied, note_applied_position};
use super::changed_rows::{Change, ChangedRows, SEQUENCES, equality_condition};
use crate::journal::ReadCommit;

/// Applies the changes of a commit, within the caller's transaction. An error means that the file differs from the one
/// where the changes were made: it must be dropped, and created again from a snapshot.
pub fn apply_changes(db: &Connection, changes: &[u8]) -> Result<()> {
    let changed: Vec<ChangedRows<'_>> =
        postcard::from_bytes(changes).map_err(|error| unequal_files_error(error.to_string()))?;
    if let Some(some) = changed.iter().find(|some| !some.is_complete()) {
        let why = format!("the changes of {} are incomplete", some.table);
        return Err(unequal_files_error(why));
    }
    // Rows are deleted before others are inserted, so that no value that must be unique is there twice.
    let replaced = changed.iter().filter(|some| some.change != Change::Some);
    for some in replaced {
        some.delete_rows(db)?;
    }
    let updated = changed.iter().filter(|some| some.change == Change::Some);
    for some in updated {
        some.update_rows(db)?;
    }
    let inserted = changed.iter().filter(|some| some.change == Change::Whole);
    for some in inserted {
        if some.table == SEQUENCES {
            // SQLite has already raised these numbers for rows that were inserted above, so they are replaced.
            some.delete_rows(db)?;
        }
        some.insert_rows(db)?;
    }
    Ok(())
}

impl ChangedRows<'_> {
    fn delete_rows(&self, db: &Connection) -> Result<()> {
        let key = equality_condition(&self.columns[..self.keys]);
        let mut delete = db.prepare_cached(&format!("DELETE FROM {} WHERE {key}", self.table))?;
        for row in self.rows() {
            delete.execute(params_from_iter(&row[..self.keys]))?;
        }
        Ok(())
    }

    fn update_rows(&self, db: &Connection) -> Result<()> {
        let set: Vec<String> = (self.keys..self.columns.len())
            .map(|at| format!("{} = ?{}", self.columns[at], at + 1))
            .collect();
        let mut update = db.prepare_cached(&format!(
            "UPDATE {} SET {} WHERE {}",
            self.table,
            set.join(", "),
            equality_condition(&self.columns[..self.keys])
        ))?;
        for row in self.rows() {
            if update.execute(params_from_iter(row))? != 1 {
                let key = &row[..self.keys];
                return Err(unequal_files_error(format!(
                    "{} has no row {key:?}",
                    self.table
                )));
            }
        }
        Ok(())
    }

    fn insert_rows(&self, db: &Connection) -> Result<()> {
        let places: Vec<String> = (1..=self.columns.len()).map(|n| format!("?{n}")).collect();
        let mut insert = db.prepare_cached(&format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.table,
            self.columns.join(", "),
            places.join(", ")
        ))?;
        for row in self.rows() {
            insert.execute(params_from_iter(row))?;
        }
        Ok(())
    }
}

fn unequal_files_error(reason: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(reason.into())
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
    note_applied_position(&transaction, position)?;
    transaction.commit()
}
