//! Drops old pages, a few at a time. A position is what a log's entry is in MongoDB, so no log is to be
//! dropped beside them.

use rusqlite::{Connection, params};

use super::fault::Fault;
use crate::retention::{Cutoff, Dropped};
use crate::timestamp::iso_time;

/// The most pages that one call looks at: for so long, other writers wait.
const LOOKED_AT: i64 = 500;

/// Drops those that are too old among the pages that were saved first. Saves are nearly in the order of
/// fetches: with none among [`LOOKED_AT`] pages, it is over for now.
pub(super) fn drop_old(conn: &Connection, cutoff: Cutoff) -> Result<Dropped, Fault> {
    let Some(pages_ms) = cutoff.pages_ms else {
        return Ok(Dropped::default());
    };
    let sql = "SELECT count(*), coalesce(max(position), 0)
        FROM (SELECT position FROM pages ORDER BY position LIMIT ?1)";
    let mut select = conn.prepare_cached(sql)?;
    let (looked_at, last): (i64, i64) =
        select.query_row([LOOKED_AT], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let old = params![last, iso_time(pages_ms)];
    // Before they are deleted, readers that have not come so far are refused.
    let sql = "UPDATE changes SET cut = max(cut, coalesce(
        (SELECT max(position) FROM pages WHERE position <= ?1 AND started_at < ?2), 0))";
    conn.prepare_cached(sql)?.execute(old)?;
    let sql = "DELETE FROM pages WHERE position <= ?1 AND started_at < ?2";
    let pages = conn.prepare_cached(sql)?.execute(old)?;
    let of_changes = drop_changes(conn, &iso_time(pages_ms))?;
    Ok(Dropped {
        pages: pages as u64,
        log_entries: 0,
        has_more: of_changes == LOOKED_AT as usize || pages > 0 && looked_at == LOOKED_AT,
    })
}

/// Drops changes and versions that are as old as pages that are dropped; how many of the one or the other.
fn drop_changes(conn: &Connection, before: &str) -> Result<usize, Fault> {
    let sql = "DELETE FROM page_changes WHERE number IN
        (SELECT number FROM page_changes WHERE at < ?1 ORDER BY at LIMIT ?2)";
    let changes = conn
        .prepare_cached(sql)?
        .execute(params![before, LOOKED_AT])?;
    let sql = "DELETE FROM versions WHERE _id IN
        (SELECT _id FROM versions WHERE looked_at < ?1 ORDER BY looked_at LIMIT ?2)";
    let versions = conn
        .prepare_cached(sql)?
        .execute(params![before, LOOKED_AT])?;
    Ok(changes.max(versions))
}
