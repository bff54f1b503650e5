//! The collection `samples`.

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Bson, Document, RawDocument, RawDocumentBuf, doc, rawdoc};
use serde_json::Value;

use super::Mongo;
use super::command::{Db, number, with_timeout};
use super::fault::Fault;
use super::members::{date, time};
use super::value::{self, binary, or_null, text_array};
use crate::error::StoreError;
use crate::sample::Sample;
use crate::store::Samples;

pub(super) const SAMPLES: &str = "samples";

pub(super) async fn put(db: &Db, samples: &[Sample]) -> Result<(), Fault> {
    if samples.is_empty() {
        return Ok(());
    }
    let statements: Vec<RawDocumentBuf> = samples.iter().map(statement).collect();
    db.upsert(SAMPLES, &statements).await?.into_result()
}

fn statement(sample: &Sample) -> RawDocumentBuf {
    let mut stored = rawdoc! {
        "_id": sample.id.as_str(),
        "mapping": sample.mapping.as_str(),
        "alert": or_null(sample.alert.as_deref()),
        "page": sample.page.as_str(),
        "url": sample.url.as_str(),
        "at": date(sample.at_ms),
    };
    stored.append(cstr!("fields"), text_array(&sample.fields));
    stored.append(cstr!("text"), binary(&sample.text));
    rawdoc! {"q": {"_id": sample.id.as_str()}, "u": stored, "upsert": true}
}

/// The samples of a mapping, without their texts.
pub(super) async fn of_mapping(db: &Db, mapping: &str) -> Result<Vec<Sample>, Fault> {
    let samples: Collection<RawDocumentBuf> = db.database.collection(SAMPLES);
    let which = doc! {
        "_id": {"$gt": format!("{mapping}/"), "$lt": format!("{mapping}0")},
        "mapping": mapping,
    };
    let find = async {
        let find = samples.find(which).projection(doc! {"text": 0});
        let mut cursor = find.sort(doc! {"_id": 1}).await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    };
    let found: Vec<RawDocumentBuf> = with_timeout(find).await?;
    Ok(found.iter().map(|stored| sample_from(stored)).collect())
}

/// The samples with these ids.
pub(super) async fn with_texts(db: &Db, ids: &[String]) -> Result<Vec<Sample>, Fault> {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let found = db.find_by_ids(SAMPLES, &ids).await?;
    Ok(found.iter().map(|stored| sample_from(stored)).collect())
}

/// The ids of some samples to drop so that the others fit into this many bytes. The oldest come first, and samples of
/// alerts last.
pub(super) async fn find_superfluous_ids(
    db: &Db,
    most: u64,
    at_once: u64,
) -> Result<Vec<String>, Fault> {
    let samples: Collection<Document> = db.database.collection(SAMPLES);
    let bytes_of = doc! {"$binarySize": {"$ifNull": ["$text", Bson::Null]}};
    let sum = doc! {"$group": {"_id": null, "bytes": {"$sum": bytes_of.clone()}}};
    // Null, which means no alert, sorts before all other values.
    let oldest = [
        doc! {"$sort": {"alert": 1, "at": 1}},
        doc! {"$limit": at_once as i64},
    ];
    let sizes = doc! {"$project": {"alert": 1, "at": 1, "bytes": bytes_of}};
    let find = async {
        let mut summed = samples.aggregate([sum]).await?;
        let mut bytes = match summed.advance().await? {
            true => number(&summed.deserialize_current()?, "bytes").unsigned_abs(),
            false => 0,
        };
        let mut ids = Vec::new();
        if bytes <= most {
            return Ok(ids);
        }
        let mut cursor = samples.aggregate([sizes].into_iter().chain(oldest)).await?;
        while bytes > most && cursor.advance().await? {
            let sample = cursor.deserialize_current()?;
            ids.extend(sample.get_str("_id").map(str::to_owned));
            bytes = bytes.saturating_sub(number(&sample, "bytes").unsigned_abs());
        }
        Ok(ids)
    };
    with_timeout(find).await
}

fn sample_from(stored: &RawDocument) -> Sample {
    let members = value::object(stored);
    let optional = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let text = |name: &str| optional(name).unwrap_or_default();
    let fields = members.get("fields").cloned().unwrap_or_default();
    let stored_text = stored.get_binary("text").ok();
    Sample {
        id: text("_id"),
        mapping: text("mapping"),
        alert: optional("alert"),
        page: text("page"),
        url: text("url"),
        at_ms: time(stored, "at").unwrap_or_default(),
        fields: serde_json::from_value(fields).unwrap_or_default(),
        text: stored_text
            .map(|binary| binary.bytes.to_vec())
            .unwrap_or_default(),
    }
}

#[async_trait]
impl Samples for Mongo {
    async fn samples(&self, mapping: &str) -> Result<Vec<Sample>, StoreError> {
        let mapping = mapping.to_owned();
        self.call(async move |db: Db| of_mapping(&db, &mapping).await)
            .await
    }

    async fn samples_with_texts(&self, ids: Vec<String>) -> Result<Vec<Sample>, StoreError> {
        self.call(async move |db: Db| with_texts(&db, &ids).await)
            .await
    }

    async fn put_samples(&self, samples: Vec<Sample>) -> Result<(), StoreError> {
        self.call(async move |db: Db| put(&db, &samples).await)
            .await
    }
}
