//! What opening a frontier puts right after a crash, or after any other end.

use rusqlite::{Connection, OptionalExtension, Result, params};
use webfill_wire::CrawlKey;

use super::answers::{SiteId, TaskId};
use super::schema::{LEASED, QUEUED};
use super::{Frontier, FrontierError, sites};

impl Frontier {
    /// A supervisor still holds a lease from before the frontier was opened: it is in force
    /// again. Returns the task's site, or nothing if the task went another way meanwhile.
    pub fn hold_again(
        &mut self,
        task: TaskId,
        attempt: u32,
    ) -> std::result::Result<Option<SiteId>, FrontierError> {
        self.guarded("hold a task again", |frontier| {
            let sql = "UPDATE tasks SET state = ?2 WHERE id = ?1 AND state = ?3 AND attempt = ?4
                       RETURNING crawl, site";
            let values = params![task as i64, LEASED, QUEUED, attempt];
            let mut update = frontier.db.prepare_cached(sql)?;
            let held: Option<(CrawlKey, SiteId)> = update
                .query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            drop(update);
            let Some((crawl, site)) = held else {
                return Ok(None);
            };
            let crawl = frontier.known_crawl(crawl)?;
            crawl.changed = true;
            crawl.status.queued -= 1;
            crawl.status.leased += 1;
            sites::count_taken(&frontier.db, site, 1)?;
            Ok(Some(site))
        })
    }
}

/// Queues again what was leased. A site that had something leased counts as fetched from now,
/// because the fetch may have begun at the very end; what its queue and its crawl count follows.
pub(super) fn requeue_leased(db: &Connection, default_delay_ms: u32, now_ms: i64) -> Result<()> {
    db.execute(
        "UPDATE sites SET
             last_start_ms = ?1,
             due_at_ms = max(due_at_ms, ?1 + coalesce(delay_ms, ?2)),
             queued = queued + (SELECT count(*) FROM tasks WHERE site = sites.id AND state = 1),
             top_priority = max(top_priority, (
                 SELECT max(priority) FROM tasks WHERE site = sites.id AND state = 1))
         WHERE id IN (SELECT site FROM tasks WHERE state = 1)",
        (now_ms, default_delay_ms),
    )?;
    db.execute_batch(
        "UPDATE tasks SET state = 0 WHERE state = 1;
         UPDATE crawls SET queued = queued + leased, leased = 0 WHERE leased > 0;
         UPDATE sites SET in_window = 0 WHERE in_window = 1;",
    )
}
