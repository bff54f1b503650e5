use std::time::Instant;

use webfill_test_mongod::{Mongod, ReplicaSet};
use webfill_test_needs::needs;

use super::writer::{PATIENCE, Writer, open_store, put_crawl, retry_until_accepted, save};

#[needs(mongod)]
#[tokio::test]
async fn a_server_that_dies_loses_nothing_that_was_acknowledged() {
    let mut mongod = Mongod::start();
    let store = open_store(&mongod.uri("test")).await.unwrap();
    let writer = Writer::start(store.clone()).await;
    for _ in 0..2 {
        writer.wait_for_pages(50).await;
        mongod.kill();
        mongod.restart();
        writer.wait_for_pages(50).await;
        mongod.stop();
        mongod.restart();
    }
    writer.wait_for_pages(50).await;
    writer.finish(&*store).await;
}

#[needs(mongod)]
#[tokio::test]
async fn a_paused_server_is_waited_for() {
    let mongod = Mongod::start();
    let store = open_store(&mongod.uri("test")).await.unwrap();
    let writer = Writer::start(store.clone()).await;
    writer.wait_for_pages(20).await;
    mongod.pause();
    let answers = store.save(vec![save(0)]).await;
    let error = answers[0].as_ref().unwrap_err();
    assert!(error.is_retry(), "{error}");
    mongod.resume();
    writer.wait_for_pages(50).await;
    writer.finish(&*store).await;
}

/// Of three servers, the primary is killed and restarted, and then the next primary is stopped. Each time the other two
/// are a majority.
#[needs(mongod)]
#[tokio::test]
async fn another_primary_takes_over_and_has_everything() {
    let mut set = ReplicaSet::start(3);
    let store = open_store(&set.uri("test")).await.unwrap();
    let writer = Writer::start(store.clone()).await;
    writer.wait_for_pages(50).await;
    let first = set.primary();
    set.members[first].kill();
    writer.wait_for_pages(50).await;
    set.members[first].restart();
    let second = set.primary();
    set.members[second].stop();
    writer.wait_for_pages(50).await;
    set.members[second].restart();
    writer.wait_for_pages(50).await;
    writer.finish(&*store).await;
}

/// Calls wait while there is no majority, and nothing is acknowledged in the meantime.
#[needs(mongod)]
#[tokio::test]
async fn without_a_majority_nothing_is_acknowledged() {
    let mut set = ReplicaSet::start(3);
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
    retry_until_accepted(|| store.save(vec![save(0)])).await;
}
