//! Records, and the tasks that serve them (tables `records` and `task_records`).

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::{CrawlKey, Outcome};

use super::model::{SiteId, TaskId};
use super::schema::DONE;
use super::task_rows::{EndedTask, SERVES_ONLY_RESOLVED};

pub(super) fn is_resolved(db: &Connection, record: i64) -> Result<bool> {
    let sql = "SELECT resolved FROM records WHERE id = ?1";
    db.prepare_cached(sql)?
        .query_row([record], |row| row.get(0))
}

pub(super) struct NeedlessTask {
    pub(super) task: TaskId,
    pub(super) crawl: CrawlKey,
    pub(super) site: SiteId,
    pub(super) priority: u8,
}

/// The queued tasks that become needless when a record is complete: they serve this record and no incomplete one.
pub(super) fn needless_tasks(db: &Connection, record: i64) -> Result<Vec<NeedlessTask>> {
    let sql = "SELECT t.id, t.crawl, t.site, t.priority
               FROM task_records served JOIN tasks t ON t.id = served.task
               WHERE served.record = ?1 AND t.state = 0 AND NOT EXISTS (
                   SELECT 1 FROM task_records other JOIN records r ON r.id = other.record
                   WHERE other.task = t.id AND r.resolved = 0)";
    let task = |row: &Row<'_>| {
        Ok(NeedlessTask {
            task: row.get::<_, i64>(0)? as u64,
            crawl: row.get(1)?,
            site: row.get(2)?,
            priority: row.get(3)?,
        })
    };
    db.prepare_cached(sql)?.query_map([record], task)?.collect()
}

/// The task, if it was stopped because its records were complete. A task that was stopped together with its crawl has
/// no records, or an incomplete one.
pub(super) fn find_stopped_as_needless(db: &Connection, task: TaskId) -> Result<Option<EndedTask>> {
    let columns = EndedTask::COLUMNS;
    let sql = format!(
        "SELECT {columns} FROM tasks
         WHERE id = ?1 AND state = ?2 AND outcome = ?3 AND {SERVES_ONLY_RESOLVED}"
    );
    let stopped = Outcome::Stopped.as_str();
    db.prepare_cached(&sql)?
        .query_row(params![task as i64, DONE, stopped], EndedTask::read)
        .optional()
}

/// A record that a task serves.
pub(super) struct ServedRecord {
    pub(super) id: i64,
    pub(super) name: String,
    /// Whether the record did not need the page yet when the task was handed out (column `late`).
    pub(super) needs_backfill: bool,
    pub(super) resolved: bool,
}

pub(super) fn records_served_by(db: &Connection, task: TaskId) -> Result<Vec<ServedRecord>> {
    let sql = "SELECT id, name, late, resolved FROM task_records JOIN records ON id = record
               WHERE task = ?1";
    let served = |row: &Row<'_>| {
        Ok(ServedRecord {
            id: row.get(0)?,
            name: row.get(1)?,
            needs_backfill: row.get(2)?,
            resolved: row.get(3)?,
        })
    };
    db.prepare_cached(sql)?
        .query_map([task as i64], served)?
        .collect()
}
