//! Lists the records of the file, and its datasets.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::indexes::has_index;
use crate::browse::{
    Count, DatasetRow, ListOrder, ListPage, ListedRecord, MAX_CRAWLS_OF_RECORD, MAX_FIELDS_OF_ROW,
    Place, RecordCondition, RecordFilter, RecordRow, UnfinishedPage, WholeRecord, includes_app,
};
use crate::crawl::CrawlId;
use crate::record::RecordState;
use crate::sqlite::columns::{from_json, parse_time};
use crate::sqlite::export::RECORD_COLUMNS;
use crate::sqlite::fault::Fault;
use crate::sqlite::list_pages::read_list_page;
use crate::sqlite::objects::row_object;

const OPEN: &str = "INDEXED BY records_by_state
    WHERE dataset = ?1 AND resolved_at IS NULL AND record_id >= ?2 AND record_id < ?3
    ORDER BY record_id";

const RESOLVED: &str = "INDEXED BY records_by_state
    WHERE dataset = ?1 AND (resolved_at, record_id) < (?2, ?3)
    ORDER BY resolved_at DESC, record_id DESC";

const BY_KEY: &str = "WHERE _id >= ?1 AND _id < ?2 ORDER BY _id";

const NEXT_DATASET: &str = "SELECT dataset FROM records WHERE _id >= ?1 ORDER BY _id LIMIT 1";

const COUNT_ALL: &str = "SELECT count(*) FROM (SELECT 1 FROM records WHERE _id >= ?1 || '/'
    AND _id < ?1 || '0' LIMIT ?2)";

const COUNT_OPEN: &str = "SELECT count(*) FROM (SELECT 1 FROM records INDEXED BY records_by_state
    WHERE dataset = ?1 AND resolved_at IS NULL LIMIT ?2)";

const CRAWLS: &str = "SELECT app_id, crawl_id FROM crawl_records JOIN crawls ON crawls.key = crawl
    WHERE record = ?1 ORDER BY crawl DESC LIMIT ?2";

pub(super) fn list(
    conn: &Connection,
    filter: &RecordFilter,
    from: Option<&Place>,
    wanted: usize,
) -> Result<ListPage<RecordRow>, Fault> {
    let columns = format!(
        "SELECT _id, dataset, record_id, missing, resolved_at,
            CASE WHEN octet_length(fields) <= {MAX_FIELDS_OF_ROW} THEN fields END
        FROM records"
    );
    let read = |row: &Row<'_>, order| place_and_row(conn, row, filter, order);
    read_along_index(conn, &columns, filter, from, wanted, read)
}

pub(super) fn list_whole_records(
    conn: &Connection,
    filter: &RecordFilter,
    condition: &RecordCondition,
    from: Option<&Place>,
    wanted: usize,
) -> Result<ListPage<ListedRecord>, Fault> {
    let read = |row: &Row<'_>, order| {
        let place = place_of(order, &row.get::<_, String>(1)?, row.get(9)?, || row.get(3))?;
        let taken = parse_if_matching(conn, row, filter, condition)?;
        let listed = taken.map(|(id, record)| ListedRecord {
            place: place.clone(),
            id,
            record,
        });
        Ok((place, listed))
    };
    read_along_index(conn, RECORD_COLUMNS, filter, from, wanted, read)
}

fn parse_if_matching(
    conn: &Connection,
    row: &Row<'_>,
    filter: &RecordFilter,
    condition: &RecordCondition,
) -> Result<Option<(String, WholeRecord)>, Fault> {
    let (key, dataset, id): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let is_resolved = row.get::<_, Option<String>>(9)?.is_some();
    if !filter.matches_record(&dataset, &id, is_resolved) {
        return Ok(None);
    }
    let document = Value::Object(row_object(row, &mut 0)?);
    if !condition.matches(&document) || !is_in_crawl_of_apps(conn, &key, filter)? {
        return Ok(None);
    }
    let crawls = crawls_with_record(conn, &key)?;
    Ok(Some((id, WholeRecord { document, crawls })))
}

/// Reads a page of a list of records, along the index that holds the wanted records if there is one, and otherwise
/// along their keys.
fn read_along_index<T>(
    conn: &Connection,
    columns: &str,
    filter: &RecordFilter,
    from: Option<&Place>,
    wanted: usize,
    mut read: impl FnMut(&Row<'_>, ListOrder) -> Result<(Place, Option<T>), Fault>,
) -> Result<ListPage<T>, Fault> {
    let select = |which: &str| format!("{columns} {which}");
    let begun_by_key = from.is_some_and(|place| place.order() == ListOrder::Key);
    match (&filter.dataset, filter.state) {
        (Some(dataset), Some(RecordState::Open)) if has_index(conn, BY_STATE)? => {
            let (first, end) = filter.ids(from);
            let mut open = conn.prepare_cached(&select(OPEN))?;
            let rows = open.query(params![dataset, first, end])?;
            read_list_page(rows, wanted, |row| read(row, ListOrder::Key))
        }
        (Some(dataset), Some(RecordState::Resolved))
            if filter.id_prefix.is_none() && !begun_by_key && has_index(conn, BY_STATE)? =>
        {
            // `~` sorts after all times, so a list without a place begins with the newest row.
            let (at, id) = from.map_or(("~", ""), |place| (place.part(0), place.part(1)));
            let mut resolved = conn.prepare_cached(&select(RESOLVED))?;
            let rows = resolved.query(params![dataset, at, id])?;
            read_list_page(rows, wanted, |row| read(row, ListOrder::Newest))
        }
        _ => {
            let (first, end) = filter.keys(from);
            let mut all = conn.prepare_cached(&select(BY_KEY))?;
            let rows = all.query([first, end])?;
            read_list_page(rows, wanted, |row| read(row, ListOrder::Key))
        }
    }
}

const BY_STATE: &str = "records_by_state";

/// The place in the list of a row, and the record in the row if the filter accepts it.
fn place_and_row(
    conn: &Connection,
    row: &Row<'_>,
    filter: &RecordFilter,
    order: ListOrder,
) -> Result<(Place, Option<RecordRow>), Fault> {
    let resolved_at: Option<String> = row.get(4)?;
    let fields: Option<String> = row.get(5)?;
    let record = RecordRow {
        key: row.get(0)?,
        dataset: row.get(1)?,
        id: row.get(2)?,
        missing: from_json(row, 3)?,
        resolved_at_ms: resolved_at.as_deref().map(parse_time).transpose()?,
        fields: match fields {
            Some(_) => Some(from_json(row, 5)?),
            None => None,
        },
    };
    let place = place_of(order, &record.key, resolved_at, || Ok(record.id.clone()))?;
    let is_taken = filter.matches(&record) && is_in_crawl_of_apps(conn, &record.key, filter)?;
    Ok((place, is_taken.then_some(record)))
}

fn place_of(
    order: ListOrder,
    key: &str,
    resolved_at: Option<String>,
    id: impl FnOnce() -> rusqlite::Result<String>,
) -> Result<Place, Fault> {
    Ok(match order {
        ListOrder::Key => Place::by_key(key),
        ListOrder::Newest => Place::newest_first([resolved_at.unwrap_or_default(), id()?]),
    })
}

fn is_in_crawl_of_apps(conn: &Connection, key: &str, filter: &RecordFilter) -> Result<bool, Fault> {
    if filter.apps.is_none() {
        return Ok(true);
    }
    let crawls = crawls_with_record(conn, key)?;
    let mut apps = crawls.iter().map(|crawl| &crawl.app_id);
    Ok(apps.any(|app| includes_app(filter.apps.as_ref(), app)))
}

fn crawls_with_record(conn: &Connection, key: &str) -> Result<Vec<CrawlId>, Fault> {
    let mut select = conn.prepare_cached(CRAWLS)?;
    let crawls = select.query_map(params![key, MAX_CRAWLS_OF_RECORD as i64], |row| {
        Ok(CrawlId::new(
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
        ))
    })?;
    Ok(crawls.collect::<Result<_, _>>()?)
}

/// A record with everything known about it.
pub(super) fn whole_record(conn: &Connection, key: &str) -> Result<Option<WholeRecord>, Fault> {
    let mut select = conn.prepare_cached(&format!("{RECORD_COLUMNS} WHERE _id = ?1"))?;
    let mut rows = select.query([key])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(WholeRecord {
        document: Value::Object(row_object(row, &mut 0)?),
        crawls: crawls_with_record(conn, key)?,
    }))
}

/// Lists datasets. Jumps from one to the next in the index of record keys, so that records are not read.
pub(super) fn datasets(
    conn: &Connection,
    count_to: u64,
    from: Option<&Place>,
    wanted: usize,
) -> Result<ListPage<DatasetRow>, Fault> {
    let mut page = UnfinishedPage::begin(wanted);
    let mut after = from.map(|place| place.part(0).to_owned());
    loop {
        // `0` is the character after `/` in ASCII, so all keys of the dataset `name` sort before `{name}0`.
        let first = after
            .as_ref()
            .map_or_else(String::new, |name| format!("{name}0"));
        let mut next = conn.prepare_cached(NEXT_DATASET)?;
        let found = next.query_row([first], |row| row.get::<_, String>(0));
        let Some(name) = found.optional()? else {
            return Ok(page.end_at(None));
        };
        if page.is_full() {
            return Ok(page.end_at(after.map(Place::by_key)));
        }
        page.add(0, Some(dataset(conn, name.clone(), count_to)?));
        after = Some(name);
    }
}

pub(super) fn dataset(conn: &Connection, name: String, count_to: u64) -> Result<DatasetRow, Fault> {
    Ok(DatasetRow {
        total: count(conn, COUNT_ALL, &name, count_to)?,
        open: match has_index(conn, BY_STATE)? {
            true => count(conn, COUNT_OPEN, &name, count_to)?,
            false => Count::unknown(),
        },
        name,
    })
}

fn count(conn: &Connection, sql: &str, dataset: &str, count_to: u64) -> Result<Count, Fault> {
    let values = params![dataset, Count::count_limit(count_to)];
    let found: i64 = conn
        .prepare_cached(sql)?
        .query_row(values, |row| row.get(0))?;
    Ok(Count::from_found(found.unsigned_abs(), count_to))
}
