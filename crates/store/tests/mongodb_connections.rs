//! How many connections a process opens to a MongoDB server.

use mongodb::Client;
use mongodb::bson::doc;
use webfill_store::{CrawlId, Page, Save, Store, StoreUri, open};
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_wire::Outcome;

/// How many connections the driver opens to monitor a server.
const WATCHING: i32 = 2;
/// The monitoring connections of the test's own client, which may open only after the first count.
const OWN: i32 = WATCHING;

async fn count_open_connections(client: &Client) -> i32 {
    let admin = client.database("admin");
    let status = admin.run_command(doc! {"serverStatus": 1}).await.unwrap();
    let connections = status.get_document("connections").unwrap();
    connections.get_i32("current").unwrap()
}

async fn save(store: &dyn Store, number: i32) {
    let url = format!("https://example.com/{number}");
    let page = Page::new(&CrawlId::new("app", "c1"), &url, "example.com", Outcome::Ok);
    let records = Vec::new();
    let saved = store.save(vec![Save { page, records }]).await;
    assert!(saved.iter().all(Result::is_ok), "{saved:?}");
}

#[needs(mongod)]
#[tokio::test]
async fn a_process_opens_few_connections_however_much_it_does_at_once() {
    let mongod = Mongod::start();
    let watching = Client::with_uri_str(mongod.uri("shared")).await.unwrap();
    count_open_connections(&watching).await;
    let before = count_open_connections(&watching).await;
    let uri: StoreUri = mongod.uri("shared").parse().unwrap();
    let store = open(&uri, None).await.unwrap().store;
    let mut saving = tokio::task::JoinSet::new();
    for number in 0..200 {
        let store = store.clone();
        saving.spawn(async move {
            save(&*store, number).await;
        });
    }
    saving.join_all().await;
    let opened = count_open_connections(&watching).await - before;
    assert!((1..=4 + WATCHING + OWN).contains(&opened), "{opened}");
}

/// The workers of a fleet save pages like this as long as they do not use the cache.
#[needs(mongod)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_save_one_page_after_another_have_three_connections_each() {
    let processes: i32 = match std::env::var("MONGODB_PROCESSES") {
        Ok(number) => number.parse().expect("a number of processes"),
        Err(_) => 50,
    };
    let mongod = Mongod::start();
    let watching = Client::with_uri_str(mongod.uri("shared")).await.unwrap();
    count_open_connections(&watching).await;
    let before = count_open_connections(&watching).await;
    let uri: StoreUri = mongod.uri("shared").parse().unwrap();
    let mut stores = Vec::new();
    for number in 0..processes {
        let store = open(&uri, None).await.unwrap().store;
        save(&*store, number).await;
        stores.push(store);
    }
    let opened = count_open_connections(&watching).await - before;
    println!("{opened} connections of {processes} processes");
    let (least, most) = (processes, processes * (1 + WATCHING) + OWN);
    assert!((least..=most).contains(&opened), "{opened}");
}
