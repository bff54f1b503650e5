//! Reopening: tasks that have ended are queued again, because a person asks for it, because their
//! failures turn out to be their site's, or because a further record wants their pages.
//!
//! A reopened task has no outcome any more. What it has tried stays as its history (table `tries`),
//! but does not count against its retries. It keeps its priority and its records. What was fetched
//! was fetched: pages, fields, links and bytes of the crawl stay counted.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Result, Row, params};
use webfill_wire::{CrawlKey, Outcome};

use super::answers::{SiteId, TaskId, Woken};
use super::feed::FeedBatch;
use super::resolved::SERVES_ONLY_RESOLVED;
use super::schema::{DONE, QUEUED};
use super::{Frontier, FrontierError, retries};

impl Frontier {
    /// Queues tasks again that have ended. Passed over are tasks that have not ended, those that
    /// only resolved records want, those whose URL has a later task, and those of crawls that are
    /// over. Returns the sites inside the window that got tasks by it.
    pub fn reopen(
        &mut self,
        tasks: &[TaskId],
        now_ms: i64,
    ) -> std::result::Result<Vec<Woken>, FrontierError> {
        self.guarded("queue ended tasks again", |frontier| {
            let mut by_crawl: BTreeMap<CrawlKey, Vec<EndedTask>> = BTreeMap::new();
            for task in ended_tasks(&frontier.db, tasks)? {
                by_crawl.entry(task.crawl).or_default().push(task);
            }
            let mut woken = Vec::new();
            for (crawl, tasks) in by_crawl {
                frontier.known_crawl(crawl)?;
                let mut batch = frontier.begin_feed(crawl, now_ms);
                batch.reopen_all(&tasks)?;
                woken.extend(batch.finish()?.woken);
            }
            Ok(woken)
        })
    }
}

impl FeedBatch<'_> {
    /// Queues those of the tasks again that are the latest of their URLs, unless the crawl is over.
    fn reopen_all(&mut self, tasks: &[EndedTask]) -> Result<()> {
        if self.crawl.ending(self.now_ms).is_some() {
            return Ok(());
        }
        for task in tasks {
            let key = self.seen.key(self.key, &task.url);
            if self.seen.task_of(self.db, key)? == Some(task.id) {
                self.reopen(task)?;
            }
        }
        Ok(())
    }

    /// Queues a task again that has ended: its outcome does not count any more.
    pub(super) fn reopen(&mut self, task: &EndedTask) -> Result<()> {
        retries::begin_again(self.db, task)?;
        let sql = "UPDATE tasks SET state = ?2, outcome = NULL, status_code = NULL,
                       done_at_ms = NULL, deaths = 0
                   WHERE id = ?1";
        let values = params![task.id as i64, QUEUED];
        self.db.prepare_cached(sql)?.execute(values)?;
        if self.crawl.uncount_outcome(task.outcome) == 0 {
            let sql = "DELETE FROM outcomes WHERE crawl = ?1 AND outcome = ?2";
            let values = params![self.key, task.outcome.as_str()];
            self.db.prepare_cached(sql)?.execute(values)?;
        }
        self.count_queued(task.site, task.priority);
        self.tally.requeued += 1;
        Ok(())
    }
}

/// A task that has ended.
pub(super) struct EndedTask {
    pub(super) id: TaskId,
    crawl: CrawlKey,
    site: SiteId,
    priority: u8,
    pub(super) outcome: Outcome,
    pub(super) status_code: Option<u16>,
    pub(super) done_at_ms: i64,
    url: String,
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
            outcome: retries::read_outcome(row, 4)?,
            status_code: row.get(5)?,
            done_at_ms: row.get(6)?,
            url: row.get(7)?,
        })
    }
}

/// Those of the tasks that have ended and that somebody may still want.
fn ended_tasks(db: &Connection, tasks: &[TaskId]) -> Result<Vec<EndedTask>> {
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
