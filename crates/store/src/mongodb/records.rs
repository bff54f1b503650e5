//! The collection `records`: records are put into a crawl, and filled from pages.
//!
//! The rules of [`crate::record`] run in the client, with optimistic concurrency ([`read_modify_write`]): a record is
//! read, changed, and written under the condition that its `version` is still the one that was read. If another client
//! has written the record meanwhile, all of this is repeated on the new version, up to `MAX_ROUNDS` times.
//!
//! Reads use the read concern `majority`, so that no decision is based on a write that is lost when a new primary is
//! elected.

mod deciding;
mod filling;
mod retraction;
mod rows;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use mongodb::bson::raw::cstr;
use mongodb::bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use serde_json::{Map, Value, json};

use super::command::Db;
use super::fault::{DUPLICATE_KEY, Fault};
use super::members::date;
use super::value::{self, document, key, or_null, texts};
use super::{Mongo, fail_all};
use crate::crawl::CrawlId;
use crate::dataset_name::split_record_key;
use crate::error::StoreError;
use crate::page::MAX_ENTRY_BYTES;
use crate::record::{
    Decided, Decision, Entry, FillRules, MAX_RECORD_ID_BYTES, PageValues, RecordState, StoredRecord,
};
use crate::source_document::{DatasetRecord, RecordPut};
use crate::store::Records;
use crate::timestamp::parse_iso_time;

pub(super) use filling::{fill, fill_from_rereads, preview_changes};
pub(super) use retraction::{RetractRequest, take_back};
pub(super) use rows::{PutRowsResult, note_rows_missing_from_list, put_rows};

/// After how many rounds with conflicting writes a call fails as temporarily unavailable.
const MAX_ROUNDS: u32 = 50;

/// A page whose values may fill a record.
pub(super) struct FillRequest<'a> {
    pub(super) record: String,
    pub(super) values: PageValues<'a>,
    /// The index of the caller's entry.
    pub(super) entry: usize,
}

/// The state or the changes of a record after an entry, or the reason why the entry cannot be stored.
type EntryResult<T = RecordState> = Result<T, String>;

/// Marks the requests of pages that belong to another record: if a page was fetched for several records, it belongs to
/// those that name its URL.
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
    let read = read_all(db, keys).await?.into_iter();
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
            // If a new record was refused, it does not exist. If an old one was, it is unchanged.
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

/// For each record, the indexes of its entries, in order.
fn group_by_record<'a>(keys: impl Iterator<Item = &'a str>) -> HashMap<&'a str, Vec<usize>> {
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, key) in keys.enumerate() {
        groups.entry(key).or_default().push(index);
    }
    groups
}

/// The indexes of a record's entries, each with its result.
type Results<T> = Vec<(usize, EntryResult<T>)>;

/// A record that `revise` has changed, to be written.
struct RevisedRecord<'a, T> {
    key: &'a str,
    entries: Vec<usize>,
    results: Results<T>,
}

/// Reads records, has `revise` change them, and writes the changed ones, until no write meets a conflict. `revise`
/// returns a result for each entry of a record. It is called again after a conflict, and must change nothing when
/// applied to its own result.
async fn read_modify_write<T>(
    db: &Db,
    mut pending: HashMap<&str, Vec<usize>>,
    revise: impl Fn(&[usize], &mut Option<RecordDocument>) -> Vec<EntryResult<T>>,
) -> Result<Results<T>, Fault> {
    let mut settled = Vec::new();
    for round in 0..MAX_ROUNDS {
        if pending.is_empty() {
            return Ok(settled);
        }
        wait_before(round).await;
        let mut read = read_all(db, pending.keys().copied().collect()).await?;
        let mut in_order: Vec<(&str, Vec<usize>)> = pending.drain().collect();
        // New records are created, and exported, in the given order.
        in_order.sort_unstable_by_key(|(_, entries)| entries[0]);
        let mut statements = Vec::new();
        let mut revised = Vec::new();
        for (key, entries) in in_order {
            let before = read.remove(key);
            let mut record = before.clone();
            let states = revise(&entries, &mut record);
            let results = entries.iter().copied().zip(states).collect();
            match record.filter(|record| before.as_ref() != Some(record)) {
                None => settled.extend::<Results<T>>(results),
                Some(record) => {
                    statements.push(record.write_statement(key)?);
                    revised.push(RevisedRecord {
                        key,
                        entries,
                        results,
                    });
                }
            }
        }
        let conflicting = write(db, &statements, revised, &mut settled).await?;
        pending.extend(conflicting);
    }
    match pending.is_empty() {
        true => Ok(settled),
        false => Err(Fault::Unavailable(String::from(
            "too many others are writing the same records",
        ))),
    }
}

/// Writes the revised records. The results of written and refused ones are added to `settled`. The others are
/// returned, to be repeated.
async fn write<'a, T>(
    db: &Db,
    statements: &[RawDocumentBuf],
    revised: Vec<RevisedRecord<'a, T>>,
    settled: &mut Results<T>,
) -> Result<Vec<(&'a str, Vec<usize>)>, Fault> {
    let updated = db.update("records", statements).await?;
    let refused = permanent_refusals(&updated.failed)?;
    let all_written =
        updated.failed.is_empty() && usize::try_from(updated.matched) == Ok(statements.len());
    let mut again = Vec::new();
    for (statement, record) in revised.into_iter().enumerate() {
        if let Some(reason) = refused.get(&statement) {
            let refusal = |index: &usize| (*index, Err(reason.clone()));
            settled.extend(record.entries.iter().map(refusal));
        } else if all_written {
            settled.extend(record.results);
        } else {
            // The answer does not show which statements had a conflict. Revising a record again that was written
            // changes nothing.
            again.push((record.key, record.entries));
        }
    }
    Ok(again)
}

/// Waits before a new round: the conflicting write is not yet confirmed by the majority.
async fn wait_before(round: u32) {
    if round > 0 {
        tokio::time::sleep(Duration::from_millis(u64::from(round.min(50)))).await;
    }
}

/// The statements that can never succeed, with the reason. Conflicts, which are reported as duplicate keys, are not
/// among them.
fn permanent_refusals(failed: &[(usize, i32, String)]) -> Result<HashMap<usize, String>, Fault> {
    let mut refused = HashMap::new();
    for (statement, code, message) in failed {
        if *code == DUPLICATE_KEY {
            continue;
        }
        match Fault::from_statement_error(*code, message) {
            Fault::InvalidEntry(reason) => drop(refused.insert(*statement, reason)),
            fault => return Err(fault),
        }
    }
    Ok(refused)
}

/// The stored records with these keys.
pub(super) async fn read_all(
    db: &Db,
    keys: Vec<&str>,
) -> Result<HashMap<String, RecordDocument>, Fault> {
    let mut read = HashMap::with_capacity(keys.len());
    for stored in db.find_all("records", &keys).await? {
        if let Ok(id) = stored.get_str("_id") {
            read.insert(id.to_owned(), RecordDocument::read(&stored));
        }
    }
    Ok(read)
}

/// A stored record, with members that only this backend has.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RecordDocument {
    pub(super) record: StoredRecord,
    /// How often the record was written; `None` if it is new, or was created by another program.
    pub(super) version: Option<i64>,
    /// The crawls that the record is in: `[{app_id, crawl_id}]`.
    crawls: Vec<Value>,
    /// Where these crawls have first read the record: `[{crawl, position}]`.
    positions: Vec<Value>,
    /// The record's source documents, one for each crawl that writes back: `[{crawl, collection, document, fields}]`.
    pub(super) sources: Vec<Value>,
    /// The crawls that have to write the record back.
    pub(super) unwritten: Vec<Value>,
}

impl RecordDocument {
    pub(super) fn read(stored: &RawDocument) -> RecordDocument {
        let mut members = value::object(stored);
        let mut object = |name: &str| match members.remove(name) {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let record = StoredRecord {
            fields: object("fields"),
            sources: object("sources"),
            candidates: object("candidates").into(),
            history: object("history").into(),
            written: object("written"),
            doubts: object("doubts").into(),
            ..StoredRecord::default()
        };
        let given = match members.remove("given") {
            Some(Value::Object(given)) => Some(given),
            _ => None,
        };
        let row = members.remove("row").filter(|row| row.is_object());
        let list = |name: &str| members.get(name).and_then(Value::as_array).cloned();
        let missing = list("missing").unwrap_or_default();
        let resolved_at = members.get("resolved_at").and_then(Value::as_str);
        let texts_of = |list: Vec<Value>| -> Vec<String> {
            let texts = list.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        RecordDocument {
            record: StoredRecord {
                missing: texts_of(missing),
                urls: texts_of(list("urls").unwrap_or_default()),
                resolved_at: resolved_at.map(str::to_owned),
                given,
                row,
                ..record
            },
            version: members.get("version").and_then(Value::as_i64),
            crawls: list("crawls").unwrap_or_default(),
            positions: list("positions").unwrap_or_default(),
            sources: list("origins").unwrap_or_default(),
            unwritten: list("unwritten").unwrap_or_default(),
        }
    }

    /// Fills the record from a page. If that would make the record too large, the page is refused and nothing changes.
    fn fill(&mut self, page: &PageValues<'_>, rules: &FillRules) -> EntryResult {
        let before = self.record.clone();
        if self.record.fill(page, rules) {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        Ok(self.record.state_for_fetching())
    }

    fn put(
        &mut self,
        crawl: &CrawlId,
        input: &DatasetRecord,
        now_ms: i64,
    ) -> EntryResult<RecordPut> {
        if let Some(source) = &input.source {
            self.check_source(crawl, source)?;
        }
        let before = self.record.clone();
        let entry = crawl_entry(crawl);
        let is_known_here = self.crawls.contains(&entry);
        let earlier = input
            .position
            .and_then(|position| self.earlier_position(crawl, position, !is_known_here));
        let coming = Entry::of(input, !is_known_here, earlier);
        if self.record.put(input, coming, now_ms) {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        if !is_known_here {
            self.crawls.push(entry);
        }
        if let Some(source) = &input.source {
            self.add_source(crawl, source);
        }
        Ok(RecordPut {
            state: self.record.state(),
            earlier,
        })
    }

    /// Adds the record to the crawl.
    fn add_to_crawl(&mut self, crawl: &CrawlId) {
        let entry = crawl_entry(crawl);
        if !self.crawls.contains(&entry) {
            self.crawls.push(entry);
        }
    }

    /// Where the crawl first read the record, if that was another position. If the record is new to the crawl, it gets
    /// this position.
    fn earlier_position(&mut self, crawl: &CrawlId, position: u64, is_new: bool) -> Option<u64> {
        let crawl = crawl.to_string();
        if is_new {
            let first = json!({"crawl": crawl, "position": position});
            self.positions.push(first);
            return None;
        }
        let mut positions = self.positions.iter();
        let known = positions.find(|known| known["crawl"] == crawl.as_str())?;
        let earlier = known["position"].as_u64();
        earlier.filter(|earlier| *earlier != position)
    }

    fn revert_if_too_large(&mut self, before: StoredRecord) -> Result<(), String> {
        let refusal = match self.content() {
            Ok(content) if content.as_bytes().len() <= MAX_ENTRY_BYTES => return Ok(()),
            Ok(content) => format!(
                "a record would take {} bytes, more than the {MAX_ENTRY_BYTES} of a record",
                content.as_bytes().len()
            ),
            Err(
                Fault::InvalidEntry(reason)
                | Fault::Unavailable(reason)
                | Fault::DuplicateKey(reason)
                | Fault::Unusable(reason),
            ) => reason,
        };
        self.record = before;
        Err(refusal)
    }

    /// The statement that replaces the version of the record that was read, or creates the record.
    fn write_statement(&self, key: &str) -> Result<RawDocumentBuf, Fault> {
        let mut content = self.content()?;
        let (dataset, record_id) = split_record_key(key);
        content.append(cstr!("dataset"), rawdoc! {"$literal": dataset});
        content.append(cstr!("record_id"), rawdoc! {"$literal": record_id});
        content.append(cstr!("version"), self.version.unwrap_or(0) + 1);
        Ok(rawdoc! {
            "q": {"_id": key, "version": or_null(self.version)},
            "u": [{"$set": content}],
            "upsert": self.version.is_none(),
        })
    }

    /// The document of a record that does not exist yet.
    fn new_document(&self, key: &str) -> Result<RawDocumentBuf, Fault> {
        let (dataset, record_id) = split_record_key(key);
        let mut new = rawdoc! {"_id": key};
        for member in &self.content()? {
            let (name, value) = member.map_err(|error| Fault::InvalidEntry(error.to_string()))?;
            let plain = match value {
                RawBsonRef::Document(wrapped) => wrapped.get("$literal").ok().flatten(),
                _ => None,
            };
            new.append(name, plain.unwrap_or(value));
        }
        new.append(cstr!("dataset"), dataset);
        new.append(cstr!("record_id"), record_id);
        new.append(cstr!("version"), 1_i64);
        Ok(new)
    }

    /// Every member except the parts of the key and `version`. Values from outside are put below `$literal`, where the
    /// server does not evaluate them.
    fn content(&self) -> Result<RawDocumentBuf, Fault> {
        let record = &self.record;
        let resolved_at = record.resolved_at.as_deref().and_then(parse_iso_time);
        let crawls = value::bson(&Value::Array(self.crawls.clone()))?;
        let mut content = rawdoc! {
            "fields": {"$literal": document(&record.fields)?},
            "sources": {"$literal": sources_with_dates(&record.sources)?},
            "candidates": {"$literal": sources_with_dates(&record.candidates)?},
            "history": {"$literal": sources_with_dates(&record.history)?},
            "missing": {"$literal": texts(&record.missing)},
            "urls": {"$literal": texts(&record.urls)},
            "resolved_at": or_null(resolved_at.map(date)),
            "crawls": {"$literal": crawls},
            "written": {"$literal": document(&record.written)?},
            "doubts": {"$literal": document(&record.doubts)?},
        };
        if let Some(given) = &record.given {
            content.append(cstr!("given"), rawdoc! {"$literal": document(given)?});
        }
        if let Some(row) = &record.row {
            content.append(cstr!("row"), rawdoc! {"$literal": dated_source(row)?});
        }
        if !self.positions.is_empty() {
            let positions = value::bson(&Value::Array(self.positions.clone()))?;
            content.append(cstr!("positions"), rawdoc! {"$literal": positions});
        }
        self.append_sources(&mut content)?;
        Ok(content)
    }
}

/// The entry in `crawls` that stands for this crawl.
fn crawl_entry(crawl: &CrawlId) -> Value {
    json!({"app_id": crawl.app_id, "crawl_id": crawl.crawl_id})
}

/// Sources by field name, or lists of sources, with each `at`, `since` and `until` as a date.
fn sources_with_dates(sources: &Map<String, Value>) -> Result<RawDocumentBuf, Fault> {
    let mut dated = RawDocumentBuf::new();
    for (name, source) in sources {
        let bson: RawBson = match source {
            Value::Array(sources) => {
                let sources = sources.iter().map(dated_source);
                RawBson::Array(
                    sources
                        .collect::<Result<Vec<_>, Fault>>()?
                        .into_iter()
                        .collect(),
                )
            }
            source => dated_source(source)?,
        };
        dated.append(key(name), bson);
    }
    Ok(dated)
}

fn dated_source(source: &Value) -> Result<RawBson, Fault> {
    let Value::Object(members) = source else {
        return value::bson(source);
    };
    let mut dated = RawDocumentBuf::new();
    for (name, member) in members {
        let is_time = ["at", "since", "until"].contains(&name.as_str());
        let time = is_time.then(|| member.as_str().and_then(parse_iso_time));
        match (name.as_str(), member, time.flatten()) {
            (_, _, Some(at_ms)) => dated.append(key(name), date(at_ms)),
            // Only rows have these members.
            ("gone", Value::Object(_), None) => dated.append(key(name), dated_source(member)?),
            ("lists", Value::Array(lists), None) => {
                let lists: Result<Vec<RawBson>, Fault> = lists.iter().map(dated_source).collect();
                dated.append(key(name), RawBson::Array(lists?.into_iter().collect()));
            }
            (_, _, None) => dated.append(key(name), value::bson(member)?),
        }
    }
    Ok(RawBson::Document(dated))
}

/// The values of records that are not from pages.
async fn given_values(db: &Db, keys: &[String]) -> Result<Vec<Map<String, Value>>, Fault> {
    let mut ids: Vec<&str> = keys.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut given = HashMap::with_capacity(ids.len());
    for stored in db.find_all("records", &ids).await? {
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
        self.call(async move |db: Db| given_values(&db, &keys).await)
            .await
    }
}
