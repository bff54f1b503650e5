//! The collection `bodies`.
//!
//! The collection's size is queried only each time a fraction of the limit has been written. So all bodies together may
//! exceed the limit a little for a while, by more if more processes write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawArrayBuf, RawDocument, RawDocumentBuf, doc, rawdoc};
use webfill_wire::Delivery;

use super::Mongo;
use super::command::{Db, number, with_timeout};
use super::conditions::replace_if_statement;
use super::fault::Fault;
use super::indexes;
use super::members::{AT, BODIES, date, time};
use super::value::binary;
use crate::bodies::{
    BESIDE_BODY, Bodies, Body, BodyChange, DroppedBodies, MAX_KEPT_BYTES, page_key_range,
};
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::site_clock::clamp_to_i64;

/// How many documents, and bytes of bodies, are read in one step.
const STEP: i64 = 64;
const STEP_BYTES: usize = 4 << 20;

/// How many of the oldest bodies are checked at a time to make room.
const OLDEST: i64 = 500;

/// The size of the collection is queried each time a 64th of the limit has been written.
const ASKED_AFTER: u64 = 64;

/// What this process has written to the collection since its size was last queried.
#[derive(Debug, Default)]
pub(super) struct Written {
    is_indexed: AtomicBool,
    was_asked: AtomicBool,
    /// Bytes written since the size was last queried.
    bytes: AtomicU64,
}

#[async_trait]
impl Bodies for Mongo {
    async fn keep(
        &self,
        changes: Vec<BodyChange>,
        max_bytes: u64,
    ) -> Result<DroppedBodies, StoreError> {
        let written = Arc::clone(&self.written_bodies);
        self.call(async move |db: Db| keep(&db, &written, &changes, max_bytes).await)
            .await
    }

    async fn bodies(
        &self,
        crawl: &CrawlId,
        after: Option<String>,
    ) -> Result<Vec<Body>, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| read(&db, &crawl, after).await)
            .await
    }
}

async fn keep(
    db: &Db,
    written: &Written,
    changes: &[BodyChange],
    max_bytes: u64,
) -> Result<DroppedBodies, Fault> {
    if !written.is_indexed.load(Ordering::Relaxed) {
        indexes::create_for_bodies(db).await?;
        written.is_indexed.store(true, Ordering::Relaxed);
    }
    let mut forgotten = RawArrayBuf::new();
    let (mut kept, mut unchanged) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for change in changes {
        match change {
            BodyChange::Keep(body) if body.body.len() <= MAX_KEPT_BYTES => {
                bytes += body.body.len();
                kept.push(body_statement(body));
            }
            BodyChange::Keep(Body { page_id, at_ms, .. })
            | BodyChange::Forget { page_id, at_ms } => {
                forgotten.push(rawdoc! {"_id": page_id.as_str(), "at": {"$lt": date(*at_ms)}});
            }
            BodyChange::Unchanged {
                page_id,
                content_hash,
                at_ms,
            } => unchanged.push(rawdoc! {
                "q": {"_id": page_id.as_str(), "content_hash": content_hash.as_str()},
                "u": {"$max": {"at": date(*at_ms)}},
            }),
        }
    }
    db.upsert(BODIES, &kept).await?.into_result()?;
    db.update(BODIES, &unchanged).await?.into_result()?;
    if !forgotten.is_empty() {
        let any = rawdoc! {"$or": forgotten};
        db.delete_matching(BODIES, any).await?.into_result()?;
    }
    trim_if_due(db, written, bytes as u64, max_bytes).await
}

fn body_statement(body: &Body) -> RawDocumentBuf {
    let size = body.body.len() + BESIDE_BODY;
    let mut stored = rawdoc! {
        "_id": body.page_id.as_str(),
        "content_hash": body.content_hash.as_str(),
        "is_rendered": body.is_rendered,
        "at": date(body.at_ms),
        "epoch": clamp_to_i64(body.delivery.epoch),
        "task": clamp_to_i64(body.task),
        "attempts": i64::from(body.delivery.number),
        "bytes": clamp_to_i64(body.bytes),
        "size": clamp_to_i64(size as u64),
    };
    stored.append(cstr!("body"), binary(&body.body));
    let is_not_earlier = rawdoc! {"$gte": [
        [
            {"$literal": clamp_to_i64(body.delivery.epoch)},
            {"$literal": clamp_to_i64(body.task)},
            {"$literal": i64::from(body.delivery.number)},
            {"$literal": date(body.at_ms)},
        ],
        ["$epoch", "$task", "$attempts", "$at"],
    ]};
    replace_if_statement(&body.page_id, is_not_earlier, stored)
}

/// Queries the size of the collection, if enough was written since the last query. Drops the oldest bodies until the
/// others fit.
async fn trim_if_due(
    db: &Db,
    written: &Written,
    bytes: u64,
    max_bytes: u64,
) -> Result<DroppedBodies, Fault> {
    let since = written.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
    let is_due = since >= max_bytes / ASKED_AFTER || !written.was_asked.load(Ordering::Relaxed);
    let mut dropped = DroppedBodies::default();
    if !is_due {
        return Ok(dropped);
    }
    written.bytes.store(0, Ordering::Relaxed);
    written.was_asked.store(true, Ordering::Relaxed);
    let stats = db.run(rawdoc! {"collStats": BODIES}).await?;
    let mut excess = number(&stats, "size") - clamp_to_i64(max_bytes);
    while excess > 0 {
        let ids = oldest_ids_to_drop(db, &mut excess).await?;
        if ids.is_empty() {
            break;
        }
        let deleted = db.delete(BODIES, &ids).await?;
        dropped.bodies += deleted.matched.unsigned_abs();
        deleted.into_result()?;
    }
    Ok(dropped)
}

/// The keys of the oldest bodies that must be dropped to free `excess` bytes. Subtracts their sizes from `excess`.
async fn oldest_ids_to_drop(db: &Db, excess: &mut i64) -> Result<Vec<String>, Fault> {
    let bodies: Collection<Document> = db.database.collection(BODIES);
    let find = async {
        let find = bodies.find(doc! {}).sort(doc! {AT: 1}).limit(OLDEST);
        let mut cursor = find.projection(doc! {"size": 1}).await?;
        let mut oldest = Vec::new();
        while cursor.advance().await? {
            oldest.push(cursor.deserialize_current()?);
        }
        Ok(oldest)
    };
    let mut ids = Vec::new();
    for body in with_timeout(find).await? {
        if *excess <= 0 {
            break;
        }
        *excess -= number(&body, "size");
        ids.extend(body.get_str("_id").map(str::to_owned));
    }
    Ok(ids)
}

async fn read(db: &Db, crawl: &CrawlId, after: Option<String>) -> Result<Vec<Body>, Fault> {
    let (first, end) = page_key_range(crawl);
    let bodies: Collection<RawDocumentBuf> = db.database.collection(BODIES);
    let which = doc! {"_id": {"$gt": after.unwrap_or(first), "$lt": end}};
    let find = async {
        let find = bodies.find(which).sort(doc! {"_id": 1}).limit(STEP);
        // A small batch keeps each answer of the server at about the size of a step, even if the bodies are large.
        let mut cursor = find.batch_size(4).await?;
        let mut found = Vec::new();
        let mut bytes = 0;
        while bytes < STEP_BYTES && cursor.advance().await? {
            bytes += cursor.current().as_bytes().len();
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    };
    let found: Vec<RawDocumentBuf> = with_timeout(find).await?;
    Ok(found.iter().map(|stored| body_from(stored)).collect())
}

/// The body of a page, if it belongs to the page's present version.
pub(super) async fn find(db: &Db, page_id: &str) -> Result<Option<Body>, Fault> {
    let pages: Collection<RawDocumentBuf> = db.database.collection("pages");
    let page = pages
        .find_one(doc! {"_id": page_id})
        .projection(doc! {"content_hash": 1});
    let page = with_timeout(async { page.await }).await?;
    let hash = page
        .as_ref()
        .and_then(|page| page.get_str("content_hash").ok());
    let Some(hash) = hash else {
        return Ok(None);
    };
    let bodies: Collection<RawDocumentBuf> = db.database.collection(BODIES);
    let find = bodies.find_one(doc! {"_id": page_id, "content_hash": hash});
    let found = with_timeout(async { find.await }).await?;
    Ok(found.map(|stored| body_from(&stored)))
}

fn body_from(stored: &RawDocument) -> Body {
    let text = |name: &str| stored.get_str(name).unwrap_or_default().to_owned();
    let number = |name: &str| stored.get_i64(name).unwrap_or_default().unsigned_abs();
    let body = stored.get_binary("body").ok();
    Body {
        page_id: text("_id"),
        content_hash: text("content_hash"),
        is_rendered: stored.get_bool("is_rendered").unwrap_or_default(),
        at_ms: time(stored, AT).unwrap_or_default(),
        task: number("task"),
        delivery: Delivery::new(
            number("epoch"),
            u32::try_from(number("attempts")).unwrap_or(u32::MAX),
        ),
        bytes: number("bytes"),
        body: body.map(|binary| binary.bytes.to_vec()).unwrap_or_default(),
    }
}
