//! Writes the rows of new tasks several at a time. For each statement SQLite opens the table and all of its indexes,
//! which takes as long as writing a row.
//!
//! Only the first row of a batch is written with its id. The following rows get their ids from SQLite, which continues
//! from the highest one. If they were written with ids, SQLite would first copy each page that a statement changes,
//! to be able to undo that statement alone.

use std::sync::LazyLock;

use rusqlite::{Connection, Error, Result, ToSql, ffi};
use webfill_wire::CrawlKey;

use super::model::{AttrsId, SiteId, TaskId};

/// The maximum number of rows that one statement writes.
const TOGETHER: usize = 16;

/// All columns but the id, which comes after them.
const COLUMNS: [&str; 9] = [
    "crawl",
    "site",
    "priority",
    "depth",
    "redirects",
    "parent",
    "rank",
    "url",
    "attrs",
];

static INSERT_FIRST: LazyLock<String> =
    LazyLock::new(|| insert_sql(&[&COLUMNS[..], &["id"]].concat(), 1));
/// The statements, indexed by the number of rows minus one.
static INSERT_NEXT: LazyLock<Vec<String>> = LazyLock::new(|| {
    (1..=TOGETHER)
        .map(|rows| insert_sql(&COLUMNS, rows))
        .collect()
});

/// A task that is queued for the first time.
#[derive(Debug)]
pub(super) struct NewTask {
    pub(super) id: i64,
    pub(super) site: SiteId,
    pub(super) priority: u8,
    pub(super) depth: u16,
    pub(super) redirects: u8,
    pub(super) parent: Option<TaskId>,
    pub(super) rank: i64,
    /// The URL in its stored form.
    pub(super) url: String,
    pub(super) attrs: Option<AttrsId>,
}

/// The new tasks of a batch, all of one crawl. Some may not be written yet.
#[derive(Debug)]
pub(super) struct NewTasks {
    crawl: CrawlKey,
    unwritten: Vec<NewTask>,
    has_written: bool,
}

impl NewTasks {
    pub(super) fn new(crawl: CrawlKey) -> NewTasks {
        NewTasks {
            crawl,
            unwritten: Vec::new(),
            has_written: false,
        }
    }

    /// Adds a task. Its id must follow that of the previous one.
    pub(super) fn add(&mut self, db: &Connection, task: NewTask) -> Result<()> {
        self.unwritten.push(task);
        match self.unwritten.len() < TOGETHER {
            true => Ok(()),
            false => self.write(db),
        }
    }

    /// Writes all rows. Must be called before the table is read, and at the end.
    pub(super) fn write(&mut self, db: &Connection) -> Result<()> {
        let mut tasks = &self.unwritten[..];
        if !self.has_written
            && let Some((first, others)) = tasks.split_first()
        {
            self.execute_insert(db, &INSERT_FIRST, &[first.id], &[first])?;
            tasks = others;
            self.has_written = true;
        }
        if let Some(last) = tasks.last() {
            let together: Vec<_> = tasks.iter().collect();
            self.execute_insert(db, &INSERT_NEXT[tasks.len() - 1], &[], &together)?;
            if db.last_insert_rowid() != last.id {
                return Err(id_mismatch_error(last.id, db.last_insert_rowid()));
            }
        }
        self.unwritten.clear();
        Ok(())
    }

    fn execute_insert(
        &self,
        db: &Connection,
        sql: &str,
        ids: &[i64],
        tasks: &[&NewTask],
    ) -> Result<()> {
        let mut insert = db.prepare_cached(sql)?;
        let mut place = 0;
        let mut bind = |value: &dyn ToSql| {
            place += 1;
            insert.raw_bind_parameter(place, value)
        };
        for task in tasks {
            bind(&self.crawl)?;
            bind(&task.site)?;
            bind(&task.priority)?;
            bind(&task.depth)?;
            bind(&task.redirects)?;
            bind(&task.parent.map(|parent| parent as i64))?;
            bind(&task.rank)?;
            bind(&task.url)?;
            bind(&task.attrs)?;
        }
        for id in ids {
            bind(id)?;
        }
        insert.raw_execute()?;
        Ok(())
    }
}

/// The error if SQLite has given a task another id than expected: the index of seen URLs would refer to another task.
fn id_mismatch_error(ours: i64, stored: i64) -> Error {
    let message = format!("task {ours} was stored as {stored}");
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(message))
}

/// A statement that inserts this many rows. `OR FAIL` is enough, because an error rolls back the whole transaction in
/// any case.
fn insert_sql(columns: &[&str], rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns.len()].join(", "));
    format!(
        "INSERT OR FAIL INTO task_rows ({}) VALUES {}",
        columns.join(", "),
        vec![row; rows].join(", ")
    )
}
