//! Servers that are killed, stopped, paused and replaced while pages are saved: nothing that was
//! acknowledged is lost, nothing is stored twice, and saving goes on by itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mongodb::Client;
use mongodb::bson::{Document, doc};
use serde_json::{Map, json};
use tokio::task::JoinHandle;
use webfill_store::{
    Crawl, CrawlId, CrawlState, ExportFilter, Kept, Page, Record, RecordCounts, Save, Slot,
    SlotClaim, Store, StoreError, StoreUri, open,
};
use webfill_test_mongod::{Mongod, ReplicaSet, fresh_database};
use webfill_wire::Outcome;

const NOON_MS: i64 = 1_767_268_800_000;
const BATCH: u64 = 10;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(90);

fn page(number: u64) -> Page {
    Page {
        app_id: String::from("app"),
        crawl_id: String::from("c1"),
        url: format!("https://example.com/{number}"),
        final_url: None,
        site: String::from("example.com"),
        depth: 0,
        parent: None,
        outcome: Outcome::Ok,
        status_code: Some(200),
        mapping: None,
        fields: Map::from_iter([(String::from("city"), json!(format!("city {number}")))]),
        links: Vec::new(),
        content_type: None,
        bytes: 1,
        content_hash: None,
        started_at_ms: NOON_MS,
        elapsed_ms: 1,
        attempts: 1,
        worker: String::from("test"),
        attrs: None,
    }
}

fn save(number: u64) -> Save {
    Save {
        page: page(number),
        records: vec![number.to_string()],
    }
}

async fn open_store(uri: &str) -> Result<Arc<dyn Store>, StoreError> {
    let uri: StoreUri = uri.parse().expect("a URI");
    Ok(open(&uri, None).await?.store)
}

fn crawl_id() -> CrawlId {
    CrawlId::new("app", "c1")
}

async fn put_crawl(store: &dyn Store) {
    let crawl = Crawl {
        id: crawl_id(),
        request: json!({}),
        state: CrawlState::Running,
        counts: Map::new(),
        started_at_ms: NOON_MS,
        updated_at_ms: NOON_MS,
        finished_at_ms: None,
    };
    store.put_crawl(crawl).await.unwrap();
}

/// Calls until it is answered by something else than "later".
async fn insist<R, F>(call: impl Fn() -> F) -> Vec<R>
where
    F: Future<Output = Vec<Result<R, StoreError>>>,
{
    let started = Instant::now();
    loop {
        let answers = call().await;
        let later =
            |answer: &Result<R, StoreError>| answer.as_ref().is_err_and(StoreError::is_retry);
        if !answers.iter().any(later) {
            let answers = answers.into_iter().collect::<Result<Vec<R>, StoreError>>();
            return answers.expect("no other error");
        }
        assert!(started.elapsed() < PATIENCE, "the store stays away");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Puts and saves batch after batch, as a crawl does, and counts what is acknowledged.
struct Writer {
    acknowledged: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Writer {
    async fn start(store: Arc<dyn Store>) -> Writer {
        put_crawl(&*store).await;
        let acknowledged = Arc::new(AtomicU64::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let (count, stop) = (acknowledged.clone(), stopping.clone());
        let task = tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let first = count.load(Ordering::SeqCst);
                write_batch(&*store, first).await;
                count.fetch_add(BATCH, Ordering::SeqCst);
            }
        });
        Writer {
            acknowledged,
            stopping,
            task,
        }
    }

    /// Waits until so many pages more are acknowledged.
    async fn goes_on_for(&self, pages: u64) {
        let goal = self.acknowledged.load(Ordering::SeqCst) + pages;
        let started = Instant::now();
        while self.acknowledged.load(Ordering::SeqCst) < goal {
            assert!(!self.task.is_finished(), "the writer failed");
            assert!(started.elapsed() < PATIENCE, "nothing is saved any more");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends it, and compares what is stored with what was acknowledged.
    async fn finish(self, store: &dyn Store) {
        self.stopping.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        let acknowledged = self.acknowledged.load(Ordering::SeqCst);
        let mut urls = HashSet::new();
        let mut rows = 0;
        let mut each = |row: serde_json::Value| {
            urls.insert(row["url"].as_str().unwrap().to_owned());
            rows += 1;
            Ok(())
        };
        let everything = ExportFilter::default();
        store
            .export(Kept::Pages, &everything, &mut each)
            .await
            .unwrap();
        let expected: HashSet<String> = (0..acknowledged).map(|number| page(number).url).collect();
        assert_eq!((rows, urls), (acknowledged, expected));
        let counts = store.record_counts(&crawl_id()).await.unwrap();
        let all_resolved = RecordCounts {
            total: acknowledged,
            resolved: acknowledged,
        };
        assert_eq!(counts, all_resolved);
    }
}

async fn write_batch(store: &dyn Store, first: u64) {
    let record = |number: u64| Record {
        id: number.to_string(),
        fields: Map::new(),
        want: vec![String::from("city")],
    };
    let numbers = || first..first + BATCH;
    let crawl = crawl_id();
    insist(|| store.put_records(&crawl, numbers().map(record).collect(), NOON_MS)).await;
    let saved = insist(|| store.save(numbers().map(save).collect())).await;
    assert!(
        saved.iter().all(|saved| saved.resolved.len() == 1),
        "{saved:?}"
    );
}

#[tokio::test]
async fn a_server_that_dies_loses_nothing_that_was_acknowledged() {
    let Some(mut mongod) = Mongod::start() else {
        return;
    };
    let store = open_store(&mongod.uri("test")).await.unwrap();
    let writer = Writer::start(store.clone()).await;
    for _ in 0..2 {
        writer.goes_on_for(50).await;
        mongod.kill();
        mongod.restart();
        writer.goes_on_for(50).await;
        mongod.stop();
        mongod.restart();
    }
    writer.goes_on_for(50).await;
    writer.finish(&*store).await;
}

#[tokio::test]
async fn a_paused_server_is_waited_for() {
    let Some(mongod) = Mongod::start() else {
        return;
    };
    let store = open_store(&mongod.uri("test")).await.unwrap();
    let writer = Writer::start(store.clone()).await;
    writer.goes_on_for(20).await;
    mongod.pause();
    let answers = store.save(vec![save(0)]).await;
    let error = answers[0].as_ref().unwrap_err();
    assert!(error.is_retry(), "{error}");
    mongod.resume();
    writer.goes_on_for(50).await;
    writer.finish(&*store).await;
}

/// Three servers: the primary is killed, then stopped; two of them are enough.
#[tokio::test]
async fn another_primary_takes_over_and_has_everything() {
    let Some(mut set) = ReplicaSet::start(3) else {
        return;
    };
    let store = open_store(&set.uri("test")).await.unwrap();
    let writer = Writer::start(store.clone()).await;
    writer.goes_on_for(50).await;
    let first = set.primary();
    set.members[first].kill();
    writer.goes_on_for(50).await;
    set.members[first].restart();
    let second = set.primary();
    set.members[second].stop();
    writer.goes_on_for(50).await;
    set.members[second].restart();
    writer.goes_on_for(50).await;
    writer.finish(&*store).await;
}

/// A majority that is away is waited for, and nothing is acknowledged meanwhile.
#[tokio::test]
async fn without_a_majority_nothing_is_acknowledged() {
    let Some(mut set) = ReplicaSet::start(3) else {
        return;
    };
    let store = open_store(&set.uri("test")).await.unwrap();
    put_crawl(&*store).await;
    let primary = set.primary();
    for member in (0..3).filter(|member| *member != primary) {
        set.members[member].kill();
    }
    let started = Instant::now();
    let answers = store.save(vec![save(0)]).await;
    let error = answers[0].as_ref().unwrap_err();
    assert!(error.is_retry(), "{error}");
    assert!(started.elapsed() < PATIENCE);
    for member in (0..3).filter(|member| *member != primary) {
        set.members[member].restart();
    }
    insist(|| store.save(vec![save(0)])).await;
}

/// Makes the server answer the next so many commands of a name in a certain way.
async fn fail(client: &Client, command: &str, times: i32, how: Document) {
    let mut data = doc! {"failCommands": [command]};
    data.extend(how);
    let fail_point = doc! {
        "configureFailPoint": "failCommand", "mode": {"times": times}, "data": data,
    };
    let admin = client.database("admin");
    admin
        .run_command(fail_point)
        .await
        .expect("test commands are on");
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_told() {
    let Some(mongod) = Mongod::start() else {
        return;
    };
    let uri = mongod.uri("test");
    let store = open_store(&uri).await.unwrap();
    put_crawl(&*store).await;
    let client = Client::with_uri_str(&uri).await.unwrap();
    for how in [
        doc! {"closeConnection": true},
        doc! {"errorCode": 10107},
        doc! {"errorCode": 91},
    ] {
        fail(&client, "update", 1, how.clone()).await;
        let saved = store.save(vec![save(0)]).await;
        assert!(saved[0].is_ok(), "{how}: {saved:?}");
    }
    let unsure = doc! {"writeConcernError": {"code": 64, "errmsg": "waiting for replication"}};
    for how in [unsure, doc! {"errorCode": 14031}] {
        fail(&client, "update", 1, how.clone()).await;
        let error = store.save(vec![save(0)]).await.remove(0).unwrap_err();
        assert!(error.is_retry(), "{how}: {error}");
    }
    fail(&client, "update", 1, doc! {"errorCode": 13}).await;
    let error = store.save(vec![save(0)]).await.remove(0).unwrap_err();
    assert!(error.is_fatal(), "{error}");
    assert!(error.to_string().contains("readWrite"), "{error}");
    assert!(store.save(vec![save(0)]).await[0].is_ok());
}

/// Somebody else creates the same documents at the same time.
#[tokio::test]
async fn many_who_create_one_document_at_once_all_succeed() {
    let Some(database) = fresh_database() else {
        return;
    };
    let uri: StoreUri = database.uri().parse().unwrap();
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(open(&uri, None).await.unwrap());
    }
    put_crawl(&*clients[0].store).await;
    for round in 0..30 {
        let calls = clients.iter().enumerate().map(|(number, client)| {
            let client = client.clone();
            tokio::spawn(async move {
                let saved = client
                    .store
                    .save((0..10).map(|n| save(round * 10 + n)).collect())
                    .await;
                assert!(saved.iter().all(Result::is_ok), "{saved:?}");
                let claim = SlotClaim {
                    site: format!("{round}.example"),
                    holder: number.to_string(),
                    delay_ms: 1,
                    longest_request_ms: 60_000,
                };
                client.cache.claim_slot(&claim).await.unwrap() == Slot::Granted
            })
        });
        let mut granted = 0;
        for call in calls.collect::<Vec<_>>() {
            granted += u32::from(call.await.unwrap());
        }
        assert_eq!(granted, 1, "in round {round}");
    }
}

/// The command has runtimes that drive neither sockets nor timers, and drops them first.
#[test]
fn a_store_works_in_any_runtime_and_outlives_it() {
    let Some(database) = fresh_database() else {
        return;
    };
    let uri: StoreUri = database.uri().parse().unwrap();
    let bare = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    let runtime = bare();
    let store = runtime.block_on(open(&uri, None)).unwrap().store;
    runtime.block_on(put_crawl(&*store));
    drop(runtime);
    let crawl = bare().block_on(store.get_crawl(&crawl_id())).unwrap();
    assert_eq!(crawl.unwrap().id, crawl_id());
}

/// By its own clock.
#[tokio::test]
async fn the_server_purges_what_has_expired() {
    let options = ["--setParameter", "ttlMonitorSleepSecs=1"];
    let Some(mongod) = Mongod::start_primary_with(&options) else {
        return;
    };
    let uri: StoreUri = mongod.uri("test").parse().unwrap();
    let cache = open(&uri, None).await.unwrap().cache;
    let robots = |origin: &str, expires_at_ms| webfill_store::RobotsEntry {
        origin: origin.to_owned(),
        status: Some(200),
        body: Vec::new(),
        fetched_at_ms: NOON_MS,
        expires_at_ms,
    };
    let far_ms = 4_102_488_000_000;
    let entries = vec![robots("old", NOON_MS), robots("new", far_ms)];
    cache.put_robots(entries, NOON_MS).await.unwrap();
    let site = |name: &str, last_start_ms| webfill_store::SiteEntry {
        site: name.to_owned(),
        last_start_ms,
        delay_ms: 1,
        blocked_until_ms: None,
        owner: None,
    };
    cache
        .put_sites(vec![site("old", 0), site("new", far_ms)])
        .await
        .unwrap();
    let client = Client::with_uri_str(&mongod.uri("test")).await.unwrap();
    let database = client.database("test");
    for name in ["robots", "sites"] {
        let kept = database.collection::<Document>(name);
        let started = Instant::now();
        while kept.count_documents(doc! {"_id": "old"}).await.unwrap() > 0 {
            assert!(started.elapsed() < PATIENCE, "{name} are not purged");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(kept.count_documents(doc! {"_id": "new"}).await.unwrap(), 1);
    }
}
