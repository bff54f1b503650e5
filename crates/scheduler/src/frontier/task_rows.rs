//! Rows of tasks, as read by the operations that change them (table `task_rows`, view `tasks`).

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::{CrawlKey, Delivery, Outcome};

use super::epochs;
use super::model::{AttrsId, SiteId, TaskId};
use super::schema::{DONE, LEASED};

/// An SQL condition: the row of `tasks` serves records, and all of them are complete.
pub(super) const SERVES_ONLY_RESOLVED: &str =
    "EXISTS (SELECT 1 FROM task_records WHERE task = tasks.id)
     AND NOT EXISTS (
         SELECT 1 FROM task_records JOIN records ON records.id = record
         WHERE task = tasks.id AND resolved = 0)";

/// The row of a leased task.
pub(super) struct HeldTask {
    pub(super) crawl: CrawlKey,
    pub(super) site: SiteId,
    pub(super) depth: u16,
    pub(super) priority: u8,
    pub(super) redirects: u8,
    pub(super) deaths: u32,
    pub(super) url: String,
    pub(super) attrs: Option<AttrsId>,
}

/// The row of a task, if the given lease of the task is in force.
pub(super) fn find_held_task(
    db: &Connection,
    task: TaskId,
    delivery: Delivery,
) -> Result<Option<HeldTask>> {
    let sql = concat!(
        "SELECT ",
        epochs::delivery!(),
        ",
             crawl, site, depth, priority, redirects, deaths, url, attrs FROM tasks
         WHERE id = ?1 AND state = ?2"
    );
    let mut select = db.prepare_cached(sql)?;
    let held = |row: &Row<'_>| {
        let in_force = epochs::read_delivery(row)? == delivery;
        let held = HeldTask {
            crawl: row.get(2)?,
            site: row.get(3)?,
            depth: row.get(4)?,
            priority: row.get(5)?,
            redirects: row.get(6)?,
            deaths: row.get(7)?,
            url: row.get(8)?,
            attrs: row.get(9)?,
        };
        Ok(in_force.then_some(held))
    };
    let held = select.query_row(params![task as i64, LEASED], held);
    Ok(held.optional()?.flatten())
}

/// The page of a task that has ended.
pub(super) struct HeldPage<'a> {
    pub(super) crawl: CrawlKey,
    pub(super) site: SiteId,
    pub(super) url: &'a str,
}

/// A task that has ended, with its outcome.
pub(super) struct EndedTask {
    pub(super) id: TaskId,
    pub(super) crawl: CrawlKey,
    pub(super) site: SiteId,
    pub(super) priority: u8,
    pub(super) outcome: Outcome,
    pub(super) status_code: Option<u16>,
    pub(super) done_at_ms: i64,
    pub(super) url: String,
}

impl EndedTask {
    /// The columns of `tasks` that [`read`](EndedTask::read) expects.
    pub(super) const COLUMNS: &str =
        "id, crawl, site, priority, outcome, status_code, done_at_ms, url";

    pub(super) fn read(row: &Row<'_>) -> Result<EndedTask> {
        Ok(EndedTask {
            id: row.get::<_, i64>(0)? as u64,
            crawl: row.get(1)?,
            site: row.get(2)?,
            priority: row.get(3)?,
            outcome: read_outcome(row, 4)?,
            status_code: row.get(5)?,
            done_at_ms: row.get(6)?,
            url: row.get(7)?,
        })
    }
}

/// Of these tasks, the ones that have ended, except tasks that only complete records need.
pub(super) fn find_ended_tasks(db: &Connection, tasks: &[TaskId]) -> Result<Vec<EndedTask>> {
    let columns = EndedTask::COLUMNS;
    let sql = format!(
        "SELECT {columns} FROM tasks
         WHERE id = ?1 AND state = ?2 AND NOT ({SERVES_ONLY_RESOLVED})"
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut ended = Vec::new();
    for task in BTreeSet::from_iter(tasks) {
        for row in select.query_map(params![*task as i64, DONE], EndedTask::read)? {
            ended.push(row?);
        }
    }
    Ok(ended)
}

pub(super) struct DueRetry {
    pub(super) id: TaskId,
    pub(super) site: SiteId,
    pub(super) crawl: CrawlKey,
    pub(super) priority: u8,
}

pub(super) fn due_retries(db: &Connection, now_ms: i64) -> Result<Vec<DueRetry>> {
    let sql = "SELECT id, site, crawl, priority FROM tasks
               WHERE state = 0 AND not_before_ms > 0 AND not_before_ms <= ?1
               ORDER BY not_before_ms LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let tasks = select.query_map([now_ms, SLICE], |row| {
        Ok(DueRetry {
            id: row.get::<_, i64>(0)? as u64,
            site: row.get(1)?,
            crawl: row.get(2)?,
            priority: row.get(3)?,
        })
    })?;
    tasks.collect()
}

pub(super) fn next_retry_ms(db: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT min(not_before_ms) FROM tasks WHERE state = 0 AND not_before_ms > 0";
    db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// Tasks of a crawl at a site that wait for their retries, with their priorities.
pub(super) fn tasks_awaiting_retry(
    db: &Connection,
    site: SiteId,
    crawl: CrawlKey,
    limit: usize,
) -> Result<Vec<(TaskId, u8)>> {
    let sql = "SELECT id, priority FROM tasks
               WHERE site = ?1 AND crawl = ?2 AND state = 0 AND not_before_ms > 0 LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let tasks = select.query_map(params![site, crawl, limit as i64], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
    })?;
    tasks.collect()
}

/// Reads an outcome by its name.
pub(super) fn read_outcome(row: &Row<'_>, column: usize) -> Result<Outcome> {
    let name: String = row.get(column)?;
    name.parse().map_err(|error: String| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, kind, error.into())
    })
}

/// The maximum number of tasks that one call queues again.
const SLICE: i64 = 500;
