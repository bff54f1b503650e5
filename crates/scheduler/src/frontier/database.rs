//! The connection to the frontier's file.

use std::ops::Deref;

use rusqlite::Connection;
use webfill_wire::CrawlKey;

use super::changes::CodeNotes;
use super::model::{SiteId, TaskId};

/// The connection to the frontier's file, with the notes that code must make for the journal.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    /// `None`: there is no journal.
    notes: Option<CodeNotes>,
}

impl Database {
    pub(super) fn new(connection: Connection, notes: Option<CodeNotes>) -> Database {
        Database { connection, notes }
    }

    /// Must follow each statement that inserts a row into `crawl_sites`, or changes one.
    pub(super) fn note_crawl_site(&self, crawl: CrawlKey, site: SiteId) {
        if let Some(notes) = &self.notes {
            notes.note_crawl_site(crawl, site);
        }
    }

    /// Must follow each statement that inserts a row into `task_records`.
    pub(super) fn note_task_record(&self, task: TaskId, record: i64) {
        if let Some(notes) = &self.notes {
            notes.note_task_record(task as i64, record);
        }
    }
}

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}
