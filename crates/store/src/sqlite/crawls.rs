//! The table `crawls`.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Sqlite;
use super::columns::{from_json, parse_time, to_json};
use super::fault::Fault;
use super::field_counts;
use crate::crawl::{Crawl, CrawlId, CrawlState};
use crate::error::StoreError;
use crate::field_counts::FieldCounts;
use crate::record::RecordCounts;
use crate::store::Crawls;
use crate::timestamp::iso_time;

const UPSERT: &str = "
INSERT INTO crawls (_id, app_id, crawl_id, request, state, counts, started_at, updated_at,
    finished_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (_id) DO UPDATE SET request = excluded.request, state = excluded.state,
    counts = excluded.counts, updated_at = excluded.updated_at,
    finished_at = excluded.finished_at";

/// Stores a crawl. Its first start time and the counts of its records are kept.
pub(super) fn put(conn: &Connection, crawl: &Crawl) -> Result<(), Fault> {
    conn.prepare_cached(UPSERT)?.execute(params![
        crawl.id.to_string(),
        crawl.id.app_id,
        crawl.id.crawl_id,
        to_json(&crawl.request)?,
        crawl.state.as_str(),
        to_json(&crawl.counts)?,
        iso_time(crawl.started_at_ms),
        iso_time(crawl.updated_at_ms),
        crawl.finished_at_ms.map(iso_time),
    ])?;
    Ok(())
}

/// The columns that [`crawl_from`] reads.
pub(super) const COLUMNS: &str =
    "SELECT app_id, crawl_id, state, started_at, updated_at, finished_at,
    request, counts FROM crawls";

/// The crawl with this key.
pub(super) fn get(conn: &Connection, key: &str) -> Result<Option<Crawl>, Fault> {
    let mut statement = conn.prepare_cached(&format!("{COLUMNS} WHERE _id = ?1"))?;
    let mut rows = statement.query([key])?;
    rows.next()?.map(crawl_from).transpose()
}

pub(super) fn crawl_from(row: &Row<'_>) -> Result<Crawl, Fault> {
    let state: String = row.get(2)?;
    let state: CrawlState = state.parse().map_err(Fault::InvalidEntry)?;
    let finished_at: Option<String> = row.get(5)?;
    Ok(Crawl {
        id: CrawlId::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?),
        state,
        started_at_ms: parse_time(&row.get::<_, String>(3)?)?,
        updated_at_ms: parse_time(&row.get::<_, String>(4)?)?,
        finished_at_ms: finished_at.as_deref().map(parse_time).transpose()?,
        request: from_json(row, 6)?,
        counts: from_json(row, 7)?,
    })
}

/// The counts of a crawl's records; zero for a crawl that is not stored.
pub(super) fn record_counts(conn: &Connection, key: &str) -> Result<RecordCounts, Fault> {
    let sql = "SELECT records_total, records_resolved FROM crawls WHERE _id = ?1";
    let counts = conn
        .prepare_cached(sql)?
        .query_row([key], |row| {
            Ok(RecordCounts {
                total: row.get::<_, i64>(0)?.unsigned_abs(),
                resolved: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        })
        .optional()?;
    Ok(counts.unwrap_or_default())
}

#[async_trait]
impl Crawls for Sqlite {
    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError> {
        self.write(move |conn| put(conn, &crawl)).await
    }

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError> {
        let key = id.to_string();
        self.read(move |conn| get(conn, &key)).await
    }

    async fn crawl_before(&self, crawl: &CrawlId) -> Result<Option<CrawlId>, StoreError> {
        let crawl = crawl.clone();
        self.read(move |conn| field_counts::crawl_before(conn, &crawl))
            .await
    }

    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError> {
        let crawl = crawl.to_string();
        self.read(move |conn| record_counts(conn, &crawl)).await
    }

    async fn field_counts(&self, crawl: &CrawlId) -> Result<FieldCounts, StoreError> {
        let crawl = crawl.to_string();
        self.read(move |conn| field_counts::count(conn, &crawl))
            .await
    }
}
