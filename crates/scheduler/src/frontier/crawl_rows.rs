//! Reads and writes the rows of crawls. A crawl in use is read once and kept in memory; its counters are written with
//! each commit.

use std::collections::BTreeMap;
use std::str::FromStr;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_api::CrawlSpec;
use webfill_wire::{CrawlKey, Outcome};

use super::context::Context;
use super::crawl::Crawl;
use super::crawl_status::CrawlStatus;
use crate::scope::Scope;

/// The crawl of a stored task; it must exist.
pub(super) fn load_known_crawl(cx: &mut Context, key: CrawlKey) -> Result<&mut Crawl> {
    load_crawl(cx, key)?;
    let crawl = cx.crawls.get_mut(&key);
    crawl.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

pub(super) fn load_crawl(cx: &mut Context, key: CrawlKey) -> Result<bool> {
    if cx.crawls.contains_key(&key) {
        return Ok(true);
    }
    let Some(stored) = read_crawl(&cx.db, key)? else {
        return Ok(false);
    };
    let scope = Scope::from_checked(&stored.spec).map_err(|error| conversion_error(0, error))?;
    let crawl = Crawl {
        written: (stored.status.queued, stored.status.leased),
        status: stored.status,
        ended: stored.ended,
        paused: stored.paused,
        waiting: stored.waiting,
        changed: false,
        is_pruned: stored.is_pruned,
        ..Crawl::new(stored.spec, scope)
    };
    cx.crawls.insert(key, crawl);
    Ok(true)
}

/// Writes the counters, and drops crawls from memory if there are too many.
pub(super) fn flush_crawls(cx: &mut Context) -> Result<()> {
    write_counters(cx)?;
    cx.crawls.evict_if_full();
    Ok(())
}

pub(super) fn write_counters(cx: &mut Context) -> Result<()> {
    for key in cx.crawls.take_used() {
        let crawl = cx.crawls.get_without_use(&key);
        if let Some(crawl) = crawl.filter(|crawl| crawl.changed) {
            write_crawl(&cx.db, key, crawl, cx.now_ms)?;
            crawl.changed = false;
            let now = (crawl.status.queued, crawl.status.leased);
            let before = std::mem::replace(&mut crawl.written, now);
            cx.app_tallies
                .apply_crawl_change(&crawl.spec.app_id, before, now);
            if crawl.spec.on_demand && now == (0, 0) {
                note_unsaved_crawl(&cx.db, key)?;
            }
            cx.touched.insert(key);
        }
    }
    Ok(())
}

/// The key of the crawl with these ids.
pub(super) fn find_key(db: &Connection, app_id: &str, crawl_id: &str) -> Result<Option<CrawlKey>> {
    let sql = "SELECT id FROM crawls WHERE app_id = ?1 AND crawl_id = ?2";
    let mut select = db.prepare_cached(sql)?;
    let key = select.query_row([app_id, crawl_id], |row| row.get(0));
    key.optional()
}

/// The parts of a crawl's row in the table `crawls`.
pub(super) struct CrawlRow {
    pub(super) spec: CrawlSpec,
    pub(super) status: CrawlStatus,
    pub(super) ended: Option<Outcome>,
    pub(super) paused: bool,
    pub(super) waiting: BTreeMap<u8, u64>,
    pub(super) is_pruned: bool,
}

pub(super) fn read_crawl(db: &Connection, key: CrawlKey) -> Result<Option<CrawlRow>> {
    let sql = "SELECT spec, ended, fed_lines, discovered, queued, leased, done, pages, fields,
               links, bytes, sites, seeds_ended, paused, waiting, app_id FROM crawls WHERE id = ?1";
    let stored = |row: &Row<'_>| {
        let spec: String = row.get(0)?;
        let spec = serde_json::from_str(&spec).map_err(|error| conversion_error(0, error))?;
        let ended = row.get::<_, Option<String>>(1)?;
        let ended = ended.map(|name| parse_column(1, &name)).transpose()?;
        let count = |column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)? as u64);
        let (rows, rows_stored) = read_row_counts(db, key)?;
        let status = CrawlStatus {
            rows,
            rows_stored,
            fed_lines: count(2)?,
            discovered: count(3)?,
            queued: count(4)?,
            leased: count(5)?,
            done: count(6)?,
            pages: count(7)?,
            fields: count(8)?,
            links: count(9)?,
            bytes: count(10)?,
            sites: count(11)?,
            seeds_ended: row.get(12)?,
            outcomes: read_counts(db, "SELECT outcome, n FROM outcomes WHERE crawl = ?1", key)?,
            unmatched: read_unmatched_count(db, key)?,
            skipped: read_counts(db, "SELECT reason, n FROM skipped WHERE crawl = ?1", key)?,
        };
        Ok(CrawlRow {
            spec,
            status,
            ended,
            paused: row.get(13)?,
            waiting: read_waiting_counts(row, 14)?,
            is_pruned: row.get::<_, String>(15)? == DETACHED,
        })
    };
    db.query_row(sql, [key], stored).optional()
}

/// Reads how many tasks of a crawl are queued, by priority.
pub(super) fn read_waiting_counts(row: &Row<'_>, column: usize) -> Result<BTreeMap<u8, u64>> {
    let waiting: String = row.get(column)?;
    serde_json::from_str(&waiting).map_err(|error| conversion_error(column, error))
}

pub(super) fn read_unmatched_count(db: &Connection, key: CrawlKey) -> Result<u64> {
    let sql = "SELECT n FROM unmatched_pages WHERE crawl = ?1";
    let n = db.prepare_cached(sql)?.query_row([key], |row| row.get(0));
    Ok(n.optional()?.map_or(0, |n: i64| n as u64))
}

pub(super) fn read_row_counts(db: &Connection, key: CrawlKey) -> Result<(u64, u64)> {
    let sql = "SELECT n, stored FROM listed_rows WHERE crawl = ?1";
    let rows = db.prepare_cached(sql)?.query_row([key], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
    });
    Ok(rows.optional()?.unwrap_or_default())
}

pub(super) fn read_counts<T>(db: &Connection, sql: &str, key: CrawlKey) -> Result<BTreeMap<T, u64>>
where
    T: FromStr<Err = String> + Ord,
{
    let mut select = db.prepare(sql)?;
    let counts = select.query_map([key], |row| {
        let name: String = row.get(0)?;
        Ok((parse_column(0, &name)?, row.get::<_, i64>(1)? as u64))
    })?;
    counts.collect()
}

pub(super) fn parse_column<T: FromStr<Err = String>>(column: usize, name: &str) -> Result<T> {
    name.parse()
        .map_err(|error: String| conversion_error(column, error))
}

pub(super) fn conversion_error(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

pub(super) fn write_crawl(
    db: &Connection,
    key: CrawlKey,
    crawl: &Crawl,
    now_ms: i64,
) -> Result<()> {
    let status = &crawl.status;
    let sql = "UPDATE crawls SET ended = ?2, fed_lines = ?3, discovered = ?4, queued = ?5,
               leased = ?6, done = ?7, pages = ?8, fields = ?9, links = ?10, bytes = ?11,
               sites = ?12, seeds_ended = ?13, paused = ?14, waiting = ?15, changed_at_ms = ?16
               WHERE id = ?1";
    let waiting = serde_json::to_string(&crawl.waiting)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    db.prepare_cached(sql)?.execute(params![
        key,
        crawl.ended.map(Outcome::as_str),
        status.fed_lines as i64,
        status.discovered as i64,
        status.queued as i64,
        status.leased as i64,
        status.done as i64,
        status.pages as i64,
        status.fields as i64,
        status.links as i64,
        status.bytes as i64,
        status.sites as i64,
        status.seeds_ended,
        crawl.paused,
        waiting,
        now_ms,
    ])?;
    let mut replace = db.prepare_cached("INSERT OR REPLACE INTO outcomes VALUES (?1, ?2, ?3)")?;
    for (outcome, n) in &status.outcomes {
        replace.execute(params![key, outcome.as_str(), *n as i64])?;
    }
    let mut replace = db.prepare_cached("INSERT OR REPLACE INTO skipped VALUES (?1, ?2, ?3)")?;
    for (reason, n) in &status.skipped {
        replace.execute(params![key, reason.as_str(), *n as i64])?;
    }
    if status.unmatched > 0 {
        let sql = "INSERT OR REPLACE INTO unmatched_pages VALUES (?1, ?2)";
        let mut replace = db.prepare_cached(sql)?;
        replace.execute(params![key, status.unmatched as i64])?;
    }
    if status.rows > 0 {
        let sql = "INSERT OR REPLACE INTO listed_rows VALUES (?1, ?2, ?3)";
        let mut replace = db.prepare_cached(sql)?;
        replace.execute(params![key, status.rows as i64, status.rows_stored as i64])?;
    }
    Ok(())
}

/// The application name of detached crawls, which are being deleted. No client's application has an empty name.
pub(super) const DETACHED: &str = "";

/// The key of the next new crawl, in SQL.
pub(super) const NEXT_CRAWL: &str = "(SELECT max(coalesce((SELECT max(id) FROM crawls), 0),
    coalesce((SELECT value FROM meta WHERE name = 'last_crawl'), 0)) + 1)";

/// Notes that a crawl has ended and must be saved to the store.
pub(super) fn note_unsaved_crawl(db: &Connection, crawl: CrawlKey) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO unsaved_crawls (crawl) VALUES (?1)";
    db.prepare_cached(sql)?.execute([crawl])?;
    Ok(())
}
