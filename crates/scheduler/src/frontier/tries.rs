//! The table `tries`: attempts at tasks that were followed by another attempt.

use rusqlite::{Connection, Result, Row, params};
use webfill_wire::{FailedAttempt, Outcome};

use super::model::TaskId;
use super::task_rows::{EndedTask, read_outcome};

/// The maximum number of earlier attempts sent along with a task. The retry table alone never makes more, but a task
/// that is reopened again and again has more.
const MOST_LISTED: i64 = 50;

/// How many retries a task has had since it was fed or reopened.
pub(super) fn count_used_retries(db: &Connection, task: TaskId) -> Result<usize> {
    let sql = "SELECT count(*) FROM tries WHERE task = ?1 AND counts = 1";
    let mut count = db.prepare_cached(sql)?;
    count.query_row([task as i64], |row| {
        row.get::<_, i64>(0).map(|n| n as usize)
    })
}

/// How many attempts at a task have failed.
pub(super) fn count_tries(db: &Connection, task: TaskId) -> Result<i64> {
    let mut count = db.prepare_cached("SELECT count(*) FROM tries WHERE task = ?1")?;
    count.query_row([task as i64], |row| row.get(0))
}

/// Stores an attempt that is followed by another one.
pub(super) fn note_try(
    db: &Connection,
    task: TaskId,
    ended_at_ms: i64,
    outcome: Outcome,
    status_code: Option<u16>,
) -> Result<()> {
    // The time is part of the row's key, so two attempts must not end in the same millisecond.
    let sql = "INSERT INTO tries (task, ended_at_ms, outcome, status_code)
               SELECT ?1, max(?2, coalesce(max(ended_at_ms) + 1, ?2)), ?3, ?4
               FROM tries WHERE task = ?1";
    let values = params![task as i64, ended_at_ms, outcome.as_str(), status_code];
    db.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Starts over with an ended task: its last attempt joins the earlier ones, and none of them counts against its
/// retries any more.
pub(super) fn reset_tries(db: &Connection, task: &EndedTask) -> Result<()> {
    if !matches!(task.outcome, Outcome::Stopped | Outcome::Expired) {
        note_try(db, task.id, task.done_at_ms, task.outcome, task.status_code)?;
    }
    let sql = "UPDATE tries SET counts = 0 WHERE task = ?1 AND counts = 1";
    db.prepare_cached(sql)?.execute([task.id as i64])?;
    Ok(())
}

/// A task's earlier attempts, the latest [`MOST_LISTED`] of them, oldest first.
pub(super) fn failed_attempts(db: &Connection, task: TaskId) -> Result<Vec<FailedAttempt>> {
    let sql = "SELECT ended_at_ms, outcome, status_code FROM tries WHERE task = ?1
               ORDER BY ended_at_ms DESC LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        Ok(FailedAttempt {
            ended_at_ms: row.get(0)?,
            outcome: read_outcome(row, 1)?,
            status_code: row.get(2)?,
        })
    };
    let latest = select.query_map([task as i64, MOST_LISTED], read)?;
    let mut attempts: Vec<FailedAttempt> = latest.collect::<Result<_>>()?;
    attempts.reverse();
    Ok(attempts)
}
