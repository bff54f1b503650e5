//! The sites where a crawl has queued tasks, and why these wait, for people who ask why a crawl makes no progress.

use rusqlite::{OptionalExtension, Result, Row, params};
use webfill_wire::{BackoffReason, CrawlKey};

use super::model::SiteId;
use super::parts::Reports;
use super::site_states::read_reason;
use super::{FrontierError, crawl_rows};

/// A site where a crawl has queued tasks, as stored. If the site is in memory, its clock may have moved since.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedSite {
    pub id: SiteId,
    pub name: String,
    /// The number of the crawl's queued tasks.
    pub queued: u64,
    /// Whether the site skips the crawl, because the crawl is paused or all of its tasks at the site wait for retries.
    pub is_held: bool,
    pub due_at_ms: i64,
    /// The delay between two requests, if known.
    pub delay_ms: Option<u32>,
    /// The delay set by hand.
    pub rule_delay_ms: Option<u32>,
    /// No request is allowed before this time, set by hand; 0: no such time.
    pub block_until_ms: i64,
    /// How many tasks may still be handed out at the site.
    pub pages_left: Option<u64>,
    /// The original page limit, if known.
    pub most_pages: Option<u64>,
    /// The end of the site's backoff; 0: the site is open.
    pub backoff_until_ms: i64,
    /// Why the site backs off, and since when.
    pub rest: Option<(BackoffReason, i64)>,
    /// If all queued tasks wait for retries: when the first retry is due, among those read.
    pub next_try_ms: Option<i64>,
}

/// The maximum number of a site's tasks read to find the next retry.
const TRIES_COUNTED: i64 = 10;

impl Reports<'_> {
    /// Up to `most` sites where a crawl has queued tasks; a crawl may have a million.
    pub fn queued_sites(
        &mut self,
        crawl: CrawlKey,
        most: usize,
    ) -> std::result::Result<Vec<QueuedSite>, FrontierError> {
        self.0.run("see what holds a crawl's tasks", |cx| {
            let sql = format!("{} LIMIT ?2", select_queued_sites());
            let mut select = cx.db.prepare_cached(&sql)?;
            let sites = select.query_map(params![crawl, most as i64], read_queued_site)?;
            sites.collect()
        })
    }

    /// A site where a crawl has queued tasks; `None` if the crawl has nothing queued there.
    pub fn queued_site(
        &mut self,
        crawl: CrawlKey,
        site: SiteId,
    ) -> std::result::Result<Option<QueuedSite>, FrontierError> {
        self.0
            .run("see what holds a crawl's tasks at a site", |cx| {
                let sql = format!("{} AND crawl_sites.site = ?2", select_queued_sites());
                let mut select = cx.db.prepare_cached(&sql)?;
                select
                    .query_row(params![crawl, site], read_queued_site)
                    .optional()
            })
    }

    /// The crawls that have queued or leased tasks, the latest opened ones first.
    pub fn unfinished_crawls(
        &mut self,
        most: usize,
    ) -> std::result::Result<Vec<CrawlKey>, FrontierError> {
        self.0.run("list the unfinished crawls", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql = "SELECT id FROM crawls INDEXED BY crawls_unfinished
                       WHERE queued + leased > 0 ORDER BY id DESC LIMIT ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            select.query_map([most as i64], |row| row.get(0))?.collect()
        })
    }
}

/// The statement that selects the sites where a crawl has queued tasks. Further conditions may be appended.
fn select_queued_sites() -> String {
    format!(
        "SELECT sites.id, name, crawl_sites.queued, crawl_sites.top_priority = 0, due_at_ms,
             delay_ms, rule_delay_ms, block_until_ms, pages_left, backoff_until_ms, since_ms,
             iif(crawl_sites.top_priority > 0, NULL, (
                 SELECT min(not_before_ms) FROM (
                     SELECT not_before_ms FROM task_rows
                     WHERE task_rows.site = crawl_sites.site AND task_rows.crawl = ?1
                         AND state = 0 AND not_before_ms > 0 LIMIT {TRIES_COUNTED}))),
             reason, most_pages
         FROM crawl_sites JOIN sites ON sites.id = crawl_sites.site
         LEFT JOIN site_states ON site_states.site = sites.id
         LEFT JOIN site_rules ON site_rules.site = sites.id
         WHERE crawl_sites.crawl = ?1 AND crawl_sites.queued > 0"
    )
}

fn read_queued_site(row: &Row<'_>) -> Result<QueuedSite> {
    let since_ms: Option<i64> = row.get(10)?;
    let rest = match since_ms {
        Some(since_ms) => Some((read_reason(row, 12)?, since_ms)),
        None => None,
    };
    Ok(QueuedSite {
        id: row.get(0)?,
        name: row.get(1)?,
        queued: row.get::<_, i64>(2)? as u64,
        is_held: row.get(3)?,
        due_at_ms: row.get(4)?,
        delay_ms: row.get(5)?,
        rule_delay_ms: row.get(6)?,
        block_until_ms: row.get(7)?,
        pages_left: row.get::<_, Option<i64>>(8)?.map(|left| left as u64),
        most_pages: row.get::<_, Option<i64>>(13)?.map(|most| most as u64),
        backoff_until_ms: row.get(9)?,
        rest,
        next_try_ms: row.get(11)?,
    })
}
