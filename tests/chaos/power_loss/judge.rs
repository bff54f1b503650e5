//! Checks the state after a power loss, and the final result of the crawl. A sentence describes each violation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;
use webfill_tests::stored::Stored;

use super::fleet::{FRONTIER, Recording, STORE, expected_titles};

/// The state of a URL in the frontier.
#[derive(Debug)]
struct Task {
    is_done: bool,
    handed_out: u32,
}

/// The data that the disk has after a power loss.
#[derive(Debug, Default)]
pub(crate) struct DiskState {
    tasks: BTreeMap<String, Task>,
    stored: BTreeSet<String>,
    wrong: Vec<String>,
}

impl DiskState {
    /// Opens the databases on a disk and reads them. This may change their files, as any start of webfill does.
    pub(crate) fn open(disk: &Path) -> DiskState {
        let mut left = DiskState::default();
        if let Some(db) = left.connect(&disk.join(FRONTIER), "tasks") {
            let sql = "SELECT url, state = 2, attempt FROM tasks";
            let task = |row: &rusqlite::Row<'_>| {
                let (is_done, handed_out) = (row.get(1)?, row.get(2)?);
                Ok((
                    row.get(0)?,
                    Task {
                        is_done,
                        handed_out,
                    },
                ))
            };
            left.tasks = query_rows(&db, sql, task).into_iter().collect();
        }
        if let Some(db) = left.connect(&disk.join(STORE), "pages") {
            let stored = query_rows(&db, "SELECT url FROM pages WHERE outcome = 'ok'", |row| {
                row.get(0)
            });
            left.stored = stored.into_iter().collect();
        }
        left
    }

    /// Opens a database. `None` if the file or its tables do not exist yet.
    fn connect(&mut self, path: &Path, table: &str) -> Option<Connection> {
        if !path.exists() {
            return None;
        }
        let db = Connection::open(path).expect("any file can be opened");
        let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0));
        let damage = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'";
        match number(damage) {
            Ok(0) => {}
            reported => self
                .wrong
                .push(format!("{} is damaged: {reported:?}", path.display())),
        }
        let tables = format!("SELECT count(*) FROM sqlite_schema WHERE name = '{table}'");
        number(&tables).is_ok_and(|count| count == 1).then_some(db)
    }

    /// Finds data that are missing although they were confirmed before the power loss, or although an action before it
    /// required them.
    pub(crate) fn find_violations(&mut self, recording: &Recording, at: u64) -> &[String] {
        let before = |dated: &&(String, u64)| dated.1 <= at;
        for (url, _) in recording.accepted.iter().filter(before) {
            if !self.tasks.contains_key(url) {
                self.wrong.push(format!("{url} was accepted, and is lost"));
            }
        }
        for (url, _) in recording.requested.iter().filter(before) {
            if self.tasks.get(url).is_none_or(|task| task.handed_out == 0) {
                self.wrong
                    .push(format!("{url} was requested, and its lease is lost"));
            }
        }
        for (url, task) in &self.tasks {
            if task.is_done && !self.stored.contains(url) {
                self.wrong
                    .push(format!("{url} is done, and its page is lost"));
            }
        }
        &self.wrong
    }
}

fn query_rows<T>(
    db: &Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Vec<T> {
    let mut select = db
        .prepare(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = select
        .query_map([], read)
        .expect("a query without parameters");
    rows.collect::<rusqlite::Result<_>>()
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Checks the final result of a crawl that was continued after a power loss.
pub(crate) fn find_end_violations(left: &DiskState, recording: &Recording) -> Vec<String> {
    let mut wrong = Vec::new();
    for (url, _) in &recording.requested {
        if left.tasks.get(url).is_some_and(|task| task.is_done) {
            wrong.push(format!("{url} was done, and is requested again"));
        }
    }
    let disk = recording.work.path("disk");
    let pages = Stored::open(&disk.join(STORE)).pages();
    let expected = expected_titles();
    for (url, title) in &expected {
        let page = pages.get(url);
        if page.is_none_or(|page| page.outcome != "ok" || page.fields["title"] != **title) {
            wrong.push(format!("{url} is stored as {page:?}"));
        }
    }
    let frontier = Stored::open(&disk.join(FRONTIER));
    let count = expected.len() as i64;
    let counts = [
        ("pages", pages.len() as i64, count),
        (
            "tasks",
            frontier.query_number("SELECT count(*) FROM tasks"),
            count,
        ),
        (
            "URLs",
            frontier.query_number("SELECT count(DISTINCT url) FROM tasks"),
            count,
        ),
        (
            "tasks that are done",
            frontier.query_number("SELECT count(*) FROM tasks WHERE state = 2"),
            count,
        ),
        (
            "counted as done",
            frontier.query_number("SELECT sum(done) FROM crawls"),
            count,
        ),
        (
            "outcomes",
            frontier.query_number("SELECT sum(n) FROM outcomes"),
            count,
        ),
    ];
    let miscounted = counts.iter().filter(|(_, found, right)| found != right);
    wrong.extend(miscounted.map(|(what, found, right)| format!("{what}: {found}, not {right}")));
    wrong
}
