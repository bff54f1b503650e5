//! The counts of each table, slice by slice.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, Row, params};
use webfill_wire::Lane;

use crate::core::HoldConditions;

/// The number of rows counted in one transaction.
const SLICE: i64 = 20_000;

/// The number of crawls, and of the tasks of all crawls.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CrawlTotals {
    pub crawls: u64,
    /// Crawls with queued or leased tasks.
    pub unfinished: u64,
    pub paused: u64,
    pub queued: u64,
    pub leased: u64,
    pub done: u64,
}

/// The number of sites by state, and of those that back off by reason. The keys are the names in the metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteTotals {
    pub by_state: BTreeMap<String, u64>,
    pub backing_off: BTreeMap<String, u64>,
    /// How many sites outside memory could be fetched from now, by the lane (with or without a browser) of their next
    /// crawl.
    pub due: BTreeMap<Lane, u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RecordTotals {
    pub records: u64,
    pub resolved: u64,
}

/// Notifications that wait for their delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NotificationTotals {
    pub waiting: u64,
    pub oldest_made_ms: Option<i64>,
}

/// Adds a slice of the crawls behind the row `after`. Returns its last row, or `None` at the end of the table.
pub fn count_crawls(db: &Connection, after: i64, sum: &mut CrawlTotals) -> Result<Option<i64>> {
    let sql =
        "SELECT max(id), count(*), total(queued + leased > 0), total(paused AND ended IS NULL),
                   total(queued), total(leased), total(done)
               FROM (SELECT id, queued, leased, done, paused, ended FROM crawls
                     WHERE id > ?1 ORDER BY id LIMIT ?2)";
    db.prepare_cached(sql)?
        .query_row(params![after, SLICE], |row| {
            sum.crawls += read_count(row, 1)?;
            sum.unfinished += read_count(row, 2)?;
            sum.paused += read_count(row, 3)?;
            sum.queued += read_count(row, 4)?;
            sum.leased += read_count(row, 5)?;
            sum.done += read_count(row, 6)?;
            row.get(0)
        })
}

/// Adds a slice of the sites behind the row `after`. Returns its last row, or `None` at the end of the table.
/// `conditions` are reasons for waiting that are not in the file.
pub fn count_sites(
    db: &Connection,
    after: i64,
    now_ms: i64,
    conditions: Option<&HoldConditions>,
    sum: &mut SiteTotals,
) -> Result<Option<i64>> {
    let sql = "SELECT max(id), count(*), CASE
                   WHEN unreachable_to NOT NULL THEN 'unreachable'
                   WHEN backoff_until_ms > ?3 THEN 'backing_off'
                   WHEN in_window = 1 THEN 'in_window'
                   WHEN in_window = 2 THEN 'parked'
                   WHEN top_priority > 0 THEN 'waiting'
                   ELSE 'idle' END AS state,
                   iif(unreachable_to IS NULL AND backoff_until_ms > ?3, reason, NULL) AS why,
                   iif(in_window = 0 AND top_priority > 0 AND unreachable_to IS NULL AND pages_left IS NOT 0
                           AND max(due_at_ms, block_until_ms, backoff_until_ms) <= ?3, (
                       SELECT crawl FROM crawl_sites JOIN crawls ON crawls.id = crawl
                       WHERE crawl_sites.site = sliced.id AND crawl_sites.top_priority > 0
                           AND paused = 0 AND ended IS NULL
                       ORDER BY crawl_sites.top_priority DESC, turn LIMIT 1), NULL) AS due_for
               FROM (SELECT id, in_window, top_priority, backoff_until_ms, due_at_ms, block_until_ms, pages_left
                     FROM sites WHERE id > ?1 ORDER BY id LIMIT ?2) AS sliced
               LEFT JOIN site_states ON site = id GROUP BY state, why, due_for";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![after, SLICE, now_ms])?;
    let mut last: Option<i64> = None;
    while let Some(row) = rows.next()? {
        last = last.max(row.get(0)?);
        let sites = read_count(row, 1)?;
        *sum.by_state.entry(row.get(2)?).or_default() += sites;
        if let Some(why) = row.get::<_, Option<String>>(3)? {
            *sum.backing_off.entry(why).or_default() += sites;
        }
        if let Some(crawl) = row.get(4)?
            && let Some(lane) = lane_of_crawl(db, crawl, conditions)?
        {
            *sum.due.entry(lane).or_default() += sites;
        }
    }
    Ok(last)
}

/// Adds a slice of the records behind the row `after`. Returns its last row, or `None` at the end of the table.
pub fn count_records(db: &Connection, after: i64, sum: &mut RecordTotals) -> Result<Option<i64>> {
    let sql = "SELECT max(id), count(*), total(resolved)
               FROM (SELECT id, resolved FROM records WHERE id > ?1 ORDER BY id LIMIT ?2)";
    db.prepare_cached(sql)?
        .query_row(params![after, SLICE], |row| {
            sum.records += read_count(row, 1)?;
            sum.resolved += read_count(row, 2)?;
            row.get(0)
        })
}

/// The lane of a crawl; `None` if it or its application is at a limit, so that none of its tasks is handed out.
fn lane_of_crawl(
    db: &Connection,
    crawl: i64,
    conditions: Option<&HoldConditions>,
) -> Result<Option<Lane>> {
    let sql = "SELECT app_id, json_extract(spec, '$.lane'),
                   coalesce(pages + leased >= json_extract(spec, '$.max_pages'), 0)
               FROM crawls WHERE id = ?1";
    let (app, lane, is_at_limit): (String, Option<String>, bool) = db
        .prepare_cached(sql)?
        .query_row([crawl], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let is_held = is_at_limit
        || conditions.is_some_and(|held| held.spent.contains(&app) || held.paced.contains(&app));
    Ok((!is_held).then(|| read_lane(lane)))
}

/// Counts all waiting notifications at once, not in slices: their number is bounded, and they have an index.
pub fn count_waiting_notifications(db: &Connection) -> Result<NotificationTotals> {
    let sql = "SELECT count(*), min(made_ms) FROM notifications WHERE due_ms IS NOT NULL";
    db.prepare_cached(sql)?.query_row([], |row| {
        Ok(NotificationTotals {
            waiting: read_count(row, 0)?,
            oldest_made_ms: row.get(1)?,
        })
    })
}

/// The lane (with or without a browser) in the settings of a crawl; `http` if it is missing.
pub(super) fn read_lane(lane: Option<String>) -> Lane {
    lane.and_then(|lane| lane.parse().ok())
        .unwrap_or(Lane::Http)
}

/// Reads a count. A `total()` of SQLite is a float.
fn read_count(row: &Row<'_>, column: usize) -> Result<u64> {
    row.get::<_, f64>(column).map(|number| number as u64)
}
