//! Records as this backend stores them.

use mongodb::bson::raw::cstr;
use mongodb::bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use serde_json::{Map, Value, json};

use crate::crawl::CrawlId;
use crate::dataset_name::split_record_key;
use crate::mongodb::fault::Fault;
use crate::mongodb::members::date;
use crate::mongodb::value::{self, document, key, or_null, text_array};
use crate::page::MAX_ENTRY_BYTES;
use crate::record::{Entry, FillRules, PageValues, RecordState, StoredRecord};
use crate::source_document::{DatasetRecord, RecordPut};
use crate::timestamp::parse_iso_time;

/// The state of a record after an entry, or the changes to it. An error is the reason why the entry cannot be stored.
pub(in crate::mongodb) type EntryResult<T = RecordState> = Result<T, String>;

/// A stored record, with members that only this backend has.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::mongodb) struct RecordDocument {
    pub(in crate::mongodb) record: StoredRecord,
    /// How many times the record was written; `None` if it is new, or was created by another program.
    pub(in crate::mongodb) version: Option<i64>,
    /// The crawls that the record is in: `[{app_id, crawl_id}]`.
    crawls: Vec<Value>,
    /// The position in its input where each crawl first read the record: `[{crawl, position}]`.
    positions: Vec<Value>,
    /// The record's source documents, one for each crawl that writes back: `[{crawl, collection, document, fields}]`.
    pub(in crate::mongodb) sources: Vec<Value>,
    /// The crawls that have to write the record back.
    pub(in crate::mongodb) unwritten: Vec<Value>,
}

impl RecordDocument {
    pub(in crate::mongodb) fn from_stored(stored: &RawDocument) -> RecordDocument {
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
    pub(super) fn fill(&mut self, page: &PageValues<'_>, rules: &FillRules) -> EntryResult {
        let before = self.record.clone();
        if self.record.fill(page, rules) {
            self.revert_if_too_large(before)?;
            self.mark_unwritten();
        }
        Ok(self.record.state_for_fetching())
    }

    pub(super) fn put(
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
            .and_then(|position| self.find_or_set_position(crawl, position, !is_known_here));
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
    pub(super) fn add_to_crawl(&mut self, crawl: &CrawlId) {
        let entry = crawl_entry(crawl);
        if !self.crawls.contains(&entry) {
            self.crawls.push(entry);
        }
    }

    /// The position of the input where the crawl first read the record, if that is not `position`. For a record that is
    /// new to the crawl, sets it to `position`.
    fn find_or_set_position(
        &mut self,
        crawl: &CrawlId,
        position: u64,
        is_new: bool,
    ) -> Option<u64> {
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

    pub(super) fn revert_if_too_large(&mut self, before: StoredRecord) -> Result<(), String> {
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
    pub(super) fn write_statement(&self, key: &str) -> Result<RawDocumentBuf, Fault> {
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
    pub(super) fn new_document(&self, key: &str) -> Result<RawDocumentBuf, Fault> {
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

    /// All members of the document except the parts of the key and `version`. Values from outside are put below
    /// `$literal`, where the server does not evaluate them.
    fn content(&self) -> Result<RawDocumentBuf, Fault> {
        let record = &self.record;
        let resolved_at = record.resolved_at.as_deref().and_then(parse_iso_time);
        let crawls = value::bson(&Value::Array(self.crawls.clone()))?;
        let mut content = rawdoc! {
            "fields": {"$literal": document(&record.fields)?},
            "sources": {"$literal": sources_with_dates(&record.sources)?},
            "candidates": {"$literal": sources_with_dates(&record.candidates)?},
            "history": {"$literal": sources_with_dates(&record.history)?},
            "missing": {"$literal": text_array(&record.missing)},
            "urls": {"$literal": text_array(&record.urls)},
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
            // Only records that are rows have these members.
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
