//! Looking through the file ([`Browse`]), on a connection of its own that only reads.
//!
//! The indexes of [`INDEXES`] are not part of the tables' version: SQLite keeps them up to date even for processes
//! that do not know them, and a file without them is read in the order of its rows.

mod crawls;
mod pages;
mod prepare;
mod records;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Rows};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::Sqlite;
use super::connection::Db;
use super::connection_thread::ConnectionThread;
use super::fault::{Fault, store_error, store_name};
use super::{changes as page_changes, content_changes, site_states};
use crate::bodies::Body;
use crate::browse::{
    Browse, ChangeListFilter, CrawlFigures, CrawlFilter, DatasetRow, PageFilter, PageRow, Place,
    RecordFilter, RecordRow, Slice, WholeRecord, rows_of,
};
use crate::change::Change;
use crate::crawl::{Crawl, CrawlId};
use crate::error::StoreError;
use crate::site_state::SiteState;
use crate::uri::OpenMode;

/// A slice ends after checking this many rows, or after this time, or after this much text.
const MOST_LOOKED_AT: u64 = 20_000;
const LOOKED_FOR: Duration = Duration::from_millis(100);
const MOST_BYTES: usize = 4 << 20;

/// The connection for browsing a file, opened when it is first needed.
pub(super) struct Browsing {
    path: PathBuf,
    thread: OnceCell<ConnectionThread>,
}

impl Browsing {
    pub(super) fn of(path: &Path) -> Browsing {
        Browsing {
            path: path.to_owned(),
            thread: OnceCell::new(),
        }
    }

    async fn read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, StoreError> {
        let start = async || {
            let path = self.path.clone();
            ConnectionThread::start(store_name(&path), move || open(&path)).await
        };
        let thread = self.thread.get_or_try_init(start).await?;
        thread.call(move |db| db.read(read)).await?
    }
}

fn open(path: &Path) -> Result<Db, StoreError> {
    let refused = |fault| store_error(&store_name(path), fault);
    let db = Db::connect(path, OpenMode::MustExist).map_err(refused)?;
    db.configure().map_err(refused)?;
    db.read(|conn| Ok(conn.execute_batch("PRAGMA query_only = ON")?))?;
    Ok(db)
}

#[async_trait]
impl Browse for Sqlite {
    async fn prepare(&self) -> Result<(), StoreError> {
        prepare::prepare(&self.path).await
    }

    async fn crawls(
        &self,
        filter: &CrawlFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<Slice<Crawl>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read = move |conn: &_| crawls::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn figures(&self, crawl: &CrawlId, count_to: u64) -> Result<CrawlFigures, StoreError> {
        let crawl = crawl.clone();
        let read = move |conn: &_| crawls::figures(conn, &crawl, count_to);
        self.browsing.read(read).await
    }

    async fn pages(
        &self,
        filter: &PageFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<Slice<PageRow>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read = move |conn: &_| pages::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn page(&self, id: &str) -> Result<Option<Value>, StoreError> {
        let id = id.to_owned();
        let read = move |conn: &_| page_changes::find_one(conn, &id);
        self.browsing.read(read).await
    }

    async fn body(&self, page_id: &str) -> Result<Option<Body>, StoreError> {
        let id = page_id.to_owned();
        let hash = self.browsing.read(move |conn| pages::hash(conn, &id));
        match hash.await? {
            Some(hash) => self.bodies.find(page_id, hash).await,
            None => Ok(None),
        }
    }

    async fn datasets(
        &self,
        count_to: u64,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<Slice<DatasetRow>, StoreError> {
        let from = from.cloned();
        let read = move |conn: &_| records::datasets(conn, count_to, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn records(
        &self,
        filter: &RecordFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<Slice<RecordRow>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read = move |conn: &_| records::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn record(&self, key: &str) -> Result<Option<WholeRecord>, StoreError> {
        let key = key.to_owned();
        let read = move |conn: &_| records::whole(conn, &key);
        self.browsing.read(read).await
    }

    async fn changes(
        &self,
        filter: &ChangeListFilter,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<Slice<Change>, StoreError> {
        let (filter, from) = (filter.clone(), from.cloned());
        let read =
            move |conn: &_| content_changes::list(conn, &filter, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }

    async fn site_states(
        &self,
        from: Option<&Place>,
        limit: u32,
    ) -> Result<Slice<SiteState>, StoreError> {
        let from = from.cloned();
        let read = move |conn: &_| site_states::list(conn, from.as_ref(), rows_of(limit));
        self.browsing.read(read).await
    }
}

/// Makes a slice of the rows of a statement, which follow an index: `read` returns the place of a row, and the row if
/// it is wanted.
pub(super) fn slice<T>(
    mut rows: Rows<'_>,
    wanted: usize,
    mut read: impl FnMut(&Row<'_>) -> Result<(Place, Option<T>), Fault>,
) -> Result<Slice<T>, Fault> {
    let began = Instant::now();
    let mut slice = Slice::end();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        bytes += text_bytes(row)?;
        let (place, found) = read(row)?;
        slice.looked_at += 1;
        slice.rows.extend(found);
        let is_full = slice.rows.len() >= wanted
            || slice.looked_at >= MOST_LOOKED_AT
            || bytes >= MOST_BYTES
            || began.elapsed() >= LOOKED_FOR;
        if is_full {
            slice.next = rows.next()?.map(|_| place);
            break;
        }
    }
    Ok(slice)
}

fn text_bytes(row: &Row<'_>) -> Result<usize, Fault> {
    let mut bytes = 0;
    for column in 0..row.as_ref().column_count() {
        if let ValueRef::Text(text) = row.get_ref(column)? {
            bytes += text.len();
        }
    }
    Ok(bytes)
}

/// Whether a statement may follow this index.
fn has_index(conn: &Connection, name: &str) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?1";
    Ok(conn.prepare_cached(sql)?.exists([name])?)
}
