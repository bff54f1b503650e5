//! The queue of sites: which of them have something queued, and when they may be fetched from.

use rusqlite::{Connection, Result, Row, params};

use super::answers::{Clock, SiteDue, SiteId};
use super::{Frontier, FrontierError};

impl Frontier {
    /// Sites outside the window that have something queued and are due at this time: the highest
    /// priority first, then the earliest due. They are inside the window from now on.
    pub fn next_sites(
        &mut self,
        due_before_ms: i64,
        limit: usize,
    ) -> Result<Vec<SiteDue>, FrontierError> {
        self.guarded("look for due sites", |frontier| {
            let sites = waiting(&frontier.db, due_before_ms, limit)?;
            let sql = "UPDATE sites SET in_window = 1 WHERE id = ?1";
            let mut enter = frontier.db.prepare_cached(sql)?;
            for site in &sites {
                enter.execute([site.id])?;
            }
            Ok(sites)
        })
    }

    /// When the first site outside the window that has something queued is due.
    pub fn next_due_ms(&mut self) -> Result<Option<i64>, FrontierError> {
        self.guarded("look for the next due site", |frontier| {
            let mut earliest: Option<i64> = None;
            each_priority(&frontier.db, |priority| {
                let sql = "SELECT due_at_ms FROM sites
                           WHERE top_priority = ?1 AND queued > 0 AND in_window = 0
                           ORDER BY due_at_ms LIMIT 1";
                let mut first = frontier.db.prepare_cached(sql)?;
                let due_at_ms = first.query_row([priority], |row| row.get(0))?;
                earliest = Some(earliest.map_or(due_at_ms, |so_far| so_far.min(due_at_ms)));
                Ok(true)
            })?;
            Ok(earliest)
        })
    }

    /// Lets a site leave the window, and keeps its clock.
    pub fn return_site(&mut self, site: SiteId, clock: &Clock) -> Result<(), FrontierError> {
        self.guarded("return a site", |frontier| {
            save(&frontier.db, site, clock)?;
            let sql = "UPDATE sites SET in_window = 0 WHERE id = ?1";
            frontier.db.prepare_cached(sql)?.execute([site])?;
            Ok(())
        })
    }

    /// Keeps the clock of a site in the window.
    pub fn save_clock(&mut self, site: SiteId, clock: &Clock) -> Result<(), FrontierError> {
        self.guarded("keep a site's clock", |frontier| {
            save(&frontier.db, site, clock)
        })
    }

    /// A site as it is kept, by its id.
    pub fn site(&mut self, site: SiteId) -> Result<Option<SiteDue>, FrontierError> {
        self.guarded("read a site", |frontier| {
            let sql = format!("SELECT {COLUMNS} FROM sites WHERE id = ?1");
            let mut select = frontier.db.prepare_cached(&sql)?;
            select.query_map([site], read)?.next().transpose()
        })
    }
}

pub(super) const COLUMNS: &str =
    "id, name, due_at_ms, delay_ms, last_start_ms, owner, queued, top_priority";

pub(super) fn read(row: &Row<'_>) -> Result<SiteDue> {
    let clock = Clock {
        due_at_ms: row.get(2)?,
        delay_ms: row.get(3)?,
        last_start_ms: row.get(4)?,
        owner: row.get(5)?,
    };
    Ok(SiteDue {
        id: row.get(0)?,
        name: row.get(1)?,
        clock,
        queued: row.get::<_, i64>(6)? as u64,
        top_priority: row.get(7)?,
    })
}

fn save(db: &Connection, site: SiteId, clock: &Clock) -> Result<()> {
    let sql = "UPDATE sites SET due_at_ms = ?2, delay_ms = ?3, last_start_ms = ?4, owner = ?5
               WHERE id = ?1";
    let values = params![
        site,
        clock.due_at_ms,
        clock.delay_ms,
        clock.last_start_ms,
        clock.owner
    ];
    db.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn waiting(db: &Connection, due_before_ms: i64, limit: usize) -> Result<Vec<SiteDue>> {
    let mut sites = Vec::new();
    each_priority(db, |priority| {
        let sql = format!(
            "SELECT {COLUMNS} FROM sites
             WHERE top_priority = ?1 AND due_at_ms <= ?2 AND queued > 0 AND in_window = 0
             ORDER BY due_at_ms LIMIT ?3"
        );
        let mut select = db.prepare_cached(&sql)?;
        let left = (limit - sites.len()) as i64;
        for site in select.query_map(params![priority, due_before_ms, left], read)? {
            sites.push(site?);
        }
        Ok(sites.len() < limit)
    })?;
    Ok(sites)
}

/// Visits the priorities that waiting sites have, from the highest on, until told to stop.
/// There are at most a hundred, each found by one step into the index.
fn each_priority(db: &Connection, mut visit: impl FnMut(i64) -> Result<bool>) -> Result<()> {
    let sql = "SELECT max(top_priority) FROM sites
               WHERE queued > 0 AND in_window = 0 AND top_priority < ?1";
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

/// Counts tasks that came into a site's queue. True if the site is inside the window and its
/// queue was empty.
pub(super) fn count_queued(db: &Connection, site: SiteId, n: u64, priority: u8) -> Result<bool> {
    let sql = "UPDATE sites SET queued = queued + ?2, top_priority = max(top_priority, ?3)
               WHERE id = ?1 RETURNING in_window = 1 AND queued = ?2";
    let mut update = db.prepare_cached(sql)?;
    update.query_row(params![site, n as i64, priority], |row| row.get(0))
}

/// Counts tasks that left a site's queue, and returns how many are left there.
pub(super) fn count_taken(db: &Connection, site: SiteId, n: u64) -> Result<u64> {
    let sql = "UPDATE sites SET
                   queued = queued - ?2,
                   top_priority = coalesce((
                       SELECT priority FROM tasks WHERE site = ?1 AND state = 0
                       ORDER BY priority DESC LIMIT 1), 0)
               WHERE id = ?1 RETURNING queued";
    let mut update = db.prepare_cached(sql)?;
    let left: i64 = update.query_row(params![site, n as i64], |row| row.get(0))?;
    Ok(left as u64)
}
