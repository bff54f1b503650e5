//! Why queued tasks wait, for people who ask why a crawl makes no progress.

use rusqlite::{Result, ToSql, params};
use webfill_wire::{CrawlKey, Lane};

use super::parts::Reports;
use super::{FrontierError, crawl_rows};

/// Sites whose queued tasks wait for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSites {
    pub by: HeldBy,
    pub sites: u64,
    /// Whether there may be more such sites, because not all sites were checked.
    pub has_more: bool,
    /// The name of one of the sites.
    pub example: String,
}

/// Why a site hands out no tasks of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// The site's page limit is used up.
    Limit,
    /// No request is allowed before a time set by hand.
    BlockUntil,
    Backoff,
    /// All of the crawl's tasks there have failed and are retried later.
    Retries,
}

/// The scope of a question about waiting tasks.
#[derive(Debug, Clone, Copy)]
pub enum HeldSitesScope<'a> {
    Crawl(CrawlKey),
    /// All crawls of an application that are not paused.
    Application(&'a str),
}

impl Reports<'_> {
    /// The sites that hold back queued tasks, by reason. Only a limited number of sites is checked, because a crawl
    /// may have a million.
    pub fn held_sites(
        &mut self,
        asked: HeldSitesScope<'_>,
        most: usize,
        now_ms: i64,
    ) -> std::result::Result<Vec<HeldSites>, FrontierError> {
        self.0.run("see what holds a crawl's tasks", |cx| {
            crawl_rows::write_counters(cx)?;
            let (whose, value): (&str, &dyn ToSql) = match &asked {
                HeldSitesScope::Crawl(key) => ("crawls.id = ?1", key),
                HeldSitesScope::Application(app) => ("app_id = ?1 AND paused = 0", app),
            };
            let sql = format!(
                "WITH asked AS (
                     SELECT crawl, site, top_priority FROM crawls JOIN crawl_sites
                         ON crawl = crawls.id AND crawl_sites.queued > 0
                     WHERE {whose} AND ended IS NULL AND crawls.queued > 0 LIMIT ?3),
                 held AS (
                     SELECT name, CASE
                         WHEN pages_left = 0 THEN 0
                         WHEN block_until_ms > ?2 THEN 1
                         WHEN backoff_until_ms > ?2 THEN 2
                         WHEN asked.top_priority = 0 AND EXISTS (
                             SELECT 1 FROM tasks WHERE tasks.site = asked.site
                             AND tasks.crawl = asked.crawl AND state = 0 AND not_before_ms > 0)
                         THEN 3 END AS why
                     FROM asked JOIN sites ON sites.id = asked.site)
                 SELECT why, count(DISTINCT name), min(name), (SELECT count(*) FROM asked) >= ?3 FROM held
                 WHERE why NOT NULL GROUP BY why ORDER BY why"
            );
            let mut select = cx.db.prepare_cached(&sql)?;
            let held = select.query_map(params![value, now_ms, most as i64], |row| {
                let by = match row.get::<_, i64>(0)? {
                    0 => HeldBy::Limit,
                    1 => HeldBy::BlockUntil,
                    2 => HeldBy::Backoff,
                    _ => HeldBy::Retries,
                };
                Ok(HeldSites {
                    by,
                    sites: row.get::<_, i64>(1)? as u64,
                    has_more: row.get(3)?,
                    example: row.get(2)?,
                })
            })?;
            held.collect::<Result<_>>()
        })
    }

    /// Whether an application has a crawl whose queued tasks need a browser while no supervisor has one.
    pub fn has_crawl_awaiting_browser(
        &mut self,
        app_id: &str,
    ) -> std::result::Result<bool, FrontierError> {
        if self.0.cx.lanes.has_browsers() {
            return Ok(false);
        }
        self.0.run("look for crawls that need browsers", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql = "SELECT EXISTS (SELECT 1 FROM crawls INDEXED BY crawls_pending
                       WHERE app_id = ?1 AND queued > 0 AND queued + leased > 0
                       AND ended IS NULL AND paused = 0
                       AND json_extract(spec, '$.lane') = ?2)";
            let mut select = cx.db.prepare_cached(sql)?;
            let lane = webfill_wire::Lane::Browser.to_string();
            select.query_row(params![app_id, lane], |row| row.get(0))
        })
    }

    /// The lane (`http` or `browser`) that a crawl waits for, because no connected supervisor serves it.
    pub fn unserved_lane_of(
        &mut self,
        key: CrawlKey,
    ) -> std::result::Result<Option<Lane>, FrontierError> {
        self.0.crawl(key)?;
        let crawl = self.0.cx.crawls.get(&key);
        let unserved = crawl.filter(|crawl| !self.0.cx.lanes.serves(crawl));
        Ok(unserved.map(|crawl| crawl.spec.lane))
    }
}
