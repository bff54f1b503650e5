//! Ends tasks: updates their rows and the counters of their crawls.

use super::queue_order::ready_tasks_of;
use rusqlite::{Result, params};
use webfill_wire::{CrawlKey, Outcome};

use super::context::Context;
use super::model::{SiteId, TaskId};
use super::schema::DONE;
use super::{crawl_rows, sites, task_rows};

/// Ends a queued task. The caller must update the site's number of queued tasks.
pub(super) fn end_queued_task(
    cx: &mut Context,
    crawl: CrawlKey,
    task: TaskId,
    priority: u8,
    outcome: Outcome,
    now_ms: i64,
) -> Result<()> {
    crawl_rows::load_known_crawl(cx, crawl)?.count_unqueued(priority);
    end_task(cx, crawl, task, outcome, None, now_ms)
}

/// Ends a task. The caller must update the count of the state that the task leaves. In a run of a watch, the time of
/// the end is never before the run's beginning, even if the machine's clock was set back.
pub(super) fn end_task(
    cx: &mut Context,
    crawl: CrawlKey,
    task: TaskId,
    outcome: Outcome,
    status_code: Option<u16>,
    now_ms: i64,
) -> Result<()> {
    let began_ms = crawl_rows::load_known_crawl(cx, crawl)?.spec.run_began_ms;
    let done_at_ms = began_ms.map_or(now_ms, |began_ms| now_ms.max(began_ms));
    let sql = "UPDATE task_rows SET state = ?2, outcome = ?3, status_code = ?4,
                   done_at_ms = ?5, not_before_ms = 0
               WHERE id = ?1";
    let values = params![task as i64, DONE, outcome.as_str(), status_code, done_at_ms];
    cx.db.prepare_cached(sql)?.execute(values)?;
    crawl_rows::load_known_crawl(cx, crawl)?.count_outcome(outcome);
    *cx.ended.entry(outcome).or_default() += 1;
    Ok(())
}

/// Ends up to `most` queued tasks of a crawl at a site. The caller must update the site's number of queued tasks.
pub(super) fn end_tasks_at(
    cx: &mut Context,
    site: SiteId,
    crawl: CrawlKey,
    outcome: Outcome,
    most: usize,
    now_ms: i64,
) -> Result<usize> {
    let mut queued = ready_tasks_of(&cx.db, site, crawl, most)?;
    if queued.len() < most {
        let most = most - queued.len();
        queued.extend(task_rows::tasks_awaiting_retry(&cx.db, site, crawl, most)?);
    }
    for (task, priority) in &queued {
        end_queued_task(cx, crawl, *task, *priority, outcome, now_ms)?;
    }
    sites::subtract_from_crawl_share(&cx.db, site, crawl, queued.len() as u64, None)?;
    Ok(queued.len())
}
