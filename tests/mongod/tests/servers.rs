//! Tests that the servers work as other tests require.

use std::time::Instant;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use webfill_test_mongod::{Mongod, fresh_database};
use webfill_test_needs::needs;

async fn insert_and_count(uri: &str) -> u64 {
    let client = Client::with_uri_str(uri).await.unwrap();
    let database = client.default_database().unwrap();
    let kept = database.collection::<Document>("kept");
    kept.insert_one(doc! {"a": 1}).await.unwrap();
    kept.count_documents(doc! {}).await.unwrap()
}

#[needs(mongod)]
#[tokio::test]
async fn each_database_is_empty_at_first() {
    let started = Instant::now();
    let first = fresh_database();
    println!("a server within {:?}", started.elapsed());
    let second = fresh_database();
    assert_eq!(insert_and_count(first.uri()).await, 1);
    assert_eq!(insert_and_count(second.uri()).await, 1);
    assert_eq!(insert_and_count(second.uri()).await, 2);
}

#[needs(mongod)]
#[tokio::test]
async fn a_killed_server_comes_back_with_its_data() {
    let mut mongod = Mongod::start();
    let uri = mongod.uri("test");
    assert_eq!(insert_and_count(&uri).await, 1);
    let before = mongod.count_document_commands();
    assert_eq!(insert_and_count(&uri).await, 2);
    let counted = mongod.count_document_commands() - before;
    assert!((2..50).contains(&counted), "{counted}");
    mongod.kill();
    mongod.restart();
    assert_eq!(insert_and_count(&uri).await, 3);
}
