//! The indexes for browsing a file.

use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;

use crate::error::StoreError;
use crate::open_mode::OpenMode;
use crate::sqlite::connection::Db;
use crate::sqlite::fault::{Fault, store_error, store_name};

/// The indexes, each with its name, table and columns. SQLite adds the position of the row at the end of each.
pub(super) const INDEXES: [(&str, &str); 5] = [
    ("crawls_by_start", "crawls (started_at, _id)"),
    ("pages_by_outcome", "pages (app_id, crawl_id, outcome)"),
    (
        "pages_by_mapping",
        "pages (app_id, crawl_id, mapping, outcome) WHERE mapping IS NOT NULL",
    ),
    ("pages_by_site", "pages (site)"),
    (
        "records_by_state",
        "records (dataset, resolved_at, record_id)",
    ),
];

/// From this many rows on, the creation of an index on a table is logged, because it takes about five seconds.
const MANY_ROWS: i64 = 1_000_000;

/// Whether this index exists, so that statements may use it.
pub(super) fn has_index(conn: &Connection, name: &str) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?1";
    Ok(conn.prepare_cached(sql)?.exists([name])?)
}

/// Creates missing indexes, each in its own transaction, so that writers get their turns in between.
pub(super) async fn create_missing_indexes(path: &Path) -> Result<(), StoreError> {
    let path = path.to_owned();
    let store = store_name(&path);
    let preparing = tokio::task::spawn_blocking(move || {
        let refused = |fault| store_error(&store_name(&path), fault);
        let mut db = Db::connect(&path, OpenMode::MustExist).map_err(refused)?;
        db.configure().map_err(refused)?;
        for (name, of) in INDEXES {
            if !db.read(|conn| has_index(conn, name))? {
                create_index(&mut db, name, of)?;
            }
        }
        Ok(())
    });
    preparing.await.unwrap_or_else(|_| {
        Err(StoreError::Fatal {
            store,
            reason: String::from("making its indexes broke down"),
        })
    })
}

fn create_index(db: &mut Db, name: &str, of: &str) -> Result<(), StoreError> {
    let table = of.split(' ').next().unwrap_or_default();
    let is_large = db.read(|conn| last_row_position(conn, table))? >= MANY_ROWS;
    if is_large {
        tracing::info!(
            event = "index_begun",
            index = name,
            "creating an index of many rows; writers to the store wait for it"
        );
    }
    let began = Instant::now();
    db.write(
        |conn| Ok(conn.execute_batch(&format!("CREATE INDEX IF NOT EXISTS {name} ON {of}"))?),
    )?;
    if is_large {
        let elapsed_ms = began.elapsed().as_millis() as u64;
        tracing::info!(
            event = "index_made",
            index = name,
            elapsed_ms,
            "the index is created"
        );
    }
    Ok(())
}

/// The position of the last row, which is about the number of rows in the table.
fn last_row_position(conn: &Connection, table: &str) -> Result<i64, Fault> {
    let sql = format!("SELECT coalesce(max(rowid), 0) FROM {table}");
    Ok(conn.query_row(&sql, (), |row| row.get(0))?)
}
