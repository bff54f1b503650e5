//! Reads a whole table while others write.
//!
//! An export has a connection and a thread of its own. It reads in steps, each a short read transaction: during a long
//! one, the write-ahead log could not be reset.

use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use serde_json::Value;
use tokio::sync::mpsc;

use super::connection::Db;
use super::fault::{Fault, store_error, store_name};
use super::objects::{STEP_BYTES, STEP_ROWS, row_object};
use super::{Sqlite, changes};
use crate::error::StoreError;
use crate::open_mode::OpenMode;
use crate::store::{Export, ExportError, ExportFilter, ExportKind};

const PAGES: &str = "
SELECT rowid, _id, app_id, crawl_id, url, final_url, site, depth, parent, outcome, status_code,
    mapping, mapping_version, template, records, fields, links, content_type, bytes, content_hash, started_at, elapsed_ms, attempts,
    worker, attrs, tries, headers, document, body, alternatives, rows, row_counts
FROM pages
WHERE rowid > ?1 AND (?2 IS NULL OR app_id = ?2) AND (?3 IS NULL OR crawl_id = ?3) AND ?4 IS NULL
ORDER BY rowid";

/// The columns of a record. The position comes first, as [`row_object`] expects.
pub(super) const RECORD_COLUMNS: &str = "
SELECT rowid, _id, dataset, record_id, fields, sources, candidates, history, missing, resolved_at, urls, doubts,
       row
FROM records";

/// The columns of a record. For the row of a page, the fields of the record that the page was fetched for are added.
const RECORDS_AND_PARENTS: &str = "
SELECT rowid, _id, dataset, record_id, fields, sources, candidates, history, missing, resolved_at, urls, doubts,
       row, (SELECT fields FROM records AS parent WHERE parent._id = records.row ->> '$.parent') AS parent_fields
FROM records";

const RECORDS: &str = "
WHERE rowid > ?1 AND (?4 IS NULL OR dataset = ?4) AND ((?2 IS NULL AND ?3 IS NULL) OR EXISTS (
    SELECT 1 FROM crawl_records JOIN crawls ON crawls.key = crawl
    WHERE record = records._id AND (?2 IS NULL OR app_id = ?2) AND (?3 IS NULL OR crawl_id = ?3)))
ORDER BY rowid";

type Step = Result<Vec<Value>, StoreError>;

/// Sends the rows of the table in steps until its end. After an error, which is sent as the last step, or when the
/// receiver is dropped, it stops.
fn stream_table(path: &Path, kind: ExportKind, filter: &ExportFilter, steps: &mpsc::Sender<Step>) {
    let sql = match kind {
        ExportKind::Pages => PAGES.to_owned(),
        ExportKind::Records if filter.parents => [RECORDS_AND_PARENTS, RECORDS].concat(),
        ExportKind::Records => [RECORD_COLUMNS, RECORDS].concat(),
    };
    let read = || -> Result<(), StoreError> {
        let refused = |fault| store_error(&store_name(path), fault);
        let db = Db::connect(path, OpenMode::MustExist).map_err(refused)?;
        db.configure().map_err(refused)?;
        let mut after = 0;
        loop {
            let rows = db.read(|conn| read_step(conn, &sql, filter, &mut after))?;
            if rows.is_empty() || steps.blocking_send(Ok(rows)).is_err() {
                return Ok(());
            }
        }
    };
    if let Err(error) = read() {
        // If the receiver is dropped, nobody needs the error.
        let _ = steps.blocking_send(Err(error));
    }
}

/// Reads the next rows after the position `after`, and sets `after` to the position of the last one.
fn read_step(
    conn: &Connection,
    sql: &str,
    filter: &ExportFilter,
    after: &mut i64,
) -> Result<Vec<Value>, Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![
        *after,
        filter.app_id,
        filter.crawl_id,
        filter.dataset
    ])?;
    let mut step = Vec::new();
    let mut bytes = 0;
    while step.len() < STEP_ROWS && bytes < STEP_BYTES {
        let Some(row) = rows.next()? else { break };
        *after = row.get(0)?;
        step.push(Value::Object(row_object(row, &mut bytes)?));
    }
    Ok(step)
}

#[async_trait]
impl Export for Sqlite {
    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        // The channel holds one step, so one step at most waits while the next is read.
        let (steps, mut read) = mpsc::channel::<Step>(1);
        let (path, filter) = (self.path.clone(), filter.clone());
        tokio::task::spawn_blocking(move || stream_table(&path, kind, &filter, &steps));
        let mut rows = 0;
        while let Some(step) = read.recv().await {
            for row in step? {
                each(row)?;
                rows += 1;
            }
        }
        Ok(rows)
    }

    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError> {
        let ids: Arc<[String]> = ids.into();
        let mut found = 0;
        let mut next = 0;
        while next < ids.len() {
            let ids = Arc::clone(&ids);
            let step = move |conn: &Connection| changes::find_some_pages(conn, &ids[next..]);
            let (pages, searched) = self.read(step).await?;
            next += searched;
            for (_, page) in pages {
                each(Value::Object(page))?;
                found += 1;
            }
        }
        Ok(found)
    }
}
