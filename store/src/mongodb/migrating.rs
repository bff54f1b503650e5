//! Brings the keys of an older database up to date, when a store is opened for writing.
//!
//! The key of a document cannot be changed. So documents are moved in batches: the server inserts
//! them under their new keys, where these do not exist yet, and then deletes the old ones. This may
//! be cut off at any point, and several processes may do it at the same time: a document that was
//! inserted but not deleted is found again and only deleted. The number in the header of the log of
//! pages ([`page_log::set_format`]) says that all is done, so that nothing is looked through again.

use mongodb::Collection;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use super::command::{Db, majority, with_timeout};
use super::fault::Fault;
use super::page_log;

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

async fn move_all(db: &Db, how: &Move) -> Result<(), Fault> {
    let mut after = String::new();
    let mut moved = 0;
    loop {
        let ids = keys_after(db, how.collection, &after).await?;
        let Some(last) = ids.last() else { break };
        after.clone_from(last);
        let old: RawArrayBuf = ids
            .iter()
            .map(String::as_str)
            .filter(|id| (how.may_be_old)(id))
            .collect();
        if old.is_empty() {
            continue;
        }
        if moved == 0 {
            tracing::info!(
                event = "migrating",
                collection = how.collection,
                "bringing keys up to date"
            );
        }
        moved += 1;
        move_some(db, how, old).await?;
    }
    Ok(())
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

async fn move_some(db: &Db, how: &Move, ids: RawArrayBuf) -> Result<(), Fault> {
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
