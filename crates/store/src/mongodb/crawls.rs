//! The collection `crawls`, and the counts of a crawl's records.

use async_trait::async_trait;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf, doc, rawdoc};
use serde_json::{Map, Value};

use super::Mongo;
use super::command::{Db, number};
use super::fault::Fault;
use super::field_counts;
use super::members::date;
use super::value::{self, bson, document, or_null};
use crate::crawl::{Crawl, CrawlId};
use crate::error::StoreError;
use crate::field_counts::FieldCounts;
use crate::record::RecordCounts;
use crate::store::Crawls;

pub(super) const CRAWLS: &str = "crawls";

/// Stores a crawl.
pub(super) async fn put(db: &Db, crawl: &Crawl) -> Result<(), Fault> {
    let statement = put_statement(crawl)?;
    db.upsert(CRAWLS, &[statement]).await?.into_result()
}

/// Replaces a crawl, except for its first start time.
pub(super) fn put_statement(crawl: &Crawl) -> Result<RawDocumentBuf, Fault> {
    let set = rawdoc! {
        "app_id": crawl.id.app_id.as_str(),
        "crawl_id": crawl.id.crawl_id.as_str(),
        "request": bson(&crawl.request)?,
        "state": crawl.state.as_str(),
        "counts": document(&crawl.counts)?,
        "updated_at": date(crawl.updated_at_ms),
        "finished_at": or_null(crawl.finished_at_ms.map(date)),
    };
    Ok(rawdoc! {
        "q": {"_id": crawl.id.to_string()},
        "u": {"$set": set, "$setOnInsert": {"started_at": date(crawl.started_at_ms)}},
        "upsert": true,
    })
}

/// The crawl with this key.
pub(super) async fn get(db: &Db, id: &CrawlId) -> Result<Option<Crawl>, Fault> {
    let stored = db.find_one(CRAWLS, &id.to_string()).await?;
    stored.as_deref().map(read).transpose()
}

pub(super) fn read(stored: &RawDocument) -> Result<Crawl, Fault> {
    let broken = |_| {
        Fault::InvalidEntry(format!(
            "a stored crawl is not as webfill writes it: {stored:?}"
        ))
    };
    let members = value::object(stored);
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let time = |name| stored.get_datetime(name).map(DateTime::timestamp_millis);
    Ok(Crawl {
        id: CrawlId::new(
            text("app_id").unwrap_or_default(),
            text("crawl_id").unwrap_or_default(),
        ),
        state: text("state")
            .unwrap_or_default()
            .parse()
            .map_err(Fault::InvalidEntry)?,
        started_at_ms: time("started_at").map_err(broken)?,
        updated_at_ms: time("updated_at").map_err(broken)?,
        finished_at_ms: time("finished_at").ok(),
        counts: match members.get("counts") {
            Some(Value::Object(counts)) => counts.clone(),
            _ => Map::new(),
        },
        request: members.get("request").cloned().unwrap_or_default(),
    })
}

/// Counts a crawl's records and the resolved ones among them. Each count is one range of an index.
pub(super) async fn record_counts(db: &Db, id: &CrawlId) -> Result<RecordCounts, Fault> {
    let (app_id, crawl_id) = (id.app_id.as_str(), id.crawl_id.as_str());
    let all = doc! {"crawls": {"app_id": app_id, "crawl_id": crawl_id}};
    let mut resolved = all.clone();
    // This matches every date, but neither null nor a missing value.
    resolved.insert("resolved_at", doc! {"$gte": Bson::DateTime(DateTime::MIN)});
    let (total, resolved) = tokio::try_join!(count(db, &all), count(db, &resolved))?;
    Ok(RecordCounts { total, resolved })
}

async fn count(db: &Db, query: &Document) -> Result<u64, Fault> {
    let query = RawDocumentBuf::try_from(query).expect("a query without NUL in its names");
    let mut command = rawdoc! {"count": "records", "query": query};
    command.append(cstr!("readConcern"), rawdoc! {"level": "majority"});
    let answer = db.run(command).await?;
    Ok(u64::try_from(number(&answer, "n")).unwrap_or_default())
}

#[async_trait]
impl Crawls for Mongo {
    async fn put_crawl(&self, crawl: Crawl) -> Result<(), StoreError> {
        self.call(async move |db: Db| put(&db, &crawl).await).await
    }

    async fn get_crawl(&self, id: &CrawlId) -> Result<Option<Crawl>, StoreError> {
        let id = id.clone();
        self.call(async move |db: Db| get(&db, &id).await).await
    }

    async fn crawl_before(&self, crawl: &CrawlId) -> Result<Option<CrawlId>, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| field_counts::crawl_before(&db, &crawl).await)
            .await
    }

    async fn record_counts(&self, crawl: &CrawlId) -> Result<RecordCounts, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| record_counts(&db, &crawl).await)
            .await
    }

    async fn field_counts(&self, crawl: &CrawlId) -> Result<FieldCounts, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| field_counts::count(&db, &crawl).await)
            .await
    }
}
