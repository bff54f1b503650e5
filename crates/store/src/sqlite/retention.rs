//! Drops old pages and samples, a few at a time. There is no separate log to drop: the positions of pages take the
//! place of the entries of MongoDB's log.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use rusqlite::{Connection, params};

use super::Sqlite;
use super::fault::Fault;
use super::samples;
use crate::error::StoreError;
use crate::retention::{Cutoff, DropResult};
use crate::store::Retention;
use crate::timestamp::iso_time;

/// How many pages one call checks at most, because other writers wait meanwhile.
const MOST_EXAMINED: i64 = 500;

/// Drops some of the entries beyond the limits. Returns the position for the next call to continue after; 0 at the end.
pub(super) fn drop_old_entries(
    conn: &Connection,
    cutoff: Cutoff,
    after: i64,
) -> Result<(DropResult, i64), Fault> {
    let (mut dropped, after) = match cutoff.pages_ms {
        Some(pages_ms) => drop_pages(conn, pages_ms, after)?,
        None => (DropResult::default(), 0),
    };
    let (samples, has_more) = samples::drop_old_samples(conn, cutoff)?;
    dropped.samples = samples;
    dropped.has_more |= has_more;
    Ok((dropped, after))
}

/// Drops old pages after a position. Returns the position for the next call to continue after; 0 at the end. All pages
/// are checked, because positions are not in the order of fetches: a page that was read again has a late position,
/// although its fetch may be old.
fn drop_pages(conn: &Connection, pages_ms: i64, after: i64) -> Result<(DropResult, i64), Fault> {
    let before = iso_time(pages_ms);
    let sql = "SELECT count(*), max(position), max(position) FILTER (WHERE started_at < ?3)
        FROM (SELECT position, started_at FROM pages WHERE position > ?1 ORDER BY position LIMIT ?2)";
    let (examined, last, last_old): (i64, Option<i64>, Option<i64>) = conn
        .prepare_cached(sql)?
        .query_row(params![after, MOST_EXAMINED, before], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let pages = match last_old {
        Some(last_old) => drop_pages_between(conn, after, last_old, &before)?,
        None => 0,
    };
    let of_changes = drop_changes_and_versions(conn, &before)?;
    let is_end = examined < MOST_EXAMINED;
    let dropped = DropResult {
        pages: pages as u64,
        has_more: of_changes == MOST_EXAMINED as usize || !is_end,
        ..DropResult::default()
    };
    Ok((dropped, last.filter(|_| !is_end).unwrap_or(0)))
}

/// Drops pages after the position `after`, up to and including `last`, if their fetch began before a time.
fn drop_pages_between(
    conn: &Connection,
    after: i64,
    last: i64,
    before: &str,
) -> Result<usize, Fault> {
    // Pages up to the cut may have been dropped. The cut is raised before pages are deleted. So readers that have not
    // read them yet fail.
    let cut = "UPDATE changes SET cut = max(cut, ?1)";
    conn.prepare_cached(cut)?.execute([last])?;
    let sql = "DELETE FROM pages WHERE position > ?1 AND position <= ?2 AND started_at < ?3";
    Ok(conn
        .prepare_cached(sql)?
        .execute(params![after, last, before])?)
}

/// Drops changes of pages from before a time, and versions of pages last checked before that. Returns the larger of the
/// two numbers of dropped rows.
fn drop_changes_and_versions(conn: &Connection, before: &str) -> Result<usize, Fault> {
    let sql = "DELETE FROM page_changes WHERE number IN
        (SELECT number FROM page_changes WHERE at < ?1 ORDER BY at LIMIT ?2)";
    let changes = conn
        .prepare_cached(sql)?
        .execute(params![before, MOST_EXAMINED])?;
    let sql = "DELETE FROM versions WHERE _id IN
        (SELECT _id FROM versions WHERE checked_at < ?1 ORDER BY checked_at LIMIT ?2)";
    let versions = conn
        .prepare_cached(sql)?
        .execute(params![before, MOST_EXAMINED])?;
    Ok(changes.max(versions))
}

#[async_trait]
impl Retention for Sqlite {
    /// Drops old entries in one transaction. Old bodies are in another file, and are dropped in a transaction of that
    /// file.
    async fn drop_old(&self, cutoff: Cutoff) -> Result<DropResult, StoreError> {
        let after = self.retained_to.load(Ordering::Relaxed);
        let drop_some = move |conn: &_| drop_old_entries(conn, cutoff, after);
        let (mut dropped, examined_to) = self.write(drop_some).await?;
        self.retained_to.store(examined_to, Ordering::Relaxed);
        if let Some(pages_ms) = cutoff.pages_ms {
            dropped.has_more |= self.bodies.drop_old_bodies(pages_ms).await?.has_more;
        }
        Ok(dropped)
    }
}
