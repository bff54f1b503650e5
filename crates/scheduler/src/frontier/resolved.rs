//! Resolved records: a record that is complete needs no further page. Queued tasks that serve only
//! resolved records end in `stopped`. Such a task is queued again if a further record comes to want
//! its page.

use rusqlite::Result;
use webfill_wire::Outcome;

use super::records::needless_tasks;
use super::{Frontier, FrontierError, sites};

impl Frontier {
    /// Marks a record as resolved. Queued tasks that serve no unresolved record end in `stopped`.
    pub fn record_resolved(&mut self, record: &str, now_ms: i64) -> Result<(), FrontierError> {
        self.guarded("close a record", |frontier| {
            frontier.resolve(record, now_ms)
        })
    }

    /// Marks records as unresolved: their seeds are fed because fields are missing in the store,
    /// though an earlier crawl may have resolved them.
    pub fn reopen_records<'r>(
        &mut self,
        records: impl Iterator<Item = &'r str>,
    ) -> Result<(), FrontierError> {
        self.guarded("take up records", |frontier| {
            let sql = "UPDATE records SET resolved = 0 WHERE id = ?1 AND resolved = 1";
            for record in records {
                let record = frontier.records.id_of(&frontier.db, record)?;
                frontier.db.prepare_cached(sql)?.execute([record])?;
            }
            Ok(())
        })
    }

    pub(super) fn resolve(&mut self, record: &str, now_ms: i64) -> Result<()> {
        let record = self.records.id_of(&self.db, record)?;
        let sql = "UPDATE records SET resolved = 1 WHERE id = ?1 AND resolved = 0";
        if self.db.prepare_cached(sql)?.execute([record])? == 0 {
            return Ok(());
        }
        for needless in needless_tasks(&self.db, record)? {
            let (crawl, site) = (needless.crawl, needless.site);
            let (task, priority) = (needless.task, needless.priority);
            self.close_queued(crawl, task, priority, Outcome::Stopped, now_ms)?;
            sites::count_taken_of(&self.db, site, crawl, 1, None)?;
            sites::count_taken(&self.db, site, 1)?;
        }
        Ok(())
    }
}
