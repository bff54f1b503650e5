//! Takes back the values of pages that turn out to have been block pages. The store removes the values from records.
//! Then the pages are queued again, together with the pages that were not fetched because the records were complete.
//!
//! Pages whose values the store still has to remove are durable (table `taken_back`). After a crash the store is asked
//! again; that is harmless if it was done already.

use rusqlite::{OptionalExtension, Result};
use webfill_wire::{CrawlKey, Delivery, Outcome};

use super::context::Context;
use super::model::TaskId;
use super::parts::Records;
use super::records::records_served_by;
use super::task_rows::SERVES_ONLY_RESOLVED;
use super::{FrontierError, closing, crawl_rows, epochs};

/// A page whose values are to be taken back.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingRetraction {
    pub crawl: CrawlKey,
    pub task: TaskId,
    /// The delivery (hand-out of the task) that has brought the values.
    pub delivery: Delivery,
    /// The keys of the records that the task is for.
    pub records: Vec<String>,
}

impl Records<'_> {
    /// Takes the pages that were found to be block pages since the last call.
    pub fn take_new_retractions(
        &mut self,
    ) -> std::result::Result<Vec<PendingRetraction>, FrontierError> {
        let tasks = std::mem::take(&mut self.0.cx.false_pages);
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        self.0.run("look up pages to take back", |cx| {
            let pages = tasks
                .into_iter()
                .map(|task| load_or_drop_retraction(cx, task));
            Ok(pages
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .flatten()
                .collect())
        })
    }

    /// All pages whose values the store still has to take back.
    pub fn load_pending_retractions(
        &mut self,
    ) -> std::result::Result<Vec<PendingRetraction>, FrontierError> {
        self.0.run("look for pages to take back", |cx| {
            let mut select = cx.db.prepare_cached("SELECT task FROM taken_back")?;
            let tasks = select.query_map([], |row| row.get::<_, i64>(0))?;
            let tasks: Vec<i64> = tasks.collect::<Result<_>>()?;
            drop(select);
            let pages = tasks
                .into_iter()
                .map(|task| load_or_drop_retraction(cx, task as TaskId));
            Ok(pages
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .flatten()
                .collect())
        })
    }

    /// Notes that the store has taken back the values of a page. `open`: those of its records that are incomplete
    /// again.
    /// Returns the tasks to queue again.
    pub fn finish_retraction(
        &mut self,
        task: TaskId,
        open: &[String],
        now_ms: i64,
    ) -> std::result::Result<Vec<TaskId>, FrontierError> {
        self.0.run("take a page back", |cx| {
            let sql = "DELETE FROM taken_back WHERE task = ?1";
            cx.db.prepare_cached(sql)?.execute([task as i64])?;
            let mut again = vec![task];
            for record in open {
                let record = cx.records.id_or_insert(&cx.db, record)?;
                let sql = "UPDATE records SET resolved = 0 WHERE id = ?1 AND resolved = 1";
                if cx.db.prepare_cached(sql)?.execute([record])? == 0 {
                    continue;
                }
                let sql = "SELECT task FROM task_records JOIN task_rows ON task_rows.id = task
                           WHERE record = ?1 AND state = 2 AND outcome = 'stopped'";
                let mut select = cx.db.prepare_cached(sql)?;
                let stopped = select.query_map([record], |row| row.get::<_, i64>(0))?;
                for task in stopped {
                    again.push(task? as TaskId);
                }
            }
            end_as_blocked_if_not_needed(cx, task, now_ms)?;
            Ok(again)
        })
    }
}

pub(super) fn request_retraction(cx: &mut Context, task: TaskId) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO taken_back VALUES (?1)";
    cx.db.prepare_cached(sql)?.execute([task as i64])?;
    cx.false_pages.push(task);
    Ok(())
}

/// A page to take back. `None` if its crawl was pruned or the page is being fetched again. In that case the page is
/// forgotten here, because after a restart its new values would be taken for the false ones.
fn load_or_drop_retraction(cx: &Context, task: TaskId) -> Result<Option<PendingRetraction>> {
    let sql = concat!(
        "SELECT ",
        epochs::delivery!(),
        ", crawl FROM tasks WHERE id = ?1 AND state = 2"
    );
    let mut select = cx.db.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((epochs::read_delivery(row)?, row.get(2)?));
    let Some((delivery, crawl)) = select.query_row([task as i64], read).optional()? else {
        let sql = "DELETE FROM taken_back WHERE task = ?1";
        cx.db.prepare_cached(sql)?.execute([task as i64])?;
        return Ok(None);
    };
    let served = records_served_by(&cx.db, task)?;
    Ok(Some(PendingRetraction {
        crawl,
        task,
        delivery,
        records: served.into_iter().map(|record| record.name).collect(),
    }))
}

/// Ends a page with the outcome `blocked` if it is not queued again, because its records are complete without it.
fn end_as_blocked_if_not_needed(cx: &mut Context, task: TaskId, now_ms: i64) -> Result<()> {
    let sql = format!(
        "SELECT crawl, done_at_ms FROM tasks
         WHERE id = ?1 AND state = 2 AND outcome = 'ok' AND {SERVES_ONLY_RESOLVED}"
    );
    let mut select = cx.db.prepare_cached(&sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found: Option<(CrawlKey, i64)> = select.query_row([task as i64], read).optional()?;
    drop(select);
    let Some((key, done_at_ms)) = found else {
        return Ok(());
    };
    let crawl = crawl_rows::load_known_crawl(cx, key)?;
    // Tasks that ended before the run of a watch began are not part of its counts.
    let began_ms = crawl.spec.run_began_ms;
    if began_ms.is_some_and(|began_ms| done_at_ms < began_ms) {
        return Ok(());
    }
    if crawl.uncount_outcome(Outcome::Ok) == 0 {
        let sql = "DELETE FROM outcomes WHERE crawl = ?1 AND outcome = 'ok'";
        cx.db.prepare_cached(sql)?.execute([key])?;
    }
    closing::end_task(cx, key, task, Outcome::Blocked, None, now_ms)
}
