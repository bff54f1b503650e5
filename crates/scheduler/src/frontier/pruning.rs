//! Pruning: finished crawls are dropped, with their tasks and everything that belongs to these.
//!
//! A crawl is first *detached*: its row gets a name that no client can use. So its ids are free from then on, and a
//! crawl that uses them is a new one. Code that still has its key finds no crawl ([`FrontierError::UnknownCrawl`]). A
//! detached crawl counts as stopped, so nothing in progress queues anything for it. Then its rows are deleted in
//! slices, by one walk through all tasks for all detached crawls. After a crash the walk starts over. Everything that
//! was learned about sites and their servers stays, and so do the states of records.
//!
//! Ids of tasks and crawls are never reused, because other tables keep them: the seen index still holds the keys of
//! deleted tasks and crawls.

use std::collections::BTreeSet;

use rusqlite::{Connection, Result, params};
use serde_json::json;
use webfill_wire::{CrawlKey, Outcome};

use super::crawl_rows::DETACHED;
use super::parts::Pruning;
use super::{FrontierError, crawl_rows};

/// The maximum number of tasks, of all crawls, that one call of `delete_slice` reads. Ended tasks have no index.
const MOST_READ: i64 = 10_000;

/// The maximum number of rows that one call of `delete_slice` deletes.
const MOST_DELETED: usize = 500;

/// The maximum number of free pages that one call of `delete_slice` returns to the file system.
const MOST_FREED: u32 = 512;

/// The maximum number of crawls that one action detaches.
const MOST_DETACHED: i64 = 1_000;

/// A walk through all tasks that deletes those of detached crawls (their names are free again).
#[derive(Debug)]
pub struct PruneWalk {
    crawls: Vec<CrawlKey>,
    /// The last task that was checked.
    last: i64,
    end: i64,
    is_over: bool,
}

impl PruneWalk {
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

/// The crawls that a call has detached: their names are free again, and their rows are to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detached {
    pub crawls: Vec<CrawlKey>,
    /// The number of tasks that will be deleted.
    pub tasks: u64,
    /// Whether there may be more crawls to detach.
    pub has_more: bool,
}

impl Pruning<'_> {
    /// Detaches one or all of an application's crawls that have nothing queued or leased and have not changed since a
    /// time. Skips crawls in use.
    pub fn detach_crawls(
        &mut self,
        app_id: &str,
        crawl_id: Option<&str>,
        unchanged_since_ms: i64,
        in_use: &BTreeSet<CrawlKey>,
    ) -> std::result::Result<Detached, FrontierError> {
        self.0.run("detach crawls", |cx| {
            crawl_rows::flush_crawls(cx)?;
            let sql = "SELECT id, done FROM crawls
                       WHERE app_id = ?1 AND (?2 IS NULL OR crawl_id = ?2)
                           AND queued + leased = 0 AND changed_at_ms <= ?3 LIMIT ?4";
            let most = MOST_DETACHED + in_use.len() as i64;
            let values = params![app_id, crawl_id, unchanged_since_ms, most];
            let mut select = cx.db.prepare_cached(sql)?;
            let found = select.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let mut found: Vec<(CrawlKey, i64)> = found.collect::<Result<_>>()?;
            drop(select);
            found.retain(|(crawl, _)| !in_use.contains(crawl));
            found.truncate(MOST_DETACHED as usize);
            let sql = "UPDATE crawls SET app_id = ?2, crawl_id = 'detached ' || id, ended = ?3
                       WHERE id = ?1";
            let mut detached = Detached::default();
            for (crawl, done) in &found {
                let values = params![crawl, DETACHED, Outcome::Stopped.as_str()];
                cx.db.prepare_cached(sql)?.execute(values)?;
                cx.crawls.remove(crawl);
                cx.touched.remove(crawl);
                detached.crawls.push(*crawl);
                detached.tasks += *done as u64;
            }
            detached.has_more = found.len() as i64 == MOST_DETACHED;
            Ok(detached)
        })
    }

    /// Begins a walk for all crawls that are detached (to be deleted) by now; `None` if there are none.
    pub fn begin_walk(&mut self) -> std::result::Result<Option<PruneWalk>, FrontierError> {
        self.0.run("begin to prune", |cx| {
            let sql = "SELECT id FROM crawls WHERE app_id = ?1 ORDER BY id LIMIT ?2";
            let mut select = cx.db.prepare_cached(sql)?;
            let crawls = select.query_map(params![DETACHED, MOST_DETACHED], |row| row.get(0))?;
            let crawls: Vec<CrawlKey> = crawls.collect::<Result<_>>()?;
            let end = cx.next_task - 1;
            Ok((!crawls.is_empty()).then_some(PruneWalk {
                crawls,
                last: 0,
                end,
                is_over: false,
            }))
        })
    }

    /// Deletes the next rows, as many as take some milliseconds, and returns free pages to the file system.
    pub fn delete_slice(&mut self, walk: &mut PruneWalk) -> std::result::Result<(), FrontierError> {
        self.0.run("prune crawls", |cx| {
            let db = &cx.db;
            if walk.last < walk.end {
                store_highest_ids(db, walk)?;
                delete_tasks(db, walk)?;
            } else if delete_site_rows(db, walk)? == 0 {
                delete_crawls(db, walk)?;
                walk.is_over = true;
            }
            release_free_pages(db, MOST_FREED)
        })
    }

    /// Returns all free pages to the file system.
    pub fn commit_and_release_pages(&mut self) -> std::result::Result<(), FrontierError> {
        self.0.commit()?;
        let given = release_free_pages(&self.0.cx.db, 0).and_then(|()| {
            self.0
                .cx
                .db
                .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        });
        given.map_err(|source| FrontierError::database("give space back", self.0.path(), source))
    }
}

/// Returns at most this many free pages to the file system; 0: all. SQLite returns one page for each row that is
/// read.
fn release_free_pages(db: &Connection, most: u32) -> Result<()> {
    let mut pragma = db.prepare(&format!("PRAGMA incremental_vacuum({most})"))?;
    let mut freed = pragma.query([])?;
    while freed.next()?.is_some() {}
    Ok(())
}

/// Stores the highest ids, so that those of deleted rows are not reused.
fn store_highest_ids(db: &Connection, walk: &PruneWalk) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO meta VALUES ('last_task', ?1), ('last_crawl',
                   (SELECT max(coalesce((SELECT max(id) FROM crawls), 0),
                        coalesce((SELECT value FROM meta WHERE name = 'last_crawl'), 0))))";
    db.prepare_cached(sql)?.execute([walk.end])?;
    Ok(())
}

fn delete_tasks(db: &Connection, walk: &mut PruneWalk) -> Result<()> {
    let upto = walk.end.min(walk.last + MOST_READ);
    let sql = "SELECT id, attrs FROM task_rows
               WHERE id > ?1 AND id <= ?2 AND crawl IN (SELECT value FROM json_each(?3))
               ORDER BY id LIMIT ?4";
    let crawls = json!(walk.crawls).to_string();
    let mut select = db.prepare_cached(sql)?;
    let values = params![walk.last, upto, crawls, MOST_DELETED as i64];
    let tasks = select.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let tasks: Vec<(i64, Option<i64>)> = tasks.collect::<Result<_>>()?;
    for (task, attrs) in &tasks {
        for sql in [
            "DELETE FROM task_records WHERE task = ?1",
            "DELETE FROM tries WHERE task = ?1",
            "DELETE FROM page_checks WHERE task = ?1",
            "DELETE FROM known_pages WHERE task = ?1",
            "DELETE FROM task_rows WHERE id = ?1",
        ] {
            db.prepare_cached(sql)?.execute([task])?;
        }
        // Attributes are shared only by tasks of one crawl.
        let sql = "DELETE FROM attrs WHERE id = ?1";
        db.prepare_cached(sql)?.execute([attrs])?;
    }
    walk.last = match tasks.get(MOST_DELETED - 1) {
        Some((last, _)) => *last,
        None => upto,
    };
    Ok(())
}

/// Deletes the crawls' rows at sites. Returns their number.
fn delete_site_rows(db: &Connection, walk: &PruneWalk) -> Result<usize> {
    let mut deleted = 0;
    for sql in [
        "DELETE FROM crawl_sites WHERE (crawl, site) IN
         (SELECT crawl, site FROM crawl_sites WHERE crawl = ?1 LIMIT ?2)",
        "DELETE FROM check_rates WHERE (crawl, site, slot) IN
         (SELECT crawl, site, slot FROM check_rates WHERE crawl = ?1 LIMIT ?2)",
    ] {
        let mut delete = db.prepare_cached(sql)?;
        for crawl in &walk.crawls {
            if deleted < MOST_DELETED {
                deleted += delete.execute(params![crawl, (MOST_DELETED - deleted) as i64])?;
            }
        }
    }
    Ok(deleted)
}

fn delete_crawls(db: &Connection, walk: &PruneWalk) -> Result<()> {
    for crawl in &walk.crawls {
        for sql in [
            "DELETE FROM outcomes WHERE crawl = ?1",
            "DELETE FROM skipped WHERE crawl = ?1",
            "DELETE FROM unmatched_pages WHERE crawl = ?1",
            "DELETE FROM listed_rows WHERE crawl = ?1",
            "DELETE FROM unsaved_crawls WHERE crawl = ?1",
            "DELETE FROM crawls WHERE id = ?1",
        ] {
            db.prepare_cached(sql)?.execute([crawl])?;
        }
    }
    Ok(())
}

/// The id of the next task.
pub(super) fn next_task_id(db: &Connection) -> Result<i64> {
    let sql = "SELECT max(coalesce((SELECT max(id) FROM task_rows), 0),
                   coalesce((SELECT value FROM meta WHERE name = 'last_task'), 0)) + 1";
    db.query_row(sql, [], |row| row.get(0))
}
