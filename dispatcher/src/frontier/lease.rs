//! Handing tasks out, and taking back those that come without an outcome.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::{CrawlKey, Outcome};

use super::answers::{GivenBack, LeaseBatch, Leased, SiteId, TaskId, TaskSketch};
use super::crawls::Crawl;
use super::schema::{DONE, LEASED, QUEUED};
use super::{Frontier, FrontierError, sites};

/// A task that has killed so many workers is not handed out again.
const MOST_DEATHS: u32 = 3;

/// Tasks of ended crawls that one call closes on its way, so that no call takes long.
const MOST_CLOSED: usize = 1_000;

/// Rows that one call of `end_queued` looks at.
const MOST_LOOKED_AT: i64 = 20_000;

impl Frontier {
    /// Hands out what a site has queued: the highest priority first, then the oldest. Tasks of
    /// crawls that are over end in `expired` or `stopped` instead.
    pub fn lease(
        &mut self,
        site: SiteId,
        limit: usize,
        now_ms: i64,
    ) -> Result<LeaseBatch, FrontierError> {
        self.guarded("hand out tasks", |frontier| {
            let mut batch = LeaseBatch::default();
            let mut closed = 0;
            while batch.tasks.len() < limit && closed < MOST_CLOSED {
                let queued = first_queued(&frontier.db, site, limit - batch.tasks.len())?;
                if queued.is_empty() {
                    break;
                }
                for task in queued {
                    if frontier.close_if_over(&task, now_ms)? {
                        closed += 1;
                    } else {
                        batch.tasks.push(frontier.hand_out(task)?);
                    }
                }
            }
            let taken = batch.tasks.len() + closed;
            batch.left = sites::count_taken(&frontier.db, site, taken as u64)?;
            Ok(batch)
        })
    }

    /// Takes a task back that its holder did not finish. `blamed`: it seems to have killed its
    /// worker; the third time, it ends in `crashed`.
    pub fn give_back(
        &mut self,
        task: TaskId,
        attempt: u32,
        blamed: bool,
        now_ms: i64,
    ) -> Result<GivenBack, FrontierError> {
        self.guarded("take a task back", |frontier| {
            let Some(held) = held_task(&frontier.db, task, attempt)? else {
                return Ok(GivenBack::Stale);
            };
            let deaths = held.deaths + u32::from(blamed);
            let sql = "UPDATE tasks SET state = ?2, deaths = ?3 WHERE id = ?1";
            let values = params![task as i64, QUEUED, deaths];
            frontier.db.prepare_cached(sql)?.execute(values)?;
            let crawl = frontier.known_crawl(held.crawl)?;
            crawl.changed = true;
            crawl.status.leased -= 1;
            if deaths >= MOST_DEATHS {
                frontier.close(held.crawl, task, Outcome::Crashed, None, now_ms)?;
                return Ok(GivenBack::Quarantined);
            }
            crawl.status.queued += 1;
            sites::count_queued(&frontier.db, held.site, 1, held.priority)?;
            Ok(GivenBack::Requeued)
        })
    }

    /// A task as it is kept, by its id.
    pub fn task(&mut self, task: TaskId) -> Result<Option<TaskSketch>, FrontierError> {
        self.guarded("read a task", |frontier| {
            let sql = "SELECT crawl, url, name, depth FROM tasks JOIN sites ON sites.id = site
                       WHERE tasks.id = ?1";
            let mut select = frontier.db.prepare_cached(sql)?;
            let sketch = |row: &Row<'_>| {
                Ok(TaskSketch {
                    crawl: row.get(0)?,
                    url: row.get(1)?,
                    site: row.get(2)?,
                    depth: row.get(3)?,
                })
            };
            select.query_row([task as i64], sketch).optional()
        })
    }

    /// Ends a crawl: what is queued will end in `stopped`, what is leased may still finish, but
    /// its links are not followed. Opening the crawl again takes this back for what is queued.
    pub fn stop_crawl(&mut self, crawl: CrawlKey) -> Result<(), FrontierError> {
        let crawl = self.crawl(crawl)?;
        crawl.ended = Some(Outcome::Stopped);
        crawl.changed = true;
        self.guarded("stop a crawl", |_| Ok(()))
    }

    /// Closes some of the tasks that a crawl has queued, if it was stopped or has expired.
    /// Returns whether to go on with further calls; each takes milliseconds.
    pub fn end_queued(&mut self, key: CrawlKey, now_ms: i64) -> Result<bool, FrontierError> {
        self.crawl(key)?;
        self.guarded("end the tasks of a crawl", |frontier| {
            let crawl = frontier.known_crawl(key)?;
            let Some(outcome) = crawl.ending(now_ms) else {
                return Ok(false);
            };
            let from = crawl.ended_up_to;
            crawl.ended_up_to += MOST_LOOKED_AT;
            let queued = queued_of_crawl(&frontier.db, key, from, from + MOST_LOOKED_AT)?;
            let mut taken: HashMap<SiteId, u64> = HashMap::new();
            for (task, site) in queued {
                frontier.close_queued(key, task, outcome, now_ms)?;
                *taken.entry(site).or_default() += 1;
            }
            for (site, n) in taken {
                sites::count_taken(&frontier.db, site, n)?;
            }
            let sql = "SELECT coalesce(max(id), 0) > ?1 FROM tasks";
            let mut more = frontier.db.prepare_cached(sql)?;
            more.query_row([from + MOST_LOOKED_AT], |row| row.get(0))
        })
    }

    fn close_if_over(&mut self, task: &QueuedTask, now_ms: i64) -> Result<bool> {
        let Some(outcome) = self.known_crawl(task.crawl)?.ending(now_ms) else {
            return Ok(false);
        };
        self.close_queued(task.crawl, task.id, outcome, now_ms)?;
        Ok(true)
    }

    /// Ends a task that was not handed out. The site's count is left to the caller.
    pub(super) fn close_queued(
        &mut self,
        crawl: CrawlKey,
        task: TaskId,
        outcome: Outcome,
        now_ms: i64,
    ) -> Result<()> {
        self.known_crawl(crawl)?.status.queued -= 1;
        self.close(crawl, task, outcome, None, now_ms)
    }

    /// Ends a task. The count of the state that it leaves is left to the caller.
    pub(super) fn close(
        &mut self,
        crawl: CrawlKey,
        task: TaskId,
        outcome: Outcome,
        status_code: Option<u16>,
        now_ms: i64,
    ) -> Result<()> {
        let sql = "UPDATE tasks SET state = ?2, outcome = ?3, status_code = ?4, done_at_ms = ?5
                   WHERE id = ?1";
        let values = params![task as i64, DONE, outcome.as_str(), status_code, now_ms];
        self.db.prepare_cached(sql)?.execute(values)?;
        self.known_crawl(crawl)?.count_outcome(outcome);
        Ok(())
    }

    fn hand_out(&mut self, task: QueuedTask) -> Result<Leased> {
        let sql = "UPDATE tasks SET state = ?2, attempt = ?3 WHERE id = ?1";
        let attempt = task.attempts + 1;
        self.db
            .prepare_cached(sql)?
            .execute(params![task.id as i64, LEASED, attempt])?;
        if task.attempts > 0 {
            // Those that came since the last time go along from now on.
            let sql = "UPDATE task_records SET late = 0 WHERE task = ?1 AND late = 1";
            self.db.prepare_cached(sql)?.execute([task.id as i64])?;
        }
        let crawl: &mut Crawl = self.known_crawl(task.crawl)?;
        crawl.status.queued -= 1;
        crawl.status.leased += 1;
        crawl.changed = true;
        Ok(Leased {
            task: task.id,
            attempt,
            crawl: task.crawl,
            url: task.url,
            depth: task.depth,
            priority: task.priority,
            parent: task.parent,
            records: record_names(&self.db, task.id)?,
            deaths: task.deaths,
        })
    }
}

struct QueuedTask {
    id: TaskId,
    crawl: CrawlKey,
    attempts: u32,
    depth: u16,
    priority: u8,
    deaths: u32,
    url: String,
    parent: Option<String>,
}

fn first_queued(db: &Connection, site: SiteId, limit: usize) -> Result<Vec<QueuedTask>> {
    let sql = "SELECT t.id, t.crawl, t.attempt, t.depth, t.priority, t.deaths, t.url, parent.url
               FROM tasks t LEFT JOIN tasks parent ON parent.id = t.parent
               WHERE t.site = ?1 AND t.state = 0 ORDER BY t.priority DESC, t.id LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let tasks = select.query_map(params![site, limit as i64], |row| {
        Ok(QueuedTask {
            id: row.get::<_, i64>(0)? as u64,
            crawl: row.get(1)?,
            attempts: row.get(2)?,
            depth: row.get(3)?,
            priority: row.get(4)?,
            deaths: row.get(5)?,
            url: row.get(6)?,
            parent: row.get(7)?,
        })
    })?;
    tasks.collect()
}

fn record_names(db: &Connection, task: TaskId) -> Result<Vec<String>> {
    let sql =
        "SELECT name FROM task_records, records WHERE task = ?1 AND id = record ORDER BY record";
    db.prepare_cached(sql)?
        .query_map([task as i64], |row| row.get(0))?
        .collect()
}

fn queued_of_crawl(
    db: &Connection,
    crawl: CrawlKey,
    after: i64,
    up_to: i64,
) -> Result<Vec<(TaskId, SiteId)>> {
    let sql = "SELECT id, site FROM tasks
               WHERE id > ?2 AND id <= ?3 AND crawl = ?1 AND state = 0";
    let mut select = db.prepare_cached(sql)?;
    let task = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?));
    select
        .query_map(params![crawl, after, up_to], task)?
        .collect()
}

/// What is known of a task that is handed out.
pub(super) struct HeldTask {
    pub(super) crawl: CrawlKey,
    pub(super) site: SiteId,
    pub(super) depth: u16,
    pub(super) priority: u8,
    pub(super) redirects: u8,
    pub(super) deaths: u32,
    pub(super) url: String,
}

/// The task, if this lease of it is in force.
pub(super) fn held_task(db: &Connection, task: TaskId, attempt: u32) -> Result<Option<HeldTask>> {
    let sql = "SELECT crawl, site, depth, priority, redirects, deaths, url FROM tasks
               WHERE id = ?1 AND state = ?2 AND attempt = ?3";
    let mut select = db.prepare_cached(sql)?;
    let held = |row: &Row<'_>| {
        Ok(HeldTask {
            crawl: row.get(0)?,
            site: row.get(1)?,
            depth: row.get(2)?,
            priority: row.get(3)?,
            redirects: row.get(4)?,
            deaths: row.get(5)?,
            url: row.get(6)?,
        })
    };
    select
        .query_row(params![task as i64, LEASED, attempt], held)
        .optional()
}
