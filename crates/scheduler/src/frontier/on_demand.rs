//! Crawls by their ids: registered, changed, expired, listed, counted.

use rusqlite::{Connection, Result, params};
use webfill_api::CrawlSpec;
use webfill_wire::{CrawlKey, Outcome};

use super::crawl::Crawl;
use super::crawls::read_waiting;
use super::model::{AppTally, AtMost, AttrsId};
use super::pruning::NEXT_CRAWL;
use super::{Frontier, FrontierError, crawls, holding};
use crate::scope::Scope;

/// A crawl that has queued or leased tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCrawl {
    pub key: CrawlKey,
    pub crawl_id: String,
    pub queued: u64,
    /// The lowest and the highest priority of what is queued.
    pub low_priority: Option<u8>,
    pub high_priority: Option<u8>,
    /// Handed to supervisors, and not ended yet.
    pub leased: u64,
    /// Milliseconds since the epoch.
    pub expires_at_ms: Option<i64>,
}

/// So many waiting sites are counted at most; the metrics have all of them.
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
    /// Rows of pages whose values are in the store.
    pub rows_stored: u64,
    /// Sites outside the window that have tasks to hand out, counted up to [`MOST_WAITING_COUNTED`].
    pub sites_waiting: u64,
}

impl Frontier {
    /// The crawl with these ids.
    pub fn find_crawl(
        &mut self,
        app_id: &str,
        crawl_id: &str,
    ) -> Result<Option<CrawlKey>, FrontierError> {
        self.0.guarded("look for a crawl", |cx| {
            crawls::find(&cx.db, app_id, crawl_id)
        })
    }

    /// Registers a crawl, or replaces the spec of a `known` one. Counters and tasks stay as they
    /// are. A crawl that had expired continues.
    pub fn upsert_crawl(
        &mut self,
        known: Option<CrawlKey>,
        spec: CrawlSpec,
    ) -> Result<CrawlKey, FrontierError> {
        let scope = Scope::compile(&spec)?;
        if let Some(key) = known {
            self.0.crawl(key)?;
        }
        self.0.guarded("take in a crawl", |cx| {
            let spec_json = serde_json::to_string(&spec)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            let expires_at_ms = spec.expires_at_ms.map(|at| at as i64);
            if let Some(key) = known {
                let sql = "UPDATE crawls SET spec = ?2, expires_at_ms = ?3 WHERE id = ?1";
                let values = params![key, spec_json, expires_at_ms];
                cx.db.prepare_cached(sql)?.execute(values)?;
                let crawl = crawls::known_crawl(cx, key)?;
                (crawl.spec, crawl.scope, crawl.changed) = (spec, scope, true);
                crawl.ended = crawl.ended.filter(|ended| *ended != Outcome::Expired);
                holding::release_if_room(cx, key);
                return Ok(key);
            }
            let sql = format!(
                "INSERT INTO crawls (id, app_id, crawl_id, spec, expires_at_ms)
                 VALUES ({NEXT_CRAWL}, ?1, ?2, ?3, ?4) RETURNING id"
            );
            let values = params![spec.app_id, spec.crawl_id, spec_json, expires_at_ms];
            let mut insert = cx.db.prepare_cached(&sql)?;
            let key = insert.query_row(values, |row| row.get(0))?;
            drop(insert);
            // One transaction may register thousands of crawls: memory stays bounded.
            crawls::flush_crawls(cx)?;
            cx.crawls.insert(key, Crawl::new(spec, scope));
            Ok(key)
        })
    }

    /// Stores an `attrs` object, for candidates to refer to.
    pub fn keep_attrs(&mut self, json: &str) -> Result<AttrsId, FrontierError> {
        self.0.guarded("keep attributes", |cx| {
            let sql = "INSERT INTO attrs (json) VALUES (?1)";
            cx.db.prepare_cached(sql)?.insert([json])
        })
    }

    /// The outcome that a crawl's queued tasks end in, if it was stopped or has expired.
    pub fn crawl_end(&mut self, key: CrawlKey) -> Result<Option<Outcome>, FrontierError> {
        Ok(self.0.crawl(key)?.ended)
    }

    #[cfg(test)]
    pub(crate) fn crawls_in_memory(&self) -> usize {
        self.0.cx.crawls.len()
    }

    #[cfg(test)]
    pub(crate) fn crawls_with_compiled_patterns(&self) -> usize {
        self.0.cx.crawls.with_compiled_patterns()
    }

    /// Removes up to `most` crawls from those that have changed, the oldest first.
    pub fn take_touched(&mut self, most: usize) -> Vec<CrawlKey> {
        let taken: Vec<CrawlKey> = self.0.cx.touched.iter().take(most).copied().collect();
        for crawl in &taken {
            self.0.cx.touched.remove(crawl);
        }
        taken
    }

    /// Marks a crawl as changed.
    pub fn touch(&mut self, crawl: CrawlKey) {
        self.0.cx.touched.insert(crawl);
    }

    pub fn is_paused(&mut self, key: CrawlKey) -> Result<bool, FrontierError> {
        Ok(self.0.crawl(key)?.paused)
    }

    /// Marks a crawl as expired. Its queued tasks are closed by
    /// [`end_queued`](Frontier::end_queued).
    pub fn expire_crawl(&mut self, key: CrawlKey) -> Result<(), FrontierError> {
        let crawl = self.0.crawl(key)?;
        crawl.ended = Some(Outcome::Expired);
        crawl.changed = true;
        self.0.guarded("end a crawl", |_| Ok(()))
    }

    /// When the next crawl expires.
    pub fn next_expiry_ms(&mut self) -> Result<Option<i64>, FrontierError> {
        self.0
            .guarded("look for the next crawl that expires", |cx| {
                let sql = "SELECT min(expires_at_ms) FROM crawls
                       WHERE expires_at_ms IS NOT NULL AND ended IS NULL";
                let mut select = cx.db.prepare_cached(sql)?;
                select.query_row([], |row| row.get(0))
            })
    }

    /// Crawls whose expiry time has passed and that are not marked as over, the earliest first.
    pub fn expired_crawls(
        &mut self,
        now_ms: i64,
        most: usize,
    ) -> Result<Vec<CrawlKey>, FrontierError> {
        self.0.guarded("look for crawls that have expired", |cx| {
            crawls::write_counters(cx)?;
            let sql = "SELECT id FROM crawls
                       WHERE expires_at_ms <= ?1 AND expires_at_ms IS NOT NULL AND ended IS NULL
                       ORDER BY expires_at_ms LIMIT ?2";
            let mut select = cx.db.prepare_cached(sql)?;
            let crawls = select.query_map(params![now_ms, most as i64], |row| row.get(0))?;
            crawls.collect()
        })
    }

    /// Crawls that were stopped or have expired, and still have queued tasks.
    pub fn unpurged_crawls(&mut self) -> Result<Vec<CrawlKey>, FrontierError> {
        self.0.guarded("look for crawls that are over", |cx| {
            crawls::write_counters(cx)?;
            let sql = "SELECT id FROM crawls
                       WHERE queued + leased > 0 AND ended IS NOT NULL AND queued > 0";
            let mut select = cx.db.prepare(sql)?;
            select.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// The crawls of an application that have queued or leased tasks, in the order of their ids, from behind one
    /// on.
    pub fn pending_crawls(
        &mut self,
        app_id: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<PendingCrawl>, FrontierError> {
        self.0.guarded("list the crawls of an application", |cx| {
            crawls::write_counters(cx)?;
            let sql = "SELECT id, crawl_id, expires_at_ms, leased, queued, waiting
                       FROM crawls INDEXED BY crawls_pending
                       WHERE app_id = ?1 AND crawl_id > ?2 AND queued + leased > 0
                       ORDER BY crawl_id LIMIT ?3";
            let mut select = cx.db.prepare_cached(sql)?;
            let values = params![app_id, after.unwrap_or_default(), most as i64];
            let crawls = select.query_map(values, |row| {
                let waiting = read_waiting(row, 5)?;
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
    pub fn pending_sites_of(&mut self, app_id: &str) -> Result<AtMost, FrontierError> {
        self.0.guarded("count the sites of an application", |cx| {
            crawls::write_counters(cx)?;
            let sql = "SELECT count(DISTINCT site), count(*) FROM (
                           SELECT site FROM crawls INDEXED BY crawls_pending
                           CROSS JOIN crawl_sites ON crawl_sites.crawl = crawls.id AND crawl_sites.queued > 0
                           WHERE app_id = ?1 AND crawls.queued + crawls.leased > 0
                               AND crawls.queued > 0 LIMIT ?2)";
            let mut select = cx.db.prepare_cached(sql)?;
            select.query_row(params![app_id, AtMost::LOOKED_AT], |row| {
                let looked_at = AtMost::of(row.get(1)?);
                let different = AtMost::of(row.get(0)?);
                Ok(AtMost {
                    has_more: looked_at.has_more,
                    ..different
                })
            })
        })
    }

    /// The counters of an application. They are added up when they are first asked for, and kept up to date from
    /// then on.
    pub fn app_tally(&mut self, app_id: &str) -> Result<AppTally, FrontierError> {
        self.0.guarded("count the crawls of an application", |cx| {
            crawls::write_counters(cx)?;
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
            cx.app_tallies.keep(app_id, tally);
            Ok(tally)
        })
    }

    /// How many crawls of an application are paused with something queued, and the id of one.
    pub fn paused_crawls(&mut self, app_id: &str) -> Result<(u64, String), FrontierError> {
        self.0
            .guarded("count the paused crawls of an application", |cx| {
                crawls::write_counters(cx)?;
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

    /// Adds up the counters of all crawls; reads all their rows.
    pub fn tally(&mut self) -> Result<FrontierTally, FrontierError> {
        self.0.guarded("count the crawls", |cx| {
            crawls::write_counters(cx)?;
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
            tally.sites_waiting = sites_waiting(&cx.db)?;
            Ok(tally)
        })
    }
}

/// How many sites outside the window have tasks to hand out. Counting millions would hold up the loop, for a third of a
/// second with ten million.
fn sites_waiting(db: &Connection) -> Result<u64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM sites INDEXED BY sites_waiting
               WHERE top_priority > 0 AND in_window = 0 LIMIT ?1)";
    let mut select = db.prepare_cached(sql)?;
    select.query_row([MOST_WAITING_COUNTED as i64], |row| {
        row.get::<_, i64>(0).map(|n| n as u64)
    })
}
