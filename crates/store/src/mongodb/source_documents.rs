//! The documents that records were read from, and the records to be written back (see [`crate::source_document`]).
//!
//! Both are members of the stored record, so that a value and its mark are one write:
//!
//! - `origins`: a list of `{crawl, collection, document, fields}`, one for each crawl that writes back;
//! - `unwritten`: the crawls that must write the record back. If there are none, the member is absent, so that the
//!   sparse index on it contains only unwritten records.

use std::collections::HashMap;

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawDocumentBuf, doc, rawdoc};
use serde_json::{Map, Value, json};

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::records::{RecordDocument, read_records};
use super::{Mongo, value};
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::record::StoredRecord;
use crate::source_document::{SourceDocument, UnwrittenRecord, check_same_document};
use crate::store::SourceDocuments;

/// A list of unwritten records ends when their texts have this size, in bytes. The record that exceeds it is included.
const MAX_BYTES: usize = 8 << 20;

impl RecordDocument {
    /// Marks the record as unwritten for every crawl that writes it back.
    pub(super) fn mark_unwritten(&mut self) {
        let crawls = self.sources.iter().map(|source| source["crawl"].clone());
        self.unwritten = crawls.collect();
    }

    pub(super) fn check_source(
        &self,
        crawl: &CrawlId,
        source: &SourceDocument,
    ) -> Result<(), String> {
        let Some(known) = self.source(crawl) else {
            return Ok(());
        };
        let member = |name: &str| known[name].as_str();
        match (member("document"), member("collection")) {
            (Some(id), Some(collection)) => check_same_document(id, collection, source),
            _ => Ok(()),
        }
    }

    /// Stores the document that the record was read from, once for each crawl. Values that the record has and the
    /// document lacks are marked to be written back.
    pub(super) fn add_source(&mut self, crawl: &CrawlId, source: &SourceDocument) {
        if self.source(crawl).is_some() {
            return;
        }
        let name = crawl.to_string();
        if !self.record.filled_fields(&source.fields).is_empty() {
            self.unwritten.push(Value::from(name.clone()));
        }
        self.sources.push(json!({
            "crawl": name, "collection": source.collection, "document": source.id,
            "fields": source.fields,
        }));
    }

    fn source(&self, crawl: &CrawlId) -> Option<&Value> {
        let name = crawl.to_string();
        let mut sources = self.sources.iter();
        sources.find(|source| source["crawl"] == name.as_str())
    }

    /// Appends the members `origins` and `unwritten`, if the record has source documents. Most records have none.
    pub(super) fn append_sources(&self, content: &mut RawDocumentBuf) -> Result<(), Fault> {
        if self.sources.is_empty() {
            return Ok(());
        }
        let sources = value::bson(&Value::Array(self.sources.clone()))?;
        content.append(cstr!("origins"), rawdoc! {"$literal": sources});
        if self.unwritten.is_empty() {
            content.append(cstr!("unwritten"), "$$REMOVE");
        } else {
            let unwritten = value::bson(&Value::Array(self.unwritten.clone()))?;
            content.append(cstr!("unwritten"), rawdoc! {"$literal": unwritten});
        }
        Ok(())
    }

    fn unwritten_record(&self, key: String, crawl: &CrawlId) -> Option<UnwrittenRecord> {
        let source = self.source(crawl)?;
        let fields = source["fields"].as_array().into_iter().flatten();
        let fields = fields.filter_map(Value::as_str).map(str::to_owned);
        Some(UnwrittenRecord {
            record: key,
            document: source["document"].as_str()?.to_owned(),
            fields: self.record.filled_fields(&fields.collect::<Vec<_>>()),
            revision: self.version?,
        })
    }
}

/// Up to `limit` records that a crawl has read from this collection and that are to be written back.
pub(super) async fn unwritten(
    db: &Db,
    crawl: &CrawlId,
    from: &str,
    limit: u32,
) -> Result<Vec<UnwrittenRecord>, Fault> {
    let collection: Collection<RawDocumentBuf> = db.database.collection("records");
    let crawl_key = crawl.to_string();
    let origin = doc! {"crawl": &crawl_key, "collection": from};
    let which = doc! {"unwritten": &crawl_key, "origins": {"$elemMatch": origin}};
    let members = [
        "fields",
        "sources",
        "candidates",
        "history",
        "missing",
        "origins",
        "version",
        "given",
        "written",
    ];
    let members: Document = members
        .into_iter()
        .map(|name| (name.to_owned(), 1.into()))
        .collect();
    with_timeout(async {
        let mut cursor = collection
            .find(which)
            .projection(members)
            .batch_size(limit)
            .limit(i64::from(limit))
            .await?;
        let mut unwritten = Vec::new();
        let mut bytes = 0;
        while bytes <= MAX_BYTES && cursor.advance().await? {
            let stored = cursor.current();
            bytes += stored.as_bytes().len();
            let key = stored.get_str("_id").unwrap_or_default().to_owned();
            unwritten.extend(RecordDocument::from_stored(stored).unwritten_record(key, crawl));
        }
        Ok(unwritten)
    })
    .await
}

/// Notes the values that are about to be written back. Returns the records that no other client has changed meanwhile.
pub(super) async fn begin(
    db: &Db,
    records: Vec<UnwrittenRecord>,
) -> Result<Vec<UnwrittenRecord>, Fault> {
    let mut statements: Vec<RawDocumentBuf> = Vec::with_capacity(records.len());
    let mut begun: Vec<UnwrittenRecord> = Vec::with_capacity(records.len());
    let mut noted: HashMap<String, Map<String, Value>> = HashMap::new();
    let mut stored = read_records_of(db, &records).await?;
    for mut record in records {
        let Some(RecordDocument { record: before, .. }) = stored.remove(&record.record) else {
            continue;
        };
        let mut now = before.clone();
        now.note_writing(&record.fields);
        statements.push(rawdoc! {
            "q": {"_id": record.record.as_str(), "version": record.revision},
            "u": [{"$set": {
                "written": {"$literal": value::document(&now.written)?},
                "version": record.revision + 1,
            }}],
        });
        // The note itself counts as a change of the record.
        record.revision += 1;
        if now.written != before.written {
            noted.insert(record.record.clone(), now.written);
        }
        begun.push(record);
    }
    let updated = db.update("records", &statements).await?;
    let is_all = usize::try_from(updated.matched) == Ok(statements.len());
    updated.into_result()?;
    if !is_all {
        // The answer does not show which records were changed. Keep the records whose values were noted: until these
        // values are written, the values that they replace count as the user's. A record where nothing had to be noted
        // is read again in the next round.
        let stored = read_records_of(db, &begun).await?;
        begun.retain(|record| {
            let noted = noted.get(&record.record);
            let now = stored.get(&record.record).map(|now| &now.record.written);
            noted.is_some() && now == noted
        });
    }
    Ok(begun)
}

async fn read_records_of(
    db: &Db,
    records: &[UnwrittenRecord],
) -> Result<HashMap<String, RecordDocument>, Fault> {
    let keys: Vec<&str> = records.iter().map(|one| one.record.as_str()).collect();
    read_records(db, keys).await
}

/// The members of a record as they are after these values were written to the dataset.
fn written_members(record: &UnwrittenRecord) -> Result<RawDocumentBuf, Fault> {
    let mut stored = StoredRecord::default();
    stored.note_written(&record.fields);
    let mut set = RawDocumentBuf::new();
    for (name, values) in &stored.written {
        set.append(value::key(name), rawdoc! {"$literal": value::bson(values)?});
    }
    Ok(set)
}

/// Removes the mark `unwritten` from records that have not changed since they were read.
pub(super) async fn confirm(
    db: &Db,
    crawl: &CrawlId,
    written: &[UnwrittenRecord],
) -> Result<(), Fault> {
    let others = rawdoc! {"$setDifference": ["$unwritten", [crawl.to_string()]]};
    let unwritten = rawdoc! {"$let": {
        "vars": {"others": others},
        "in": {"$cond": [{"$eq": ["$$others", []]}, "$$REMOVE", "$$others"]},
    }};
    let statement = |record: &UnwrittenRecord| {
        let now = rawdoc! {"$mergeObjects": ["$written", written_members(record)?]};
        Ok(rawdoc! {
            "q": {"_id": record.record.as_str(), "version": record.revision},
            "u": [{"$set": {"unwritten": unwritten.clone(), "written": now}}],
        })
    };
    let statements = written.iter().map(statement);
    let statements: Vec<RawDocumentBuf> = statements.collect::<Result<_, Fault>>()?;
    db.update("records", &statements).await?.into_result()
}

#[async_trait]
impl SourceDocuments for Mongo {
    async fn unwritten(
        &self,
        crawl: &CrawlId,
        collection: &str,
        limit: u32,
    ) -> Result<Vec<UnwrittenRecord>, StoreError> {
        let (crawl, of) = (crawl.clone(), collection.to_owned());
        self.call(async move |db: Db| unwritten(&db, &crawl, &of, limit).await)
            .await
    }

    async fn begin_writing(&self, written: &mut Vec<UnwrittenRecord>) -> Result<(), StoreError> {
        let records = std::mem::take(written);
        *written = self
            .call(async move |db: Db| begin(&db, records).await)
            .await?;
        Ok(())
    }

    async fn confirm_written(
        &self,
        crawl: &CrawlId,
        written: Vec<UnwrittenRecord>,
    ) -> Result<(), StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| confirm(&db, &crawl, &written).await)
            .await
    }
}
