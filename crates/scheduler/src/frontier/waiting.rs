//! The sites with queued tasks that cannot be requested for a while, and why, for people who wonder why a crawl makes
//! no progress.

use std::collections::BTreeMap;

use rusqlite::params;

use super::error::FrontierError;
use super::parts::Reports;
use super::sites::visit_priorities;

/// The maximum number of tasks waiting for a retry to check.
const RETRIES_EXAMINED: i64 = 10_000;

/// The numbers of waiting sites, by reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitingSites {
    pub by: BTreeMap<String, u64>,
    /// When the first of these sites is due; milliseconds since the epoch.
    pub first_ms: Option<i64>,
}

impl WaitingSites {
    pub fn add(&mut self, why: &str, sites: u64, first_ms: Option<i64>) {
        let Some(first_ms) = first_ms.filter(|_| sites > 0) else {
            return;
        };
        *self.by.entry(why.to_owned()).or_default() += sites;
        let so_far = self.first_ms.unwrap_or(i64::MAX);
        self.first_ms = Some(so_far.min(first_ms));
    }
}

impl Reports<'_> {
    /// The sites that are not due before `ms`, because they back off, wait for a retry, or are not in memory and keep a
    /// delay.
    pub fn waiting_sites(&mut self, ms: i64) -> std::result::Result<WaitingSites, FrontierError> {
        self.0.run("see what waits", |cx| {
            let mut waiting = WaitingSites::default();
            let sql = "SELECT reason, count(*), min(backoff_until_ms)
                       FROM sites JOIN site_states ON site = sites.id
                       WHERE backoff_until_ms > ?1 AND backoff_until_ms > 0 AND queued > 0
                       GROUP BY reason";
            let mut select = cx.db.prepare_cached(sql)?;
            let mut rows = select.query([ms])?;
            while let Some(row) = rows.next()? {
                let reason: String = row.get(0)?;
                waiting.add(&reason, row.get::<_, i64>(1)? as u64, row.get(2)?);
            }
            let sql = "SELECT count(DISTINCT site), min(not_before_ms) FROM (
                           SELECT site, not_before_ms FROM task_rows
                           WHERE state = 0 AND not_before_ms > 0 AND not_before_ms > ?1
                           ORDER BY not_before_ms LIMIT ?2)";
            let mut select = cx.db.prepare_cached(sql)?;
            let (sites, first_ms) = select.query_row(params![ms, RETRIES_EXAMINED], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
            })?;
            waiting.add("retry", sites, first_ms);
            visit_priorities(&cx.db, |priority| {
                let sql = "SELECT count(*), min(due_at_ms) FROM sites
                           WHERE top_priority = ?1 AND top_priority > 0 AND in_window = 0
                               AND max(due_at_ms, block_until_ms, backoff_until_ms) > ?2
                               AND backoff_until_ms <= ?2";
                let mut select = cx.db.prepare_cached(sql)?;
                let (sites, first_ms): (i64, Option<i64>) = select
                    .query_row(params![priority, ms], |row| Ok((row.get(0)?, row.get(1)?)))?;
                waiting.add("delay", sites as u64, first_ms);
                Ok(true)
            })?;
            Ok(waiting)
        })
    }
}
