//! Records that a page serves beside those of the task that first led to it.

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::feed::FeedBatch;
use super::model::{Backfill, TaskId};
use super::records;
use super::schema::DONE;

impl FeedBatch<'_> {
    /// Adds a record to the task of a URL that was seen before. A task that was stopped because its
    /// records were complete has no stored page, so it is queued again.
    pub(super) fn attach_record(&mut self, key: u64, record: i64) -> Result<()> {
        if self.was_attached_lately(key, record) {
            return Ok(());
        }
        let Some(task) = self.seen.task_of(key)? else {
            return Ok(());
        };
        self.new_tasks.write(self.db)?;
        if let Some(stopped) = records::stopped_as_needless(self.db, task)? {
            self.reopen(&stopped)?;
        }
        // A task that was handed out before may be queued again, but its last holder may still
        // deliver the outcome: the record needs a backfill then, too.
        let sql = "INSERT OR IGNORE INTO task_records (task, record, late)
                   SELECT id, ?2, attempt > 0 OR state = ?3 FROM tasks WHERE id = ?1";
        let values = params![task as i64, record, DONE];
        let is_new = self.db.prepare_cached(sql)?.execute(values)? > 0;
        let pair_key = self.attachment_key(key, record);
        self.seen.note(pair_key);
        if is_new && let Some(done) = done_page(self.db, task, record)? {
            self.tally.backfills.push(done);
        }
        Ok(())
    }

    /// Whether the record is known to be attached to the URL's task. After a restart nobody knows.
    pub(super) fn was_attached_lately(&mut self, key: u64, record: i64) -> bool {
        let pair_key = self.attachment_key(key, record);
        self.seen.was_noted_lately(pair_key)
    }

    fn attachment_key(&self, key: u64, record: i64) -> u64 {
        // What was noted in another run of a watch may not hold any more.
        let run = self.crawl.spec.run_began_ms.unwrap_or_default() as u64;
        self.seen.pair_key(key.wrapping_add(run), record)
    }
}

fn done_page(db: &Connection, task: TaskId, record: i64) -> Result<Option<Backfill>> {
    let sql = "SELECT url, depth, name FROM tasks, records
               WHERE tasks.id = ?1 AND state = ?2 AND records.id = ?3";
    let page = |row: &rusqlite::Row<'_>| {
        Ok(Backfill {
            task,
            url: row.get(0)?,
            depth: row.get(1)?,
            record: row.get(2)?,
        })
    };
    db.prepare_cached(sql)?
        .query_row(params![task as i64, DONE, record], page)
        .optional()
}
