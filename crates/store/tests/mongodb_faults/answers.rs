use std::time::{Duration, Instant};

use mongodb::Client;
use mongodb::bson::{Document, doc};
use serde_json::{Map, json};
use webfill_store::{
    Cursor, ExportFilter, Reread, Reservation, ReservationRequest, StoreUri, open,
};
use webfill_test_mongod::{Mongod, fresh_database};
use webfill_test_needs::needs;

use super::writer::{NOON_MS, PATIENCE, crawl_id, open_store, put_crawl, save};

/// Makes the server fail the next `times` commands of this name in the way `how`, with `failCommand`.
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

#[needs(mongod)]
#[tokio::test]
async fn passing_faults_are_retried_and_lasting_ones_are_reported() {
    let mongod = Mongod::start();
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

/// A page is written, but the process that writes it ends before the page is in the log.
#[needs(mongod)]
#[tokio::test]
async fn repeating_an_interrupted_reread_adds_the_page_to_the_log() {
    let mongod = Mongod::start();
    let uri = mongod.uri("test");
    let store = open_store(&uri).await.unwrap();
    put_crawl(&*store).await;
    let mut saved = save(0);
    saved.page.content_hash = Some("h".to_owned());
    let page = saved.page.clone();
    assert!(store.save(vec![saved]).await[0].is_ok());
    let changes = async |after: &Cursor| {
        let mut pages = Vec::new();
        let mut each = |_, page| {
            pages.push(page);
            Ok(())
        };
        let everything = ExportFilter::default();
        let end = store.changes(after, &everything, &mut each).await.unwrap();
        (pages, end)
    };
    let (_, read_to) = changes(&Cursor::start()).await;
    let now = Reread {
        page_id: page.id(),
        url: page.url.clone(),
        attempts: page.delivery.number,
        started_at_ms: page.started_at_ms,
        content_hash: "h".to_owned(),
        is_changed: true,
        outcome: page.outcome,
        mapping: None,
        mapping_version: None,
        template: None,
        fields: Map::from_iter([("city".to_owned(), json!("Ockham"))]),
        alternatives: Map::new(),
        listings: Vec::new(),
        row_counts: Vec::new(),
        records: Vec::new(),
        links: Vec::new(),
        depth: 0,
        at_ms: NOON_MS + 5_000,
    };
    let client = Client::with_uri_str(&uri).await.unwrap();
    fail(&client, "aggregate", 1, doc! {"errorCode": 14031}).await;
    let put = store.put_reread(vec![now.clone()], None).await.remove(0);
    assert!(put.unwrap_err().is_retry());
    let (none, read_to) = changes(&read_to).await;
    assert!(none.is_empty(), "{none:?}");
    // The page already has the right fields, so the repeated call does not count as a change.
    let again = Reread {
        is_changed: false,
        ..now
    };
    for expected in [1, 0] {
        let (_, before) = changes(&read_to).await;
        let put = store.put_reread(vec![again.clone()], None).await.remove(0);
        assert!(put.is_ok(), "{put:?}");
        let (pages, _) = changes(&before).await;
        assert_eq!(pages.len(), expected, "{pages:?}");
        for page in pages {
            assert_eq!(page["fields"]["city"], "Ockham");
            assert!(page.get("unlogged").is_none(), "{page}");
        }
    }
}

/// Several clients create the same documents at the same time.
#[needs(mongod)]
#[tokio::test]
async fn many_who_create_one_document_at_once_all_succeed() {
    let database = fresh_database();
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
                let request = ReservationRequest {
                    site: format!("{round}.example"),
                    holder: number.to_string(),
                    delay_ms: 1,
                    longest_request_ms: 60_000,
                };
                client.cache.reserve(&request).await.unwrap() == Reservation::Granted
            })
        });
        let mut granted = 0;
        for call in calls.collect::<Vec<_>>() {
            granted += u32::from(call.await.unwrap());
        }
        assert_eq!(granted, 1, "in round {round}");
    }
}

/// As in the program `webfill`, the runtimes drive neither sockets nor timers, and are dropped before the store.
#[needs(mongod)]
#[test]
fn a_store_works_in_any_runtime_and_outlives_it() {
    let database = fresh_database();
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

/// The server deletes expired entries by its own clock.
#[needs(mongod)]
#[tokio::test]
async fn the_server_purges_what_has_expired() {
    let options = ["--setParameter", "ttlMonitorSleepSecs=1"];
    let mongod = Mongod::start_primary_with(&options);
    let uri: StoreUri = mongod.uri("test").parse().unwrap();
    let cache = open(&uri, None).await.unwrap().cache;
    let robots = |origin: &str, fetched_at_ms| webfill_store::RobotsEntry {
        origin: origin.to_owned(),
        status: Some(200),
        body: Vec::new(),
        fetched_at_ms,
        expires_at_ms: fetched_at_ms + 3_600_000,
    };
    let far_ms = 4_102_488_000_000;
    let entries = vec![robots("old", NOON_MS), robots("new", far_ms)];
    cache.put_robots(entries, NOON_MS).await.unwrap();
    let site = |name: &str, last_start_ms| webfill_store::SiteClockEntry {
        site: name.to_owned(),
        last_start_ms,
        delay_ms: 1,
        blocked_until_ms: None,
        owner: None,
        reserved_until_ms: None,
        accepted_ms: None,
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
