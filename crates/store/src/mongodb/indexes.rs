//! The indexes, created when a store is opened. Existing ones are left as they are.
//!
//! | collection | index | what it is for |
//! |---|---|---|
//! | `records` | `crawls`, `resolved_at` | counting the records of a crawl; records resolved in a period |
//! | `records` | `unwritten` (sparse) | records to be written back to their dataset |
//! | `records` | `row.lists.url` (sparse), `row.gone.list` (sparse) | rows of a list; rows that are gone from it |
//! | `pages` | `crawl_id`, `started_at` | pages of a crawl in a period |
//! | `pages` | `started_at` | pages that are too old; only in a store that drops pages |
//! | `pages` | `app_id`, `crawl_id`, `outcome`, `started_at` | pages of a crawl, for users; if browsed |
//! | `pages` | `app_id`, `crawl_id`, `mapping`, `outcome`, `started_at` (partial) | pages of a mapping; if browsed |
//! | `pages` | `site`, `started_at` | pages of a site; if browsed |
//! | `records` | `dataset`, `resolved_at` | open records, and resolved ones; if browsed |
//! | `crawls` | `started_at` | crawls, the last started first; if browsed |
//! | `changes` | `app_id`, `crawl_id` | changes of a crawl's pages, in the order of their numbers |
//! | `changes` | `app_id`, `crawl_id`, `at`, `kind` | how many changes a run has found |
//! | `changes`, `versions` | `at`, `checked_at` | old changes and versions; only in a store that drops pages |
//! | `bodies` | `at` | bodies that are too old, or too many; only in a store that keeps bodies or drops pages |
//! | `robots` | `fetched_at` (TTL) | the server deletes documents that are a day old |
//! | `sites` | `forget_at` (TTL) | the server deletes clocks of sites that are no longer fetched from |
//!
//! *If browsed*: the index is created only for a store that is browsed. All other access is by `_id`.

use mongodb::bson::raw::cstr;
use mongodb::bson::{Document, RawDocumentBuf, doc};

use super::command::{Db, write_concern};
use super::fault::Fault;
use super::members::{AT, BODIES, GONE, HELD};
use crate::cache::ROBOTS_KEPT_MS;
use crate::open_mode::Uses;

/// The index of `records` that webfill recognises its own collection by.
pub(super) const OF_RECORDS: &str = "crawls_resolved_at";

/// The indexes for browsing a store.
pub(super) const PAGES_BY_OUTCOME: &str = "app_id_crawl_id_outcome_started_at";
pub(super) const PAGES_BY_MAPPING: &str = "app_id_crawl_id_mapping_outcome_started_at";
pub(super) const PAGES_BY_SITE: &str = "site_started_at";
pub(super) const RECORDS_BY_STATE: &str = "dataset_resolved_at";
pub(super) const CRAWLS_BY_START: &str = "started_at";

/// The index of a crawl's changes.
pub(super) const CHANGES_OF_CRAWL: &str = "app_id_crawl_id";

/// Collections whose old documents are dropped along with old pages, each with the member that holds the time.
pub(super) const GO_WITH_PAGES: [(&str, &str); 3] =
    [("changes", "at"), ("versions", "checked_at"), (BODIES, AT)];

/// The indexes that should exist: collection, and description of the index.
fn wanted_indexes(uses: Uses) -> Vec<(&'static str, Document)> {
    let mut wanted = Vec::new();
    if uses.includes_store() {
        let resolved = doc! {"name": OF_RECORDS, "key": {"crawls": 1, "resolved_at": 1}};
        let started = doc! {"name": "crawl_id_started_at", "key": {"crawl_id": 1, "started_at": 1}};
        let unwritten = doc! {"name": "unwritten", "key": {"unwritten": 1}, "sparse": true};
        let held = doc! {"name": HELD, "key": {HELD: 1, "_id": 1}, "sparse": true};
        let gone = doc! {"name": GONE, "key": {GONE: 1}, "sparse": true};
        let changed =
            doc! {"name": CHANGES_OF_CRAWL, "key": {"app_id": 1, "crawl_id": 1, "_id": 1}};
        // The index has all members that are counted for a run, so that the changes themselves need not be read.
        let counted = doc! {"name": "app_id_crawl_id_at", "key": {"app_id": 1, "crawl_id": 1, "at": 1, "kind": 1, "_id": 1}};
        wanted.extend([
            ("records", resolved),
            ("records", unwritten),
            ("records", held),
            ("records", gone),
            ("pages", started),
            ("changes", changed),
            ("changes", counted),
        ]);
    }
    if uses.includes_cache() {
        let purged = |time: &str, after_s: i64| doc! {"name": time, "key": {time: 1}, "expireAfterSeconds": after_s};
        wanted.extend([
            ("robots", purged("fetched_at", ROBOTS_KEPT_MS / 1_000)),
            ("sites", purged("forget_at", 0)),
        ]);
    }
    wanted
}

/// Creates missing indexes.
pub(super) async fn create(db: &Db, uses: Uses) -> Result<(), Fault> {
    for (collection, index) in wanted_indexes(uses) {
        create_index(db, collection, index).await?;
    }
    Ok(())
}

/// Creates the index for finding the oldest bodies, unless it exists.
pub(super) async fn create_for_bodies(db: &Db) -> Result<(), Fault> {
    let index = doc! {"name": AT, "key": {AT: 1}};
    create_index(db, BODIES, index).await
}

/// Creates the indexes for finding old pages, changes and versions, unless they exist.
pub(super) async fn create_for_retention(db: &Db) -> Result<(), Fault> {
    let started = doc! {"name": "started_at", "key": {"started_at": 1}};
    create_index(db, "pages", started).await?;
    for (collection, time) in GO_WITH_PAGES {
        let index = doc! {"name": time, "key": {time: 1}};
        create_index(db, collection, index).await?;
    }
    Ok(())
}

/// Creates the indexes for browsing a store, unless they exist.
pub(super) async fn create_for_browsing(db: &Db) -> Result<(), Fault> {
    let by_outcome = doc! {"app_id": 1, "crawl_id": 1, "outcome": 1, "started_at": -1, "_id": -1};
    let by_mapping =
        doc! {"app_id": 1, "crawl_id": 1, "mapping": 1, "outcome": 1, "started_at": -1, "_id": -1};
    // All names of mappings sort after "".
    let with_mapping = doc! {"mapping": {"$gt": ""}};
    for (collection, index) in [
        (
            "crawls",
            doc! {"name": CRAWLS_BY_START, "key": {"started_at": -1, "_id": -1}},
        ),
        ("pages", doc! {"name": PAGES_BY_OUTCOME, "key": by_outcome}),
        (
            "pages",
            doc! {"name": PAGES_BY_MAPPING, "key": by_mapping, "partialFilterExpression": with_mapping},
        ),
        (
            "pages",
            doc! {"name": PAGES_BY_SITE, "key": {"site": 1, "started_at": -1, "_id": -1}},
        ),
        (
            "records",
            doc! {"name": RECORDS_BY_STATE, "key": {"dataset": 1, "resolved_at": 1, "_id": 1}},
        ),
    ] {
        create_index(db, collection, index).await?;
    }
    Ok(())
}

async fn create_index(db: &Db, collection: &str, index: Document) -> Result<(), Fault> {
    let command = doc! {"createIndexes": collection, "indexes": [index]};
    let mut command = RawDocumentBuf::try_from(&command).map_err(mongodb::error::Error::from)?;
    command.append(cstr!("writeConcern"), write_concern());
    db.run(command).await.map(drop)
}
