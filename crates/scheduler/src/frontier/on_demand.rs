//! Crawls by their ids: how they are registered, changed, expired, listed and counted.

use rusqlite::{Result, params};
use webfill_api::CrawlSpec;
use webfill_wire::{CrawlKey, Outcome};

use super::crawl::Crawl;
use super::crawl_rows::NEXT_CRAWL;
use super::model::AttrsId;
use super::parts::Crawls;
use super::{FrontierError, crawl_rows, releasing};
use crate::scope::Scope;

impl Crawls<'_> {
    /// The key of the crawl with these ids.
    pub fn find(
        &mut self,
        app_id: &str,
        crawl_id: &str,
    ) -> Result<Option<CrawlKey>, FrontierError> {
        self.0.run("look for a crawl", |cx| {
            crawl_rows::find_key(&cx.db, app_id, crawl_id)
        })
    }

    /// The ids of the latest crawls of an application, at most `most`.
    pub fn latest_ids(&mut self, app_id: &str, most: usize) -> Result<Vec<String>, FrontierError> {
        self.0.run("list the crawls of an application", |cx| {
            let sql = "SELECT crawl_id FROM crawls WHERE app_id = ?1 ORDER BY id DESC LIMIT ?2";
            let mut select = cx.db.prepare_cached(sql)?;
            let ids = select.query_map(params![app_id, most as i64], |row| row.get(0))?;
            ids.collect()
        })
    }

    /// The applications that have crawls, at most `most`. Each step of the search jumps to the next application, so
    /// that the number of crawls does not matter.
    pub fn applications(&mut self, most: usize) -> Result<Vec<String>, FrontierError> {
        self.0.run("list the applications", |cx| {
            let sql = "WITH RECURSIVE apps (id) AS (
                         SELECT min(app_id) FROM crawls
                         UNION ALL
                         SELECT (SELECT min(app_id) FROM crawls WHERE app_id > apps.id) FROM apps
                         WHERE apps.id IS NOT NULL)
                       SELECT id FROM apps WHERE id IS NOT NULL LIMIT ?1";
            let mut select = cx.db.prepare_cached(sql)?;
            let ids = select.query_map([most as i64], |row| row.get(0))?;
            ids.collect()
        })
    }

    /// Registers a crawl, or replaces the spec of a `known` one, whose counters and tasks stay as they are. A crawl
    /// that had expired continues.
    pub fn upsert(
        &mut self,
        known: Option<CrawlKey>,
        spec: CrawlSpec,
    ) -> Result<CrawlKey, FrontierError> {
        let scope = Scope::compile(&spec)?;
        if let Some(key) = known {
            self.0.crawl(key)?;
        }
        self.0.run("take in a crawl", |cx| {
            let spec_json = serde_json::to_string(&spec)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            let expires_at_ms = spec.expires_at_ms.map(|at| at as i64);
            if let Some(key) = known {
                let sql = "UPDATE crawls SET spec = ?2, expires_at_ms = ?3 WHERE id = ?1";
                let values = params![key, spec_json, expires_at_ms];
                cx.db.prepare_cached(sql)?.execute(values)?;
                let crawl = crawl_rows::load_known_crawl(cx, key)?;
                (crawl.spec, crawl.scope, crawl.changed) = (spec, scope, true);
                crawl.ended = crawl.ended.filter(|ended| *ended != Outcome::Expired);
                releasing::release_if_allowed(cx, key);
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
            // One transaction may register thousands of crawls, so memory is freed in between.
            crawl_rows::flush_crawls(cx)?;
            cx.crawls.insert(key, Crawl::new(spec, scope));
            Ok(key)
        })
    }

    /// Stores an `attrs` object that candidates can refer to.
    pub fn insert_attrs(&mut self, json: &str) -> Result<AttrsId, FrontierError> {
        self.0.run("keep attributes", |cx| {
            let sql = "INSERT INTO attrs (json) VALUES (?1)";
            cx.db.prepare_cached(sql)?.insert([json])
        })
    }

    /// The outcome a crawl's queued tasks end with, if the crawl was stopped or has expired.
    pub fn end_outcome(&mut self, key: CrawlKey) -> Result<Option<Outcome>, FrontierError> {
        Ok(self.0.crawl(key)?.ended)
    }

    #[cfg(test)]
    pub(crate) fn count_in_memory(&self) -> usize {
        self.0.cx.crawls.len()
    }

    #[cfg(test)]
    pub(crate) fn count_with_compiled_patterns(&self) -> usize {
        self.0.cx.crawls.count_with_compiled_patterns()
    }

    /// Takes up to `most` of the changed crawls, oldest first.
    pub fn take_changed(&mut self, most: usize) -> Vec<CrawlKey> {
        let taken: Vec<CrawlKey> = self.0.cx.touched.iter().take(most).copied().collect();
        for crawl in &taken {
            self.0.cx.touched.remove(crawl);
        }
        taken
    }

    /// Marks a crawl as changed, so that its state is written to the store.
    pub fn mark_changed(&mut self, crawl: CrawlKey) {
        self.0.cx.touched.insert(crawl);
    }

    pub fn is_paused(&mut self, key: CrawlKey) -> Result<bool, FrontierError> {
        Ok(self.0.crawl(key)?.paused)
    }

    /// Marks a crawl as expired. Its queued tasks are closed by
    /// [`end_queued_tasks`](Crawls::end_queued_tasks).
    pub fn expire(&mut self, key: CrawlKey) -> Result<(), FrontierError> {
        let crawl = self.0.crawl(key)?;
        crawl.ended = Some(Outcome::Expired);
        crawl.changed = true;
        self.0.run("end a crawl", |_| Ok(()))
    }

    /// When the next crawl expires.
    pub fn next_expiry_ms(&mut self) -> Result<Option<i64>, FrontierError> {
        self.0.run("look for the next crawl that expires", |cx| {
            let sql = "SELECT min(expires_at_ms) FROM crawls
                       WHERE expires_at_ms IS NOT NULL AND ended IS NULL";
            let mut select = cx.db.prepare_cached(sql)?;
            select.query_row([], |row| row.get(0))
        })
    }

    /// Crawls that have expired but are not marked as over yet, the earliest first.
    pub fn list_expired(
        &mut self,
        now_ms: i64,
        most: usize,
    ) -> Result<Vec<CrawlKey>, FrontierError> {
        self.0.run("look for crawls that have expired", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql = "SELECT id FROM crawls
                       WHERE expires_at_ms <= ?1 AND expires_at_ms IS NOT NULL AND ended IS NULL
                       ORDER BY expires_at_ms LIMIT ?2";
            let mut select = cx.db.prepare_cached(sql)?;
            let crawls = select.query_map(params![now_ms, most as i64], |row| row.get(0))?;
            crawls.collect()
        })
    }

    /// Crawls that were stopped or have expired, but still have queued tasks.
    pub fn list_with_tasks_to_end(&mut self) -> Result<Vec<CrawlKey>, FrontierError> {
        self.0.run("look for crawls that are over", |cx| {
            crawl_rows::write_counters(cx)?;
            let sql = "SELECT id FROM crawls
                       WHERE queued + leased > 0 AND ended IS NOT NULL AND queued > 0";
            let mut select = cx.db.prepare(sql)?;
            select.query_map([], |row| row.get(0))?.collect()
        })
    }
}
