//! How many connections a process opens to a MongoDB server.

use mongodb::Client;
use mongodb::bson::doc;
use webfill_store::{CrawlId, Page, Save, StoreUri, open};
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_wire::Outcome;

/// For data; the driver watches each server by two more, and those of the test's own client may come
/// late.
const MOST: i32 = 4 + 2 + 2;

async fn open_connections(client: &Client) -> i32 {
    let admin = client.database("admin");
    let status = admin.run_command(doc! {"serverStatus": 1}).await.unwrap();
    let connections = status.get_document("connections").unwrap();
    connections.get_i32("current").unwrap()
}

#[needs(mongod)]
#[tokio::test]
async fn a_process_opens_few_connections_however_much_it_does_at_once() {
    let mongod = Mongod::start();
    let watching = Client::with_uri_str(mongod.uri("shared")).await.unwrap();
    open_connections(&watching).await;
    let before = open_connections(&watching).await;
    let uri: StoreUri = mongod.uri("shared").parse().unwrap();
    let store = open(&uri, None).await.unwrap().store;
    let mut saving = tokio::task::JoinSet::new();
    for number in 0..200 {
        let store = store.clone();
        saving.spawn(async move {
            let url = format!("https://example.com/{number}");
            let page = Page::new(&CrawlId::new("app", "c1"), &url, "example.com", Outcome::Ok);
            let records = Vec::new();
            let saved = store.save(vec![Save { page, records }]).await;
            assert!(saved.iter().all(Result::is_ok), "{saved:?}");
        });
    }
    saving.join_all().await;
    let opened = open_connections(&watching).await - before;
    assert!((1..=MOST).contains(&opened), "{opened}");
}
