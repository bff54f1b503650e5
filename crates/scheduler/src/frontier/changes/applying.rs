//! Applies the changes of commits to a file.

use rusqlite::{Connection, Result, params_from_iter};

use super::applied::{Applied, note_applied_position};
use super::changed_rows::{ChangedRow, ChangedTable, SEQUENCES, equality_condition};
use crate::journal::ReadCommit;

/// Applies the changes of a commit, within the caller's transaction. An error means that the file differs from the one
/// in which the changes were made: it must be dropped, and created again from a snapshot.
pub fn apply_changes(db: &Connection, changes: &[u8]) -> Result<()> {
    let changed: Vec<ChangedTable> =
        postcard::from_bytes(changes).map_err(|error| unequal_files_error(error.to_string()))?;
    // Rows are deleted before others are inserted, so that no value that must be unique is there twice.
    for table in &changed {
        table.delete_rows(db)?;
    }
    for table in &changed {
        table.update_rows(db)?;
    }
    for table in &changed {
        if table.name == SEQUENCES {
            // SQLite has already raised these numbers for rows that were inserted above, so they are replaced.
            table.delete_rows(db)?;
        }
        table.insert_rows(db)?;
    }
    Ok(())
}

impl ChangedTable {
    fn delete_rows(&self, db: &Connection) -> Result<()> {
        let key = equality_condition(&self.columns[..self.keys]);
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

    fn update_rows(&self, db: &Connection) -> Result<()> {
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
                equality_condition(&self.columns[..self.keys])
            );
            let all = key.iter().chain(values.iter().map(|(_, value)| value));
            if db.prepare_cached(&sql)?.execute(params_from_iter(all))? != 1 {
                return Err(unequal_files_error(format!(
                    "{} has no row {key:?}",
                    self.name
                )));
            }
        }
        Ok(())
    }

    fn insert_rows(&self, db: &Connection) -> Result<()> {
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
