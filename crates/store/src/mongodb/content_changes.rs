//! The collections `changes`, `versions` and `judged`.
//!
//! There are no transactions, so a judgement is written ahead. The position is written to the single document of
//! `judged`, together with the versions and changes. Only then are the versions and changes copied to their
//! collections. Whoever reads the position repeats a copy that may be incomplete. A copy is idempotent, and a late one
//! never replaces newer data.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawArrayBuf, RawDocument, RawDocumentBuf, doc, rawdoc};
use serde_json::Value;

use super::Mongo;
use super::command::{Db, with_timeout};
use super::conditions::replace_if_statement;
use super::fault::{DUPLICATE_KEY, Fault};
use super::indexes::CHANGES_OF_CRAWL;
use super::list_query::ListQuery;
use super::members::{date, integer, time};
use super::value::{self, binary, bson, or_null};
use crate::browse::{ChangeListFilter, ListPage, Place};
use crate::change::{
    Change, ChangeFilter, ChangeKind, ComparedPosition, Comparison, KnownVersions,
};
use crate::crawl::CrawlId;
use crate::error::StoreError;
use crate::site_clock::clamp_to_i64;
use crate::store::ContentChanges;

const JUDGED: &str = "judged";
const CHANGES: &str = "changes";
const VERSIONS: &str = "versions";

/// The key of the only document of `judged`.
const LAST: &str = "last";

/// How far snapshots have been compared. First copies the versions and changes that an interrupted call has not copied
/// yet.
pub(super) async fn copy_and_load_compared_position(db: &Db) -> Result<ComparedPosition, Fault> {
    // Versions and changes that were copied are removed from this document.
    let Some(stored) = db.find_one(JUDGED, LAST).await? else {
        return Ok(ComparedPosition::default());
    };
    let to = position_from(&stored)?;
    if !stored.get_bool("is_copied").unwrap_or_default() {
        copy_to_collections(db, &stored, to.revision).await?;
    }
    Ok(to)
}

/// All changes up to this number were copied to the collection.
async fn last_visible_number(db: &Db) -> Result<i64, Fault> {
    let judged: Collection<RawDocumentBuf> = db.database.collection(JUDGED);
    let find = judged
        .find_one(doc! {"_id": LAST})
        .projection(doc! {"visible": 1});
    let found = with_timeout(async { find.await }).await?;
    let number = found.and_then(|judged| integer(&judged, "visible"));
    Ok(number.unwrap_or_default())
}

pub(super) async fn with_versions(db: &Db, ids: &[String]) -> Result<HashSet<String>, Fault> {
    let versions: Collection<RawDocumentBuf> = db.database.collection(VERSIONS);
    let find = async {
        let with = versions.find(doc! {"_id": {"$in": ids}});
        let mut cursor = with.projection(doc! {"_id": 1}).await?;
        let mut found = HashSet::new();
        while cursor.advance().await? {
            found.extend(cursor.current().get_str("_id").map(str::to_owned));
        }
        Ok(found)
    };
    with_timeout(find).await
}

fn position_from(stored: &RawDocument) -> Result<ComparedPosition, Fault> {
    let broken = || Fault::InvalidEntry("the stored judgement is not as webfill writes it".into());
    let number = |name| integer(stored, name).map(i64::unsigned_abs);
    let cursor = stored.get_str("cursor").map_err(|_| broken())?;
    Ok(ComparedPosition {
        revision: number("revision").ok_or_else(broken)?,
        cursor: cursor.parse().map_err(|_| broken())?,
        last_number: number("last_number").ok_or_else(broken)?,
    })
}

pub(super) async fn versions(db: &Db, ids: &[String]) -> Result<Vec<KnownVersions>, Fault> {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let found = db.find_by_ids(VERSIONS, &ids).await?;
    let read = |stored: &RawDocumentBuf| KnownVersions {
        id: stored.get_str("_id").unwrap_or_default().to_owned(),
        checked_at_ms: time(stored, "checked_at").unwrap_or_default(),
        state: stored
            .get_binary("state")
            .map(|state| state.bytes.to_vec())
            .unwrap_or_default(),
    };
    Ok(found.iter().map(read).collect())
}

/// Stores the results of a comparison. Returns false if they do not directly follow the last stored ones.
pub(super) async fn put(db: &Db, judgement: &Comparison) -> Result<bool, Fault> {
    let stored = comparison_document(judgement)?;
    let revision = clamp_to_i64(judgement.to.revision);
    // The second condition matches results that this writer has already stored, because a command may be sent twice.
    let statement = rawdoc! {
        "q": {"_id": LAST, "$or": [
            {"revision": revision - 1},
            {"revision": revision, "writer": judgement.writer.as_str()},
        ]},
        "u": stored.clone(),
        "upsert": revision == 1,
    };
    let updated = db.update(JUDGED, &[statement]).await?;
    let is_other = |failed: &&(usize, i32, String)| failed.1 != DUPLICATE_KEY;
    if let Some((_, code, message)) = updated.failed.iter().find(is_other) {
        return Err(Fault::from_statement_error(*code, message));
    }
    let is_next = updated.failed.is_empty() && updated.matched == 1;
    if is_next {
        copy_to_collections(db, &stored, judgement.to.revision).await?;
    }
    Ok(is_next)
}

fn comparison_document(judgement: &Comparison) -> Result<RawDocumentBuf, Fault> {
    let to = &judgement.to;
    let mut versions = RawArrayBuf::new();
    for one in &judgement.versions {
        versions.push(rawdoc! {
            "_id": one.id.as_str(),
            "checked_at": date(one.checked_at_ms),
            "state": binary(&one.state),
            "revision": clamp_to_i64(to.revision),
        });
    }
    let mut changes = RawArrayBuf::new();
    for change in &judgement.changes {
        changes.push(change_document(change)?);
    }
    let mut document = rawdoc! {
        "_id": LAST,
        "revision": clamp_to_i64(to.revision),
        "writer": judgement.writer.as_str(),
        "cursor": to.cursor.to_string(),
        "last_number": clamp_to_i64(to.last_number),
        "visible": clamp_to_i64(to.last_number) - judgement.changes.len() as i64,
        "is_copied": false,
    };
    document.append(cstr!("versions"), versions);
    document.append(cstr!("changes"), changes);
    Ok(document)
}

/// Copies the versions and changes of a comparison to their collections, and then records that they are there.
async fn copy_to_collections(db: &Db, judged: &RawDocument, revision: u64) -> Result<(), Fault> {
    let versions = array_documents(judged, "versions").map(|one| {
        let id = one.get_str("_id").unwrap_or_default();
        let is_newer = rawdoc! {"$gte": [clamp_to_i64(revision), "$revision"]};
        replace_if_statement(id, is_newer, one.to_owned())
    });
    let versions: Vec<RawDocumentBuf> = versions.collect();
    let changes = array_documents(judged, "changes").map(|one| {
        let number = integer(one, "_id").unwrap_or_default();
        rawdoc! {"q": {"_id": number}, "u": {"$setOnInsert": one.to_owned()}, "upsert": true}
    });
    let changes: Vec<RawDocumentBuf> = changes.collect();
    let (versions, changes) =
        tokio::try_join!(db.upsert(VERSIONS, &versions), db.upsert(CHANGES, &changes))?;
    versions.into_result()?;
    changes.into_result()?;
    let last = integer(judged, "last_number").unwrap_or_default();
    let copied = rawdoc! {
        "q": {"_id": LAST, "revision": clamp_to_i64(revision)},
        "u": {"$set": {"is_copied": true, "visible": last}, "$unset": {"versions": 1, "changes": 1}},
    };
    db.update(JUDGED, &[copied]).await?.into_result()
}

fn array_documents<'a>(
    stored: &'a RawDocument,
    name: &str,
) -> impl Iterator<Item = &'a RawDocument> {
    let array = stored.get_array(name).ok().into_iter();
    let items = array.flat_map(|array| array.into_iter());
    items.filter_map(|item| item.ok()?.as_document())
}

fn change_document(change: &Change) -> Result<RawDocumentBuf, Fault> {
    Ok(rawdoc! {
        "_id": clamp_to_i64(change.number),
        "app_id": change.app_id.as_str(),
        "crawl_id": change.crawl_id.as_str(),
        "url": change.url.as_str(),
        "page": change.page_id.as_str(),
        "site": change.site.as_str(),
        "kind": change.kind.as_str(),
        "at": date(change.at_ms),
        "mapping": or_null(change.mapping.as_deref()),
        "old": or_null(change.old.as_ref().map(bson).transpose()?),
        "new": or_null(change.new.as_ref().map(bson).transpose()?),
        "difference": change.difference.as_str(),
    })
}

/// Reads changes, up to the last number below which no change is missing.
pub(super) async fn read(
    db: &Db,
    filter: &ChangeFilter,
    after: u64,
    limit: u32,
) -> Result<Vec<Change>, Fault> {
    let which = query_of(filter, after, last_visible_number(db).await?);
    let changes: Collection<RawDocumentBuf> = db.database.collection(CHANGES);
    let find = async {
        let find = changes.find(which).sort(doc! {"_id": 1});
        let mut cursor = find.limit(i64::from(limit)).await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    };
    let found: Vec<RawDocumentBuf> = with_timeout(find).await?;
    found.iter().map(|stored| change_from(stored)).collect()
}

/// Lists changes, the latest first. Begins at the last number below which no change is missing.
pub(super) async fn list(
    db: &Db,
    filter: &ChangeListFilter,
    from: Option<Place>,
    wanted: usize,
) -> Result<ListPage<Change>, Fault> {
    let before = from.map_or(i64::MAX, |place| place.number(0));
    let mut which = doc! {"_id": {"$lt": before, "$lte": last_visible_number(db).await?}};
    let index = match &filter.crawl {
        Some(crawl) => {
            which.insert("app_id", &crawl.app_id);
            which.insert("crawl_id", &crawl.crawl_id);
            CHANGES_OF_CRAWL
        }
        None => "_id_",
    };
    let listing = ListQuery {
        collection: CHANGES,
        which,
        order: doc! {"_id": -1},
        index,
        members: Document::new(),
        wanted,
    };
    let placed = |stored: &RawDocument| {
        let change = change_from(stored)?;
        let place = Place::newest_first([change.number.to_string()]);
        Ok((place, filter.matches(&change).then_some(change)))
    };
    Ok(listing
        .read_list_page(db, placed)
        .await?
        .unwrap_or_else(ListPage::end))
}

pub(super) async fn count(
    db: &Db,
    filter: &ChangeFilter,
) -> Result<BTreeMap<ChangeKind, u64>, Fault> {
    let pipeline = [
        doc! {"$match": query_of(filter, 0, last_visible_number(db).await?)},
        doc! {"$group": {"_id": "$kind", "pages": {"$sum": 1}}},
    ];
    let changes: Collection<RawDocumentBuf> = db.database.collection(CHANGES);
    let counting = async {
        let mut cursor = changes.aggregate(pipeline).await?;
        let mut found = Vec::new();
        while cursor.advance().await? {
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    };
    let found: Vec<RawDocumentBuf> = with_timeout(counting).await?;
    let count = |group: &RawDocumentBuf| {
        let count = integer(group, "pages").unwrap_or_default();
        Ok((kind_from(group, "_id")?, count.unsigned_abs()))
    };
    found.iter().map(count).collect()
}

pub(super) async fn new_documents(
    db: &Db,
    crawl: &CrawlId,
    began_ms: i64,
    is_first: bool,
) -> Result<u64, Fault> {
    let (app_id, crawl_id) = (crawl.app_id.as_str(), crawl.crawl_id.as_str());
    let since = doc! {"$gte": date(began_ms)};
    let count = doc! {"$count": "pages"};
    let (collection, pipeline) = match is_first {
        true => {
            let which = doc! {"app_id": app_id, "crawl_id": crawl_id, "started_at": since,
            "document": {"$type": "object"}};
            ("pages", vec![doc! {"$match": which}, count])
        }
        false => {
            let mut which =
                doc! {"app_id": app_id, "crawl_id": crawl_id, "at": since, "kind": "new"};
            which.insert("_id", doc! {"$lte": last_visible_number(db).await?});
            // For each page, the query only finds out whether it is a document.
            let documents = vec![
                doc! {"$match": {"document": {"$type": "object"}}},
                doc! {"$project": {"_id": 1}},
            ];
            let lookup = doc! {"from": "pages", "localField": "page", "foreignField": "_id",
            "pipeline": documents, "as": "documents"};
            let found = doc! {"$match": {"documents": {"$ne": []}}};
            let steps = vec![
                doc! {"$match": which},
                doc! {"$lookup": lookup},
                found,
                count,
            ];
            (CHANGES, steps)
        }
    };
    let collection: Collection<RawDocumentBuf> = db.database.collection(collection);
    let counting = async {
        let mut cursor = collection.aggregate(pipeline).await?;
        match cursor.advance().await? {
            true => Ok(integer(cursor.current(), "pages")),
            false => Ok(None),
        }
    };
    let count = with_timeout(counting).await?;
    Ok(count.unwrap_or_default().unsigned_abs())
}

fn query_of(filter: &ChangeFilter, after: u64, visible: i64) -> Document {
    let mut which = doc! {"_id": {"$gt": clamp_to_i64(after), "$lte": visible}};
    if let Some(app_id) = &filter.app_id {
        which.insert("app_id", app_id);
    }
    if let Some(crawl_id) = &filter.crawl_id {
        which.insert("crawl_id", crawl_id);
    }
    if let Some(since_ms) = filter.since_ms {
        which.insert("at", doc! {"$gte": date(since_ms)});
    }
    which
}

fn kind_from(stored: &RawDocument, member: &str) -> Result<ChangeKind, Fault> {
    let name = stored.get_str(member).unwrap_or_default();
    let none = || Fault::InvalidEntry(format!("`{name}` is no kind of change"));
    ChangeKind::from_name(name).ok_or_else(none)
}

fn change_from(stored: &RawDocument) -> Result<Change, Fault> {
    let mut members = value::object(stored);
    let optional = |name: &str| stored.get_str(name).ok().map(str::to_owned);
    let text = |name: &str| optional(name).unwrap_or_default();
    let mut given = |name: &str| members.remove(name).filter(|value| *value != Value::Null);
    Ok(Change {
        number: integer(stored, "_id").unwrap_or_default().unsigned_abs(),
        app_id: text("app_id"),
        crawl_id: text("crawl_id"),
        url: text("url"),
        page_id: text("page"),
        site: text("site"),
        kind: kind_from(stored, "kind")?,
        at_ms: time(stored, "at").unwrap_or_default(),
        mapping: optional("mapping"),
        old: given("old"),
        new: given("new"),
        difference: text("difference"),
    })
}

#[async_trait]
impl ContentChanges for Mongo {
    async fn load_compared_position(&self) -> Result<ComparedPosition, StoreError> {
        self.call(async move |db: Db| copy_and_load_compared_position(&db).await)
            .await
    }

    async fn versions(&self, ids: Vec<String>) -> Result<Vec<KnownVersions>, StoreError> {
        self.call(async move |db: Db| versions(&db, &ids).await)
            .await
    }

    async fn with_versions(&self, ids: Vec<String>) -> Result<HashSet<String>, StoreError> {
        self.call(async move |db: Db| with_versions(&db, &ids).await)
            .await
    }

    async fn put_judgement(&self, judgement: Comparison) -> Result<bool, StoreError> {
        self.call(async move |db: Db| put(&db, &judgement).await)
            .await
    }

    async fn content_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError> {
        let filter = filter.clone();
        self.call(async move |db: Db| read(&db, &filter, after, limit).await)
            .await
    }

    async fn count_content_changes(
        &self,
        filter: &ChangeFilter,
    ) -> Result<BTreeMap<ChangeKind, u64>, StoreError> {
        let filter = filter.clone();
        self.call(async move |db: Db| count(&db, &filter).await)
            .await
    }

    async fn count_new_documents(
        &self,
        crawl: &CrawlId,
        began_ms: i64,
        is_first: bool,
    ) -> Result<u64, StoreError> {
        let crawl = crawl.clone();
        self.call(async move |db: Db| new_documents(&db, &crawl, began_ms, is_first).await)
            .await
    }
}
