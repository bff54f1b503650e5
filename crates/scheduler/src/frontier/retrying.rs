//! Carries out retries: queues failed tasks again, to be handed out after a wait. See [`retries`](super::retries) for
//! the waits.

use super::task_rows::{due_retries, next_retry_ms};
use super::tries::{count_used_retries, note_try};
use rusqlite::{Result, params};
use webfill_api::CrawlSpec;
use webfill_wire::TaskDone;

use super::context::Context;
use super::error::FrontierError;
use super::model::{NextCrawl, TaskId, WokenSite};
use super::parts::Tasks;
use super::retries::max_retries_if_limited;
use super::schema::QUEUED;
use super::task_rows::HeldTask;
use super::{crawl_rows, releasing, sites, turns};
use crate::patience::Patience;

/// Queues a failed task again, if the crawl and the retry table allow it. Returns whether they do.
pub(super) fn requeue_if_allowed(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    now_ms: i64,
) -> Result<bool> {
    let wall_ms = cx.wall_ms(now_ms);
    let crawl = crawl_rows::load_known_crawl(cx, task.crawl)?;
    if !crawl.spec.retry || crawl.ending_outcome(wall_ms).is_some() {
        return Ok(false);
    }
    let run = patience_of_run(&crawl.spec);
    let used = count_used_retries(&cx.db, report.task)?;
    let Some(wait_ms) = cx.retries.wait_ms(run, report, used) else {
        return Ok(false);
    };
    let (outcome, status_code) = (report.outcome, report.status_code);
    note_try(&cx.db, report.task, now_ms, outcome, status_code)?;
    // The site got too many requests, which says nothing about the page, so the page's priority stays.
    let lost = if max_retries_if_limited(report) > 0 {
        0
    } else {
        PRIORITY_LOST
    };
    let priority = task.priority.saturating_sub(lost).max(1);
    requeue_leased(cx, task, report.task, priority, now_ms + wait_ms.max(1))?;
    Ok(true)
}

/// Queues a leased task again, to be handed out after a time.
pub(super) fn requeue_leased(
    cx: &mut Context,
    task: &HeldTask,
    id: TaskId,
    priority: u8,
    not_before_ms: i64,
) -> Result<()> {
    let sql = "UPDATE task_rows SET state = ?2, priority = ?3, not_before_ms = ?4 WHERE id = ?1";
    let values = params![id as i64, QUEUED, priority, not_before_ms];
    cx.db.prepare_cached(sql)?.execute(values)?;
    let crawl = crawl_rows::load_known_crawl(cx, task.crawl)?;
    crawl.status.leased -= 1;
    crawl.count_queued(priority, 1);
    sites::add_to_crawl_share(&cx.db, task.site, task.crawl, 1, 0)?;
    sites::add_queued(&cx.db, task.site, 1, 0)?;
    let next_ms = cx.retries.next_ms.unwrap_or(i64::MAX);
    cx.retries.next_ms = Some(next_ms.min(not_before_ms));
    releasing::note_lease_end(cx, task.crawl, task.site, false);
    Ok(())
}

/// The patience of a run of a watch. A run must end even if its pages fail; the next one checks them again.
pub(super) fn patience_of_run(spec: &CrawlSpec) -> Option<Patience> {
    let ms = i64::try_from(spec.run_patience_ms?).unwrap_or(i64::MAX);
    Some(Patience {
        ms,
        default_delay_ms: 0,
    })
}

/// How much each failed attempt lowers the task's priority.
pub(super) const PRIORITY_LOST: u8 = 10;

impl Tasks<'_> {
    /// Makes tasks available whose retries are due. Returns the sites in memory that got tasks by this.
    pub fn requeue_due_retries(
        &mut self,
        now_ms: i64,
    ) -> std::result::Result<Vec<WokenSite>, FrontierError> {
        if self
            .0
            .cx
            .retries
            .next_ms
            .is_none_or(|next_ms| next_ms > now_ms)
        {
            return Ok(Vec::new());
        }
        self.0.run("take up retries", |cx| {
            let mut woken = Vec::new();
            for task in due_retries(&cx.db, now_ms)? {
                let sql = "UPDATE task_rows SET not_before_ms = 0 WHERE id = ?1";
                cx.db.prepare_cached(sql)?.execute([task.id as i64])?;
                sites::add_to_crawl_share(&cx.db, task.site, task.crawl, 0, task.priority)?;
                if sites::add_queued(&cx.db, task.site, 0, task.priority)? {
                    let (site, crawl, priority) = (task.site, task.crawl, task.priority);
                    let turn = turns::turn_with_lane(cx, site, NextCrawl { priority, crawl })?;
                    woken.push(WokenSite { site, turn });
                }
            }
            cx.retries.next_ms = next_retry_ms(&cx.db)?;
            Ok(woken)
        })
    }
}
