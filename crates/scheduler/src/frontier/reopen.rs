//! Reopening: finished tasks are queued again, because a person requests it, because their failures turn out to be
//! their site's fault, or because a further record wants their pages.
//!
//! A reopened task has no outcome any more. Its attempts stay as its history (table `tries`), but do not count against
//! its retries. It keeps its priority and its records. What was already fetched stays in the crawl's counts: pages,
//! fields, links and bytes.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Result, params};
use serde_json::json;
use webfill_wire::{CrawlKey, Outcome};

use super::context::Context;
use super::feed::FeedBatch;
use super::model::{FeedTally, TaskId, WokenSite};
use super::parts::Reopening;
use super::schema::{DONE, QUEUED};
use super::task_rows::SERVES_ONLY_RESOLVED;
use super::task_rows::{EndedTask, find_ended_tasks};
use super::{FrontierError, backing_off, crawl_rows, feed, tries};

/// The maximum number of tasks, of all crawls, that one call of `requeue_slice` reads. Ended tasks have no index.
const MOST_READ: u64 = 10_000;

/// The maximum number of tasks that one call of `requeue_slice` queues.
const MOST_QUEUED: usize = 250;

/// Which ended tasks of a crawl to queue again.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedTasks {
    pub crawl: CrawlKey,
    pub outcomes: Vec<Outcome>,
    /// Only tasks with one of these HTTP statuses. If 429 or a server error is among them, also tasks without a status:
    /// they ended without a request, because their site had given such answers for too long.
    pub status_codes: Option<Vec<u16>>,
    /// Only tasks of the site with this name.
    pub site: Option<String>,
}

/// A walk through all tasks, oldest first, which queues some of them again, a part with each call. Tasks that were
/// added after its beginning are left out.
#[derive(Debug)]
pub struct ReopenWalk {
    pub wanted: EndedTasks,
    /// The last task that was checked.
    last: TaskId,
    end: TaskId,
}

impl ReopenWalk {
    pub fn is_over(&self) -> bool {
        self.last >= self.end
    }
}

impl Reopening<'_> {
    /// Begins a walk that queues ended tasks again.
    pub fn begin_walk(
        &mut self,
        wanted: EndedTasks,
    ) -> std::result::Result<ReopenWalk, FrontierError> {
        self.0.run("count the tasks", |cx| {
            let sql = "SELECT coalesce(max(id), 0) FROM tasks";
            let mut select = cx.db.prepare_cached(sql)?;
            let end: i64 = select.query_row([], |row| row.get(0))?;
            Ok(ReopenWalk {
                wanted,
                last: 0,
                end: end as u64,
            })
        })
    }

    /// Queues the next finished tasks again, as many as take some milliseconds. Skips the same tasks as
    /// [`requeue`](Reopening::requeue). Unreachable sites of these tasks become open again.
    pub fn requeue_slice(
        &mut self,
        walk: &mut ReopenWalk,
        now_ms: i64,
    ) -> std::result::Result<FeedTally, FrontierError> {
        let crawl = walk.wanted.crawl;
        self.0.crawl(crawl)?;
        self.0.run("queue a crawl's ended tasks again", |cx| {
            let upto = walk.end.min(walk.last + MOST_READ);
            let tasks = select_wanted_tasks(&cx.db, &walk.wanted, walk.last, upto)?;
            walk.last = match tasks.get(MOST_QUEUED - 1) {
                Some(last) => last.id,
                None => upto,
            };
            for site in BTreeSet::from_iter(tasks.iter().map(|task| task.site)) {
                backing_off::end_backoff_if_unreachable(cx, site, now_ms)?;
            }
            let mut batch = feed::begin_feed(cx, crawl, now_ms);
            batch.reopen_all(&tasks)?;
            batch.write_sums()
        })
    }

    /// Whether a task has ended because it killed its workers.
    pub fn is_quarantined(&mut self, task: TaskId) -> std::result::Result<bool, FrontierError> {
        self.0.run("look up an ended task", |cx| {
            let ended = find_ended_tasks(&cx.db, &[task])?;
            Ok(ended.iter().any(|task| task.outcome == Outcome::Crashed))
        })
    }

    /// Queues ended tasks again. Skips tasks that have not ended, tasks that only complete records need, tasks whose
    /// URL has a later task, and tasks of crawls that are over. Returns the sites in memory that got tasks by this.
    pub fn requeue(
        &mut self,
        tasks: &[TaskId],
        now_ms: i64,
    ) -> std::result::Result<Vec<WokenSite>, FrontierError> {
        self.0.run("queue ended tasks again", |cx| {
            requeue_ended(cx, tasks, now_ms)
        })
    }
}

/// Queues ended tasks again; see [`Reopening::requeue`].
pub(super) fn requeue_ended(
    cx: &mut Context,
    tasks: &[TaskId],
    now_ms: i64,
) -> Result<Vec<WokenSite>> {
    let mut by_crawl: BTreeMap<CrawlKey, Vec<EndedTask>> = BTreeMap::new();
    for task in find_ended_tasks(&cx.db, tasks)? {
        by_crawl.entry(task.crawl).or_default().push(task);
    }
    let mut woken = Vec::new();
    for (crawl, tasks) in by_crawl {
        crawl_rows::load_known_crawl(cx, crawl)?;
        let mut batch = feed::begin_feed(cx, crawl, now_ms);
        batch.reopen_all(&tasks)?;
        woken.extend(batch.write_sums()?.woken);
    }
    Ok(woken)
}

impl FeedBatch<'_> {
    /// Queues those of these tasks again that are the latest of their URLs, unless the crawl is over.
    fn reopen_all(&mut self, tasks: &[EndedTask]) -> Result<()> {
        if self.crawl.ending_outcome(self.wall_ms).is_some() {
            return Ok(());
        }
        for task in tasks {
            let key = self.seen.key(self.key, &task.url);
            if self.seen.task_of(key)? == Some(task.id) {
                self.reopen(task)?;
            }
        }
        Ok(())
    }

    /// Queues an ended task again. Its outcome does not count any more.
    pub(super) fn reopen(&mut self, task: &EndedTask) -> Result<()> {
        tries::reset_tries(self.db, task)?;
        let sql = "UPDATE task_rows SET state = ?2, outcome = NULL, status_code = NULL,
                       done_at_ms = NULL, deaths = 0, rank = iif(rank = 0, ?3, rank)
                   WHERE id = ?1";
        // In a run of a watch every task has a rank (its place in the order of checks).
        let least_rank = i64::from(self.crawl.spec.run_began_ms.is_some());
        let values = params![task.id as i64, QUEUED, least_rank];
        self.db.prepare_cached(sql)?.execute(values)?;
        if self.ended_before_run(task) {
            // The task ended before this run, so the run has not counted it yet.
            self.crawl.status.discovered += 1;
        } else if self.crawl.uncount_outcome(task.outcome) == 0 {
            let sql = "DELETE FROM outcomes WHERE crawl = ?1 AND outcome = ?2";
            let values = params![self.key, task.outcome.as_str()];
            self.db.prepare_cached(sql)?.execute(values)?;
        }
        self.count_queued(task.site, task.priority);
        self.tally.requeued += 1;
        Ok(())
    }

    fn ended_before_run(&self, task: &EndedTask) -> bool {
        let began_ms = self.crawl.spec.run_began_ms;
        began_ms.is_some_and(|began_ms| task.done_at_ms < began_ms)
    }
}

/// The first [`MOST_QUEUED`] of the wanted ended tasks with ids after `after`, up to `upto`.
fn select_wanted_tasks(
    db: &Connection,
    wanted: &EndedTasks,
    after: TaskId,
    upto: TaskId,
) -> Result<Vec<EndedTask>> {
    let columns = EndedTask::COLUMNS;
    let sql = format!(
        "SELECT {columns} FROM tasks
         WHERE id > ?1 AND id <= ?2 AND crawl = ?3 AND state = ?4
             AND outcome IN (SELECT value FROM json_each(?5))
             AND (?6 IS NULL OR status_code IN (SELECT value FROM json_each(?6))
                 OR (status_code IS NULL
                     AND EXISTS (SELECT 1 FROM json_each(?6) WHERE value = 429 OR value >= 500)))
             AND (?7 IS NULL OR site = (SELECT id FROM sites WHERE name = ?7))
             AND NOT ({SERVES_ONLY_RESOLVED})
         ORDER BY id LIMIT ?8"
    );
    let mut select = db.prepare_cached(&sql)?;
    let outcomes = json!(wanted.outcomes).to_string();
    let status_codes = wanted.status_codes.as_ref();
    let status_codes = status_codes.map(|codes| json!(codes).to_string());
    let values = params![
        after as i64,
        upto as i64,
        wanted.crawl,
        DONE,
        outcomes,
        status_codes,
        wanted.site,
        MOST_QUEUED as i64,
    ];
    select.query_map(values, EndedTask::read)?.collect()
}
