//! Resolved records: a record that is complete needs no further page. Queued tasks that serve only
//! resolved records end in `stopped`. Such a task is queued again if a further record comes to want
//! its page.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::{CrawlKey, Outcome};

use super::answers::{SiteId, TaskId};
use super::reopen::EndedTask;
use super::schema::DONE;
use super::{Frontier, FrontierError, sites};

impl Frontier {
    /// Marks a record as resolved. Queued tasks that serve no unresolved record end in `stopped`.
    pub fn record_resolved(&mut self, record: &str, now_ms: i64) -> Result<(), FrontierError> {
        self.guarded("close a record", |frontier| {
            frontier.resolve(record, now_ms)
        })
    }

    /// Marks records as unresolved: their seeds are fed because fields are missing in the store,
    /// though an earlier crawl may have resolved them.
    pub fn reopen_records<'r>(
        &mut self,
        records: impl Iterator<Item = &'r str>,
    ) -> Result<(), FrontierError> {
        self.guarded("take up records", |frontier| {
            let sql = "UPDATE records SET resolved = 0 WHERE id = ?1 AND resolved = 1";
            for record in records {
                let record = frontier.records.id_of(&frontier.db, record)?;
                frontier.db.prepare_cached(sql)?.execute([record])?;
            }
            Ok(())
        })
    }

    pub(super) fn resolve(&mut self, record: &str, now_ms: i64) -> Result<()> {
        let record = self.records.id_of(&self.db, record)?;
        let sql = "UPDATE records SET resolved = 1 WHERE id = ?1 AND resolved = 0";
        if self.db.prepare_cached(sql)?.execute([record])? == 0 {
            return Ok(());
        }
        for needless in needless_tasks(&self.db, record)? {
            let (crawl, site) = (needless.crawl, needless.site);
            let (task, priority) = (needless.task, needless.priority);
            self.close_queued(crawl, task, priority, Outcome::Stopped, now_ms)?;
            sites::count_taken_of(&self.db, site, crawl, 1, None)?;
            sites::count_taken(&self.db, site, 1)?;
        }
        Ok(())
    }
}

pub(super) fn is_resolved(db: &Connection, record: i64) -> Result<bool> {
    let sql = "SELECT resolved FROM records WHERE id = ?1";
    db.prepare_cached(sql)?
        .query_row([record], |row| row.get(0))
}

struct Needless {
    task: TaskId,
    crawl: CrawlKey,
    site: SiteId,
    priority: u8,
}

/// Queued tasks that serve this record and no unresolved one.
fn needless_tasks(db: &Connection, record: i64) -> Result<Vec<Needless>> {
    let sql = "SELECT t.id, t.crawl, t.site, t.priority
               FROM task_records served JOIN tasks t ON t.id = served.task
               WHERE served.record = ?1 AND t.state = 0 AND NOT EXISTS (
                   SELECT 1 FROM task_records other JOIN records r ON r.id = other.record
                   WHERE other.task = t.id AND r.resolved = 0)";
    let task = |row: &Row<'_>| {
        Ok(Needless {
            task: row.get::<_, i64>(0)? as u64,
            crawl: row.get(1)?,
            site: row.get(2)?,
            priority: row.get(3)?,
        })
    };
    db.prepare_cached(sql)?.query_map([record], task)?.collect()
}

/// Whether a row of `tasks` serves records, all of which are resolved.
pub(super) const SERVES_ONLY_RESOLVED: &str =
    "EXISTS (SELECT 1 FROM task_records WHERE task = tasks.id)
     AND NOT EXISTS (
         SELECT 1 FROM task_records JOIN records ON records.id = record
         WHERE task = tasks.id AND resolved = 0)";

/// The task, if it was stopped because its records were complete. A task that was stopped with its
/// crawl served no record, or one that was unresolved.
pub(super) fn stopped_as_needless(db: &Connection, task: TaskId) -> Result<Option<EndedTask>> {
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
pub(super) struct Served {
    pub(super) id: i64,
    pub(super) name: String,
    /// It came to want the page after the task was handed out (column `late`).
    pub(super) needs_backfill: bool,
    pub(super) resolved: bool,
}

pub(super) fn served_by(db: &Connection, task: TaskId) -> Result<Vec<Served>> {
    let sql = "SELECT id, name, late, resolved FROM task_records JOIN records ON id = record
               WHERE task = ?1";
    let served = |row: &Row<'_>| {
        Ok(Served {
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
