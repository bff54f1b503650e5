//! The journal of dispatchers and their lease, on real servers: each number is added once, whoever tries, whatever
//! answer is lost, and whichever primary dies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use webfill_store::StoreUri;
use webfill_store::journal::{AppendAnswer, Content, JournalExtent, JournalStore, Lease, Record};
use webfill_test_mongod::{Database, ReplicaSet, fresh_database};
use webfill_test_needs::needs;

const GROUP: &str = "fleet";

/// The longest wait for a set of servers that elects a primary.
const PATIENCE: Duration = Duration::from_secs(60);

const MANY_BYTES: usize = 1 << 20;

async fn connect(uri: &str, group: &str) -> JournalStore {
    let StoreUri::MongoDb(uri) = uri.parse().expect("a URI of a test server") else {
        panic!("{uri} is a URI of MongoDB");
    };
    let connected = JournalStore::connect(&uri, group).await;
    connected.expect("a connection")
}

async fn fresh_journal() -> (JournalStore, Database) {
    let database = fresh_database();
    (connect(database.uri(), GROUP).await, database)
}

fn record_part(number: u64, epoch: u64, part: &[u8], is_last: bool) -> Record {
    let part = part.to_owned();
    let content = Content::Changes { part, is_last };
    Record {
        number,
        epoch,
        content,
    }
}

/// Records of commits with these numbers. Each record has one part.
fn commits(numbers: impl IntoIterator<Item = u64>, epoch: u64) -> Vec<Record> {
    let commit = |number| record_part(number, epoch, format!("commit {number}").as_bytes(), true);
    numbers.into_iter().map(commit).collect()
}

/// All records after a number, read in pieces.
async fn read_all(journal: &JournalStore, mut after: u64, most_bytes: usize) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        let page = journal.read(after, most_bytes).await.expect("an answer");
        after = page.records.last().map_or(after, |record| record.number);
        records.extend(page.records);
        if page.is_end {
            return records;
        }
    }
}

async fn append(journal: &JournalStore, records: &[Record]) -> AppendAnswer {
    let added = journal.append(records.to_vec()).await;
    added.expect("an answer")
}

#[needs(mongod)]
#[tokio::test]
async fn records_are_read_as_they_were_added() {
    let (journal, _database) = fresh_journal().await;
    assert_eq!(read_all(&journal, 0, MANY_BYTES).await, []);
    assert_eq!(journal.extent().await.unwrap(), None);
    let mut records = vec![
        Record::epoch_start(1, 1),
        record_part(2, 1, &[0, 255, 7], false),
    ];
    records.push(record_part(3, 1, &[], true));
    records.extend(commits(4..=300, 1));
    let (some, others) = records.split_at(2);
    assert_eq!(append(&journal, some).await, AppendAnswer::Added);
    assert_eq!(append(&journal, others).await, AppendAnswer::Added);
    for most_bytes in [1, 100, MANY_BYTES] {
        assert_eq!(read_all(&journal, 0, most_bytes).await, records);
    }
    assert_eq!(read_all(&journal, 2, MANY_BYTES).await, records[2..]);
    assert_eq!(read_all(&journal, 300, MANY_BYTES).await, []);
    let (first, last, epoch) = (1, 300, 1);
    let extent = journal.extent().await.unwrap();
    assert_eq!(extent, Some(JournalExtent { first, last, epoch }));
}

/// A dispatcher that was replaced cannot append a record, and nothing that it sends is added.
#[needs(mongod)]
#[tokio::test]
async fn a_number_is_added_once() {
    let (journal, database) = fresh_journal().await;
    let other = connect(database.uri(), GROUP).await;
    append(&journal, &commits(1..=3, 1)).await;
    append(&other, &[Record::epoch_start(4, 2)]).await;
    let taken = AppendAnswer::Taken {
        number: 4,
        epoch: 2,
    };
    assert_eq!(append(&journal, &commits(4..=6, 1)).await, taken);
    assert_eq!(
        append(&other, &commits(5..=5, 2)).await,
        AppendAnswer::Added
    );
    let numbers: Vec<(u64, u64)> = read_all(&journal, 0, MANY_BYTES)
        .await
        .iter()
        .map(|record| (record.number, record.epoch))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]);
}

/// The answer to a command may be lost after all or some of its records were added.
#[needs(mongod)]
#[tokio::test]
async fn a_repeated_command_finds_its_own_records() {
    let (journal, _database) = fresh_journal().await;
    let records = commits(1..=5, 1);
    append(&journal, &records[..3]).await;
    let own = |number| AppendAnswer::Taken { number, epoch: 1 };
    assert_eq!(append(&journal, &records).await, own(3));
    assert_eq!(append(&journal, &records[3..]).await, AppendAnswer::Added);
    assert_eq!(append(&journal, &records).await, own(5));
    assert_eq!(read_all(&journal, 0, MANY_BYTES).await, records);
}

/// The numbers of a dispatcher that was suspended for a long time may be free again, because the journal was cut. Even
/// then, its records must not count.
#[needs(mongod)]
#[tokio::test]
async fn a_dispatcher_whose_numbers_were_cut_is_refused() {
    let (journal, database) = fresh_journal().await;
    let other = connect(database.uri(), GROUP).await;
    append(&journal, &commits(1..=10, 1)).await;
    append(&other, &[Record::epoch_start(11, 2)]).await;
    append(&other, &commits(12..=20, 2)).await;
    other.cut_before(20).await.unwrap();
    let taken = AppendAnswer::Taken {
        number: 20,
        epoch: 2,
    };
    let late = commits(11..=12, 1);
    assert_eq!(append(&journal, &late).await, taken);
    // The same command, sent again, finds its own records in the journal.
    assert_eq!(append(&journal, &late).await, taken);
    assert_eq!(append(&journal, &commits(13..=25, 1)).await, taken);
    assert_eq!(
        append(&other, &commits(21..=21, 2)).await,
        AppendAnswer::Added
    );
    // A reader that has missed just these records sees that they do not count.
    let page = other.read(10, MANY_BYTES).await.unwrap();
    assert_eq!((page.records[0].number, page.records[0].epoch), (11, 1));
    assert_eq!(page.cut_before, 20);
    let extent = other.extent().await.unwrap().expect("records");
    assert_eq!((extent.first, extent.last), (20, 21));
    // The next cut removes them, even one that removes nothing else.
    other.cut_before(20).await.unwrap();
    let both = [commits(20..=20, 2), commits(21..=21, 2)].concat();
    assert_eq!(read_all(&other, 0, MANY_BYTES).await, both);
}

/// The place where the journal is cut is stored before a record is removed. So a dispatcher that dies in between leaves
/// records that do not count, and the next cut removes them.
#[needs(mongod)]
#[tokio::test]
async fn a_cut_that_stopped_half_way_holds() {
    let (journal, database) = fresh_journal().await;
    append(&journal, &commits(1..=10, 1)).await;
    assert_eq!(journal.read(0, MANY_BYTES).await.unwrap().cut_before, 0);
    let client = Client::with_uri_str(database.uri()).await.unwrap();
    let database = client.default_database().unwrap();
    let cuts = database.collection::<Document>("dispatcher_journal_cut");
    let half = doc! {"_id": GROUP, "before": 8_i64};
    cuts.insert_one(half).await.unwrap();
    assert_eq!(journal.read(0, MANY_BYTES).await.unwrap().cut_before, 8);
    assert_eq!(journal.extent().await.unwrap().expect("records").first, 8);
    // Another dispatcher that knows only an earlier snapshot does not take the number back.
    journal.cut_before(5).await.unwrap();
    assert_eq!(read_all(&journal, 0, MANY_BYTES).await, commits(5..=10, 1));
    assert_eq!(journal.read(0, MANY_BYTES).await.unwrap().cut_before, 8);
    journal.cut_before(9).await.unwrap();
    assert_eq!(read_all(&journal, 0, MANY_BYTES).await, commits(9..=10, 1));
    // The last record stays, and counts.
    journal.cut_before(1_000).await.unwrap();
    let page = journal.read(9, MANY_BYTES).await.unwrap();
    assert_eq!((page.records, page.cut_before), (commits(10..=10, 1), 10));
}

#[needs(mongod)]
#[tokio::test]
async fn a_cut_leaves_the_last_record_and_other_groups() {
    let (journal, database) = fresh_journal().await;
    let neighbour = connect(database.uri(), "fleet 2").await;
    let records = commits(1..=50, 1);
    append(&journal, &records).await;
    append(&neighbour, &records).await;
    journal.cut_before(31).await.unwrap();
    assert_eq!(read_all(&journal, 0, MANY_BYTES).await, records[30..]);
    journal.cut_before(1_000).await.unwrap();
    assert_eq!(read_all(&journal, 0, MANY_BYTES).await, records[49..]);
    assert_eq!(read_all(&neighbour, 0, MANY_BYTES).await, records);
}

/// Records that a newer version has written are reported as unreadable. Those before them can still be read.
#[needs(mongod)]
#[tokio::test]
async fn a_record_of_another_format_is_reported() {
    let (journal, database) = fresh_journal().await;
    append(&journal, &commits(1..=2, 1)).await;
    let client = Client::with_uri_str(database.uri()).await.unwrap();
    let database = client.default_database().unwrap();
    let records = database.collection::<Document>("dispatcher_journal");
    let key = doc! {"group": GROUP, "number": 3_i64};
    let newer = doc! {"_id": key, "epoch": 1_i64, "format": 2, "changes": Bson::Null};
    records.insert_one(newer).await.unwrap();
    let page = journal.read(0, MANY_BYTES).await.unwrap();
    assert_eq!(page.records, commits(1..=2, 1));
    assert!(!page.is_end);
    let error = journal.read(2, MANY_BYTES).await.unwrap_err();
    assert!(!error.is_retry(), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("record 3") && text.contains("format 2"),
        "{text}"
    );
}

/// A commit of the largest size does not fit into one message to the server, but each of its parts does.
#[needs(mongod)]
#[tokio::test]
async fn records_larger_than_a_message_are_added_together() {
    let (journal, _database) = fresh_journal().await;
    let large = vec![7; 8 << 20];
    let records: Vec<Record> = (1..=8).map(|n| record_part(n, 1, &large, n == 8)).collect();
    assert_eq!(append(&journal, &records).await, AppendAnswer::Added);
    assert_eq!(read_all(&journal, 0, 10 << 20).await, records);
}

#[needs(mongod)]
#[tokio::test]
async fn one_of_many_dispatchers_takes_the_lease() {
    let (_journal, database) = fresh_journal().await;
    let mut dispatchers = Vec::new();
    for _ in 0..6 {
        dispatchers.push(Arc::new(connect(database.uri(), GROUP).await));
    }
    let mut seen = dispatchers[0].lease().await.unwrap();
    assert_eq!(seen, Lease::unused());
    for epoch in 1..=5 {
        let mut taken = Vec::new();
        for attempt in dispatchers.iter().zip(0..).map(|(dispatcher, number)| {
            let dispatcher = Arc::clone(dispatcher);
            tokio::spawn(async move { dispatcher.take_lease(seen, number).await })
        }) {
            let answer = attempt.await.expect("no panic");
            taken.push(answer.expect("an answer"));
        }
        let winners: Vec<usize> = (0..6).filter(|number| taken[*number].is_some()).collect();
        assert_eq!(winners.len(), 1, "{taken:?}");
        assert_eq!(taken[winners[0]], Some(epoch));
        seen = dispatchers[0].lease().await.unwrap();
        let holder = winners[0] as u64;
        let (turn, is_free) = (0, false);
        let expected = Lease {
            epoch,
            turn,
            holder,
            is_free,
        };
        assert_eq!(seen, expected);
    }
}

#[needs(mongod)]
#[tokio::test]
async fn a_lease_is_renewed_taken_and_given_up() {
    let (one, database) = fresh_journal().await;
    let other = connect(database.uri(), GROUP).await;
    assert_eq!(one.take_lease(Lease::unused(), 7).await.unwrap(), Some(1));
    assert!(one.renew_lease(1).await.unwrap());
    let seen = other.lease().await.unwrap();
    assert_eq!((seen.epoch, seen.turn, seen.holder), (1, 1, 7));
    // A renewal since the lease was read keeps others from taking it.
    assert!(one.renew_lease(1).await.unwrap());
    assert_eq!(other.take_lease(seen, 8).await.unwrap(), None);
    let seen = other.lease().await.unwrap();
    assert_eq!(other.take_lease(seen, 8).await.unwrap(), Some(2));
    assert!(!one.renew_lease(1).await.unwrap());
    one.release_lease(1).await.unwrap();
    assert!(!one.lease().await.unwrap().is_free);
    other.release_lease(2).await.unwrap();
    assert!(!other.renew_lease(2).await.unwrap());
    let seen = one.lease().await.unwrap();
    assert!(seen.is_free);
    assert_eq!(one.take_lease(seen, 7).await.unwrap(), Some(3));
    assert!(one.renew_lease(3).await.unwrap());
}

/// Two dispatchers append in turn while primaries are killed. Each number has one record, no acknowledged record is
/// lost, and a dispatcher that was replaced adds nothing more.
#[needs(mongod)]
#[tokio::test]
async fn primaries_that_die_lose_no_record_and_add_none_twice() {
    let mut set = ReplicaSet::start(3);
    let uri = set.uri("test");
    let dispatchers = [connect(&uri, GROUP).await, connect(&uri, GROUP).await];
    let mut expected: Vec<Record> = Vec::new();
    for epoch in 1..=4 {
        let [former, next] = match epoch % 2 {
            0 => [&dispatchers[1], &dispatchers[0]],
            _ => [&dispatchers[0], &dispatchers[1]],
        };
        let begin = Record::epoch_start(expected.len() as u64 + 1, epoch);
        append_until_all_stored(next, vec![begin.clone()]).await;
        expected.push(begin);
        let primary = set.primary();
        for turn in 0..6 {
            let first = expected.len() as u64 + 1;
            let records = commits(first..first + 20, epoch);
            if turn == 2 {
                set.members[primary].kill();
            }
            append_until_all_stored(next, records.clone()).await;
            expected.extend(records);
        }
        set.members[primary].restart();
        if epoch > 1 {
            let late = commits([expected.len() as u64 + 1 - 10], epoch - 1);
            let answer = append_with_retries(former, &late).await;
            assert!(
                matches!(answer, AppendAnswer::Taken { epoch: by, .. } if by == epoch),
                "{answer:?}"
            );
        }
        set.primary();
    }
    assert_eq!(read_all(&dispatchers[0], 0, MANY_BYTES).await, expected);
}

/// Sends records until all of them are there, as a dispatcher does.
async fn append_until_all_stored(journal: &JournalStore, mut records: Vec<Record>) {
    while !records.is_empty() {
        match append_with_retries(journal, &records).await {
            AppendAnswer::Added => return,
            AppendAnswer::Taken { number, epoch } => {
                assert_eq!(epoch, records[0].epoch, "record {number} is another's");
                records.retain(|record| record.number > number);
            }
        }
    }
}

/// Repeats a command until a server answers it.
async fn append_with_retries(journal: &JournalStore, records: &[Record]) -> AppendAnswer {
    let started = Instant::now();
    loop {
        match journal.append(records.to_vec()).await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_retry(), "{error}"),
        }
        assert!(started.elapsed() < PATIENCE, "no primary");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
