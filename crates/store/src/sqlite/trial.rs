//! Records as a [trial](crate::Rereading::put_reread) would have left them so far, to find out what the next page
//! would change in them.

use rusqlite::{OptionalExtension, params};

use super::scratch::Scratch;
use crate::error::StoreError;
use crate::record::StoredRecord;

/// The records that a trial would have changed so far. They are in a temporary file, which is deleted on drop.
#[derive(Debug)]
pub struct Trial(Scratch);

impl Trial {
    pub fn new() -> Result<Trial, StoreError> {
        let schema =
            "CREATE TABLE records (_id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID";
        Ok(Trial(Scratch::new(schema)?))
    }

    /// The record as the trial has changed it; `None` if the trial has not changed it.
    pub(crate) fn load(&self, key: &str) -> Result<Option<StoredRecord>, StoreError> {
        let sql = "SELECT record FROM records WHERE _id = ?1";
        let text = self.0.with_database(|db| {
            let mut find = db.prepare_cached(sql)?;
            find.query_row([key], |row| row.get::<_, String>(0))
                .optional()
        })?;
        let record = text.map(|text| serde_json::from_str(&text));
        record.transpose().map_err(unreadable_record_error)
    }

    pub(crate) fn keep(&self, key: &str, record: &StoredRecord) -> Result<(), StoreError> {
        let text = serde_json::to_string(record).map_err(unreadable_record_error)?;
        let sql = "INSERT OR REPLACE INTO records (_id, record) VALUES (?1, ?2)";
        self.0.with_database(|db| {
            let mut keep = db.prepare_cached(sql)?;
            keep.execute(params![key, text]).map(drop)
        })
    }
}

fn unreadable_record_error(error: serde_json::Error) -> StoreError {
    StoreError::Fatal {
        store: String::from("a temporary file"),
        reason: error.to_string(),
    }
}
