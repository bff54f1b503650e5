//! The collection `records`: records are put into a crawl, and filled from pages.
//!
//! The rules of [`crate::record`] run in the client, with optimistic concurrency ([`read_modify_write`]). A record is
//! read, changed, and written under the condition that its `version` is still the one that was read. If another client
//! has written the record meanwhile, all of this is repeated on the new version, a limited number of times.
//!
//! Reads use the read concern `majority`, so that no decision is based on a write that is lost when a new primary is
//! elected.

mod deciding;
mod document;
mod filling;
mod retraction;
mod revising;
mod rows;

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use serde_json::{Map, Value};

use self::document::EntryResult;
use self::revising::{group_by_record, read_modify_write};
use super::command::Db;
use super::fault::Fault;
use super::{Mongo, fail_all, value};
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::record::{Decided, Decision, MAX_RECORD_ID_BYTES, PageValues, StoredRecord};
use crate::source_document::{DatasetRecord, RecordPut};
use crate::store::Records;

pub(super) use document::RecordDocument;
pub(super) use filling::{fill, fill_from_reread_pages, preview_changes};
pub(super) use retraction::{RetractRequest, take_back};
pub(super) use revising::read_records;
pub(super) use rows::{PutRowsResult, note_rows_missing_from_list, put_rows};

/// A page whose values may fill a record.
pub(super) struct FillRequest<'a> {
    pub(super) record: String,
    pub(super) values: PageValues<'a>,
    /// The index of the entry in the caller's batch.
    pub(super) entry: usize,
}

/// Marks requests whose page belongs to another record. If a page was fetched for several records, it belongs to those
/// that name its URL.
pub(super) async fn mark_own_pages(db: &Db, requests: &mut [FillRequest<'_>]) -> Result<(), Fault> {
    let mut of_entry: HashMap<usize, usize> = HashMap::new();
    for request in requests.iter() {
        *of_entry.entry(request.entry).or_default() += 1;
    }
    let is_shared = |request: &&FillRequest<'_>| of_entry[&request.entry] > 1;
    let shared = requests.iter().filter(is_shared).map(|one| &*one.record);
    let urls = urls_of(db, shared).await?;
    let is_own = |request: &&FillRequest<'_>| {
        let urls = urls.get(request.record.as_str());
        urls.is_some_and(|urls| urls.iter().any(|url| url == request.values.url))
    };
    let owned: HashSet<usize> = requests
        .iter()
        .filter(is_own)
        .map(|request| request.entry)
        .collect();
    for request in requests.iter_mut() {
        request.values.is_of_other = owned.contains(&request.entry);
    }
    Ok(())
}

/// The URLs that the user has given for records, by the records' keys.
pub(super) async fn urls_of(
    db: &Db,
    keys: impl Iterator<Item = &str>,
) -> Result<HashMap<String, Vec<String>>, Fault> {
    let mut keys: Vec<&str> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let read = read_records(db, keys).await?.into_iter();
    Ok(read
        .map(|(key, stored)| (key, stored.record.urls))
        .collect())
}

/// Puts records into a crawl. Answers in the given order.
pub(super) async fn put(
    db: &Db,
    crawl: &CrawlId,
    records: &[DatasetRecord],
    now_ms: i64,
) -> Result<Vec<EntryResult<RecordPut>>, Fault> {
    if db.find_one("crawls", &crawl.to_string()).await?.is_none() {
        let refusal = format!("its crawl {crawl} is not stored: put the crawl first");
        return Ok(records.iter().map(|_| Err(refusal.clone())).collect());
    }
    let keys: Vec<String> = records.iter().map(|input| input.record.key()).collect();
    let unfit: Vec<Option<String>> = records.iter().map(why_id_refused).collect();
    let fit = |index: &usize| unfit[*index].is_none();
    let fit: Vec<usize> = (0..records.len()).filter(fit).collect();
    let by_record = group_by_record(fit.iter().map(|index| keys[*index].as_str()));
    let revise = |indexes: &[usize], kept: &mut Option<RecordDocument>| {
        let put_one = |index: &usize| {
            let mut record = kept.take().unwrap_or_default();
            let put = record.put(crawl, &records[fit[*index]], now_ms);
            // If the put is refused, a new record is not created, and a stored one stays as it is.
            let is_there = put.is_ok() || record != RecordDocument::default();
            *kept = is_there.then_some(record);
            put
        };
        indexes.iter().map(put_one).collect()
    };
    let mut settled: HashMap<usize, EntryResult<RecordPut>> = HashMap::new();
    for (index, put) in read_modify_write(db, by_record, revise).await? {
        settled.insert(fit[index], put);
    }
    let put = |(index, refusal): (usize, Option<String>)| {
        let unsettled = || Err(refusal.unwrap_or_default());
        settled.remove(&index).unwrap_or_else(unsettled)
    };
    Ok(unfit.into_iter().enumerate().map(put).collect())
}

fn why_id_refused(input: &DatasetRecord) -> Option<String> {
    match input.record.id.len() {
        1..=MAX_RECORD_ID_BYTES => None,
        bytes => Some(format!(
            "its id has {bytes} bytes, but 1 to {MAX_RECORD_ID_BYTES} are allowed"
        )),
    }
}

/// The values of records that were given by users, not found on pages.
async fn load_user_values(db: &Db, keys: &[String]) -> Result<Vec<Map<String, Value>>, Fault> {
    let mut ids: Vec<&str> = keys.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut given = HashMap::with_capacity(ids.len());
    for stored in db.find_by_ids("records", &ids).await? {
        let mut members = value::object(&stored);
        let mut take = |name: &str| match members.remove(name) {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let record = StoredRecord {
            fields: take("fields"),
            sources: take("sources"),
            ..StoredRecord::default()
        };
        if let Some(Value::String(id)) = members.remove("_id") {
            given.insert(id, record.user_values());
        }
    }
    let of = |key: &String| given.get(key).cloned().unwrap_or_default();
    Ok(keys.iter().map(of).collect())
}

#[async_trait]
impl Records for Mongo {
    async fn put_dataset(
        &self,
        crawl: &CrawlId,
        records: Vec<DatasetRecord>,
        now_ms: i64,
    ) -> Vec<Result<RecordPut, StoreError>> {
        let id = |input: &DatasetRecord| input.record.id.clone();
        let ids: Vec<String> = records.iter().map(id).collect();
        let crawl = crawl.clone();
        let put = self
            .call(async move |db: Db| put(&db, &crawl, &records, now_ms).await)
            .await;
        let settled = match put {
            Ok(settled) => settled,
            Err(error) => return fail_all(ids.len(), &error),
        };
        let refusal = |(id, put): (String, Result<RecordPut, String>)| {
            put.map_err(|reason| StoreError::Entry {
                entry: format!("record {id:.80}"),
                reason,
            })
        };
        ids.into_iter().zip(settled).map(refusal).collect()
    }

    async fn decide(&self, decision: Decision, now_ms: i64) -> Result<Decided, StoreError> {
        let entry = format!("record {:.80}", decision.record);
        let decided = self
            .call(async move |db: Db| deciding::decide(&db, &decision, now_ms).await)
            .await?;
        decided.map_err(|reason| StoreError::Entry { entry, reason })
    }

    async fn given_values(&self, keys: Vec<String>) -> Result<Vec<Map<String, Value>>, StoreError> {
        self.call(async move |db: Db| load_user_values(&db, &keys).await)
            .await
    }
}
