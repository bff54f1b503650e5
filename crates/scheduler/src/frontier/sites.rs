//! The queue of sites: which of them have tasks to hand out, and when they may be fetched from.
//!
//! A site is in one of these states (column `in_window`):
//!
//! - *waiting* (0): outside the window; an index orders waiting sites by priority and due time;
//! - *in the window* (1): in the memory of the running dispatcher;
//! - *parked* (2): it has queued tasks, but none that could be handed out now (a paused crawl,
//!   retries that are not due, a limit that is reached). Its `top_priority` is 0 then. Whatever
//!   makes a task available unparks the site.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::CrawlKey;

use super::database::Database;
use super::model::{Clock, NextCrawl, SiteDue, SiteId, SiteRule};

/// A site's row. The lane of the crawl that is next there is looked up separately.
pub(super) struct SiteRow {
    pub(super) site: SiteDue,
    pub(super) next: Option<NextCrawl>,
}

/// The columns of a [`SiteRow`]; the last ones are the next crawl and whether the site is unreachable.
pub(super) const COLUMNS: &str =
    "id, name, due_at_ms, delay_ms, last_start_ms, owner, queued, top_priority, rule_delay_ms,
     block_until_ms, pages_left, backoff_until_ms, address,
     (SELECT crawl FROM crawl_sites WHERE site = sites.id AND crawl_sites.top_priority > 0
      ORDER BY crawl_sites.top_priority DESC, turn LIMIT 1),
     EXISTS (SELECT 1 FROM site_states WHERE site = sites.id AND unreachable_to NOT NULL)";

pub(super) fn read_site(row: &Row<'_>) -> Result<SiteRow> {
    let clock = Clock {
        due_at_ms: row.get(2)?,
        delay_ms: row.get(3)?,
        last_start_ms: row.get(4)?,
        owner: row.get(5)?,
        address: row
            .get::<_, Option<String>>(12)?
            .and_then(|text| text.parse().ok()),
    };
    let priority: u8 = row.get(7)?;
    let backoff_until_ms: i64 = row.get(11)?;
    let crawl: Option<CrawlKey> = row.get(13)?;
    let site = SiteDue {
        id: row.get(0)?,
        name: row.get(1)?,
        clock,
        rule: read_rule(row, 8)?,
        backoff_until_ms: (backoff_until_ms > 0).then_some(backoff_until_ms),
        is_unreachable: row.get(14)?,
        queued: row.get::<_, i64>(6)? as u64,
        next: None,
    };
    let next = crawl
        .filter(|_| priority > 0)
        .map(|crawl| NextCrawl { priority, crawl });
    Ok(SiteRow { site, next })
}

/// Reads a rule from three columns, beginning with `first`.
pub(super) fn read_rule(row: &Row<'_>, first: usize) -> Result<SiteRule> {
    let pages_left: Option<i64> = row.get(first + 2)?;
    let pages_left = pages_left.map(u64::try_from).transpose();
    let block_until_ms: i64 = row.get(first + 1)?;
    Ok(SiteRule {
        delay_ms: row.get(first)?,
        block_until_ms: (block_until_ms > 0).then_some(block_until_ms),
        pages_left: pages_left.map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(first + 2, Type::Integer, error.into())
        })?,
    })
}

/// Part of a statement that takes a site out of memory: it is parked if it has nothing to hand out; otherwise it waits.
pub(super) const AND_LEAVES_WINDOW: &str =
    ", in_window = iif(queued > 0 AND top_priority = 0, 2, 0)";

pub(super) fn save_clock(db: &Connection, site: SiteId, clock: &Clock, and: &str) -> Result<()> {
    let sql = format!(
        "UPDATE sites SET due_at_ms = ?2, delay_ms = ?3, last_start_ms = ?4, owner = ?5,
             address = ?6{and}
         WHERE id = ?1"
    );
    let values = params![
        site,
        clock.due_at_ms,
        clock.delay_ms,
        clock.last_start_ms,
        clock.owner,
        clock.address.map(|address| address.to_string())
    ];
    db.prepare_cached(&sql)?.execute(values)?;
    Ok(())
}

pub(super) fn enter_window(db: &Connection, sites: &[SiteRow]) -> Result<()> {
    let mut enter = db.prepare_cached("UPDATE sites SET in_window = 1 WHERE id = ?1")?;
    for kept in sites {
        enter.execute([kept.site.id])?;
    }
    Ok(())
}

pub(super) fn select_due(
    db: &Connection,
    due_before_ms: i64,
    limit: usize,
) -> Result<Vec<SiteRow>> {
    let mut sites = Vec::new();
    visit_priorities(db, |priority| {
        let sql = format!(
            "SELECT {COLUMNS} FROM sites
             WHERE top_priority = ?1 AND top_priority > 0 AND in_window = 0
                 AND max(due_at_ms, block_until_ms, backoff_until_ms) <= ?2
             ORDER BY max(due_at_ms, block_until_ms, backoff_until_ms) LIMIT ?3"
        );
        let mut select = db.prepare_cached(&sql)?;
        let left = (limit - sites.len()) as i64;
        for site in select.query_map(params![priority, due_before_ms, left], read_site)? {
            sites.push(site?);
        }
        Ok(sites.len() < limit)
    })?;
    Ok(sites)
}

/// The maximum number of a crawl's sites checked to find waiting ones.
pub(super) const MOST_EXAMINED: i64 = 256;

pub(super) fn select_due_of_crawl(
    db: &Connection,
    crawl: CrawlKey,
    due_before_ms: i64,
    limit: usize,
) -> Result<Vec<SiteRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sites
         WHERE id IN (SELECT site FROM crawl_sites WHERE crawl = ?1 AND queued > 0 LIMIT ?2)
             AND top_priority > 0 AND in_window = 0
             AND max(due_at_ms, block_until_ms, backoff_until_ms) <= ?3
         ORDER BY top_priority DESC, max(due_at_ms, block_until_ms, backoff_until_ms) LIMIT ?4"
    );
    let mut select = db.prepare_cached(&sql)?;
    let values = params![crawl, MOST_EXAMINED, due_before_ms, limit as i64];
    select.query_map(values, read_site)?.collect()
}

/// Visits the priorities of waiting sites from the highest down, until `visit` returns false. There
/// are at most a hundred, each found by one index look-up.
pub(super) fn visit_priorities(
    db: &Connection,
    mut visit: impl FnMut(i64) -> Result<bool>,
) -> Result<()> {
    let sql = "SELECT max(top_priority) FROM sites
               WHERE top_priority > 0 AND in_window = 0 AND top_priority < ?1";
    let mut next = db.prepare_cached(sql)?;
    let mut above = i64::MAX;
    while let Some(priority) = next.query_row([above], |row| row.get(0))? {
        if !visit(priority)? {
            break;
        }
        above = priority;
    }
    Ok(())
}

// The following functions read a row before they change it. With RETURNING, SQLite would open a table in memory each
// time, which takes longer than finding the row twice.

/// Adds tasks to a site's count. The caller must update the crawl's count at the site. `priority` is the highest of the
/// tasks that can be handed out; 0 if none can. Returns whether the site is in memory.
pub(super) fn add_queued(db: &Connection, site: SiteId, n: u64, priority: u8) -> Result<bool> {
    let sql = "SELECT top_priority, in_window FROM sites WHERE id = ?1";
    let mut select = db.prepare_cached(sql)?;
    let (top, in_window): (u8, i64) =
        select.query_row([site], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_unparked = in_window == 2 && priority > 0;
    if priority <= top && !is_unparked {
        // Most sites already have tasks of this priority, so no indexed value changes. Indexed columns must not be
        // named then, because SQLite writes an index entry of each named column, even if its value stays.
        let sql = "UPDATE sites SET queued = queued + ?2 WHERE id = ?1";
        db.prepare_cached(sql)?.execute(params![site, n as i64])?;
        return Ok(in_window == 1);
    }
    let sql = "UPDATE sites SET queued = queued + ?2, top_priority = max(top_priority, ?3),
                   in_window = iif(in_window = 2 AND ?3 > 0, 0, in_window)
               WHERE id = ?1";
    let values = params![site, n as i64, priority];
    db.prepare_cached(sql)?.execute(values)?;
    Ok(in_window == 1)
}

/// Adds new tasks (`accepted`) and newly queued ones to the counts of a crawl at a site. Returns how many tasks the
/// crawl has had at the site in all.
pub(super) fn add_fed_to_crawl_share(
    db: &Database,
    (crawl, site): (CrawlKey, SiteId),
    accepted: u64,
    queued: u64,
    priority: u8,
    last_turn: i64,
) -> Result<u64> {
    let sql = "SELECT accepted, top_priority FROM crawl_sites WHERE crawl = ?1 AND site = ?2";
    let mut select = db.prepare_cached(sql)?;
    let share = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?));
    let share: Option<(u64, u8)> = select.query_row(params![crawl, site], share).optional()?;
    let in_all = share.map_or(0, |(before, _)| before) + accepted;
    if share.is_some_and(|(_, top)| priority <= top) {
        // Mostly the priority stays. Then its column is not named in the statement, see [`add_queued`].
        let sql = "UPDATE crawl_sites SET accepted = ?3, queued = queued + ?4
                   WHERE crawl = ?1 AND site = ?2";
        let values = params![crawl, site, in_all as i64, queued as i64];
        db.prepare_cached(sql)?.execute(values)?;
        db.note_crawl_site(crawl, site);
        return Ok(in_all);
    }
    // A crawl that is new at the site is served after those that wait already.
    let sql = "INSERT INTO crawl_sites (crawl, site, accepted, queued, top_priority, turn)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT DO UPDATE SET accepted = excluded.accepted,
                   queued = queued + excluded.queued,
                   top_priority = max(top_priority, excluded.top_priority)";
    let (in_all_now, queued) = (in_all as i64, queued as i64);
    let values = params![crawl, site, in_all_now, queued, priority, last_turn];
    db.prepare_cached(sql)?.execute(values)?;
    db.note_crawl_site(crawl, site);
    Ok(in_all)
}

/// Adds tasks back to the count of a crawl at a site, after they were handed out. The row must exist.
pub(super) fn add_to_crawl_share(
    db: &Database,
    site: SiteId,
    crawl: CrawlKey,
    n: u64,
    priority: u8,
) -> Result<()> {
    let sql = "UPDATE crawl_sites SET queued = queued + ?3, top_priority = max(top_priority, ?4),
                   taken = max(taken - ?3, 0)
               WHERE crawl = ?1 AND site = ?2";
    let values = params![crawl, site, n as i64, priority];
    db.prepare_cached(sql)?.execute(values)?;
    db.note_crawl_site(crawl, site);
    Ok(())
}

/// Subtracts tasks from the count of a crawl at a site. If the crawl was served (`served_at_turn`), it is next only
/// after all other crawls, and the tasks count against its run's budget. Its priority becomes that of its next task: in
/// a run of a watch, the one with the lowest rank. The site's own count is left to [`subtract_queued`].
pub(super) fn subtract_from_crawl_share(
    db: &Database,
    site: SiteId,
    crawl: CrawlKey,
    n: u64,
    served_at_turn: Option<i64>,
) -> Result<()> {
    let sql = "UPDATE crawl_sites SET queued = queued - ?3, turn = coalesce(?4, turn),
                   taken = taken + iif(?4 IS NULL, 0, ?3),
                   top_priority = coalesce((
                       SELECT priority FROM tasks
                       WHERE site = ?2 AND crawl = ?1 AND state = 0 AND not_before_ms = 0
                           AND rank <> 0
                       ORDER BY rank LIMIT 1), (
                       SELECT priority FROM tasks
                       WHERE site = ?2 AND crawl = ?1 AND state = 0 AND not_before_ms = 0
                       ORDER BY priority DESC LIMIT 1), 0)
               WHERE crawl = ?1 AND site = ?2";
    let values = params![crawl, site, n as i64, served_at_turn];
    db.prepare_cached(sql)?.execute(values)?;
    db.note_crawl_site(crawl, site);
    Ok(())
}

/// Subtracts tasks from a site's count. Returns how many are left, and the next crawl.
pub(super) fn subtract_queued(
    db: &Connection,
    site: SiteId,
    n: u64,
) -> Result<(u64, Option<NextCrawl>)> {
    let sql = "SELECT queued, pages_left IS 0 FROM sites WHERE id = ?1";
    let mut select = db.prepare_cached(sql)?;
    let (queued, is_spent): (i64, bool) =
        select.query_row([site], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let next = next_turns(db, site, 1)?.pop().filter(|_| !is_spent);
    let left = queued - n as i64;
    let sql = "UPDATE sites SET queued = ?2, top_priority = ?3 WHERE id = ?1";
    let priority = next.map_or(0, |next| next.priority);
    db.prepare_cached(sql)?
        .execute(params![site, left, priority])?;
    Ok((left as u64, next))
}

/// The next crawls at a site: those of the highest priority, the one that has waited longest first.
pub(super) fn next_turns(db: &Connection, site: SiteId, limit: usize) -> Result<Vec<NextCrawl>> {
    let mut turns = load_turns(db, site, limit)?;
    let highest = turns.first().map_or(0, |turn| turn.priority);
    turns.retain(|turn| turn.priority == highest);
    Ok(turns)
}

/// The crawls of all priorities with tasks to hand out at a site, the highest priority first, and within it the one
/// that has waited longest.
pub(super) fn load_turns(db: &Connection, site: SiteId, limit: usize) -> Result<Vec<NextCrawl>> {
    let sql = "SELECT crawl, top_priority FROM crawl_sites WHERE site = ?1 AND top_priority > 0
               ORDER BY top_priority DESC, turn LIMIT ?2";
    turns_in_order(db, sql, site, limit)
}

/// The crawls with tasks to hand out at a site: the one that has waited longest comes first, whatever its priority.
pub(super) fn turns_by_waiting_time(
    db: &Connection,
    site: SiteId,
    limit: usize,
) -> Result<Vec<NextCrawl>> {
    let sql = "SELECT crawl, top_priority FROM crawl_sites WHERE site = ?1 AND top_priority > 0
               ORDER BY turn, top_priority DESC LIMIT ?2";
    turns_in_order(db, sql, site, limit)
}

fn turns_in_order(
    db: &Connection,
    sql: &str,
    site: SiteId,
    limit: usize,
) -> Result<Vec<NextCrawl>> {
    let mut select = db.prepare_cached(sql)?;
    let turns = select.query_map(params![site, limit as i64], |row| {
        Ok(NextCrawl {
            crawl: row.get(0)?,
            priority: row.get(1)?,
        })
    })?;
    turns.collect()
}

/// Makes a site skip a crawl that hands nothing out, until [`release_crawl_at`].
pub(super) fn hold_crawl_at(db: &Database, site: SiteId, crawl: CrawlKey) -> Result<()> {
    let sql = "UPDATE crawl_sites SET top_priority = 0 WHERE crawl = ?1 AND site = ?2";
    db.prepare_cached(sql)?.execute(params![crawl, site])?;
    db.note_crawl_site(crawl, site);
    Ok(())
}

/// Ends the hold of a crawl at a site, which skipped it until now. Returns the priority of its tasks, if the site is in
/// memory.
pub(super) fn release_crawl_at(db: &Database, site: SiteId, crawl: CrawlKey) -> Result<Option<u8>> {
    subtract_from_crawl_share(db, site, crawl, 0, None)?;
    let sql = "SELECT top_priority FROM crawl_sites WHERE crawl = ?1 AND site = ?2";
    let mut select = db.prepare_cached(sql)?;
    let priority: u8 = select.query_row(params![crawl, site], |row| row.get(0))?;
    let in_window = add_queued(db, site, 0, priority)?;
    Ok((in_window && priority > 0).then_some(priority))
}

/// Marks a parked site (without tasks to hand out) as waiting, if it has tasks to hand out again.
pub(super) fn unpark_if_ready(db: &Connection, site: SiteId) -> Result<()> {
    let sql = "UPDATE sites SET in_window = 0
               WHERE id = ?1 AND in_window = 2 AND top_priority > 0";
    db.prepare_cached(sql)?.execute([site])?;
    Ok(())
}
