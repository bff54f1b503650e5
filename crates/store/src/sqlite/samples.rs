//! The table `samples`.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use super::Sqlite;
use super::columns::{from_json, parse_time, to_json};
use super::fault::Fault;
use crate::error::StoreError;
use crate::retention::Cutoff;
use crate::sample::Sample;
use crate::store::Samples;
use crate::timestamp::iso_time;

const REPLACE: &str = "
INSERT OR REPLACE INTO samples (_id, mapping, alert, page, url, at, fields, text)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(super) fn put(conn: &Connection, sample: &Sample) -> Result<(), Fault> {
    conn.prepare_cached(REPLACE)?.execute(params![
        sample.id,
        sample.mapping,
        sample.alert,
        sample.page,
        sample.url,
        iso_time(sample.at_ms),
        to_json(&sample.fields)?,
        sample.text,
    ])?;
    Ok(())
}

/// The samples of a mapping, without their texts.
pub(super) fn list_without_texts(conn: &Connection, mapping: &str) -> Result<Vec<Sample>, Fault> {
    let sql = "SELECT _id, mapping, alert, page, url, at, fields, x'' FROM samples
        WHERE _id > ?1 || '/' AND _id < ?1 || '0' AND mapping = ?1 ORDER BY _id";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([mapping])?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next()? {
        samples.push(sample_from(row)?);
    }
    Ok(samples)
}

/// The samples with these ids.
pub(super) fn load_with_texts(conn: &Connection, ids: &[String]) -> Result<Vec<Sample>, Fault> {
    let sql = "SELECT _id, mapping, alert, page, url, at, fields, text FROM samples WHERE _id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut samples = Vec::new();
    for id in ids {
        let mut rows = statement.query([id])?;
        if let Some(row) = rows.next()? {
            samples.push(sample_from(row)?);
        }
    }
    Ok(samples)
}

/// How many samples one call drops at most because of their age, and at most because of their size.
const DROPPED_AT_ONCE: usize = 500;

/// Drops samples that are too old, then the oldest others until the rest fits. Samples of alerts are dropped last.
/// Returns how many were dropped, and whether there may be more.
pub(super) fn drop_old_samples(conn: &Connection, cutoff: Cutoff) -> Result<(u64, bool), Fault> {
    let (mut dropped, mut has_more) = (0, false);
    if let Some(pages_ms) = cutoff.pages_ms {
        let sql =
            "DELETE FROM samples WHERE _id IN (SELECT _id FROM samples WHERE at < ?1 LIMIT ?2)";
        let old = params![iso_time(pages_ms), DROPPED_AT_ONCE as i64];
        dropped = conn.prepare_cached(sql)?.execute(old)?;
        has_more = dropped == DROPPED_AT_ONCE;
    }
    if let Some(most) = cutoff.samples_bytes {
        let superfluous = find_superfluous_ids(conn, most)?;
        let mut delete = conn.prepare_cached("DELETE FROM samples WHERE _id = ?1")?;
        for id in &superfluous {
            dropped += delete.execute([id])?;
        }
        has_more |= superfluous.len() == DROPPED_AT_ONCE;
    }
    Ok((dropped as u64, has_more))
}

/// The ids of samples to drop so that the others fit into this many bytes. Samples of alerts come last.
fn find_superfluous_ids(conn: &Connection, most: u64) -> Result<Vec<String>, Fault> {
    let sum = "SELECT coalesce(sum(length(text)), 0) FROM samples";
    let mut bytes: i64 = conn.prepare_cached(sum)?.query_row((), |row| row.get(0))?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut ids = Vec::new();
    if bytes <= most {
        return Ok(ids);
    }
    // SQLite sorts NULL, which means no alert, before all other values.
    let sql = "SELECT _id, length(text) FROM samples ORDER BY alert, at LIMIT ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([DROPPED_AT_ONCE as i64])?;
    while let Some(row) = rows.next()?.filter(|_| bytes > most) {
        ids.push(row.get(0)?);
        bytes -= row.get::<_, i64>(1)?;
    }
    Ok(ids)
}

fn sample_from(row: &Row<'_>) -> Result<Sample, Fault> {
    Ok(Sample {
        id: row.get(0)?,
        mapping: row.get(1)?,
        alert: row.get(2)?,
        page: row.get(3)?,
        url: row.get(4)?,
        at_ms: parse_time(&row.get::<_, String>(5)?)?,
        fields: from_json(row, 6)?,
        text: row.get(7)?,
    })
}

#[async_trait]
impl Samples for Sqlite {
    async fn samples(&self, mapping: &str) -> Result<Vec<Sample>, StoreError> {
        let mapping = mapping.to_owned();
        self.read(move |conn| list_without_texts(conn, &mapping))
            .await
    }

    async fn samples_with_texts(&self, ids: Vec<String>) -> Result<Vec<Sample>, StoreError> {
        self.read(move |conn| load_with_texts(conn, &ids)).await
    }

    async fn put_samples(&self, samples: Vec<Sample>) -> Result<(), StoreError> {
        self.write(move |conn| samples.iter().try_for_each(|one| put(conn, one)))
            .await
    }
}
