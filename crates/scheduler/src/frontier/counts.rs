//! The counters of crawls, of applications, and of all crawls together.

use rusqlite::{Connection, Result, params};
use webfill_wire::CrawlKey;

use super::crawl_rows;
use super::crawl_rows::read_waiting_counts;
use super::error::FrontierError;
use super::model::{AppTally, CappedCount};
use super::parts::Counts;

impl Counts<'_> {
    /// The crawls of an application that have queued or leased tasks, in the order of their ids, after a given one.
    pub fn pending_crawls(
        &mut self,
        app_id: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<PendingCrawl>, FrontierError> {
        self.0.run("list the crawls of an application", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql = "SELECT id, crawl_id, expires_at_ms, leased, queued, waiting
                       FROM crawls INDEXED BY crawls_pending
                       WHERE app_id = ?1 AND crawl_id > ?2 AND queued + leased > 0
                       ORDER BY crawl_id LIMIT ?3";
            let mut select = cx.db.prepare_cached(sql)?;
            let values = params![app_id, after.unwrap_or_default(), most as i64];
            let crawls = select.query_map(values, |row| {
                let waiting = read_waiting_counts(row, 5)?;
                Ok(PendingCrawl {
                    key: row.get(0)?,
                    crawl_id: row.get(1)?,
                    expires_at_ms: row.get(2)?,
                    leased: row.get::<_, i64>(3)? as u64,
                    queued: row.get::<_, i64>(4)? as u64,
                    low_priority: waiting.keys().next().copied(),
                    high_priority: waiting.keys().next_back().copied(),
                })
            })?;
            crawls.collect()
        })
    }

    /// How many sites have queued tasks of an application.
    pub fn count_pending_sites(&mut self, app_id: &str) -> Result<CappedCount, FrontierError> {
        self.0.run("count the sites of an application", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql = "SELECT count(DISTINCT site), count(*) FROM (
                           SELECT site FROM crawls INDEXED BY crawls_pending
                           CROSS JOIN crawl_sites ON crawl_sites.crawl = crawls.id AND crawl_sites.queued > 0
                           WHERE app_id = ?1 AND crawls.queued + crawls.leased > 0
                               AND crawls.queued > 0 LIMIT ?2)";
            let mut select = cx.db.prepare_cached(sql)?;
            select.query_row(params![app_id, CappedCount::EXAMINED], |row| {
                let examined = CappedCount::from_found(row.get(1)?);
                let different = CappedCount::from_found(row.get(0)?);
                Ok(CappedCount {
                    has_more: examined.has_more,
                    ..different
                })
            })
        })
    }

    /// The counters of an application. They are summed up at the first request, and kept up to date from then on.
    pub fn count_application(&mut self, app_id: &str) -> Result<AppTally, FrontierError> {
        self.0.run("count the crawls of an application", |cx| {
            crawl_rows::write_counters(cx)?;
            if let Some(tally) = cx.app_tallies.get(app_id) {
                return Ok(tally);
            }
            let sql = "SELECT coalesce(sum(queued), 0), coalesce(sum(leased), 0), count(*)
                       FROM crawls INDEXED BY crawls_pending
                       WHERE app_id = ?1 AND queued + leased > 0";
            let mut select = cx.db.prepare_cached(sql)?;
            let tally = select.query_row([app_id], |row| {
                Ok(AppTally {
                    queued: row.get::<_, i64>(0)? as u64,
                    leased: row.get::<_, i64>(1)? as u64,
                    crawls: row.get::<_, i64>(2)? as u64,
                })
            })?;
            drop(select);
            cx.app_tallies.insert(app_id, tally);
            Ok(tally)
        })
    }

    /// How many paused crawls of an application have queued tasks, and the id of one of them.
    pub fn count_paused_crawls(&mut self, app_id: &str) -> Result<(u64, String), FrontierError> {
        self.0
            .run("count the paused crawls of an application", |cx| {
                crawl_rows::write_counters(cx)?;
                let sql =
                "SELECT count(*), coalesce(min(crawl_id), '') FROM crawls INDEXED BY crawls_pending
                       WHERE app_id = ?1 AND paused AND ended IS NULL AND queued > 0
                           AND queued + leased > 0";
                let mut select = cx.db.prepare_cached(sql)?;
                select.query_row([app_id], |row| {
                    Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
                })
            })
    }

    /// Sums up the counters of all crawls. Reads all their rows.
    pub fn count_all(&mut self) -> Result<FrontierTally, FrontierError> {
        self.0.run("count the crawls", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql =
                "SELECT count(*), total(queued + leased > 0), total(paused AND ended IS NULL),
                       total(discovered), total(queued), total(leased), total(done),
                       total(pages), total(bytes),
                       (SELECT total(stored) FROM listed_rows) FROM crawls";
            let mut select = cx.db.prepare_cached(sql)?;
            let mut tally = select.query_row([], |row| {
                let count = |column| row.get::<_, f64>(column).map(|n| n as u64);
                Ok(FrontierTally {
                    crawls: row.get::<_, i64>(0)? as u64,
                    unfinished: count(1)?,
                    paused: count(2)?,
                    discovered: count(3)?,
                    queued: count(4)?,
                    leased: count(5)?,
                    done: count(6)?,
                    pages: count(7)?,
                    bytes: count(8)?,
                    rows_stored: count(9)?,
                    sites_waiting: 0,
                })
            })?;
            tally.sites_waiting = count_waiting_sites(&cx.db)?;
            Ok(tally)
        })
    }
}

/// A crawl that has queued or leased tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCrawl {
    pub key: CrawlKey,
    pub crawl_id: String,
    pub queued: u64,
    /// The lowest and the highest priority of the queued tasks.
    pub low_priority: Option<u8>,
    pub high_priority: Option<u8>,
    /// Tasks that were handed out and have not ended yet.
    pub leased: u64,
    /// When the crawl expires, in milliseconds since the epoch.
    pub expires_at_ms: Option<i64>,
}

/// The maximum number of waiting sites that are counted; the metrics count all.
pub const MOST_WAITING_COUNTED: u64 = 100_000;

/// The counters of all crawls together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FrontierTally {
    pub crawls: u64,
    /// Crawls with queued or leased tasks.
    pub unfinished: u64,
    pub paused: u64,
    pub discovered: u64,
    pub queued: u64,
    pub leased: u64,
    pub done: u64,
    pub pages: u64,
    pub bytes: u64,
    /// The number of rows in lists on pages whose values are in the store.
    pub rows_stored: u64,
    /// Sites that have tasks to hand out but are not in memory, counted up to [`MOST_WAITING_COUNTED`].
    pub sites_waiting: u64,
}

/// How many sites have tasks to hand out but are not in memory. The count is limited, because counting ten million
/// would block the loop for a third of a second.
fn count_waiting_sites(db: &Connection) -> Result<u64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM sites INDEXED BY sites_waiting
               WHERE top_priority > 0 AND in_window = 0 LIMIT ?1)";
    let mut select = db.prepare_cached(sql)?;
    select.query_row([MOST_WAITING_COUNTED as i64], |row| {
        row.get::<_, i64>(0).map(|n| n as u64)
    })
}
