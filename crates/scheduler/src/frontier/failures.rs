//! Permanent failures: failed URLs by outcome, status and site, and *unreachable* records, all of whose URLs have
//! failed. Both are read in pages, so that a crawl of millions blocks nothing.

use rusqlite::{Result, params};
use serde_json::Value;
use webfill_wire::{CrawlKey, Outcome};

use super::context::Context;
use super::error::FrontierError;
use super::parts::Reports;
use super::site_states::site_name;
use super::task_rows::read_outcome;

/// The maximum number of tasks or records that one call reads.
const PAGE_TASKS: i64 = 10_000;

/// The outcomes of URLs that could not be fetched.
const FAILED: &str = "('dns_error', 'network_error', 'tls_error', 'timeout', 'robots_unreachable',
    'blocked', 'http_error')";

/// The URLs of a site that have failed in one way.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedUrls {
    pub site: String,
    pub outcome: Outcome,
    pub status_code: Option<u16>,
    pub urls: u64,
}

/// A record none of whose URLs could be fetched.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadRecord {
    /// The record's key in the store.
    pub name: String,
    /// The first URL that has failed, and how.
    pub url: String,
    pub outcome: Outcome,
    pub status_code: Option<u16>,
    pub site: String,
    /// The evidence, if the site is in trouble.
    pub sign: Option<String>,
}

/// A part of a list, and the position where the next part begins, if there is one.
pub type ListPage<T> = (Vec<T>, Option<i64>);

impl Reports<'_> {
    /// The failed URLs among the next [`PAGE_TASKS`] tasks after an id.
    pub fn failed_urls(
        &mut self,
        crawls: &[CrawlKey],
        after: i64,
    ) -> std::result::Result<ListPage<FailedUrls>, FrontierError> {
        self.0.run("list what has failed", |cx| {
            let sql = format!(
                "SELECT sites.name, outcome, status_code, count(*)
                 FROM task_rows JOIN sites ON sites.id = site
                 WHERE task_rows.id > ?1 AND task_rows.id <= ?2 AND state = 2
                     AND crawl IN (SELECT value FROM json_each(?3)) AND outcome IN {FAILED}
                 GROUP BY site, outcome, status_code"
            );
            let (end, next) = page_bounds(cx, "task_rows", after)?;
            let mut select = cx.db.prepare_cached(&sql)?;
            let found = select.query_map(params![after, end, crawls_json(crawls)], |row| {
                Ok(FailedUrls {
                    site: row.get(0)?,
                    outcome: read_outcome(row, 1)?,
                    status_code: row.get(2)?,
                    urls: row.get::<_, i64>(3)? as u64,
                })
            })?;
            Ok((found.collect::<Result<_>>()?, next))
        })
    }

    /// The unreachable records among the next ones after an id: they are unresolved, none of their URLs waits or was
    /// fetched, and at least one has failed.
    pub fn dead_records(
        &mut self,
        crawls: &[CrawlKey],
        after: i64,
    ) -> std::result::Result<ListPage<DeadRecord>, FrontierError> {
        self.0
            .run("list records without a URL that could be had", |cx| {
                let of_record = "FROM task_records JOIN task_rows AS tried ON tried.id = task
                 WHERE record = records.id AND tried.crawl IN (SELECT value FROM json_each(?3))";
                let sql = format!(
                    "SELECT records.name, tasks.url, tasks.outcome, tasks.status_code, sites.name,
                     site_states.sign
                 FROM records JOIN tasks ON tasks.id = (
                     SELECT task {of_record} AND tried.outcome IN {FAILED} ORDER BY task LIMIT 1)
                 JOIN sites ON sites.id = tasks.site
                 LEFT JOIN site_states ON site_states.site = tasks.site
                 WHERE records.id > ?1 AND records.id <= ?2 AND resolved = 0 AND NOT EXISTS (
                     SELECT 1 {of_record}
                     AND (tried.state <> 2 OR tried.outcome IN ('ok', 'not_modified')))
                 ORDER BY records.id"
                );
                let (end, next) = page_bounds(cx, "records", after)?;
                let mut select = cx.db.prepare_cached(&sql)?;
                let found = select.query_map(params![after, end, crawls_json(crawls)], |row| {
                    Ok(DeadRecord {
                        name: row.get(0)?,
                        url: row.get(1)?,
                        outcome: read_outcome(row, 2)?,
                        status_code: row.get(3)?,
                        site: row.get(4)?,
                        sign: row.get(5)?,
                    })
                })?;
                Ok((found.collect::<Result<_>>()?, next))
            })
    }

    /// The sites of these crawls with pages that only repeat others. Returns their number, and up to `most` of them,
    /// those with the most refused links first, each with a link that was queued.
    pub fn repeating_sites(
        &mut self,
        crawls: &[CrawlKey],
        most: usize,
    ) -> Result<(u64, Vec<Value>), FrontierError> {
        self.0.run("list sites whose pages repeat others", |cx| {
            let found = cx.trickles.branches_of(crawls);
            let mut first = Vec::new();
            for ((_, site), branch) in found.iter().take(most) {
                let name = site_name(&cx.db, *site)?;
                let (url, refused) = (&branch.url, branch.refused);
                first.push(serde_json::json!({"site": name, "url": url, "skipped": refused}));
            }
            Ok((found.len() as u64, first))
        })
    }
}

/// The last id of the rows to read after an id, and the position to continue from, if there are more.
fn page_bounds(cx: &Context, table: &str, after: i64) -> Result<(i64, Option<i64>)> {
    let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
    let mut select = cx.db.prepare_cached(&sql)?;
    let last: i64 = select.query_row([], |row| row.get(0))?;
    let end = after.saturating_add(PAGE_TASKS);
    Ok((end, (end < last).then_some(end)))
}

fn crawls_json(crawls: &[CrawlKey]) -> String {
    serde_json::to_string(crawls).unwrap_or_default()
}
