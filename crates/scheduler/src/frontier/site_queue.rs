//! The queue of sites. The dispatcher fills its window (the sites in memory) from this queue. Sites enter the window,
//! and leave it with their clocks.

use rusqlite::Result;
use webfill_wire::CrawlKey;

use super::error::FrontierError;
use super::model::{Clock, SiteDue, SiteId};
use super::parts::Sites;
use super::{sites, turns};

impl Sites<'_> {
    /// Loads up to `limit` waiting sites that are due at this time into memory: the highest priority first, then the
    /// earliest due.
    pub fn admit_due(
        &mut self,
        due_before_ms: i64,
        limit: usize,
    ) -> Result<Vec<SiteDue>, FrontierError> {
        self.0.run("look for due sites", |cx| {
            let sites = sites::select_due(&cx.db, due_before_ms, limit)?;
            sites::enter_window(&cx.db, &sites)?;
            turns::add_next_turns(cx, sites)
        })
    }

    /// Like [`admit_due`](Sites::admit_due), but only for sites with queued tasks of one crawl. Checks only the first
    /// [`MOST_EXAMINED`](sites::MOST_EXAMINED) sites of the crawl, so it may miss due sites.
    pub fn admit_due_of_crawl(
        &mut self,
        crawl: CrawlKey,
        due_before_ms: i64,
        limit: usize,
    ) -> Result<Vec<SiteDue>, FrontierError> {
        self.0.run("look for a crawl's due sites", |cx| {
            let sites = sites::select_due_of_crawl(&cx.db, crawl, due_before_ms, limit)?;
            sites::enter_window(&cx.db, &sites)?;
            turns::add_next_turns(cx, sites)
        })
    }

    /// When the first site that is not in memory is due.
    pub fn next_due_ms(&mut self) -> Result<Option<i64>, FrontierError> {
        self.0.run("look for the next due site", |cx| {
            let mut earliest: Option<i64> = None;
            sites::visit_priorities(&cx.db, |priority| {
                let sql = "SELECT max(due_at_ms, block_until_ms, backoff_until_ms) FROM sites
                           WHERE top_priority = ?1 AND top_priority > 0 AND in_window = 0
                           ORDER BY max(due_at_ms, block_until_ms, backoff_until_ms) LIMIT 1";
                let mut first = cx.db.prepare_cached(sql)?;
                let due_at_ms = first.query_row([priority], |row| row.get(0))?;
                earliest = Some(earliest.map_or(due_at_ms, |so_far| so_far.min(due_at_ms)));
                Ok(true)
            })?;
            Ok(earliest)
        })
    }

    /// Notes that a site leaves the memory, and stores its clock.
    pub fn evict(&mut self, site: SiteId, clock: &Clock) -> Result<(), FrontierError> {
        self.0.run("return a site", |cx| {
            sites::save_clock(&cx.db, site, clock, sites::AND_LEAVES_WINDOW)
        })
    }

    /// Stores the clock of a site that is in memory.
    pub fn save_clock(&mut self, site: SiteId, clock: &Clock) -> Result<(), FrontierError> {
        self.0.run("keep a site's clock", |cx| {
            sites::save_clock(&cx.db, site, clock, "")
        })
    }

    /// A stored site, by its id.
    pub fn get(&mut self, site: SiteId) -> Result<Option<SiteDue>, FrontierError> {
        self.0.run("read a site", |cx| {
            let sql = format!("SELECT {} FROM sites WHERE id = ?1", sites::COLUMNS);
            let mut select = cx.db.prepare_cached(&sql)?;
            let kept = select
                .query_map([site], sites::read_site)?
                .collect::<Result<_>>()?;
            Ok(turns::add_next_turns(cx, kept)?.pop())
        })
    }

    /// Loads the sites with leased tasks into memory, and returns them.
    pub fn admit_leased(&mut self) -> std::result::Result<Vec<SiteDue>, FrontierError> {
        self.0.run("list the leased sites", |cx| {
            let sql = format!(
                "UPDATE sites SET in_window = 1
                 WHERE id IN (SELECT site FROM task_rows INDEXED BY tasks_leased WHERE state = 1)
                 RETURNING {}",
                sites::COLUMNS
            );
            let mut select = cx.db.prepare_cached(&sql)?;
            let kept = select
                .query_map([], sites::read_site)?
                .collect::<Result<_>>()?;
            turns::add_next_turns(cx, kept)
        })
    }
}
