//! Drops old pages, old entries of the log and samples, a few at a time.
//!
//! First the header of the log records the last entry that is too old for readers ([`page_log::set_cut`]). Only then
//! are the entries up to it deleted, and after them the pages. So if a reader checks the header after reading pages, it
//! knows that none was missing. The newest entry always stays, because the next one is numbered after it.

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::raw::CString;
use mongodb::bson::{Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use super::command::{Db, number, with_timeout};
use super::fault::Fault;
use super::members::date;
use super::page_log::{self, LOG};
use super::samples::{self, SAMPLES};
use super::value::text_array;
use super::{Mongo, indexes};
use crate::error::StoreError;
use crate::retention::{Cutoff, DropResult};
use crate::store::Retention;

/// How many entries of the log one call checks or deletes at most.
const ENTRIES: i64 = 2_000;

/// How many pages one call deletes at most.
const PAGES: u64 = 500;

pub(super) async fn drop_old(db: &Db, cutoff: Cutoff) -> Result<DropResult, Fault> {
    let mut dropped = DropResult::default();
    if let Some(log_ms) = cutoff.log_ms {
        // Pages are deleted only after readers that have not read them are refused.
        dropped.has_more = advance_cut(db, log_ms).await?;
        if dropped.has_more {
            return Ok(dropped);
        }
        (dropped.log_entries, dropped.has_more) = delete_entries(db).await?;
    }
    if let Some(pages_ms) = cutoff.pages_ms {
        let (pages, has_more) = delete_pages(db, pages_ms).await?;
        dropped.pages = pages;
        dropped.has_more |= has_more;
        for (collection, time) in indexes::GO_WITH_PAGES {
            dropped.has_more |=
                delete_older_documents(db, collection, time, pages_ms).await? == PAGES;
        }
        // There are few samples, so no index is needed.
        dropped.samples = delete_older_documents(db, SAMPLES, "at", pages_ms).await?;
        dropped.has_more |= dropped.samples == PAGES;
    }
    if let Some(most) = cutoff.samples_bytes {
        let superfluous = samples::find_superfluous_ids(db, most, PAGES).await?;
        dropped.has_more |= superfluous.len() as u64 == PAGES;
        if !superfluous.is_empty() {
            let some = rawdoc! {"_id": {"$in": text_array(&superfluous)}};
            dropped.samples += delete(db, SAMPLES, some).await?;
        }
    }
    Ok(dropped)
}

/// Advances the cut in the header over entries that are too old. Returns whether there may be more.
async fn advance_cut(db: &Db, log_ms: i64) -> Result<bool, Fault> {
    let before = page_log::cut(db).await?;
    let log: Collection<Document> = db.database.collection(LOG);
    let find = async {
        // An entry that fills a gap has no time. It is dropped together with the next entry that has one.
        let next = log
            .find(doc! {"_id": {"$gt": before}, "at": {"$exists": true}})
            .sort(doc! {"_id": 1});
        let mut cursor = next.limit(ENTRIES).projection(doc! {"at": 1}).await?;
        let mut entries = Vec::new();
        while cursor.advance().await? {
            entries.push(cursor.deserialize_current()?);
        }
        Ok(entries)
    };
    let entries = with_timeout(find).await?;
    let is_old = |entry: &&Document| {
        let at = entry.get_datetime("at");
        at.is_ok_and(|at| at.timestamp_millis() < log_ms)
    };
    let old: Vec<_> = entries.iter().take_while(is_old).collect();
    if let Some(last) = old.last() {
        page_log::set_cut(db, number(last, "_id")).await?;
    }
    Ok(old.len() as i64 == ENTRIES)
}

/// Deletes entries up to the cut, except the newest one. Returns how many, and whether there are more.
async fn delete_entries(db: &Db) -> Result<(u64, bool), Fault> {
    let last = page_log::cut(db)
        .await?
        .min(page_log::newest(db).await? - 1);
    let Some(first) = page_log::oldest_number(db)
        .await?
        .filter(|first| *first <= last)
    else {
        return Ok((0, false));
    };
    let to = last.min(first.saturating_add(ENTRIES - 1));
    let range = rawdoc! {"_id": {"$gte": first, "$lte": to}};
    Ok((delete(db, LOG, range).await?, to < last))
}

/// Deletes some of the pages that are too old. Returns how many, and whether there may be more.
async fn delete_pages(db: &Db, pages_ms: i64) -> Result<(u64, bool), Fault> {
    indexes::create_for_retention(db).await?;
    let pages: Collection<Document> = db.database.collection("pages");
    let is_old = doc! {"started_at": {"$lt": date(pages_ms)}};
    let find = async {
        let old = pages.find(is_old.clone()).sort(doc! {"started_at": 1});
        let mut cursor = old.limit(PAGES as i64).projection(doc! {"_id": 1}).await?;
        let mut ids = Vec::new();
        while cursor.advance().await? {
            ids.extend(cursor.current().get_str("_id").map(str::to_owned));
        }
        Ok(ids)
    };
    let ids = with_timeout(find).await?;
    if ids.is_empty() {
        return Ok((0, false));
    }
    // The time is checked again, because a page may have been saved again meanwhile.
    let some = rawdoc! {
        "_id": {"$in": text_array(&ids)},
        "started_at": {"$lt": date(pages_ms)},
    };
    let deleted = delete(db, "pages", some).await?;
    Ok((deleted, ids.len() as u64 == PAGES))
}

/// Deletes some documents that are as old as dropped pages: changes, versions, bodies, samples. Returns how many were
/// found.
async fn delete_older_documents(
    db: &Db,
    collection: &str,
    time: &str,
    before_ms: i64,
) -> Result<u64, Fault> {
    let old: Collection<RawDocumentBuf> = db.database.collection(collection);
    let is_old = doc! {time: {"$lt": date(before_ms)}};
    let find = async {
        let find = old.find(is_old).sort(doc! {time: 1}).limit(PAGES as i64);
        let mut cursor = find.projection(doc! {"_id": 1}).await?;
        let mut keys = RawArrayBuf::new();
        let mut count = 0;
        while cursor.advance().await? {
            if let Ok(Some(key)) = cursor.current().get("_id") {
                keys.push(key);
                count += 1;
            }
        }
        Ok((keys, count))
    };
    let (keys, count) = with_timeout(find).await?;
    if count == 0 {
        return Ok(0);
    }
    // The time is checked again, because a document may have been updated meanwhile.
    let mut some = rawdoc! {"_id": {"$in": keys}};
    some.append(
        CString::try_from(time).expect("no NUL is in it"),
        rawdoc! {"$lt": date(before_ms)},
    );
    delete(db, collection, some).await?;
    Ok(count)
}

async fn delete(db: &Db, collection: &str, query: RawDocumentBuf) -> Result<u64, Fault> {
    let deleted = db.delete_matching(collection, query).await?;
    let count = deleted.matched.unsigned_abs();
    deleted.into_result().map(|()| count)
}

#[async_trait]
impl Retention for Mongo {
    async fn drop_old(&self, cutoff: Cutoff) -> Result<DropResult, StoreError> {
        self.call(async move |db: Db| drop_old(&db, cutoff).await)
            .await
    }
}
