//! The crawls: their specs, states and counters. Crawls in use are in memory, and their counters are written with each
//! commit (write-behind within the transaction). Other crawls are read when they are needed.

use rusqlite::{Result, params};
use webfill_api::CrawlSpec;
use webfill_wire::CrawlKey;

use super::crawl_rows::{NEXT_CRAWL, write_counters};
use super::crawl_status::CrawlStatus;
use super::parts::Crawls;
use super::{FrontierError, rechecking, releasing};
use crate::scope::Scope;

impl<'a> Crawls<'a> {
    /// Opens a crawl, new or known; the spec replaces a stored one. If a finished crawl is to fetch old pages again,
    /// or a run of a watch begins, the seeds are read from the beginning.
    pub fn open(&mut self, spec: &CrawlSpec) -> Result<CrawlKey, FrontierError> {
        Scope::compile(spec)?;
        let begins_run = self.begins_run(spec)?;
        let key = self.0.run("open a crawl", |cx| {
            let spec_json = serde_json::to_string(spec)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            let sql = format!(
                "INSERT INTO crawls (id, app_id, crawl_id, spec) VALUES ({NEXT_CRAWL}, ?1, ?2, ?3)
                 ON CONFLICT (app_id, crawl_id) DO UPDATE
                 SET spec = excluded.spec, ended = NULL, seeds_ended = 0, paused = 0,
                     fed_lines = iif(seeds_ended AND queued + leased = 0 AND ?4, 0, fed_lines)
                 RETURNING id"
            );
            let begins_again = spec.refresh_after_ms.is_some();
            let values = params![spec.app_id, spec.crawl_id, spec_json, begins_again];
            // Write the counters first, because those in memory may be newer than the table.
            write_counters(cx)?;
            let key = cx.db.query_row(&sql, values, |row| row.get(0))?;
            if begins_run {
                rechecking::begin_run(&cx.db, key)?;
            }
            Ok(key)
        })?;
        self.0.cx.crawls.remove(&key);
        self.0.crawl(key)?;
        releasing::release_later(&mut self.0.cx, key);
        Ok(key)
    }

    /// Whether opening a known crawl with this spec begins another run of its watch.
    pub fn begins_run(&mut self, spec: &CrawlSpec) -> Result<bool, FrontierError> {
        let known = self.find(&spec.app_id, &spec.crawl_id)?;
        match (known, spec.run_began_ms) {
            (Some(key), Some(_)) => Ok(self.0.crawl(key)?.spec.run_began_ms != spec.run_began_ms),
            _ => Ok(false),
        }
    }

    /// The crawls that have queued or leased tasks, except those that applications feed on demand.
    pub fn unfinished_crawls(&mut self) -> Result<Vec<CrawlKey>, FrontierError> {
        self.0.run("list the crawls", |cx| {
            write_counters(cx)?;
            let sql = "SELECT id FROM crawls WHERE queued + leased > 0
                       AND json_extract(spec, '$.on_demand') IS NOT 1 ORDER BY id";
            let mut select = cx.db.prepare_cached(sql)?;
            select.query_map([], |row| row.get(0))?.collect()
        })
    }

    pub fn spec(self, key: CrawlKey) -> Result<&'a CrawlSpec, FrontierError> {
        Ok(&self.0.crawl(key)?.spec)
    }

    /// The dataset of the crawl's records; `None` if the crawl has not had any records from `webfill crawl`.
    pub fn dataset(&mut self, key: CrawlKey) -> Result<Option<String>, FrontierError> {
        self.0.run("read a crawl", |cx| {
            let sql = "SELECT dataset FROM crawls WHERE id = ?1";
            cx.db.query_row(sql, [key], |row| row.get(0))
        })
    }

    /// Sets the dataset of the crawl's records. If the crawl had another dataset, its input was fed for that one, so it
    /// is fed again from the beginning.
    pub fn set_dataset(&mut self, key: CrawlKey, name: &str) -> Result<(), FrontierError> {
        let known = self.dataset(key)?;
        if known.is_some_and(|known| known != name) {
            self.set_fed_lines(key, 0)?;
        }
        self.0.run("note the dataset", |cx| {
            let sql = "UPDATE crawls SET dataset = ?2 WHERE id = ?1";
            cx.db.execute(sql, params![key, name]).map(|_| ())
        })
    }

    /// The crawl's counters, including uncommitted changes. Needs no disk access if the crawl is in memory.
    pub fn status(&mut self, key: CrawlKey) -> Result<CrawlStatus, FrontierError> {
        Ok(self.0.crawl(key)?.status.clone())
    }

    /// Stores how many lines of the seed input were fed, in the same transaction as their tasks.
    pub fn set_fed_lines(&mut self, key: CrawlKey, lines: u64) -> Result<(), FrontierError> {
        let crawl = self.0.crawl(key)?;
        crawl.status.fed_lines = lines;
        crawl.changed = true;
        self.0.run("note the fed lines", |_| Ok(()))
    }

    /// Stores that no further seeds will come, until the crawl is opened again.
    pub fn end_seeds(&mut self, key: CrawlKey) -> Result<(), FrontierError> {
        let crawl = self.0.crawl(key)?;
        crawl.status.seeds_ended = true;
        crawl.changed = true;
        self.0.run("note the end of the seeds", |_| Ok(()))
    }

    /// Continues a known crawl that is fed again: it is no longer paused, and its seeds have not ended.
    pub fn reopen(&mut self, key: CrawlKey) -> Result<(), FrontierError> {
        let crawl = self.0.crawl(key)?;
        if crawl.status.seeds_ended {
            crawl.status.seeds_ended = false;
            crawl.changed = true;
        }
        self.resume(key)
    }
}
