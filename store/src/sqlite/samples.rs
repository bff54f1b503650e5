//! The table `samples`.

use rusqlite::{Connection, Row, params};

use super::crawls::time;
use super::fault::Fault;
use super::records::{from_json, to_json};
use crate::sample::Sample;
use crate::timestamp::iso_time;

const REPLACE: &str = "
INSERT OR REPLACE INTO samples (_id, mapping, alarm, page, url, at, fields, text)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(super) fn put(conn: &Connection, sample: &Sample) -> Result<(), Fault> {
    conn.prepare_cached(REPLACE)?.execute(params![
        sample.id,
        sample.mapping,
        sample.alarm,
        sample.page,
        sample.url,
        iso_time(sample.at_ms),
        to_json(&sample.fields)?,
        sample.text,
    ])?;
    Ok(())
}

/// The samples of a mapping, without their texts.
pub(super) fn of_mapping(conn: &Connection, mapping: &str) -> Result<Vec<Sample>, Fault> {
    let sql = "SELECT _id, mapping, alarm, page, url, at, fields, x'' FROM samples
        WHERE _id > ?1 || '/' AND _id < ?1 || '0' AND mapping = ?1 ORDER BY _id";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([mapping])?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next()? {
        samples.push(read(row)?);
    }
    Ok(samples)
}

/// The samples with these ids.
pub(super) fn with_texts(conn: &Connection, ids: &[String]) -> Result<Vec<Sample>, Fault> {
    let sql = "SELECT _id, mapping, alarm, page, url, at, fields, text FROM samples WHERE _id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut samples = Vec::new();
    for id in ids {
        let mut rows = statement.query([id])?;
        if let Some(row) = rows.next()? {
            samples.push(read(row)?);
        }
    }
    Ok(samples)
}

fn read(row: &Row<'_>) -> Result<Sample, Fault> {
    Ok(Sample {
        id: row.get(0)?,
        mapping: row.get(1)?,
        alarm: row.get(2)?,
        page: row.get(3)?,
        url: row.get(4)?,
        at_ms: time(&row.get::<_, String>(5)?)?,
        fields: from_json(row, 6)?,
        text: row.get(7)?,
    })
}
