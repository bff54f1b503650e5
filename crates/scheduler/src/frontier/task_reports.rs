//! Reports on one task, and on a URL in a crawl, for people who ask why it is not fetched, or how it ended. A report
//! costs a few look-ups. Of the tasks that are queued ahead of a task, only as many are counted as the caller allows.

use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql, params};
use webfill_urls::Url;
use webfill_wire::{CrawlKey, FailedAttempt, Outcome};

use super::error::FrontierError;
use super::model::{SiteId, TaskId};
use super::parts::Reports;
use super::schema::{LEASED, QUEUED};
use super::task_rows::read_outcome;
use super::tries::failed_attempts;
use crate::intake::{self, Refusal};

/// A task, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskReport {
    pub id: TaskId,
    pub crawl: CrawlKey,
    pub site: SiteId,
    pub site_name: String,
    pub stage: TaskStage,
    pub priority: u8,
    pub depth: u16,
    /// How often the task was handed out.
    pub deliveries: u32,
    /// How many workers the task has killed.
    pub deaths: u32,
    /// The rank in a run of a watch, where the lowest goes first; 0: none.
    pub rank: i64,
    pub url: String,
    /// The page that the link was found on.
    pub parent: Option<String>,
    /// How many records want the task's page, and how many of these are complete.
    pub records: u64,
    pub resolved: u64,
    /// Attempts that failed and were followed by another one, oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
}

/// The stage that a task is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStage {
    /// `not_before_ms`: when the task's retry is due; 0: the task does not wait for a retry.
    Queued {
        not_before_ms: i64,
    },
    Leased,
    Done {
        outcome: Outcome,
        status_code: Option<u16>,
        at_ms: Option<i64>,
    },
}

/// The tasks ahead of a task at its site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TasksAhead {
    /// The number of tasks of the same crawl, counted up to `most`.
    pub own: u64,
    /// The number of tasks of other crawls that take turns with the task, or go first.
    pub others: u64,
    /// Counting stops at this number.
    pub most: u64,
}

/// The maximum number of tasks to count for one question, over all tasks that it concerns.
pub const MOST_COUNTED: u64 = 10_000;

/// The crawls with tasks at a site, among the crawls that were asked about. Large numbers of them are checked in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlsAtSite {
    /// The crawls, the latest opened ones first.
    pub crawls: Vec<CrawlKey>,
    /// How many crawls were checked for this part.
    pub checked: u64,
    /// The last checked crawl; `None`: there are no further ones.
    pub next: Option<CrawlKey>,
}

impl Reports<'_> {
    /// The crawls with a present or former task at a site: all crawls, or only crawls of an application or with an id.
    /// Checks at most `most` crawls, beginning before the given one.
    pub fn crawls_at_site(
        &mut self,
        site: &str,
        (app_id, crawl_id): (Option<&str>, Option<&str>),
        before: Option<CrawlKey>,
        most: usize,
    ) -> std::result::Result<CrawlsAtSite, FrontierError> {
        const ASKED: &str = "id >= ?1 AND id < ?2 AND app_id <> ''
            AND (?3 IS NULL OR app_id = ?3) AND (?4 IS NULL OR crawl_id = ?4)";
        self.0.run("look for crawls of a site", |cx| {
            let db = &cx.db;
            let before = before.unwrap_or(CrawlKey::MAX);
            let sql = "SELECT min(id), count(*) FROM (
                           SELECT id FROM crawls WHERE id < ?1 ORDER BY id DESC LIMIT ?2)";
            let mut select = db.prepare_cached(sql)?;
            let (first, seen): (Option<CrawlKey>, i64) = select
                .query_row(params![before, most as i64], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let Some(first) = first else {
                return Ok(CrawlsAtSite {
                    crawls: Vec::new(),
                    checked: 0,
                    next: None,
                });
            };
            let sql = format!("SELECT count(*) FROM crawls WHERE {ASKED}");
            let mut count = db.prepare_cached(&sql)?;
            let values = params![first, before, app_id, crawl_id];
            let checked: i64 = count.query_row(values, |row| row.get(0))?;
            let sql = format!(
                "SELECT id FROM crawls WHERE {ASKED} AND EXISTS (
                     SELECT 1 FROM crawl_sites WHERE crawl = crawls.id
                         AND site = (SELECT id FROM sites WHERE name = ?5))
                 ORDER BY id DESC"
            );
            let mut select = db.prepare_cached(&sql)?;
            let values = params![first, before, app_id, crawl_id, site];
            let crawls = select.query_map(values, |row| row.get(0))?;
            Ok(CrawlsAtSite {
                crawls: crawls.collect::<Result<_>>()?,
                checked: checked as u64,
                next: (seen == most as i64).then_some(first),
            })
        })
    }

    /// The crawls that a question is about, the latest opened ones first: all crawls, or only crawls of an application
    /// or with an id.
    pub fn find_crawls(
        &mut self,
        app_id: Option<&str>,
        crawl_id: Option<&str>,
        most: usize,
    ) -> std::result::Result<Vec<CrawlKey>, FrontierError> {
        self.0.run("look for crawls", |cx| {
            let sql = "SELECT id FROM crawls WHERE app_id <> '' AND (?1 IS NULL OR app_id = ?1)
                           AND (?2 IS NULL OR crawl_id = ?2)
                       ORDER BY id DESC LIMIT ?3";
            let mut select = cx.db.prepare_cached(sql)?;
            let values = params![app_id, crawl_id, most as i64];
            select.query_map(values, |row| row.get(0))?.collect()
        })
    }

    /// The latest task of a canonical URL in a crawl.
    pub fn task_of_url(
        &mut self,
        crawl: CrawlKey,
        url: &str,
    ) -> std::result::Result<Option<TaskReport>, FrontierError> {
        let task = self.0.run("look for a URL", |cx| {
            let key = cx.seen.key(crawl, url);
            cx.seen.task_of(key)
        })?;
        let Some(task) = task else {
            return Ok(None);
        };
        let report = self.task(task)?;
        // The index stores hashes of URLs, and keeps those of pruned crawls, so the URL is compared.
        let is_of_url = |report: &TaskReport| {
            report.crawl == crawl && self.0.cx.seen.are_same_url(&report.url, url)
        };
        Ok(report.filter(is_of_url))
    }

    pub fn task(&mut self, task: TaskId) -> std::result::Result<Option<TaskReport>, FrontierError> {
        self.0.run("read a task", |cx| read_report(&cx.db, task))
    }

    /// The tasks ahead of a queued task at its site, in the order of the hand-out.
    pub fn count_tasks_ahead(
        &mut self,
        task: &TaskReport,
        most: u64,
    ) -> std::result::Result<TasksAhead, FrontierError> {
        let is_ranked = self.0.crawl(task.crawl)?.spec.run_began_ms.is_some();
        self.0.run("count what goes before a task", |cx| {
            let place: (&dyn ToSql, &dyn ToSql) = (&task.site, &task.crawl);
            let count = |more: &str, value: &dyn ToSql, most: u64| {
                let sql = format!(
                    "SELECT count(*) FROM (SELECT 1 FROM task_rows WHERE site = ?1 AND crawl = ?2
                     AND state = 0 AND not_before_ms = 0 AND {more} LIMIT ?5)"
                );
                let mut select = cx.db.prepare_cached(&sql)?;
                let (id, most) = (task.id as i64, most as i64);
                select.query_row(params![place.0, place.1, value, id, most], |row| {
                    row.get::<_, i64>(0).map(|n| n as u64)
                })
            };
            let conditions = match (is_ranked, task.rank) {
                (false, _) => vec![
                    ("priority > ?3", i64::from(task.priority)),
                    ("priority = ?3 AND id < ?4", i64::from(task.priority)),
                ],
                (true, 0) => vec![
                    ("rank <> 0 AND ?3 = 0", 0),
                    ("rank = 0 AND priority > ?3", i64::from(task.priority)),
                    (
                        "rank = 0 AND priority = ?3 AND id < ?4",
                        i64::from(task.priority),
                    ),
                ],
                (true, rank) => vec![
                    ("rank <> 0 AND rank < ?3", rank),
                    ("rank <> 0 AND rank = ?3 AND id < ?4", rank),
                ],
            };
            let mut own = 0;
            for (condition, value) in conditions {
                own += count(condition, &value, most - own)?;
            }
            let sql = "SELECT total(queued) FROM (
                           SELECT queued FROM crawl_sites WHERE site = ?1 AND top_priority >= ?2
                               AND top_priority > 0 AND crawl <> ?3 LIMIT ?4)";
            let mut select = cx.db.prepare_cached(sql)?;
            let values = params![task.site, task.priority, task.crawl, most as i64];
            let others: f64 = select.query_row(values, |row| row.get(0))?;
            let others = others as u64;
            Ok(TasksAhead { own, others, most })
        })
    }

    /// Judges a URL by the same code as if it were fed to a crawl. Returns its canonical form, or why it is refused.
    /// Does not check whether the URL was seen before, or the budget of its site.
    pub fn check_as_seed(
        &mut self,
        crawl: CrawlKey,
        text: &str,
    ) -> std::result::Result<std::result::Result<Url, Refusal>, FrontierError> {
        self.0.crawl(crawl)?;
        let known = self
            .0
            .cx
            .crawls
            .get(&crawl)
            .ok_or(FrontierError::UnknownCrawl(crawl))?;
        Ok(intake::admit_url(
            text,
            None,
            &known.scope,
            &self.0.cx.excluded,
        ))
    }
}

/// The report on the task with this id.
pub(super) fn read_report(db: &Connection, task: TaskId) -> Result<Option<TaskReport>> {
    let sql = "SELECT t.id, t.crawl, t.site, name, t.state, t.priority, t.depth, t.attempt,
                   t.deaths, t.outcome, t.status_code, t.done_at_ms, t.not_before_ms, t.rank,
                   t.url, parent.url,
                   (SELECT count(*) FROM task_records WHERE task = t.id),
                   (SELECT count(*) FROM task_records JOIN records ON records.id = record
                    WHERE task = t.id AND resolved = 1)
               FROM tasks t JOIN sites ON sites.id = t.site
               LEFT JOIN tasks parent ON parent.id = t.parent WHERE t.id = ?1";
    let mut select = db.prepare_cached(sql)?;
    let report = select
        .query_row([task as i64], report_from_row)
        .optional()?;
    let Some(mut report) = report else {
        return Ok(None);
    };
    report.failed_attempts = failed_attempts(db, task)?;
    Ok(Some(report))
}

fn report_from_row(row: &Row<'_>) -> Result<TaskReport> {
    let stage = match row.get::<_, i64>(4)? {
        QUEUED => TaskStage::Queued {
            not_before_ms: row.get(12)?,
        },
        LEASED => TaskStage::Leased,
        _ => TaskStage::Done {
            outcome: read_outcome(row, 9)?,
            status_code: row.get(10)?,
            at_ms: row.get(11)?,
        },
    };
    Ok(TaskReport {
        id: row.get::<_, i64>(0)? as u64,
        crawl: row.get(1)?,
        site: row.get(2)?,
        site_name: row.get(3)?,
        stage,
        priority: row.get(5)?,
        depth: row.get(6)?,
        deliveries: row.get(7)?,
        deaths: row.get(8)?,
        rank: row.get(13)?,
        url: row.get(14)?,
        parent: row.get(15)?,
        records: row.get::<_, i64>(16)? as u64,
        resolved: row.get::<_, i64>(17)? as u64,
        failed_attempts: Vec::new(),
    })
}
