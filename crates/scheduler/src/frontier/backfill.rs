//! Backfills: if a record needs a page that was already handed out, the stored page is applied to it later. The need is
//! stored (`late = 1` in `task_records`) until that is done, so a crash loses none.

use rusqlite::params;
use webfill_wire::CrawlKey;

use super::error::FrontierError;
use super::model::{Backfill, TaskId};
use super::parts::Records;
use super::schema::DONE;

impl Records<'_> {
    /// The fetched pages of a crawl that still have to be applied to further records, which are not complete.
    pub fn pending_backfills(&mut self, crawl: CrawlKey) -> Result<Vec<Backfill>, FrontierError> {
        self.0.run("look for backfills", |cx| {
            let sql = "SELECT t.id, t.url, t.depth, r.name
                       FROM task_records late
                       JOIN tasks t ON t.id = late.task
                       JOIN records r ON r.id = late.record
                       WHERE late.late = 1 AND t.state = ?1 AND t.crawl = ?2 AND r.resolved = 0";
            let mut select = cx.db.prepare_cached(sql)?;
            let waiting = select.query_map(params![DONE, crawl], |row| {
                Ok(Backfill {
                    task: row.get::<_, i64>(0)? as u64,
                    url: row.get(1)?,
                    depth: row.get(2)?,
                    record: row.get(3)?,
                })
            })?;
            waiting.collect()
        })
    }

    /// Notes that the stored page of a task was applied to a record.
    pub fn note_backfill_applied(
        &mut self,
        task: TaskId,
        record: &str,
    ) -> Result<(), FrontierError> {
        self.0.run("note an applied page", |cx| {
            let record = cx.records.id_or_insert(&cx.db, record)?;
            let sql = "UPDATE task_records SET late = 0 WHERE task = ?1 AND record = ?2";
            cx.db
                .prepare_cached(sql)?
                .execute(params![task as i64, record])?;
            Ok(())
        })
    }
}
