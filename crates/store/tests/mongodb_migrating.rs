//! A MongoDB database with older keys is brought up to date when it is opened, by one process or
//! several, in one go or cut off.

use std::collections::BTreeSet;
use std::sync::Arc;

use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};
use serde_json::Value;
use webfill_store::{
    CrawlId, Cursor, ExportFilter, ExportKind, Page, Save, Store, StoreUri, UNNAMED_DATASET, open,
    page_id,
};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_wire::Outcome;

fn url(number: u64) -> String {
    format!("https://example.com/{number}")
}

fn old_key(number: u64) -> String {
    let key = page_id("app", "c1", &url(number));
    key.strip_prefix("app/").unwrap().to_owned()
}

async fn opened(uri: &str) -> Arc<dyn Store> {
    let uri: StoreUri = uri.parse().unwrap();
    open(&uri, None).await.unwrap().store
}

async fn database(uri: &str) -> Database {
    let client = Client::with_uri_str(uri).await.unwrap();
    client.default_database().unwrap()
}

/// Saves pages, and gives them the keys that they had in an older version.
async fn older_pages(uri: &str, numbers: std::ops::Range<u64>) {
    let store = opened(uri).await;
    let save = |number| Save {
        page: Page::new(
            &CrawlId::new("app", "c1"),
            &url(number),
            "example.com",
            Outcome::Ok,
        ),
        records: Vec::new(),
    };
    let saved = store.save(numbers.clone().map(save).collect()).await;
    assert!(saved.iter().all(Result::is_ok), "{saved:?}");
    let database = database(uri).await;
    let pages = database.collection::<Document>("pages");
    for number in numbers {
        let id = doc! {"_id": page_id("app", "c1", &url(number))};
        let mut page = pages.find_one_and_delete(id).await.unwrap().unwrap();
        page.insert("_id", old_key(number));
        pages.insert_one(page).await.unwrap();
    }
    let log = database.collection::<Document>("page_log");
    let header = doc! {"$unset": {"format": ""}, "$set": {"older_pages": true}};
    log.update_one(doc! {"_id": 0}, header).await.unwrap();
}

async fn keys(store: &dyn Store) -> Vec<Value> {
    let mut keys = Vec::new();
    let mut each = |page: Value| {
        keys.push(page["_id"].clone());
        Ok(())
    };
    let everything = ExportFilter::default();
    let exported = store.export(ExportKind::Pages, &everything, &mut each);
    exported.await.unwrap();
    keys
}

#[needs(mongod)]
#[tokio::test]
async fn older_pages_get_keys_with_their_application() {
    let fresh = fresh_database();
    older_pages(fresh.uri(), 0..450).await;
    // One had been inserted under its new key when it was cut off, and has been written since.
    let database = database(fresh.uri()).await;
    let pages = database.collection::<Document>("pages");
    let old = pages.find_one(doc! {"_id": old_key(7)}).await.unwrap();
    let mut newer = old.unwrap();
    newer.insert("_id", page_id("app", "c1", &url(7)));
    newer.insert("site", "newer.example");
    pages.insert_one(newer).await.unwrap();
    let (first, second) = tokio::join!(opened(fresh.uri()), opened(fresh.uri()));
    let expected: BTreeSet<String> = (0..450)
        .map(|number| page_id("app", "c1", &url(number)))
        .collect();
    for store in [first, second] {
        let found = keys(&*store).await;
        assert_eq!(found.len(), 450, "none is kept twice");
        let found: BTreeSet<String> = found
            .iter()
            .map(|key| key.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(found, expected);
    }
    let id = doc! {"_id": page_id("app", "c1", &url(7))};
    let kept = pages.find_one(id).await.unwrap().unwrap();
    assert_eq!(kept.get_str("site").unwrap(), "newer.example");
}

#[needs(mongod)]
#[tokio::test]
async fn a_reader_misses_no_page_whose_key_has_changed() {
    let fresh = fresh_database();
    older_pages(fresh.uri(), 0..10).await;
    let store = opened(fresh.uri()).await;
    let mut urls = BTreeSet::new();
    let mut each = |_, page: Value| {
        urls.insert(page["url"].as_str().unwrap().to_owned());
        Ok(())
    };
    let everything = ExportFilter::default();
    let start = Cursor::start();
    let read = store.changes(&start, &everything, &mut each).await;
    read.unwrap();
    assert_eq!(urls, (0..10).map(url).collect());
}

#[needs(mongod)]
#[tokio::test]
async fn older_records_are_in_a_dataset_of_their_own() {
    let fresh = fresh_database();
    drop(opened(fresh.uri()).await);
    let database = database(fresh.uri()).await;
    let record = |id: String| {
        doc! {
            "_id": id, "fields": {"city": null}, "sources": {}, "candidates": {},
            "missing": ["city"], "resolved_at": null, "version": 1_i64,
            "crawls": [{"app_id": "app", "crawl_id": "c1"}],
        }
    };
    let ids = || (0..450).map(|number| number.to_string());
    let ids = || ids().chain([format!("{UNNAMED_DATASET}/7")]);
    let records = database.collection::<Document>("records");
    records.insert_many(ids().map(record)).await.unwrap();
    let log = database.collection::<Document>("page_log");
    let header = doc! {"$unset": {"format": ""}};
    log.update_one(doc! {"_id": 0}, header).await.unwrap();
    let (store, _) = tokio::join!(opened(fresh.uri()), opened(fresh.uri()));
    let mut found = BTreeSet::new();
    let mut each = |record: Value| {
        assert_eq!(record["dataset"], UNNAMED_DATASET);
        let id = record["record_id"].as_str().unwrap().to_owned();
        assert_eq!(record["_id"], format!("{UNNAMED_DATASET}/{id}"));
        assert!(found.insert(id));
        Ok(())
    };
    let everything = ExportFilter::default();
    let exported = store.export(ExportKind::Records, &everything, &mut each);
    assert_eq!(exported.await.unwrap(), 451);
    assert_eq!(found, ids().collect());
    let counts = store.record_counts(&CrawlId::new("app", "c1")).await;
    assert_eq!(counts.unwrap().total, 451);
}
