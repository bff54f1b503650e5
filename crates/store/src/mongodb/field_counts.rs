//! Counts the values that a crawl has found.

use std::collections::BTreeMap;

use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use serde_json::Value;
use webfill_wire::Outcome;

use super::command::{Db, number};
use super::fault::Fault;
use super::value;
use crate::crawl::CrawlId;
use crate::field_counts::FieldCounts;
use crate::row_counts::RowCounts;

pub(super) async fn count(db: &Db, crawl: &CrawlId) -> Result<FieldCounts, Fault> {
    let mut counts = FieldCounts::default();
    let with_page = Outcome::ALL.iter().filter(|outcome| outcome.is_page());
    let with_page: Vec<&str> = with_page.map(|outcome| outcome.as_str()).collect();
    // The keys of a crawl's pages begin with the crawl's id and a slash, and `0` is the character after the slash in
    // ASCII.
    let read = doc! {"$match": {
        "_id": {"$gt": format!("{crawl}/"), "$lt": format!("{crawl}0")},
        "outcome": {"$in": with_page},
    }};
    // Sitemaps are left out, because mappings are not meant to match them.
    let mappable = doc! {"$match": {"$or": [
        {"mapping": {"$type": "string"}},
        {"document.type": {"$ne": "sitemap"}},
    ]}};
    let by_mapping = [read.clone(), mappable, count_group_stage("$mapping".into())];
    for found in aggregate_all(db, "pages", by_mapping).await? {
        let mapping = found.get_str("_id").ok().map(str::to_owned);
        counts.add_pages(mapping, group_count(&found));
    }
    count_fields(db, &read, &mut counts).await?;
    counts.resolved = count_records_by_field(db, crawl, resolved_field_stages()).await?;
    counts.missing = count_records_by_field(db, crawl, missing_field_stages()).await?;
    count_doubts(db, crawl, &mut counts).await?;
    Ok(counts)
}

fn count_group_stage(by: Bson) -> Document {
    doc! {"$group": {"_id": by, "n": {"$sum": 1}}}
}

/// Counts the fields and the rows of pages. `read` is the stage that selects the pages.
async fn count_fields(db: &Db, read: &Document, counts: &mut FieldCounts) -> Result<(), Fault> {
    let undecided = [
        read.clone(),
        doc! {"$match": {"mapping": {"$type": "string"}, "alternatives": {"$type": "object"}}},
        doc! {"$project": {"mapping": 1, "field": {"$objectToArray": "$alternatives"}}},
        doc! {"$unwind": "$field"},
        doc! {"$match": {"field.v": 0}},
        count_group_stage(doc! {"mapping": "$mapping", "field": "$field.k"}.into()),
    ];
    // Pages are grouped by their counts of rows, because many pages of a list have the same counts.
    let of_rows = [
        read.clone(),
        doc! {"$match": {"mapping": {"$type": "string"}, "row_counts": {"$type": "array"}}},
        count_group_stage(doc! {"mapping": "$mapping", "rows": "$row_counts"}.into()),
    ];
    let by_field = [
        read.clone(),
        doc! {"$match": {"mapping": {"$type": "string"}}},
        doc! {"$project": {"mapping": 1, "field": {"$objectToArray": "$fields"}}},
        doc! {"$unwind": "$field"},
        doc! {"$match": {"field.v": {"$ne": null}}},
        count_group_stage(doc! {"mapping": "$mapping", "field": "$field.k"}.into()),
    ];
    for found in aggregate_all(db, "pages", by_field).await? {
        if let Some((mapping, field)) = field_of(&found) {
            counts.add_filled(mapping, field, group_count(&found));
        }
    }
    for found in aggregate_all(db, "pages", undecided).await? {
        if let Some((mapping, field)) = field_of(&found) {
            counts.add_undecided(mapping, field, group_count(&found));
        }
    }
    for found in aggregate_all(db, "pages", of_rows).await? {
        if let Some((mapping, listed)) = row_counts_of(&found) {
            counts.add_rows(&mapping, &listed, group_count(&found));
        }
    }
    Ok(())
}

async fn count_doubts(db: &Db, crawl: &CrawlId, counts: &mut FieldCounts) -> Result<(), Fault> {
    let doubtful = [
        doc! {"$match": {
            "crawls": {"app_id": &crawl.app_id, "crawl_id": &crawl.crawl_id},
            "doubts.pages": {"$exists": true},
        }},
        doc! {"$project": {"doubts": 1}},
    ];
    for found in aggregate_all(db, "records", doubtful).await? {
        if let Ok(found) = RawDocumentBuf::try_from(&found)
            && let Some(Value::Object(doubts)) = value::object(&found).get("doubts")
        {
            counts.add_doubts(doubts);
        }
    }
    Ok(())
}

/// The mapping and the field that an aggregation has grouped pages by.
fn field_of(found: &Document) -> Option<(&str, String)> {
    let key = found.get_document("_id").ok()?;
    let (mapping, field) = (key.get_str("mapping").ok()?, key.get_str("field").ok()?);
    Some((mapping, field.to_owned()))
}

/// The mapping and the counts of rows that an aggregation has grouped pages by.
fn row_counts_of(found: &Document) -> Option<(String, Vec<RowCounts>)> {
    let key = RawDocumentBuf::try_from(found.get_document("_id").ok()?).ok()?;
    let mut key = value::object(&key);
    let listed = serde_json::from_value(key.remove("rows")?).ok()?;
    Some((key["mapping"].as_str()?.to_owned(), listed))
}

/// The stages that find the fields with values from pages, except those to be refreshed. Each field becomes a document
/// with the member `field`.
fn resolved_field_stages() -> Vec<Document> {
    vec![
        doc! {"$project": {"missing": 1, "source": {"$objectToArray": "$sources"}}},
        doc! {"$unwind": "$source"},
        doc! {"$match": {"$expr": {"$not": [{"$in": ["$source.k", {"$ifNull": ["$missing", []]}]}]}}},
        doc! {"$project": {"field": "$source.k"}},
    ]
}

fn missing_field_stages() -> Vec<Document> {
    vec![
        doc! {"$match": {"resolved_at": null}},
        doc! {"$project": {"field": "$missing"}},
        doc! {"$unwind": "$field"},
    ]
}

/// How many records of a crawl have each of these fields.
async fn count_records_by_field(
    db: &Db,
    crawl: &CrawlId,
    fields: Vec<Document>,
) -> Result<BTreeMap<String, u64>, Fault> {
    let of_crawl = doc! {"crawls": {"app_id": &crawl.app_id, "crawl_id": &crawl.crawl_id}};
    let mut pipeline = vec![doc! {"$match": of_crawl}];
    pipeline.extend(fields);
    pipeline.push(doc! {"$group": {"_id": "$field", "n": {"$sum": 1}}});
    let found = aggregate_all(db, "records", pipeline).await?;
    let by_field = found.iter().filter_map(|found| {
        let field = found.get_str("_id").ok()?;
        Some((field.to_owned(), group_count(found)))
    });
    Ok(by_field.collect())
}

/// The last crawl of the same application that began before the given crawl.
pub(super) async fn crawl_before(db: &Db, crawl: &CrawlId) -> Result<Option<CrawlId>, Fault> {
    let Some(own) = db.find_one("crawls", &crawl.to_string()).await? else {
        return Ok(None);
    };
    let Ok(started_at) = own.get_datetime("started_at") else {
        return Ok(None);
    };
    let before = [
        doc! {"$match": {
            "app_id": &crawl.app_id,
            "crawl_id": {"$ne": &crawl.crawl_id},
            "started_at": {"$lte": started_at},
        }},
        doc! {"$sort": {"started_at": -1, "_id": -1}},
        doc! {"$limit": 1},
    ];
    let found = aggregate_all(db, "crawls", before).await?;
    let id = found
        .first()
        .and_then(|found| found.get_str("crawl_id").ok());
    Ok(id.map(|id| CrawlId::new(&crawl.app_id, id)))
}

fn group_count(found: &Document) -> u64 {
    u64::try_from(number(found, "n")).unwrap_or_default()
}

/// All results of an aggregation. It may take long, because a whole crawl is read.
async fn aggregate_all(
    db: &Db,
    collection: &str,
    pipeline: impl IntoIterator<Item = Document>,
) -> Result<Vec<Document>, Fault> {
    let collection: Collection<Document> = db.database.collection(collection);
    let mut cursor = collection.aggregate(pipeline).allow_disk_use(true).await?;
    let mut found = Vec::new();
    while cursor.advance().await? {
        found.push(cursor.deserialize_current()?);
    }
    Ok(found)
}
