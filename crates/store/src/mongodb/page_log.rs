//! The collection `page_log`: the order that pages became visible in. Readers of changes follow this order (see
//! [`Changes::changes`](crate::Changes::changes)).
//!
//! Many clients save pages at the same time. A number taken before a write does not show when the write becomes
//! visible: the client with the lower number may finish later. So the number is taken afterwards:
//!
//! 1. a client saves pages, and waits until a majority of the members has them;
//! 2. it inserts an entry with the keys of these pages. The entry's `_id` is one more than the highest in the log. If
//!    another client inserts the same `_id` first, the insert fails with a duplicate key, and the client tries the
//!    next number;
//! 3. it acknowledges the pages once a majority has the entry.
//!
//! Entry N exists only if N - 1 existed, and replication keeps this order. So a reader that follows the entries up to
//! the first missing number has seen every page that was acknowledged before. There are no locks or leases. After a
//! crash between 1 and 3, the pages were not acknowledged and are saved again.
//!
//! The log can have a gap in one case: a primary loses its role and regains it between a client's search for the last
//! entry and its insert. A reader that finds a gap fills it with an empty entry before it continues ([`close_gap`]),
//! so that no page can appear there later.
//!
//! Entry 0 is the header: the store's id, its format, and whether the pages that are older than the log have entries.
//! If an administrator has deleted the log, these pages have no entries until the first reader adds them
//! ([`ensure_store_id`]). The header also names the last entry that is too old for readers; see
//! [`retention`](super::retention).

use mongodb::Collection;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawDocumentBuf, doc, rawdoc};

use super::command::{Db, number, with_timeout, write_concern};
use super::fault::Fault;
use super::value::text_array;

pub(super) const LOG: &str = "page_log";

/// The format of the store.
const FORMAT: i64 = 1;

/// How many keys an entry may have that is added for pages older than the log.
const OLDER_AT_ONCE: usize = 500;

/// Appends an entry to the log, for pages that a majority of the members has.
pub(super) async fn append(db: &Db, mut ids: Vec<String>) -> Result<(), Fault> {
    if ids.is_empty() {
        return Ok(());
    }
    // Readers read the pages of an entry in the order of their keys, so a position in the sorted list of keys is a
    // reader's position.
    ids.sort_unstable();
    ids.dedup();
    let command = append_command(&ids);
    // Each failure means that another client has appended an entry under this number.
    while !db.run_unless_duplicate(command.clone()).await? {}
    Ok(())
}

/// The command that inserts an entry after the last one. If the log is empty because an administrator has deleted it,
/// a document made from any stored page takes the place of entry 0.
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
            {"$project": {
                "_id": {"$add": ["$_id", 1_i64]},
                "at": "$$NOW",
                "pages": {"$literal": text_array(ids)},
            }},
            {"$merge": {
                "into": LOG, "on": "_id", "whenMatched": "fail", "whenNotMatched": "insert",
            }},
        ],
        "cursor": {},
    };
    command.append(cstr!("writeConcern"), write_concern());
    command
}

/// Inserts an empty entry under a missing number, so that no page can appear there later.
pub(super) async fn close_gap(db: &Db, number: i64) -> Result<(), Fault> {
    let mut command = rawdoc! {
        "insert": LOG,
        "documents": [{"_id": number, "pages": []}],
    };
    command.append(cstr!("writeConcern"), write_concern());
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

/// The number of the last entry in the log that a majority of the members has.
pub(super) async fn newest(db: &Db) -> Result<i64, Fault> {
    let log: Collection<Document> = db.database.collection(LOG);
    let find = async {
        let last = log.find_one(doc! {}).sort(doc! {"_id": -1});
        last.projection(doc! {"_id": 1}).await
    };
    let last = with_timeout(find).await?;
    Ok(last.map_or(0, |last| number(&last, "_id")))
}

/// The number of the oldest entry in the log.
pub(super) async fn oldest_number(db: &Db) -> Result<Option<i64>, Fault> {
    let log: Collection<Document> = db.database.collection(LOG);
    let find = async {
        let first = log.find_one(doc! {"_id": {"$gt": 0_i64}});
        let first = first.sort(doc! {"_id": 1}).projection(doc! {"_id": 1});
        first.await
    };
    let first = with_timeout(find).await?;
    Ok(first.map(|first| number(&first, "_id")))
}

/// The cut: the number of the last entry that is too old for readers; 0 if none is.
pub(super) async fn cut(db: &Db) -> Result<i64, Fault> {
    let header = find_header(db).await?.unwrap_or_default();
    Ok(number(&header, "cut"))
}

/// Raises the cut to this entry: readers that have not read the entry are refused from now on.
pub(super) async fn set_cut(db: &Db, entry: i64) -> Result<(), Fault> {
    insert_header(db, rawdoc! {"older_pages": false}).await?;
    let noting = rawdoc! {"q": {"_id": 0_i64}, "u": {"$max": {"cut": entry}}};
    db.update(LOG, &[noting]).await?.into_result()
}

/// The store's id, which its cursors contain. Also makes sure that pages older than the log have entries.
pub(super) async fn ensure_store_id(db: &Db) -> Result<String, Fault> {
    let first = match find_header(db).await? {
        Some(first) => first,
        None => {
            insert_header(db, rawdoc! {"older_pages": false}).await?;
            find_header(db).await?.unwrap_or_default()
        }
    };
    if !first.get_bool("older_pages").unwrap_or_default() {
        log_older_pages(db).await?;
    }
    let store = first.get_str("store").unwrap_or_default();
    Ok(store.to_owned())
}

/// Creates the header of a store that has no pages yet.
pub(super) async fn create(db: &Db) -> Result<(), Fault> {
    let pages: Collection<Document> = db.database.collection("pages");
    let is_empty = async { Ok(pages.find_one(doc! {}).await?.is_none()) };
    if find_header(db).await?.is_none() && with_timeout(is_empty).await? {
        insert_header(db, rawdoc! {"older_pages": true}).await?;
    }
    Ok(())
}

/// Refuses a store of another format.
pub(super) async fn check_format(db: &Db) -> Result<(), Fault> {
    let Some(header) = find_header(db).await? else {
        return Ok(());
    };
    match number(&header, "format") {
        FORMAT => Ok(()),
        other => Err(Fault::Unusable(format!(
            "the database has format {other}, this webfill reads format {FORMAT}: use the webfill that wrote it, or \
             another database"
        ))),
    }
}

/// Inserts the header, with a new id, unless there is one.
async fn insert_header(db: &Db, mut header: RawDocumentBuf) -> Result<(), Fault> {
    header.append(cstr!("format"), FORMAT);
    header.append(cstr!("store"), ObjectId::new().to_hex());
    let naming = rawdoc! {"q": {"_id": 0_i64}, "u": {"$setOnInsert": header}, "upsert": true};
    db.upsert(LOG, &[naming]).await?.into_result()
}

async fn find_header(db: &Db) -> Result<Option<Document>, Fault> {
    let log: Collection<Document> = db.database.collection(LOG);
    with_timeout(async { log.find_one(doc! {"_id": 0_i64}).await }).await
}

/// Appends entries for all stored pages. A page that already has an entry gets a second one, and no page lacks one.
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
