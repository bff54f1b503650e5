//! MongoDB's log of pages: pages that are older than the log, and gaps in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use mongodb::bson::{DateTime, Document, doc};
use mongodb::{Client, Collection};
use serde_json::Value;
use webfill_store::{
    CrawlId, Cursor, Cutoff, ExportFilter, ExportKind, Page, Save, Store, StoreUri, open,
};
use webfill_test_mongod::{Mongod, fresh_database};
use webfill_test_needs::needs;
use webfill_wire::Outcome;

fn url(number: u64) -> String {
    format!("https://example.com/{number}")
}

fn page(number: u64) -> Page {
    let crawl = CrawlId::new("app", "c1");
    Page::new(&crawl, &url(number), "example.com", Outcome::Ok)
}

async fn save(store: &dyn Store, numbers: std::ops::Range<u64>) {
    let save = |number| Save {
        page: page(number),
        records: Vec::new(),
    };
    let saved = store.save(numbers.map(save).collect()).await;
    assert!(saved.iter().all(Result::is_ok), "{saved:?}");
}

async fn read_changed_urls(store: &dyn Store, after: &Cursor) -> (Vec<String>, Cursor) {
    let mut urls = Vec::new();
    let mut each = |_, page: Value| {
        urls.push(page["url"].as_str().unwrap().to_owned());
        Ok(())
    };
    let everything = ExportFilter::default();
    let end = store.changes(after, &everything, &mut each).await.unwrap();
    (urls, end)
}

async fn open_store(uri: &str) -> Arc<dyn Store> {
    let uri: StoreUri = uri.parse().unwrap();
    open(&uri, None).await.unwrap().store
}

async fn log_collection(uri: &str) -> Collection<Document> {
    let client = Client::with_uri_str(uri).await.unwrap();
    client.default_database().unwrap().collection("page_log")
}

#[needs(mongod)]
#[tokio::test]
async fn pages_that_are_older_than_the_log_are_read_too() {
    let database = fresh_database();
    let store = open_store(database.uri()).await;
    save(&*store, 0..1_200).await;
    // An administrator may delete the log.
    log_collection(database.uri()).await.drop().await.unwrap();
    let store = open_store(database.uri()).await;
    save(&*store, 1_200..1_201).await;
    let (urls, end) = read_changed_urls(&*store, &Cursor::start()).await;
    let seen: BTreeSet<String> = urls.into_iter().collect();
    assert_eq!(seen, (0..1_201).map(url).collect());
    let (urls, _) = read_changed_urls(&*store, &end).await;
    assert_eq!(urls, [""; 0], "they are entered once");
}

/// The log lacks an entry: it was lost with its primary, after the next entry had been written.
#[needs(mongod)]
#[tokio::test]
async fn a_reader_closes_a_gap_before_it_continues() {
    let database = fresh_database();
    let store = open_store(database.uri()).await;
    for number in 0..30 {
        save(&*store, number..number + 1).await;
    }
    let log = log_collection(database.uri()).await;
    let lost = log.delete_one(doc! {"_id": 12}).await.unwrap();
    assert_eq!(lost.deleted_count, 1);
    let (urls, end) = read_changed_urls(&*store, &Cursor::start()).await;
    let expected = (0..30).filter(|number| *number != 11).map(url);
    assert_eq!(urls, expected.collect::<Vec<_>>());
    // A client that has chosen 12 as the next number gets a duplicate key.
    let late = log.insert_one(doc! {"_id": 12_i64, "pages": []}).await;
    assert!(late.unwrap_err().to_string().contains("E11000"));
    save(&*store, 11..12).await;
    let (urls, _) = read_changed_urls(&*store, &end).await;
    assert_eq!(
        urls,
        [url(11)],
        "it was not acknowledged, so it is saved again"
    );
}

/// Each worker of a fleet is a client, and appends an entry for each of its saves. A client alone needs two commands
/// for a save. It needs more if another client has taken the number that it tried.
#[needs(mongod)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_append_at_once_leave_no_gap_and_lose_nothing() {
    const SAVES: u64 = 10;
    let clients: u64 = match std::env::var("PAGE_LOG_CLIENTS") {
        Ok(number) => number.parse().expect("a number of clients"),
        Err(_) => 64,
    };
    let mongod = Mongod::start();
    let uri = mongod.uri("shared");
    let mut stores = Vec::new();
    for _ in 0..clients {
        stores.push(open_store(&uri).await);
    }
    let before = mongod.count_document_commands();
    let begun = Instant::now();
    let mut saving = tokio::task::JoinSet::new();
    for (client, store) in (0..).zip(stores.iter().cloned()) {
        saving.spawn(async move {
            for number in client * SAVES..(client + 1) * SAVES {
                save(&*store, number..number + 1).await;
            }
        });
    }
    saving.join_all().await;
    let seconds = begun.elapsed().as_secs_f64();
    let commands = mongod.count_document_commands() - before;
    let saves = clients * SAVES;
    println!("{commands} commands for {saves} saves of {clients} clients in {seconds:.1} s");
    // The number of clients does not matter, only how many of their commands the server executes at the same moment.
    assert!(commands as u64 <= 4 * saves, "{commands} for {saves}");
    let log = log_collection(&uri).await;
    let last = log.count_documents(doc! {"_id": {"$gt": 0}}).await.unwrap();
    let beyond = log.find_one(doc! {"_id": {"$gt": last as i64}}).await;
    // A command that was repeated after a transient error may have appended two entries.
    assert!(last >= saves, "{last}");
    assert_eq!(beyond.unwrap(), None);
    let (urls, _) = read_changed_urls(&*stores[0], &Cursor::start()).await;
    let seen: BTreeSet<&String> = urls.iter().collect();
    assert_eq!(seen.len() as u64, saves);
}

/// Drops old entries of the log, but no page. Returns how many entries were dropped.
async fn drop_entries(store: &dyn Store, log_ms: i64) -> u64 {
    let cutoff = Cutoff {
        pages_ms: None,
        log_ms: Some(log_ms),
        samples_bytes: None,
    };
    let dropped = store.drop_old(cutoff).await.unwrap();
    assert_eq!((dropped.pages, dropped.has_more), (0, false));
    dropped.log_entries
}

#[needs(mongod)]
#[tokio::test]
async fn old_entries_are_dropped_without_pages_and_numbers_continue() {
    let database = fresh_database();
    let store = open_store(database.uri()).await;
    let log = log_collection(database.uri()).await;
    let start = Cursor::start();
    for number in 0..3 {
        save(&*store, number..number + 1).await;
    }
    let third = log.find_one(doc! {"_id": 3}).await.unwrap().unwrap();
    let at_ms = third.get_datetime("at").unwrap().timestamp_millis();
    let older = doc! {"$set": {"at": DateTime::from_millis(at_ms - 1)}};
    let first_two = doc! {"_id": {"$in": [1, 2]}};
    log.update_many(first_two, older).await.unwrap();
    assert_eq!(drop_entries(&*store, at_ms).await, 2);
    assert_eq!(read_changed_urls(&*store, &start).await.0, [url(2)]);
    assert_eq!(
        drop_entries(&*store, at_ms + 1).await,
        0,
        "it is the newest"
    );
    assert_eq!(read_changed_urls(&*store, &start).await.0, [""; 0]);
    // An entry without a time, such as one that fills a gap, is dropped together with the next entry that has a time.
    save(&*store, 3..4).await;
    let undated = doc! {"$unset": {"at": ""}};
    log.update_one(doc! {"_id": 4}, undated).await.unwrap();
    assert_eq!(drop_entries(&*store, i64::MAX).await, 1);
    assert_eq!(read_changed_urls(&*store, &start).await.0, [url(3)]);
    save(&*store, 4..5).await;
    let (urls, end) = read_changed_urls(&*store, &start).await;
    assert_eq!(urls, [url(3), url(4)]);
    assert_eq!(drop_entries(&*store, i64::MAX).await, 1);
    assert_eq!(
        log.count_documents(doc! {"_id": {"$gt": 0}}).await.unwrap(),
        1
    );
    assert_eq!(read_changed_urls(&*store, &end).await.0, [""; 0]);
    let (everything, mut each) = (ExportFilter::default(), |_| Ok(()));
    let exported = store.export(ExportKind::Pages, &everything, &mut each);
    assert_eq!(exported.await.unwrap(), 5);
}
