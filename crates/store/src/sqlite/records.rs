//! The tables `records` and `crawl_records`, and the record counts in `crawls`.

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};

use super::Sqlite;
use super::columns::{from_json, to_json};
use super::fault::Fault;
use super::lists;
use super::source_documents;
use crate::crawl::CrawlId;
use crate::dataset_name::split_record_key;
use crate::error::StoreError;
use crate::page::MAX_ENTRY_BYTES;
use crate::record::{
    Decided, Decision, Entry, FillRules, MAX_RECORD_ID_BYTES, PageValues, RecordState, RowLoss,
    RowValues, StoredRecord,
};
use crate::reread::FieldChange;
use crate::site_clock::clamp_to_i64;
use crate::source_document::{DatasetRecord, RecordPut};
use crate::store::Records;

const UPSERT: &str = "
INSERT INTO records (_id, dataset, record_id, fields, sources, missing, resolved_at, candidates,
    history, urls, given, written, doubts, row)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (_id) DO UPDATE SET fields = excluded.fields, sources = excluded.sources,
    missing = excluded.missing, resolved_at = excluded.resolved_at,
    candidates = excluded.candidates, history = excluded.history, urls = excluded.urls,
    given = excluded.given, written = excluded.written, doubts = excluded.doubts,
    row = excluded.row";

/// The name of a record in error messages.
pub(super) fn describe_record(input: &DatasetRecord) -> String {
    format!("record {:.80}", input.record.id)
}

/// Puts a record into a crawl.
pub(super) fn put(
    conn: &Connection,
    crawl: &str,
    input: &DatasetRecord,
    now_ms: i64,
) -> Result<RecordPut, Fault> {
    let record = &input.record;
    check_id(&record.id)?;
    let crawl = crawl_key(conn, crawl)?;
    let key = record.key();
    let known = load(conn, &key)?;
    let before = known.as_ref().map(StoredRecord::state);
    let mut stored = known.unwrap_or_default();
    let membership = find_membership(conn, crawl, &key)?;
    let earlier = membership.flatten();
    let is_other = |earlier: &u64| input.position.is_some_and(|position| position != *earlier);
    let earlier = earlier.filter(is_other);
    let entry = Entry::of(input, membership.is_none(), earlier);
    let changed = stored.put(input, entry, now_ms);
    if changed || before.is_none() {
        store_record(conn, &key, &stored)?;
        source_documents::mark_unwritten(conn, &key)?;
    }
    let state = stored.state();
    if before.is_some_and(|before| before != state) {
        adjust_crawl_counts(conn, &key, state)?;
    }
    if membership.is_none() {
        add_to_crawl(conn, crawl, &key, input.position, state)?;
    }
    if let Some(source) = &input.source {
        source_documents::add_source(conn, crawl, &key, source, &stored)?;
    }
    Ok(RecordPut { state, earlier })
}

fn check_id(id: &str) -> Result<(), Fault> {
    match id.len() {
        1..=MAX_RECORD_ID_BYTES => Ok(()),
        bytes => Err(Fault::InvalidEntry(format!(
            "its id has {bytes} bytes, but 1 to {MAX_RECORD_ID_BYTES} are allowed"
        ))),
    }
}

/// Fills a record from a page. A record that is not stored counts as open.
pub(super) fn fill(
    conn: &Connection,
    key: &str,
    page: &PageValues<'_>,
    rules: &FillRules,
) -> Result<RecordState, Fault> {
    let Some(mut stored) = load(conn, key)? else {
        return Ok(RecordState::Open);
    };
    let before = stored.state();
    if stored.fill(page, rules) {
        store_record(conn, key, &stored)?;
        source_documents::mark_unwritten(conn, key)?;
        if stored.state() != before {
            adjust_crawl_counts(conn, key, stored.state())?;
        }
    }
    Ok(stored.state_for_fetching())
}

/// Takes the values of a row into its record. If a crawl is given, the record is added to it.
pub(super) fn put_row(
    conn: &Connection,
    key: &str,
    row: &RowValues<'_>,
    crawl: Option<&str>,
    rules: &FillRules,
) -> Result<RecordState, Fault> {
    let known = load(conn, key)?;
    let before = known.as_ref().map(StoredRecord::state);
    let mut stored = known.clone().unwrap_or_default();
    if stored.put_row(row, rules) {
        store_record(conn, key, &stored)?;
        lists::update_holder_index(conn, key, row.list, known.as_ref(), &stored)?;
        if let Some(before) = before {
            source_documents::mark_unwritten(conn, key)?;
            if stored.state() != before {
                adjust_crawl_counts(conn, key, stored.state())?;
            }
        }
    }
    // The crawl may not be stored yet, because a dispatcher has just opened it. Then the row's record is stored without
    // being added to the crawl.
    if let Some(crawl) = crawl
        && let Some(crawl) = find_crawl(conn, crawl)?
        && find_membership(conn, crawl, key)?.is_none()
    {
        add_to_crawl(conn, crawl, key, None, stored.state())?;
    }
    Ok(stored.state_for_fetching())
}

/// Handles a list that was read without this row: the row is noted as missing from the list.
pub(super) fn note_row_missing_from_list(
    conn: &Connection,
    key: &str,
    list: &str,
    began_ms: i64,
) -> Result<RowLoss, Fault> {
    let Some(mut stored) = load(conn, key)? else {
        return Ok(RowLoss::Nothing);
    };
    let lost = stored.note_row_missing_from_list(list, began_ms);
    if lost != RowLoss::Nothing {
        store_record(conn, key, &stored)?;
    }
    Ok(lost)
}

/// Whether one of these records names this URL as its own.
pub(super) fn is_url_of_any(conn: &Connection, keys: &[String], url: &str) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM records, json_each(urls) AS own WHERE _id = ?1 AND own.value = ?2";
    let mut find = conn.prepare_cached(sql)?;
    for key in keys {
        if find.exists(params![key, url])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes back the values of one fetch of a page, given by the page's URL and the start of the fetch.
pub(super) fn retract(
    conn: &Connection,
    key: &str,
    fetch: (&str, &str),
    rules: &FillRules,
    now_ms: i64,
) -> Result<(), Fault> {
    let Some(mut stored) = load(conn, key)? else {
        return Ok(());
    };
    let before = stored.state();
    if stored.take_back(fetch, rules, now_ms) {
        store_record(conn, key, &stored)?;
        source_documents::mark_unwritten(conn, key)?;
        if stored.state() != before {
            adjust_crawl_counts(conn, key, stored.state())?;
        }
    }
    Ok(())
}

/// Fills a record from a page that was read again. Returns which values are new or changed.
pub(super) fn fill_from_reread_page(
    conn: &Connection,
    key: &str,
    page: &PageValues<'_>,
    rules: &FillRules,
) -> Result<Vec<FieldChange>, Fault> {
    let Some(mut stored) = load(conn, key)? else {
        return Ok(Vec::new());
    };
    let kept = stored.clone();
    let changes = stored.fill_from_reread_page(page, rules);
    if stored != kept {
        store_record(conn, key, &stored)?;
        source_documents::mark_unwritten(conn, key)?;
        if stored.state() != kept.state() {
            adjust_crawl_counts(conn, key, stored.state())?;
        }
    }
    Ok(changes)
}

/// Applies a person's decision about a value.
fn apply_decision(conn: &Connection, decision: &Decision, now_ms: i64) -> Result<Decided, Fault> {
    let key = &decision.record;
    let Some(mut stored) = load(conn, key)? else {
        return Ok(Decided::Unknown);
    };
    let before = stored.state();
    let decided = stored.decide(decision, now_ms);
    if decided == Decided::Done {
        store_record(conn, key, &stored)?;
        source_documents::mark_unwritten(conn, key)?;
        if stored.state() != before {
            adjust_crawl_counts(conn, key, stored.state())?;
        }
    }
    Ok(decided)
}

pub(super) fn load(conn: &Connection, key: &str) -> Result<Option<StoredRecord>, Fault> {
    let sql = "SELECT fields, sources, missing, resolved_at, candidates, history, urls, given,
        written, doubts, row FROM records WHERE _id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(StoredRecord {
        fields: from_json(row, 0)?,
        sources: from_json(row, 1)?,
        missing: from_json(row, 2)?,
        resolved_at: row.get(3)?,
        candidates: from_json(row, 4)?,
        history: from_json(row, 5)?,
        urls: from_json(row, 6)?,
        given: match row.get_ref(7)? {
            ValueRef::Null => None,
            _ => Some(from_json(row, 7)?),
        },
        written: from_json(row, 8)?,
        doubts: from_json(row, 9)?,
        row: match row.get_ref(10)? {
            ValueRef::Null => None,
            _ => Some(from_json(row, 10)?),
        },
    }))
}

/// A record in the form of the columns of its table row. Its size has been checked.
pub(super) struct Columns {
    fields: String,
    sources: String,
    missing: String,
    candidates: String,
    history: String,
    urls: String,
    given: Option<String>,
    written: String,
    doubts: String,
    row: Option<String>,
}

impl Columns {
    pub(super) fn from_record(key: &str, record: &StoredRecord) -> Result<Columns, Fault> {
        let columns = Columns {
            fields: to_json(&record.fields)?,
            sources: to_json(&record.sources)?,
            missing: to_json(&record.missing)?,
            candidates: to_json(&record.candidates)?,
            history: to_json(&record.history)?,
            urls: to_json(&record.urls)?,
            given: record.given.as_ref().map(to_json).transpose()?,
            written: to_json(&record.written)?,
            doubts: to_json(&record.doubts)?,
            row: record.row.as_ref().map(to_json).transpose()?,
        };
        let parts = [
            &columns.fields,
            &columns.sources,
            &columns.missing,
            &columns.candidates,
            &columns.history,
            &columns.urls,
            &columns.written,
            &columns.doubts,
        ];
        let optional = [&columns.given, &columns.row].into_iter().flatten();
        let parts = parts.into_iter().chain(optional);
        let bytes: usize = parts.map(String::len).sum();
        if bytes > MAX_ENTRY_BYTES {
            return Err(Fault::InvalidEntry(format!(
                "record {key:.80} would take {bytes} bytes, more than the {MAX_ENTRY_BYTES} of a record"
            )));
        }
        Ok(columns)
    }
}

fn store_record(conn: &Connection, key: &str, record: &StoredRecord) -> Result<(), Fault> {
    let columns = Columns::from_record(key, record)?;
    let (dataset, record_id) = split_record_key(key);
    conn.prepare_cached(UPSERT)?.execute(params![
        key,
        dataset,
        record_id,
        columns.fields,
        columns.sources,
        columns.missing,
        record.resolved_at,
        columns.candidates,
        columns.history,
        columns.urls,
        columns.given,
        columns.written,
        columns.doubts,
        columns.row,
    ])?;
    Ok(())
}

/// Adjusts the counts of every crawl that has this record, after the record was resolved or became open again. A single
/// UPDATE with a subquery would build a temporary table each time, which costs more than everything else here.
fn adjust_crawl_counts(conn: &Connection, key: &str, now: RecordState) -> Result<(), Fault> {
    let change = if now == RecordState::Resolved { 1 } else { -1 };
    let count = "UPDATE crawls SET records_resolved = records_resolved + ?2 WHERE key = ?1";
    let mut count = conn.prepare_cached(count)?;
    let mut crawls = conn.prepare_cached("SELECT crawl FROM crawl_records WHERE record = ?1")?;
    let mut rows = crawls.query([key])?;
    while let Some(row) = rows.next()? {
        let crawl: i64 = row.get(0)?;
        count.execute([crawl, change])?;
    }
    Ok(())
}

/// The number that stands for a crawl in other tables. A crawl that is not stored is an error.
fn crawl_key(conn: &Connection, crawl: &str) -> Result<i64, Fault> {
    find_crawl(conn, crawl)?.ok_or_else(|| {
        Fault::InvalidEntry(format!(
            "its crawl {crawl} is not stored: put the crawl first"
        ))
    })
}

fn find_crawl(conn: &Connection, crawl: &str) -> Result<Option<i64>, Fault> {
    let find = "SELECT key FROM crawls WHERE _id = ?1";
    let mut find = conn.prepare_cached(find)?;
    Ok(find.query_row([crawl], |row| row.get(0)).optional()?)
}

/// Whether a record is in a crawl. The inner value is the position of the input where the crawl first read the record,
/// if known.
fn find_membership(conn: &Connection, crawl: i64, key: &str) -> Result<Option<Option<u64>>, Fault> {
    let find = "SELECT position FROM crawl_records WHERE record = ?1 AND crawl = ?2";
    let position = |row: &Row<'_>| row.get::<_, Option<i64>>(0);
    let found = conn
        .prepare_cached(find)?
        .query_row(params![key, crawl], position)
        .optional()?;
    Ok(found.map(|position| position.map(i64::unsigned_abs)))
}

/// Adds a record to a crawl and its counts.
fn add_to_crawl(
    conn: &Connection,
    crawl: i64,
    key: &str,
    position: Option<u64>,
    state: RecordState,
) -> Result<(), Fault> {
    let enter = "INSERT INTO crawl_records (record, crawl, position) VALUES (?1, ?2, ?3)";
    let position = position.map(clamp_to_i64);
    conn.prepare_cached(enter)?
        .execute(params![key, crawl, position])?;
    let count = "UPDATE crawls SET records_total = records_total + 1,
        records_resolved = records_resolved + ?2 WHERE key = ?1";
    let resolved = i64::from(state == RecordState::Resolved);
    conn.prepare_cached(count)?.execute([crawl, resolved])?;
    Ok(())
}

/// The values of records that were given by users, not found on pages.
fn given_values(conn: &Connection, keys: &[String]) -> Result<Vec<Map<String, Value>>, Fault> {
    let values = |key: &String| {
        let record = load(conn, key)?;
        Ok(record
            .map(|record| record.user_values())
            .unwrap_or_default())
    };
    keys.iter().map(values).collect()
}

#[async_trait]
impl Records for Sqlite {
    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordPut, StoreError>> {
        let crawl = crawl.to_string();
        let put = move |conn: &_, record: &_| put(conn, &crawl, record, now_ms);
        self.write_each(records, describe_record, put).await
    }

    async fn decide(&self, decision: Decision, now_ms: i64) -> Result<Decided, StoreError> {
        let name = |decision: &Decision| format!("record {:.80}", decision.record);
        let decide = move |conn: &_, decision: &_| apply_decision(conn, decision, now_ms);
        self.write_each(vec![decision], name, decide)
            .await
            .remove(0)
    }

    async fn given_values(&self, keys: Vec<String>) -> Result<Vec<Map<String, Value>>, StoreError> {
        self.read(move |conn| given_values(conn, &keys)).await
    }
}
