//! The order in which pages became visible: a log beside them, without a gap.
//!
//! Many save at once, and no clock or counter tells in which order their writes become visible: who
//! takes a number first may write last. So the number is taken afterwards. Pages are confirmed by a
//! majority before their keys go into an entry of the log, under the number that follows the last
//! one: a unique key that only one can insert, whoever comes second takes the next. Entry N is there
//! only if N - 1 was, and the server's own log keeps that order; so who reads the entries in turn, up
//! to the first that is missing, has seen all that became visible before. No lock and no lease is
//! held, and whoever dies half-way has logged nothing and acknowledged nothing: the pages are saved
//! again.
//!
//! A hole is left at most where a primary lost its place and got it back while somebody was between
//! finding the last entry and inserting the next. The reader closes it, by an empty entry, before it
//! goes on: nothing can appear there any more.
//!
//! Entry 0 names the store, and says whether pages that are older than the log are in it. Where there
//! are such pages, the first reader enters them.

use mongodb::Collection;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawDocumentBuf, doc, rawdoc};

use super::command::{Db, majority, number, with_timeout};
use super::fault::Fault;
use super::value::texts;

pub(super) const LOG: &str = "page_log";

/// Keys in an entry of pages that are older than the log.
const OLDER_AT_ONCE: usize = 500;

/// Logs pages that a majority has.
pub(super) async fn append(db: &Db, mut ids: Vec<String>) -> Result<(), Fault> {
    if ids.is_empty() {
        return Ok(());
    }
    // In order, so that a place in the list tells where a reader is that reads by key.
    ids.sort_unstable();
    ids.dedup();
    let command = append_command(&ids);
    // Whenever this fails, somebody else has succeeded.
    while !db.run_unless_duplicate(command.clone()).await? {}
    Ok(())
}

/// Inserts behind the last entry, whichever that is. Without any entry, which only a foreign hand
/// can bring about, the page that was just saved stands for entry 0.
fn append_command(ids: &[String]) -> RawDocumentBuf {
    let entry_0 = rawdoc! {
        "coll": "pages",
        "pipeline": [{"$limit": 1}, {"$project": {"_id": {"$literal": 0_i64}}}],
    };
    let mut command = rawdoc! {
        "aggregate": LOG,
        "pipeline": [
            {"$sort": {"_id": -1}},
            {"$limit": 1},
            {"$project": {"_id": 1}},
            {"$unionWith": entry_0},
            {"$sort": {"_id": -1}},
            {"$limit": 1},
            {"$project": {"_id": {"$add": ["$_id", 1_i64]}, "pages": {"$literal": texts(ids)}}},
            {"$merge": {
                "into": LOG, "on": "_id", "whenMatched": "fail", "whenNotMatched": "insert",
            }},
        ],
        "cursor": {},
    };
    command.append(cstr!("writeConcern"), majority());
    command
}

/// Makes sure that nothing will appear under a number at which nothing has been found.
pub(super) async fn close_gap(db: &Db, number: i64) -> Result<(), Fault> {
    let mut command = rawdoc! {
        "insert": LOG,
        "documents": [{"_id": number, "pages": []}],
    };
    command.append(cstr!("writeConcern"), majority());
    let inserted = db.run(command).await?;
    if inserted.get_array("writeErrors").is_err() {
        tracing::warn!(
            event = "page_log_hole",
            number,
            "an entry of the log of pages was lost with a primary"
        );
    }
    Ok(())
}

/// The number of the last entry that a majority has.
pub(super) async fn newest(db: &Db) -> Result<i64, Fault> {
    let log: Collection<Document> = db.database.collection(LOG);
    let find = async {
        let last = log.find_one(doc! {}).sort(doc! {"_id": -1});
        last.projection(doc! {"_id": 1}).await
    };
    let last = with_timeout(find).await?;
    Ok(last.map_or(0, |last| number(&last, "_id")))
}

/// What cursors call this store. Pages that are older than the log are in it from then on.
pub(super) async fn store_name(db: &Db) -> Result<String, Fault> {
    let first = match find_header(db).await? {
        Some(first) => first,
        None => {
            insert_header(db, false).await?;
            find_header(db).await?.unwrap_or_default()
        }
    };
    if !first.get_bool("older_pages").unwrap_or_default() {
        log_older_pages(db).await?;
    }
    let store = first.get_str("store").unwrap_or_default();
    Ok(store.to_owned())
}

/// Begins the log of a store that has no pages yet.
pub(super) async fn begin(db: &Db) -> Result<(), Fault> {
    let pages: Collection<Document> = db.database.collection("pages");
    let is_empty = async { Ok(pages.find_one(doc! {}).await?.is_none()) };
    if find_header(db).await?.is_none() && with_timeout(is_empty).await? {
        insert_header(db, true).await?;
    }
    Ok(())
}

async fn insert_header(db: &Db, has_older_pages: bool) -> Result<(), Fault> {
    let store = ObjectId::new().to_hex();
    let first = rawdoc! {"store": store, "older_pages": has_older_pages};
    let naming = rawdoc! {"q": {"_id": 0_i64}, "u": {"$setOnInsert": first}, "upsert": true};
    db.upsert(LOG, &[naming]).await?.into_result()
}

async fn find_header(db: &Db) -> Result<Option<Document>, Fault> {
    let log: Collection<Document> = db.database.collection(LOG);
    with_timeout(async { log.find_one(doc! {"_id": 0_i64}).await }).await
}

/// Enters all pages that there are: those which are in already come twice, and none is missing.
async fn log_older_pages(db: &Db) -> Result<(), Fault> {
    let pages: Collection<Document> = db.database.collection("pages");
    let find = pages
        .find(doc! {})
        .projection(doc! {"_id": 1})
        .sort(doc! {"$natural": 1})
        .no_cursor_timeout(true);
    let mut cursor = with_timeout(async { find.await }).await?;
    let mut ids = Vec::new();
    while with_timeout(cursor.advance()).await? {
        ids.extend(cursor.current().get_str("_id").map(str::to_owned));
        if ids.len() >= OLDER_AT_ONCE {
            append(db, std::mem::take(&mut ids)).await?;
        }
    }
    append(db, ids).await?;
    let entered = rawdoc! {"q": {"_id": 0_i64}, "u": {"$set": {"older_pages": true}}};
    db.update(LOG, &[entered]).await?.into_result()
}
