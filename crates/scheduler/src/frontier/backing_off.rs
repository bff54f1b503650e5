//! Reports on sites and their backoffs, and the end of a backoff by hand.

use rusqlite::{OptionalExtension, Result, params};
use webfill_wire::CrawlKey;

use super::context::Context;
use super::model::SiteId;
use super::parts::SiteStates;
use super::site_states::{COLUMNS, SiteReport, read_report};
use super::{FrontierError, state_changes};

/// The maximum number of rows that one call reads.
const MOST_READ: i64 = 50_000;

/// The parts of a statement that lists sites.
struct SiteListSql {
    /// The table whose ids define the order of the list.
    table: &'static str,
    join: &'static str,
    id: &'static str,
    wanted: &'static str,
}

const WITH_WORK: SiteListSql = SiteListSql {
    table: "sites",
    join: "LEFT JOIN site_states ON site = sites.id",
    id: "sites.id",
    wanted: "queued > 0 OR site NOT NULL",
};

/// Sites in trouble are few among perhaps ten million sites, so their own table is read.
const IN_TROUBLE: SiteListSql = SiteListSql {
    table: "site_states",
    join: "CROSS JOIN sites ON sites.id = site",
    id: "site",
    wanted: "backoff_until_ms > 0 OR unreachable_to NOT NULL",
};

impl SiteStates<'_> {
    /// The report on a site, by its name; `None` if the site is unknown.
    pub fn find_report(
        &mut self,
        name: &str,
    ) -> std::result::Result<Option<SiteReport>, FrontierError> {
        self.0.run("read a site's state", |cx| {
            let sql = format!(
                "SELECT {COLUMNS} FROM sites LEFT JOIN site_states ON site = sites.id
                 WHERE name = ?1"
            );
            let mut select = cx.db.prepare_cached(&sql)?;
            select.query_row([name], read_report).optional()
        })
    }

    /// The sites after the id `after` that have queued tasks or are in trouble; with `backing_off`, only those that
    /// are backing off or unreachable. Also returns the id to continue from, if there may be more.
    pub fn list_reports(
        &mut self,
        backing_off: bool,
        after: i64,
        limit: usize,
    ) -> std::result::Result<(Vec<SiteReport>, Option<i64>), FrontierError> {
        let SiteListSql {
            table,
            join,
            id,
            wanted,
        } = if backing_off { IN_TROUBLE } else { WITH_WORK };
        self.0.run("list the sites", |cx| {
            let last = format!(
                "SELECT coalesce(max(id), ?1) FROM
                     (SELECT {id} AS id FROM {table} WHERE {id} > ?1 ORDER BY {id} LIMIT ?2)"
            );
            let mut select = cx.db.prepare_cached(&last)?;
            let last: i64 = select.query_row([after, MOST_READ], |row| row.get(0))?;
            let sql = format!(
                "SELECT {COLUMNS} FROM {table} {join}
                 WHERE {id} > ?1 AND {id} <= ?2 AND ({wanted}) ORDER BY {id} LIMIT ?3"
            );
            let mut select = cx.db.prepare_cached(&sql)?;
            let rows = select.query_map(params![after, last, limit as i64], read_report)?;
            let reports: Vec<SiteReport> = rows.collect::<Result<_>>()?;
            let read_to = match reports.len() < limit {
                true => last,
                false => reports.last().map_or(last, |report| report.id.0),
            };
            let more = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {id} > ?1)");
            let mut select = cx.db.prepare_cached(&more)?;
            let has_more = select.query_row([read_to], |row| row.get(0))?;
            Ok((reports, Some(read_to).filter(|_| has_more)))
        })
    }

    /// How many sites with queued tasks back off, and those whose backoffs end first.
    pub fn list_backing_off(
        &mut self,
        limit: usize,
        now_ms: i64,
    ) -> std::result::Result<(u64, Vec<SiteReport>), FrontierError> {
        self.0.run("look for sites that back off", |cx| {
            let count = "SELECT count(*) FROM sites
                         WHERE backoff_until_ms > ?1 AND backoff_until_ms > 0 AND queued > 0";
            let mut select = cx.db.prepare_cached(count)?;
            let backing_off: i64 = select.query_row([now_ms], |row| row.get(0))?;
            let sql = format!(
                "SELECT {COLUMNS} FROM sites JOIN site_states ON site = sites.id
                 WHERE backoff_until_ms > ?1 AND backoff_until_ms > 0 AND queued > 0 ORDER BY backoff_until_ms LIMIT ?2"
            );
            let mut select = cx.db.prepare_cached(&sql)?;
            let first = select.query_map(params![now_ms, limit as i64], read_report)?;
            Ok((backing_off as u64, first.collect::<Result<_>>()?))
        })
    }

    /// When the first queued task of a crawl may be handed out. `None` if this is not later than `ms`. A later time
    /// means that all of the crawl's sites back off, or all of its tasks wait for retries.
    pub fn first_handout_after(
        &mut self,
        crawl: CrawlKey,
        ms: i64,
    ) -> std::result::Result<Option<i64>, FrontierError> {
        const FREE_AT: &str = "max(backoff_until_ms, iif(crawl_sites.top_priority > 0, 0, coalesce(
            (SELECT min(not_before_ms) FROM tasks WHERE tasks.site = crawl_sites.site
             AND tasks.crawl = crawl_sites.crawl AND state = 0 AND not_before_ms > 0), 0)))";
        const QUEUED: &str = "crawl_sites JOIN sites ON sites.id = crawl_sites.site
            WHERE crawl = ?1 AND crawl_sites.queued > 0";
        self.0.run("see whether a crawl is backing off", |cx| {
            let sooner = format!("SELECT EXISTS (SELECT 1 FROM {QUEUED} AND {FREE_AT} <= ?2)");
            let mut select = cx.db.prepare_cached(&sooner)?;
            if select.query_row(params![crawl, ms], |row| row.get(0))? {
                return Ok(None);
            }
            let first = format!("SELECT min({FREE_AT}) FROM {QUEUED}");
            let mut select = cx.db.prepare_cached(&first)?;
            select.query_row([crawl], |row| row.get(0))
        })
    }

    /// Ends the backoff of a site now. A single task is handed out first, to test the site.
    pub fn end_backoff(
        &mut self,
        name: &str,
        now_ms: i64,
    ) -> std::result::Result<(), FrontierError> {
        self.0.run("wake a site", |cx| {
            let site = SiteId(cx.sites.id_or_insert(&cx.db, name)?);
            end_backoff(cx, site, now_ms)
        })
    }
}

/// Called when a person queues a site's finished tasks again. Opens an unreachable site, where these tasks would end
/// without a request. A backoff continues.
pub(super) fn end_backoff_if_unreachable(
    cx: &mut Context,
    site: SiteId,
    now_ms: i64,
) -> Result<()> {
    match cx.backoff.unreachable.contains_key(&site) {
        true => end_backoff(cx, site, now_ms),
        false => Ok(()),
    }
}

pub(super) fn end_backoff(cx: &mut Context, site: SiteId, now_ms: i64) -> Result<()> {
    let mut stored = state_changes::site_state(cx, site)?;
    stored.state.end_backoff(now_ms);
    state_changes::propagate_phase(cx, site, stored.state.phase)?;
    state_changes::update_state(cx, site, &stored)
}
