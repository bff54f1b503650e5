//! Brings the keys of an older database up to date, when a store is opened for writing.
//!
//! The key of a document cannot be changed. So documents are moved in batches: the server inserts
//! them under their new keys, where these do not exist yet, and then deletes the old ones. This may
//! be cut off at any point, and several processes may do it at the same time: a document that was
//! inserted but not deleted is found again and only deleted. The number in the header of the log of
//! pages ([`page_log::set_format`]) says that all is done, so that nothing is looked through again.

use std::collections::BTreeMap;

use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use super::command::{Db, majority, with_timeout};
use super::fault::Fault;
use super::page_log;
use crate::dataset_name::UNNAMED_DATASET;

/// Raised when keys change.
pub(super) const FORMAT: i64 = 1;

/// The documents of one batch, which the server moves in one command.
const BATCH: i64 = 200;

/// Moves every document that has an older key. Does nothing if that was done before.
pub(super) async fn migrate(db: &Db) -> Result<(), Fault> {
    if page_log::format(db).await? >= FORMAT {
        return Ok(());
    }
    move_all(db, &PAGES).await?;
    make_way(db).await?;
    move_all(db, &RECORDS).await?;
    page_log::set_format(db, FORMAT).await
}

/// Which documents of a collection are moved, and how.
struct Move {
    collection: &'static str,
    /// Whether a key is an older one, as far as the key tells.
    may_be_old: fn(&str) -> bool,
    /// What else an older document has.
    older: fn() -> RawDocumentBuf,
    /// The members that change; `_id` is one of them.
    changed: fn() -> RawDocumentBuf,
}

/// Formerly crawl id, "/", hash. Neither application nor crawl have a "/" in their ids.
const PAGES: Move = Move {
    collection: "pages",
    may_be_old: |id| id.matches('/').count() == 1,
    older: || rawdoc! {"app_id": {"$type": "string"}},
    changed: || rawdoc! {"_id": {"$concat": ["$app_id", "/", "$_id"]}},
};

/// Formerly the record's id alone. All older records are of one dataset.
const RECORDS: Move = Move {
    collection: "records",
    may_be_old: |_| true,
    older: || rawdoc! {"dataset": {"$exists": false}, "crawls": {"$type": "array"}},
    changed: || {
        rawdoc! {
            "_id": {"$concat": [UNNAMED_DATASET, "/", "$_id"]},
            "dataset": UNNAMED_DATASET,
            "record_id": "$_id",
        }
    },
};

async fn move_all(db: &Db, how: &Move) -> Result<(), Fault> {
    let mut after = String::new();
    let mut is_told = false;
    loop {
        let ids = keys_after(db, how.collection, &after).await?;
        let Some(last) = ids.last() else {
            return Ok(());
        };
        after.clone_from(last);
        let is_old = |id: &&String| (how.may_be_old)(id);
        let old: Vec<&str> = ids.iter().filter(is_old).map(String::as_str).collect();
        if old.is_empty() {
            continue;
        }
        if !std::mem::replace(&mut is_told, true) {
            let collection = how.collection;
            tracing::info!(event = "migrating", collection, "bringing keys up to date");
        }
        move_some(db, how, &old).await?;
    }
}

/// Moves the records whose old keys are the new keys of others. Their new keys may again be the old
/// ones of others, so the longest go first.
async fn make_way(db: &Db) -> Result<(), Fault> {
    let prefix = format!("{UNNAMED_DATASET}/");
    let depth = |id: &str| {
        id.split('/')
            .take_while(|part| *part == UNNAMED_DATASET)
            .count()
    };
    let mut by_depth: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut after = prefix.clone();
    loop {
        let ids = keys_after(db, RECORDS.collection, &after).await?;
        let in_way: Vec<String> = ids
            .into_iter()
            .take_while(|id| id.starts_with(&prefix))
            .collect();
        let Some(last) = in_way.last() else { break };
        after.clone_from(last);
        for id in old_of(db, &in_way).await? {
            by_depth.entry(depth(&id)).or_default().push(id);
        }
    }
    for ids in by_depth.values().rev() {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        for some in ids.chunks(BATCH as usize) {
            move_some(db, &RECORDS, some).await?;
        }
    }
    Ok(())
}

/// Those of these records that have an older key.
async fn old_of(db: &Db, ids: &[String]) -> Result<Vec<String>, Fault> {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let found = db.find_all(RECORDS.collection, &ids).await?;
    let is_old = |record: &&RawDocumentBuf| matches!(record.get("dataset"), Ok(None));
    let old = found.iter().filter(is_old);
    Ok(old
        .filter_map(|record| record.get_str("_id").ok().map(str::to_owned))
        .collect())
}

/// The next keys in their order.
async fn keys_after(db: &Db, collection: &str, after: &str) -> Result<Vec<String>, Fault> {
    let collection: Collection<Document> = db.database.collection(collection);
    let find = async {
        let find = collection.find(doc! {"_id": {"$gt": after}});
        let find = find.projection(doc! {"_id": 1}).sort(doc! {"_id": 1});
        let mut cursor = find.limit(BATCH).await?;
        let mut ids = Vec::new();
        while cursor.advance().await? {
            ids.extend(cursor.current().get_str("_id").map(str::to_owned));
        }
        Ok(ids)
    };
    with_timeout(find).await
}

async fn move_some(db: &Db, how: &Move, ids: &[&str]) -> Result<(), Fault> {
    let ids: RawArrayBuf = ids.iter().copied().collect();
    let mut old = (how.older)();
    old.append(cstr!("_id"), rawdoc! {"$in": ids});
    let mut inserting = rawdoc! {
        "aggregate": how.collection,
        "pipeline": [
            {"$match": old.clone()},
            {"$set": (how.changed)()},
            {"$merge": {
                "into": how.collection, "on": "_id",
                "whenMatched": "keepExisting", "whenNotMatched": "insert",
            }},
        ],
        "cursor": {},
    };
    inserting.append(cstr!("writeConcern"), majority());
    db.run(inserting).await?;
    let deleting = db.delete_matching(how.collection, old);
    deleting.await?.into_result()
}
