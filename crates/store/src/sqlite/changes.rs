//! Reads pages by key, and in the order they became visible.
//!
//! The transaction that saves a page gives it the highest position so far plus one. SQLite has one writer at a time,
//! so positions become visible in ascending order: a reader that has seen a position has seen all lower ones. A page
//! that is saved again gets a new position; its old one stays unused.

use std::io;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::Sqlite;
use super::fault::Fault;
use super::objects::{STEP_BYTES, STEP_ROWS, row_object};
use crate::cursor::{Cursor, RetainedRange, check_cursor, too_late_message};
use crate::store::{Changes, ExportError, ExportFilter};

/// The columns of a page. The position comes first, as [`row_object`] expects.
const COLUMNS: &str = "
SELECT position, _id, app_id, crawl_id, url, final_url, site, depth, parent, outcome, status_code,
    mapping, mapping_version, template, records, fields, links, content_type, bytes, content_hash, started_at, elapsed_ms, attempts,
    worker, attrs, tries, headers, document, body, alternatives, rows, row_counts
FROM pages";

/// The columns of a page that are used to judge the health of its mapping.
const EXTRACTIONS: &str = "
SELECT position, _id, app_id, crawl_id, url, site, parent, mapping, mapping_version, template, records,
    fields, content_hash, started_at, attempts, alternatives, row_counts
FROM pages";

/// The columns of a page that are needed to find out whether its content has changed.
const CHECKS: &str = "
SELECT position, _id, app_id, crawl_id, url, site, outcome, status_code, mapping, mapping_version, fields,
    content_hash, started_at, epoch, task, attempts, snapshot
FROM pages";

const CHANGED: &str = "
WHERE position > ?1 AND position <= ?2
    AND (?3 IS NULL OR app_id = ?3) AND (?4 IS NULL OR crawl_id = ?4)
    AND (NOT ?5 OR (outcome = 'ok' AND mapping NOT NULL))
    AND (NOT ?6 OR snapshot NOT NULL)
ORDER BY position";

/// How many positions one step examines at most, even if the filter accepts few pages. A step must be short, because
/// the write-ahead log cannot be reset during a read.
const STEP_POSITIONS: i64 = 10_000;

/// The store's id, which its cursors contain; the cut (pages up to it may have been dropped); and the highest position
/// so far.
fn id_and_extent(conn: &Connection) -> Result<(String, i64, i64), Fault> {
    let sql = "SELECT store, cut, max(deleted, coalesce((SELECT max(position) FROM pages), 0))
        FROM changes";
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_row((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
}

pub(super) type FoundPages = Vec<(i64, Map<String, Value>)>;

/// Finds pages by the first of these keys, until a limit is reached. Also returns how many keys were looked up.
pub(super) fn find_some_pages(
    conn: &Connection,
    ids: &[String],
) -> Result<(FoundPages, usize), Fault> {
    let mut statement = conn.prepare_cached(&format!("{COLUMNS} WHERE _id = ?1"))?;
    let mut pages = Vec::new();
    let mut bytes = 0;
    for (index, id) in ids.iter().enumerate() {
        let mut rows = statement.query([id])?;
        if let Some(row) = rows.next()? {
            pages.push((row.get(0)?, row_object(row, &mut bytes)?));
        }
        if bytes >= STEP_BYTES {
            return Ok((pages, index + 1));
        }
    }
    Ok((pages, ids.len()))
}

/// The page with this key.
pub(super) fn find_page(conn: &Connection, id: &str) -> Result<Option<Value>, Fault> {
    let (mut pages, _) = find_some_pages(conn, &[id.to_owned()])?;
    Ok(pages.pop().map(|(_, page)| Value::Object(page)))
}

/// Pages at the positions after `from` up to `to`, and whether there are no more.
fn read_step(
    conn: &Connection,
    from: i64,
    to: i64,
    filter: &ExportFilter,
) -> Result<(FoundPages, bool), Fault> {
    let columns = match filter {
        ExportFilter { checks: true, .. } => CHECKS,
        ExportFilter {
            extractions: true, ..
        } => EXTRACTIONS,
        _ => COLUMNS,
    };
    let mut statement = conn.prepare_cached(&format!("{columns}{CHANGED}"))?;
    let (app_id, crawl_id) = (&filter.app_id, &filter.crawl_id);
    let mut rows = statement.query(params![
        from,
        to,
        app_id,
        crawl_id,
        filter.extractions,
        filter.checks
    ])?;
    let mut pages = Vec::new();
    let mut bytes = 0;
    while pages.len() < STEP_ROWS && bytes < STEP_BYTES {
        let Some(row) = rows.next()? else {
            return Ok((pages, true));
        };
        pages.push((row.get(0)?, row_object(row, &mut bytes)?));
    }
    Ok((pages, false))
}

#[async_trait]
impl Changes for Sqlite {
    /// Reads pages up to the position that was the highest when the call began.
    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError> {
        let cursor = after.clone();
        let begin = move |conn: &Connection| -> Result<_, Fault> {
            let (store, cut, last) = id_and_extent(conn)?;
            let kept = RetainedRange {
                cut: cut.unsigned_abs(),
                newest: last.unsigned_abs(),
            };
            check_cursor(&cursor, &store, kept).map_err(Fault::Unusable)?;
            Ok((store, cut, last))
        };
        let (store, cut_before, last) = self.read(begin).await?;
        let at = |position: i64| Cursor::new(&store, position.unsigned_abs(), 0);
        // Positions are signed in the file. `check_cursor` has made sure that the cursor's position fits.
        let mut read_to = after.position.entry as i64;
        while read_to < last {
            let (from, to) = (read_to, last.min(read_to.saturating_add(STEP_POSITIONS)));
            let (filter, reached) = (filter.clone(), at(from));
            let step = move |conn: &Connection| {
                let step = read_step(conn, from, to, &filter)?;
                // Pages up to the cut may have been dropped. The cut is read after the pages: if it is not beyond them,
                // no page was missed.
                let (_, cut, _) = id_and_extent(conn)?;
                match cut > cut_before.max(from) {
                    true => Err(Fault::Unusable(too_late_message(&reached))),
                    false => Ok(step),
                }
            };
            let (pages, is_whole) = self.read(step).await?;
            let reached = pages.last().map_or(from, |(position, _)| *position);
            read_to = if is_whole { to } else { reached };
            for (position, page) in pages {
                each(at(position), Value::Object(page))?;
            }
        }
        Ok(at(last))
    }
}
