//! The queue of a crawl at a site: which of its tasks are handed out first. The highest priority goes first and,
//! within it, the oldest task. In a run of a watch, the lowest rank goes first instead (see
//! [`page_checks`](super::page_checks)).

use rusqlite::{Connection, OptionalExtension, Result, ToSql, params};
use webfill_wire::CrawlKey;

use super::model::{NextCrawl, SiteId, TaskId};
use super::site_states::{host_of, host_of_last_failure};
use super::tries::count_tries;

/// How many tasks are considered when choosing the one that goes first after a backoff.
const PROBES_CHECKED: usize = 256;

/// A task that may be handed out.
pub(super) struct QueuedTask {
    pub(super) id: TaskId,
    pub(super) deliveries: u32,
    pub(super) depth: u16,
    pub(super) priority: u8,
    pub(super) deaths: u32,
    pub(super) url: String,
    pub(super) parent: Option<String>,
    pub(super) attrs: Option<String>,
}

/// How often a task was requested, and how often it was handed out: some tasks come back again and again without a
/// request.
pub(super) type Tried = (i64, u32);

/// The task that goes first after a backoff, and how often it was tried. A task that was not tried yet shows more
/// about the site than one that has failed there. A task of another host shows more than one of the host that has
/// failed last, which may be the only dead one. Only the first [`PROBES_CHECKED`] tasks of the crawl are considered.
pub(super) fn least_tried_task(
    db: &Connection,
    site: SiteId,
    turn: NextCrawl,
) -> Result<Option<(Tried, QueuedTask)>> {
    let any = NextCrawl {
        priority: 0,
        ..turn
    };
    let failed = host_of_last_failure(db, site)?;
    let mut least: Option<((bool, Tried), QueuedTask)> = None;
    for task in first_queued_tasks(db, site, any, PROBES_CHECKED)? {
        let is_of_failed = failed.is_some() && host_of(&task.url) == failed;
        let tried = (count_tries(db, task.id)?, task.deliveries);
        let key = (is_of_failed, tried);
        if least.as_ref().is_none_or(|(least, _)| key < *least) {
            least = Some((key, task));
        }
    }
    Ok(least.map(|((_, tried), task)| (tried, task)))
}

/// The start of a statement that selects queued tasks.
macro_rules! select_queued {
    () => {
        "SELECT t.id, t.attempt, t.depth, t.priority, t.deaths, t.url, parent.url, attrs.json
         FROM tasks t LEFT JOIN tasks parent ON parent.id = t.parent
         LEFT JOIN attrs ON attrs.id = t.attrs
         WHERE t.site = ?1 AND t.crawl = ?2 AND t.state = 0 AND t.not_before_ms = 0 AND t.id <= ?3 "
    };
}

pub(super) fn first_queued_tasks(
    db: &Connection,
    site: SiteId,
    turn: NextCrawl,
    limit: usize,
) -> Result<Vec<QueuedTask>> {
    let sql = concat!(
        select_queued!(),
        "AND t.priority >= ?5 ORDER BY t.priority DESC, t.id LIMIT ?4"
    );
    let values = params![site, turn.crawl, i64::MAX, limit as i64, turn.priority];
    select_queued_tasks(db, sql, values)
}

/// The tasks of a crawl up to the id `last`, whatever tasks precede them. Each priority is found by the index, in
/// which its oldest task is the first, so that no newer tasks are read, however many there are.
pub(super) fn tasks_up_to(
    db: &Connection,
    site: SiteId,
    crawl: CrawlKey,
    last: TaskId,
    limit: usize,
) -> Result<Vec<QueuedTask>> {
    let sql = concat!(
        select_queued!(),
        "AND t.priority = ?5 ORDER BY t.id LIMIT ?4"
    );
    let mut tasks = Vec::new();
    let mut above = i64::MAX;
    while tasks.len() < limit
        && let Some(priority) = highest_priority_below(db, site, crawl, above)?
    {
        let left = (limit - tasks.len()) as i64;
        let values = params![site, crawl, last as i64, left, priority];
        tasks.extend(select_queued_tasks(db, sql, values)?);
        above = priority;
    }
    Ok(tasks)
}

fn highest_priority_below(
    db: &Connection,
    site: SiteId,
    crawl: CrawlKey,
    above: i64,
) -> Result<Option<i64>> {
    let sql = "SELECT priority FROM task_rows WHERE site = ?1 AND crawl = ?2 AND state = 0
                   AND not_before_ms = 0 AND priority < ?3 ORDER BY priority DESC LIMIT 1";
    let mut select = db.prepare_cached(sql)?;
    select
        .query_row(params![site, crawl, above], |row| row.get(0))
        .optional()
}

/// The first tasks of a crawl in a run of a watch: by rank (the planned order of checks), whatever their priorities.
/// Tasks that were queued without a rank come last.
pub(super) fn first_ranked_tasks(
    db: &Connection,
    site: SiteId,
    crawl: CrawlKey,
    limit: usize,
) -> Result<Vec<QueuedTask>> {
    // Each statement reads no more of an index than its own results, however long the queue.
    let sql = concat!(
        select_queued!(),
        "AND t.rank <> 0 ORDER BY t.rank, t.id LIMIT ?4"
    );
    let values = params![site, crawl, i64::MAX, limit as i64];
    let mut tasks = select_queued_tasks(db, sql, values)?;
    if tasks.len() < limit {
        let sql = concat!(
            select_queued!(),
            "AND t.rank = 0 ORDER BY t.priority DESC, t.id LIMIT ?4"
        );
        let left = (limit - tasks.len()) as i64;
        tasks.extend(select_queued_tasks(
            db,
            sql,
            params![site, crawl, i64::MAX, left],
        )?);
    }
    Ok(tasks)
}

fn select_queued_tasks(
    db: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<QueuedTask>> {
    let mut select = db.prepare_cached(sql)?;
    let tasks = select.query_map(values, |row| {
        Ok(QueuedTask {
            id: row.get::<_, i64>(0)? as u64,
            deliveries: row.get(1)?,
            depth: row.get(2)?,
            priority: row.get(3)?,
            deaths: row.get(4)?,
            url: row.get(5)?,
            parent: row.get(6)?,
            attrs: row.get(7)?,
        })
    })?;
    tasks.collect()
}

/// The tasks of a crawl at a site that could be handed out, with their priorities.
pub(super) fn ready_tasks_of(
    db: &Connection,
    site: SiteId,
    crawl: CrawlKey,
    limit: usize,
) -> Result<Vec<(TaskId, u8)>> {
    let sql = "SELECT id, priority FROM tasks
               WHERE site = ?1 AND crawl = ?2 AND state = 0 AND not_before_ms = 0 LIMIT ?3";
    let mut select = db.prepare_cached(sql)?;
    let tasks = select.query_map(params![site, crawl, limit as i64], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
    })?;
    tasks.collect()
}
