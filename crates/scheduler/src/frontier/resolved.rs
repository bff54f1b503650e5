//! Resolved records: a complete record needs no further page. Queued tasks that serve only resolved records end with
//! `stopped`. Such a task is queued again if a further record comes to want its page.

use rusqlite::Result;
use webfill_wire::Outcome;

use super::context::Context;
use super::parts::Records;
use super::records::needless_tasks;
use super::{FrontierError, closing, sites};

impl Records<'_> {
    /// Marks a record as resolved. Queued tasks that serve no unresolved record end with `stopped`.
    pub fn resolve(&mut self, record: &str, now_ms: i64) -> Result<(), FrontierError> {
        self.0
            .guarded("close a record", |cx| resolve(cx, record, now_ms))
    }

    /// Marks records as unresolved. Their seeds are fed because fields are missing in the store, even if an earlier
    /// crawl has resolved them.
    pub fn reopen<'r>(
        &mut self,
        records: impl Iterator<Item = &'r str>,
    ) -> Result<(), FrontierError> {
        self.0.guarded("take up records", |cx| {
            let sql = "UPDATE records SET resolved = 0 WHERE id = ?1 AND resolved = 1";
            for record in records {
                let record = cx.records.id_of(&cx.db, record)?;
                cx.db.prepare_cached(sql)?.execute([record])?;
            }
            Ok(())
        })
    }
}

pub(super) fn resolve(cx: &mut Context, record: &str, now_ms: i64) -> Result<()> {
    let record = cx.records.id_of(&cx.db, record)?;
    let sql = "UPDATE records SET resolved = 1 WHERE id = ?1 AND resolved = 0";
    if cx.db.prepare_cached(sql)?.execute([record])? == 0 {
        return Ok(());
    }
    for needless in needless_tasks(&cx.db, record)? {
        let (crawl, site) = (needless.crawl, needless.site);
        let (task, priority) = (needless.task, needless.priority);
        closing::close_queued(cx, crawl, task, priority, Outcome::Stopped, now_ms)?;
        sites::count_taken_of(&cx.db, site, crawl, 1, None)?;
        sites::count_taken(&cx.db, site, 1)?;
    }
    Ok(())
}
