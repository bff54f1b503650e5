//! A shortcut for known links. Most links of most pages lead to URLs that the crawl has taken before. Workers report
//! canonical URLs, and a canonical URL is its own canonical form. So a text that is in the index of seen URLs is a
//! duplicate, and need not be parsed.

use rusqlite::{Connection, OptionalExtension, Result, params};
use webfill_urls::Url;
use webfill_wire::LinkKind;

use super::feed::{FeedBatch, TextLookup};
use super::model::{Backfill, LinkContext, TaskId};
use super::records;
use super::schema::DONE;

impl FeedBatch<'_> {
    /// The keys of a page's links, which are valid if the texts are canonical URLs.
    pub(super) fn compute_link_keys<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Vec<u64> {
        let keys: Vec<_> = texts.map(|text| self.seen.key(self.key, text)).collect();
        self.seen.prefetch(&keys);
        keys
    }

    pub(super) fn look_up_text<'a>(
        &mut self,
        text: &'a str,
        key: Option<u64>,
    ) -> Result<TextLookup<'a>> {
        let key = key.unwrap_or_else(|| self.seen.key(self.key, text));
        let is_seen = self.seen.contains(key)?;
        Ok(TextLookup { text, key, is_seen })
    }

    /// The key of a parsed URL, and whether the crawl has seen it.
    pub(super) fn look_up_url(
        &mut self,
        url: &Url,
        known: Option<TextLookup<'_>>,
    ) -> Result<(u64, bool)> {
        if let Some(known) = known.filter(|known| known.text == url.as_str()) {
            return Ok((known.key, known.is_seen));
        }
        let key = self.seen.key(self.key, url.as_str());
        Ok((key, self.seen.contains(key)?))
    }

    /// Whether a link is a duplicate that changes nothing, so that its text need not be parsed. Its scope was judged
    /// when the crawl took the URL.
    pub(super) fn is_plain_duplicate(
        &mut self,
        looked_up: TextLookup<'_>,
        context: &LinkContext<'_>,
    ) -> bool {
        let spec = &self.crawl.spec;
        let may_be_taken_again = spec.run_began_ms.is_some() || spec.refresh_after_ms.is_some();
        let is_plain = context.kind != LinkKind::Sitemap && !may_be_taken_again;
        looked_up.is_seen
            && is_plain
            && context
                .records
                .iter()
                .all(|record| self.was_attached_recently(looked_up.key, *record))
    }
}

impl FeedBatch<'_> {
    /// Adds a record to the task of a URL that was seen before. If the task was stopped because its records were
    /// complete, it has no stored page, so it is queued again.
    pub(super) fn attach_record(&mut self, key: u64, record: i64) -> Result<()> {
        if self.was_attached_recently(key, record) {
            return Ok(());
        }
        let Some(task) = self.seen.task_of(key)? else {
            return Ok(());
        };
        self.new_tasks.write(self.db)?;
        if let Some(stopped) = records::find_stopped_as_needless(self.db, task)? {
            self.reopen(&stopped)?;
        }
        // A task that was handed out before may be queued again, but its last holder may still deliver the outcome:
        // the record needs a backfill in that case, too.
        let sql = "INSERT OR IGNORE INTO task_records (task, record, late)
                   SELECT id, ?2, attempt > 0 OR state = ?3 FROM tasks WHERE id = ?1";
        let values = params![task as i64, record, DONE];
        let is_new = self.db.prepare_cached(sql)?.execute(values)? > 0;
        if is_new {
            self.db.note_task_record(task, record);
        }
        let pair_key = self.attachment_key(key, record);
        self.seen.note_pair(pair_key);
        if is_new && let Some(done) = find_backfill(self.db, task, record)? {
            self.tally.backfills.push(done);
        }
        Ok(())
    }

    /// Whether the record is known to be attached to the URL's task. Not stored, so unknown after a restart.
    pub(super) fn was_attached_recently(&mut self, key: u64, record: i64) -> bool {
        let pair_key = self.attachment_key(key, record);
        self.seen.was_noted_recently(pair_key)
    }

    fn attachment_key(&self, key: u64, record: i64) -> u64 {
        // The run is part of the key, because what was noted in another run of a watch may be outdated.
        let run = self.crawl.spec.run_began_ms.unwrap_or_default() as u64;
        self.seen.pair_key(key.wrapping_add(run), record)
    }
}

fn find_backfill(db: &Connection, task: TaskId, record: i64) -> Result<Option<Backfill>> {
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
