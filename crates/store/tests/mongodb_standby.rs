//! The data of a group of dispatchers besides its journal, on a real server: snapshots, reports, and the fence that
//! keeps former dispatchers from writing.

use webfill_store::journal::{
    DispatcherReport, FencedStates, FencedWrite, JournalStore, Lease, Record, Snapshot,
};
use webfill_store::{MongoUri, SitePhase, SiteState, StoreUri};
use webfill_test_mongod::{Database, fresh_database};
use webfill_test_needs::needs;

use crate::conformance::{NOON_MS, crawl};

const GROUP: &str = "fleet";

fn parse(uri: &str) -> MongoUri {
    match uri.parse().expect("a URI of a test server") {
        StoreUri::MongoDb(uri) => uri,
        StoreUri::Sqlite(_) => panic!("{uri} is a URI of MongoDB"),
    }
}

async fn connect(database: &Database) -> JournalStore {
    let connected = JournalStore::connect(&parse(database.uri()), GROUP).await;
    connected.expect("a connection")
}

/// Adds the parts of a snapshot, of one byte each.
async fn put_parts(journal: &JournalStore, number: u64, maker: u64, parts: &[u8]) -> Snapshot {
    for (part, byte) in (0..).zip(parts) {
        let put = journal.put_snapshot_part((number, maker), part, vec![*byte]);
        put.await.expect("it is there");
    }
    Snapshot {
        number,
        epoch: 7,
        maker,
        parts: parts.len() as u64,
        bytes: parts.len() as u64,
    }
}

async fn read_parts(journal: &JournalStore, snapshot: Snapshot) -> Vec<Option<Vec<u8>>> {
    let mut parts = Vec::new();
    for part in 0..snapshot.parts {
        parts.push(journal.snapshot_part(snapshot, part).await.unwrap());
    }
    parts
}

#[needs(mongod)]
#[tokio::test]
async fn a_snapshot_is_there_once_it_is_complete_and_replaces_earlier_ones() {
    let database = fresh_database();
    let journal = connect(&database).await;
    assert_eq!(journal.newest_snapshot().await.unwrap(), None);
    // The server stores the number of this instance as a negative integer.
    let first = put_parts(&journal, 10, u64::MAX, &[1, 2]).await;
    assert_eq!(journal.newest_snapshot().await.unwrap(), None);
    assert!(journal.finish_snapshot(first).await.unwrap());
    assert_eq!(journal.newest_snapshot().await.unwrap(), Some(first));
    let whole = [Some(vec![1]), Some(vec![2])];
    assert_eq!(read_parts(&journal, first).await, whole);
    // A second snapshot up to the same record changes nothing. Finishing the first one again, as after a lost answer,
    // succeeds.
    let same = put_parts(&journal, 10, 3, &[8]).await;
    assert!(!journal.finish_snapshot(same).await.unwrap());
    assert!(journal.finish_snapshot(first).await.unwrap());
    assert_eq!(read_parts(&journal, same).await, [None]);
    assert_eq!(read_parts(&journal, first).await, whole);
    // The parts of an unfinished snapshot of a later record stay when an earlier snapshot is finished.
    let third = put_parts(&journal, 30, 4, &[5]).await;
    let second = put_parts(&journal, 20, 3, &[4]).await;
    assert!(journal.finish_snapshot(second).await.unwrap());
    assert_eq!(read_parts(&journal, first).await, [None, None]);
    assert!(journal.finish_snapshot(third).await.unwrap());
    assert!(!journal.finish_snapshot(second).await.unwrap());
    assert_eq!(journal.newest_snapshot().await.unwrap(), Some(third));
    assert_eq!(read_parts(&journal, third).await, [Some(vec![5])]);
    assert_eq!(read_parts(&journal, second).await, [None]);
}

fn report(instance: u64, name: &str, record: u64) -> DispatcherReport {
    DispatcherReport {
        instance,
        name: name.to_owned(),
        record,
        serves: instance == 1,
    }
}

#[needs(mongod)]
#[tokio::test]
async fn a_survey_shows_the_dispatchers_and_who_was_asked_to_hand_over() {
    let database = fresh_database();
    let journal = connect(&database).await;
    let empty = journal.survey(None).await.unwrap();
    assert_eq!((empty.extent, empty.journal_bytes), (None, 0));
    assert_eq!((empty.dispatchers.len(), empty.hand_over_asked), (0, 0));
    assert!(!journal.ask_hand_over(1).await.unwrap());
    let epoch = journal.take_lease(Lease::unused(), 1).await.unwrap();
    assert_eq!(epoch, Some(1));
    journal
        .append(vec![Record::epoch_start(1, 1)])
        .await
        .unwrap();
    journal.survey(Some(report(1, "b", 1))).await.unwrap();
    journal.survey(Some(report(2, "a", 0))).await.unwrap();
    assert!(journal.ask_hand_over(1).await.unwrap());
    let survey = journal.survey(Some(report(2, "a", 1))).await.unwrap();
    let seen: Vec<_> = survey.dispatchers.iter().map(|one| &one.report).collect();
    assert_eq!(seen, [&report(2, "a", 1), &report(1, "b", 1)]);
    assert!(survey.dispatchers[0].seen_ago_ms < 60_000);
    assert_eq!(survey.extent.map(|extent| extent.last), Some(1));
    assert!(survey.journal_bytes > 0);
    assert_eq!(survey.hand_over_asked, 1);
}

fn backing_off_state(site: &str, updated_at_ms: i64) -> SiteState {
    SiteState {
        site: site.to_owned(),
        phase: SitePhase::BackingOff,
        reason: String::from("robots"),
        since_ms: NOON_MS,
        until_ms: Some(NOON_MS + 60_000),
        url: format!("http://{site}/robots.txt"),
        status_code: Some(503),
        sign: String::from("robots.txt answered 503"),
        updated_at_ms,
    }
}

#[needs(mongod)]
#[tokio::test]
async fn a_former_dispatcher_changes_no_state_after_the_next_one_has_begun() {
    let database = fresh_database();
    let uri = parse(database.uri());
    let store = webfill_store::open(&StoreUri::MongoDb(uri.clone()), None).await;
    let store = store.expect("a store").store;
    let [first, second] = [1, 2].map(|epoch| FencedStates::connect(&uri, GROUP, epoch));
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    let written = FencedWrite::Written;
    assert_eq!(first.begin().await.unwrap(), written);
    let id = webfill_store::CrawlId::new("app", "crawl");
    let mut old = crawl(id.clone());
    assert_eq!(first.put_crawl(old.clone()).await.unwrap(), written);
    assert_eq!(store.get_crawl(&id).await.unwrap().as_ref(), Some(&old));
    let states = vec![
        backing_off_state("a.example", 1),
        backing_off_state("b.example", 1),
    ];
    let put = first.change_site_states(states, vec![String::from("none.example")]);
    assert_eq!(put.await.unwrap(), written);
    assert_eq!(second.begin().await.unwrap(), written);
    let open = vec![String::from("a.example")];
    let removed = second.change_site_states(Vec::new(), open);
    assert_eq!(removed.await.unwrap(), written);
    // The former dispatcher cannot write any more, even crawls that the next dispatcher has not written.
    old.updated_at_ms += 1;
    let replaced = FencedWrite::Replaced;
    assert_eq!(first.begin().await.unwrap(), replaced);
    assert_eq!(first.put_crawl(old.clone()).await.unwrap(), replaced);
    let late = vec![backing_off_state("a.example", 2)];
    let late = first.change_site_states(late, vec![String::from("b.example")]);
    assert_eq!(late.await.unwrap(), replaced);
    let stored = store.get_crawl(&id).await.unwrap().expect("it was put");
    assert!(stored.updated_at_ms < old.updated_at_ms);
    assert_eq!(store.site_state("a.example").await.unwrap(), None);
    let kept = store.site_state("b.example").await.unwrap();
    assert_eq!(kept, Some(backing_off_state("b.example", 1)));
}
