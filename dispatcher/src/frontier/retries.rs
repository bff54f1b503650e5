//! Retries: failures that may pass are tried again after a wait, by the [`RetryTable`]. A task that
//! waits for its retry is queued, with `not_before_ms` set, and cannot be handed out until then.

use rusqlite::{Connection, Result, Row, params};
use webfill_wire::{CrawlKey, FailedAttempt, TaskDone};

use super::answers::{SiteId, TaskId, Woken};
use super::give_back::HeldTask;
use super::schema::QUEUED;
use super::sites::NextCrawl;
use super::{Frontier, FrontierError, sites};
use crate::retry_table::RetryTable;

/// By how much each failed attempt lowers the task's priority.
const PRIORITY_LOST: u8 = 10;

/// One call requeues at most this many tasks.
const SLICE: i64 = 500;

/// The retry table, and when the next retry is due.
#[derive(Debug)]
pub(super) struct Retries {
    table: RetryTable,
    next_ms: Option<i64>,
}

impl Retries {
    pub(super) fn open(db: &Connection, table: RetryTable) -> Result<Retries> {
        let next_ms = next_ms(db)?;
        Ok(Retries { table, next_ms })
    }
}

impl Frontier {
    /// When the next retry is due.
    pub fn next_retry_ms(&self) -> Option<i64> {
        self.retries.next_ms
    }

    /// Makes tasks whose retries are due available again. Returns the sites inside the window that
    /// got tasks by it.
    pub fn requeue_due_retries(
        &mut self,
        now_ms: i64,
    ) -> std::result::Result<Vec<Woken>, FrontierError> {
        if self.retries.next_ms.is_none_or(|next_ms| next_ms > now_ms) {
            return Ok(Vec::new());
        }
        self.guarded("take up retries", |frontier| {
            let mut woken = Vec::new();
            for task in due_retries(&frontier.db, now_ms)? {
                let sql = "UPDATE tasks SET not_before_ms = 0 WHERE id = ?1";
                frontier.db.prepare_cached(sql)?.execute([task.id as i64])?;
                sites::count_queued_of(&frontier.db, task.site, task.crawl, 0, task.priority)?;
                if sites::count_queued(&frontier.db, task.site, 0, task.priority)? {
                    let (site, crawl, priority) = (task.site, task.crawl, task.priority);
                    let turn = frontier.turn(NextCrawl { priority, crawl })?;
                    woken.push(Woken { site, turn });
                }
            }
            frontier.retries.next_ms = next_ms(&frontier.db)?;
            Ok(woken)
        })
    }

    /// Queues a failed task again, if the crawl and the retry table allow it; returns whether.
    pub(super) fn retry(
        &mut self,
        task: &HeldTask,
        report: &TaskDone,
        now_ms: i64,
    ) -> Result<bool> {
        let crawl = self.known_crawl(task.crawl)?;
        if !crawl.spec.retry || crawl.ending(now_ms).is_some() {
            return Ok(false);
        }
        let failed_attempts = failed_attempts(&self.db, report.task)?;
        let table = &self.retries.table;
        let Some(wait_ms) =
            table.wait_ms(report.outcome, report.status_code, failed_attempts.len())
        else {
            return Ok(false);
        };
        self.note_try(report, &failed_attempts, now_ms)?;
        let priority = task.priority.saturating_sub(PRIORITY_LOST).max(1);
        self.queue_again(task, report.task, priority, now_ms + wait_ms.max(1))?;
        Ok(true)
    }

    /// Stores a failed attempt that will be followed by another.
    pub(super) fn note_try(
        &self,
        report: &TaskDone,
        failed_attempts: &[FailedAttempt],
        now_ms: i64,
    ) -> Result<()> {
        // The time is part of the row's key: two attempts must not end at the same millisecond.
        let ended_at_ms = failed_attempts
            .last()
            .map_or(now_ms, |last| now_ms.max(last.ended_at_ms + 1));
        let sql = "INSERT INTO tries VALUES (?1, ?2, ?3, ?4)";
        let outcome = report.outcome.as_str();
        let values = params![report.task as i64, ended_at_ms, outcome, report.status_code];
        self.db.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// Queues a leased task again, to be handed out at a time.
    pub(super) fn queue_again(
        &mut self,
        task: &HeldTask,
        id: TaskId,
        priority: u8,
        not_before_ms: i64,
    ) -> Result<()> {
        let sql = "UPDATE tasks SET state = ?2, priority = ?3, not_before_ms = ?4 WHERE id = ?1";
        let values = params![id as i64, QUEUED, priority, not_before_ms];
        self.db.prepare_cached(sql)?.execute(values)?;
        let crawl = self.known_crawl(task.crawl)?;
        crawl.status.leased -= 1;
        crawl.count_queued(priority, 1);
        sites::count_queued_of(&self.db, task.site, task.crawl, 1, 0)?;
        sites::count_queued(&self.db, task.site, 1, 0)?;
        let next_ms = self.retries.next_ms.unwrap_or(i64::MAX);
        self.retries.next_ms = Some(next_ms.min(not_before_ms));
        self.note_lease_over(task.crawl, task.site, false);
        Ok(())
    }
}

struct Due {
    id: TaskId,
    site: SiteId,
    crawl: CrawlKey,
    priority: u8,
}

fn due_retries(db: &Connection, now_ms: i64) -> Result<Vec<Due>> {
    let sql = "SELECT id, site, crawl, priority FROM tasks
               WHERE state = 0 AND not_before_ms > 0 AND not_before_ms <= ?1
               ORDER BY not_before_ms LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let tasks = select.query_map([now_ms, SLICE], |row| {
        Ok(Due {
            id: row.get::<_, i64>(0)? as u64,
            site: row.get(1)?,
            crawl: row.get(2)?,
            priority: row.get(3)?,
        })
    })?;
    tasks.collect()
}

fn next_ms(db: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT min(not_before_ms) FROM tasks WHERE state = 0 AND not_before_ms > 0";
    db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// A task's failed attempts that were followed by a retry, the oldest first.
pub(super) fn failed_attempts(db: &Connection, task: TaskId) -> Result<Vec<FailedAttempt>> {
    let sql = "SELECT ended_at_ms, outcome, status_code FROM tries WHERE task = ?1
               ORDER BY ended_at_ms";
    let mut select = db.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        let outcome: String = row.get(1)?;
        Ok(FailedAttempt {
            ended_at_ms: row.get(0)?,
            outcome: outcome.parse().map_err(|error: String| {
                let kind = rusqlite::types::Type::Text;
                rusqlite::Error::FromSqlConversionFailure(1, kind, error.into())
            })?,
            status_code: row.get(2)?,
        })
    };
    select.query_map([task as i64], read)?.collect()
}

/// Tasks of a crawl at a site that wait for their retries, with their priorities.
pub(super) fn waiting_at(
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
