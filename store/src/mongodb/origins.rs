//! The documents that records came from, and which of them lack what was found since: members of
//! the records themselves, so that a value and its mark are one write. `origins` is a list of
//! `{crawl, document, fields}`, `unwritten` one of crawls, absent where it would be empty, so that
//! the sparse index holds nothing but what is to be done.

use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{RawDocumentBuf, doc, rawdoc};
use serde_json::{Value, json};

use super::command::{Db, in_time};
use super::fault::Fault;
use super::records::KeptRecord;
use super::value;
use crate::crawl::CrawlId;
use crate::origin::{Origin, Unwritten, why_not_another};

/// What is handed out in one go ends behind the record with which it exceeds this.
const MAX_BYTES: usize = 8 << 20;

impl KeptRecord {
    /// Every crawl that writes back has to.
    pub(super) fn note_change(&mut self) {
        let crawls = self.origins.iter().map(|origin| origin["crawl"].clone());
        self.unwritten = crawls.collect();
    }

    pub(super) fn check_origin(&self, crawl: &CrawlId, origin: &Origin) -> Result<(), String> {
        let known = self.origin(crawl).map(|known| &known["document"]);
        let known = known.and_then(Value::as_str);
        match known.and_then(|known| why_not_another(known, origin)) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    /// Notes where it came from, unless that is known. What is kept here and the document has not
    /// is to be written back.
    pub(super) fn enter_origin(&mut self, crawl: &CrawlId, origin: &Origin) {
        if self.origin(crawl).is_some() {
            return;
        }
        let name = crawl.to_string();
        if !self.record.filled(&origin.fields).is_empty() {
            self.unwritten.push(Value::from(name.clone()));
        }
        self.origins.push(json!({
            "crawl": name, "document": origin.document, "fields": origin.fields,
        }));
    }

    fn origin(&self, crawl: &CrawlId) -> Option<&Value> {
        let name = crawl.to_string();
        let mut origins = self.origins.iter();
        origins.find(|origin| origin["crawl"] == name.as_str())
    }

    /// Only where there are any: most records have none.
    pub(super) fn append_origins(&self, content: &mut RawDocumentBuf) -> Result<(), Fault> {
        if self.origins.is_empty() {
            return Ok(());
        }
        let origins = value::bson(&Value::Array(self.origins.clone()))?;
        content.append(cstr!("origins"), rawdoc! {"$literal": origins});
        if self.unwritten.is_empty() {
            content.append(cstr!("unwritten"), "$$REMOVE");
        } else {
            let unwritten = value::bson(&Value::Array(self.unwritten.clone()))?;
            content.append(cstr!("unwritten"), rawdoc! {"$literal": unwritten});
        }
        Ok(())
    }

    fn unwritten_of(&self, id: String, crawl: &CrawlId) -> Option<Unwritten> {
        let origin = self.origin(crawl)?;
        let fields = origin["fields"].as_array().into_iter().flatten();
        let fields = fields.filter_map(Value::as_str).map(str::to_owned);
        Some(Unwritten {
            record: id,
            document: origin["document"].as_str()?.to_owned(),
            fields: self.record.filled(&fields.collect::<Vec<_>>()),
            revision: self.version?,
        })
    }
}

/// Records with the mark.
pub(super) async fn unwritten(
    db: &Db,
    crawl: &CrawlId,
    limit: u32,
) -> Result<Vec<Unwritten>, Fault> {
    let collection: Collection<RawDocumentBuf> = db.database.collection("records");
    in_time(async {
        let mut cursor = collection
            .find(doc! {"unwritten": crawl.to_string()})
            .projection(doc! {"fields": 1, "candidates": 1, "origins": 1, "version": 1})
            .batch_size(limit)
            .limit(i64::from(limit))
            .await?;
        let mut unwritten = Vec::new();
        let mut bytes = 0;
        while bytes <= MAX_BYTES && cursor.advance().await? {
            let stored = cursor.current();
            bytes += stored.as_bytes().len();
            let id = stored.get_str("_id").unwrap_or_default().to_owned();
            unwritten.extend(KeptRecord::read(stored).unwritten_of(id, crawl));
        }
        Ok(unwritten)
    })
    .await
}

/// Takes the mark from records that have not changed since they were read.
pub(super) async fn confirm(db: &Db, crawl: &CrawlId, written: &[Unwritten]) -> Result<(), Fault> {
    let others = rawdoc! {"$setDifference": ["$unwritten", [crawl.to_string()]]};
    let unwritten = rawdoc! {"$let": {
        "vars": {"others": others},
        "in": {"$cond": [{"$eq": ["$$others", []]}, "$$REMOVE", "$$others"]},
    }};
    let statement = |record: &Unwritten| {
        rawdoc! {
            "q": {"_id": record.record.as_str(), "version": record.revision},
            "u": [{"$set": {"unwritten": unwritten.clone()}}],
        }
    };
    let statements: Vec<RawDocumentBuf> = written.iter().map(statement).collect();
    db.update("records", &statements).await?.none_failed()
}
