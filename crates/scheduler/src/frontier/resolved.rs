//! Resolved records: a complete record needs no further page. Queued tasks that serve only resolved records end with
//! `stopped`. Such a task is queued again if a further record needs its page.

use rusqlite::Result;
use webfill_wire::Outcome;

use super::context::Context;
use super::parts::Records;
use super::records::needless_tasks;
use super::{FrontierError, closing, sites};

impl Records<'_> {
    /// Marks a record as resolved (complete). Queued tasks that serve no other, incomplete record end with `stopped`.
    pub fn mark_resolved(&mut self, record: &str, now_ms: i64) -> Result<(), FrontierError> {
        self.0
            .run("close a record", |cx| mark_resolved(cx, record, now_ms))
    }

    /// Marks records as incomplete. Their seeds are fed because fields are missing in the store, even if an earlier
    /// crawl has completed them.
    pub fn mark_unresolved<'r>(
        &mut self,
        records: impl Iterator<Item = &'r str>,
    ) -> Result<(), FrontierError> {
        self.0.run("take up records", |cx| {
            let sql = "UPDATE records SET resolved = 0 WHERE id = ?1 AND resolved = 1";
            for record in records {
                let record = cx.records.id_or_insert(&cx.db, record)?;
                cx.db.prepare_cached(sql)?.execute([record])?;
            }
            Ok(())
        })
    }
}

pub(super) fn mark_resolved(cx: &mut Context, record: &str, now_ms: i64) -> Result<()> {
    let record = cx.records.id_or_insert(&cx.db, record)?;
    let sql = "UPDATE records SET resolved = 1 WHERE id = ?1 AND resolved = 0";
    if cx.db.prepare_cached(sql)?.execute([record])? == 0 {
        return Ok(());
    }
    for needless in needless_tasks(&cx.db, record)? {
        let (crawl, site) = (needless.crawl, needless.site);
        let (task, priority) = (needless.task, needless.priority);
        closing::end_queued_task(cx, crawl, task, priority, Outcome::Stopped, now_ms)?;
        sites::subtract_from_crawl_share(&cx.db, site, crawl, 1, None)?;
        sites::subtract_queued(&cx.db, site, 1)?;
    }
    Ok(())
}
