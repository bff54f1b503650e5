//! Retries: failures that may pass are tried again after a wait, by the [`RetryTable`]. A task that
//! waits for its retry is queued, with `not_before_ms` set, and cannot be handed out until then.

use rusqlite::{Connection, Result, params};
use webfill_api::CrawlSpec;
use webfill_wire::{TaskDone, is_limited};

use super::context::Context;
use super::lease::Tasks;
use super::model::{NextCrawl, TaskId, Woken};
use super::schema::QUEUED;
use super::task_rows::{HeldTask, due_retries, next_ms};
use super::tries::{note_try, retries_used};
use super::{FrontierError, crawls, holding, lanes, sites};
use crate::patience::{Patience, is_no_such_name, nth_wait_ms};
use crate::retry_table::RetryTable;

/// By how much each failed attempt lowers the task's priority.
const PRIORITY_LOST: u8 = 10;

/// How often a page is retried at most that its site refuses because of the number of requests, while it answers
/// others. 429 says that for sure. Of another status it is likely: some servers send `Retry-After` with each refusal.
pub(super) fn most_retries_of_limited(report: &TaskDone) -> usize {
    match report.status_code {
        Some(429) => 20,
        // A server in trouble says when it will be well, not how many requests it accepts.
        Some(500..=599) | None => 0,
        Some(_) if is_limited(report) => 5,
        Some(_) => 0,
    }
}

/// The retry table, and when the next retry is due.
#[derive(Debug)]
pub(super) struct Retries {
    table: RetryTable,
    patience: Option<Patience>,
    next_ms: Option<i64>,
}

impl Retries {
    pub(super) fn open(
        db: &Connection,
        table: RetryTable,
        patience: Option<Patience>,
    ) -> Result<Retries> {
        Ok(Retries {
            table,
            patience,
            next_ms: next_ms(db)?,
        })
    }

    /// When the next retry is due.
    pub(super) fn next_ms(&self) -> Option<i64> {
        self.next_ms
    }

    /// Some are due now.
    pub(super) fn set_due(&mut self) {
        self.next_ms = Some(1);
    }

    /// How long to wait before a task is retried that was retried `used` times before; `None`: it is not.
    fn wait_ms(&self, run: Option<Patience>, report: &TaskDone, used: usize) -> Option<i64> {
        let waits = self.table.waits_of(report);
        let patience = run.or(self.patience);
        let nth = |index| nth_wait_ms(patience, waits, index);
        let is_brief = patience.is_some_and(|patience| patience.is_shorter_than(waits));
        if used > 0 && is_brief && is_no_such_name(report) {
            return None;
        }
        // Too many requests: that says nothing about the page.
        if used < most_retries_of_limited(report) {
            return (0..=used).rev().find_map(nth);
        }
        nth(used)
    }

    pub(super) fn set_table(&mut self, table: RetryTable) {
        self.table = table;
    }
}

impl Tasks<'_> {
    /// Makes tasks whose retries are due available again. Returns the sites inside the window that
    /// got tasks by it.
    pub fn requeue_due_retries(
        &mut self,
        now_ms: i64,
    ) -> std::result::Result<Vec<Woken>, FrontierError> {
        if self
            .0
            .cx
            .retries
            .next_ms
            .is_none_or(|next_ms| next_ms > now_ms)
        {
            return Ok(Vec::new());
        }
        self.0.guarded("take up retries", |cx| {
            let mut woken = Vec::new();
            for task in due_retries(&cx.db, now_ms)? {
                let sql = "UPDATE task_rows SET not_before_ms = 0 WHERE id = ?1";
                cx.db.prepare_cached(sql)?.execute([task.id as i64])?;
                sites::count_queued_of(&cx.db, task.site, task.crawl, 0, task.priority)?;
                if sites::count_queued(&cx.db, task.site, 0, task.priority)? {
                    let (site, crawl, priority) = (task.site, task.crawl, task.priority);
                    let turn = lanes::turn(cx, site, NextCrawl { priority, crawl })?;
                    woken.push(Woken { site, turn });
                }
            }
            cx.retries.next_ms = next_ms(&cx.db)?;
            Ok(woken)
        })
    }
}

/// Queues a failed task again, if the crawl and the retry table allow it; returns whether.
pub(super) fn retry(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    now_ms: i64,
) -> Result<bool> {
    let wall_ms = cx.wall_ms(now_ms);
    let crawl = crawls::known_crawl(cx, task.crawl)?;
    if !crawl.spec.retry || crawl.ending(wall_ms).is_some() {
        return Ok(false);
    }
    let run = patience_of_run(&crawl.spec);
    let used = retries_used(&cx.db, report.task)?;
    let Some(wait_ms) = cx.retries.wait_ms(run, report, used) else {
        return Ok(false);
    };
    let (outcome, status_code) = (report.outcome, report.status_code);
    note_try(&cx.db, report.task, now_ms, outcome, status_code)?;
    // Too many requests: the page itself is as good as the others.
    let lost = if most_retries_of_limited(report) > 0 {
        0
    } else {
        PRIORITY_LOST
    };
    let priority = task.priority.saturating_sub(lost).max(1);
    queue_again(cx, task, report.task, priority, now_ms + wait_ms.max(1))?;
    Ok(true)
}

/// Queues a leased task again, to be handed out at a time.
pub(super) fn queue_again(
    cx: &mut Context,
    task: &HeldTask,
    id: TaskId,
    priority: u8,
    not_before_ms: i64,
) -> Result<()> {
    let sql = "UPDATE task_rows SET state = ?2, priority = ?3, not_before_ms = ?4 WHERE id = ?1";
    let values = params![id as i64, QUEUED, priority, not_before_ms];
    cx.db.prepare_cached(sql)?.execute(values)?;
    let crawl = crawls::known_crawl(cx, task.crawl)?;
    crawl.status.leased -= 1;
    crawl.count_queued(priority, 1);
    sites::count_queued_of(&cx.db, task.site, task.crawl, 1, 0)?;
    sites::count_queued(&cx.db, task.site, 1, 0)?;
    let next_ms = cx.retries.next_ms.unwrap_or(i64::MAX);
    cx.retries.next_ms = Some(next_ms.min(not_before_ms));
    holding::note_lease_over(cx, task.crawl, task.site, false);
    Ok(())
}

/// A run of a watch ends whatever its pages do, and the next one looks at them again.
fn patience_of_run(spec: &CrawlSpec) -> Option<Patience> {
    let ms = i64::try_from(spec.run_patience_ms?).unwrap_or(i64::MAX);
    Some(Patience {
        ms,
        default_delay_ms: 0,
    })
}
