//! Tests many records from a dataset in MongoDB. Whichever process is killed, all records are written back in the end,
//! and only a few records are in memory at a time.

use std::time::{Duration, Instant};

use mongodb::bson::doc;
use serde_json::json;
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::{Finished, Run, Running};

use crate::mongodb_records::{People, url};

/// Inserts `count` people whose names are missing.
fn insert_people(people: &People, count: i32) {
    for first in (0..count).step_by(1_000) {
        let numbers = first..count.min(first + 1_000);
        let person =
            |number: i32| doc! {"_id": number, "url": url(&number.to_string()), "name": null};
        people.insert(numbers.map(person).collect());
    }
}

fn count_named(people: &People) -> u64 {
    let named = vec![
        doc! {"$match": {"name": {"$ne": null}}},
        doc! {"$count": "n"},
    ];
    let counted = people.documents.aggregate("people", named);
    counted
        .first()
        .map_or(0, |counted| counted["n"].as_u64().unwrap())
}

fn check_kill_and_resume(store: impl Fn(&People) -> Option<String>) {
    let people = People::new();
    const COUNT: i32 = 3_000;
    insert_people(&people, COUNT);
    people.insert(vec![doc! {"_id": "a", "name": null}]);
    let crawl = || {
        let run = people.crawl_and_write_back();
        match store(&people) {
            Some(store) => run.replace_flag("--store", store),
            None => run,
        }
    };
    let mut running = crawl().start();
    running.wait_until("something is written back", |_| count_named(&people) > 0);
    running.kill_role("crawl");
    running.finish();
    let before = count_named(&people);
    assert!(before < COUNT as u64, "it was killed in the middle");
    let run = crawl().finish().expect_code(0);
    assert_eq!(count_named(&people), COUNT as u64);
    for number in [0, 1, COUNT / 2, COUNT - 1] {
        assert_eq!(people.person(number)["name"], format!("Name of /{number}"));
    }
    assert_eq!(run.summary().records(), (COUNT as u64, COUNT as u64));
    // The crawl is already complete, so starting it again does nothing.
    let asked = people.web.visits().pages().len();
    let idle = crawl().finish().expect_code(0);
    assert_eq!(people.web.visits().pages().len(), asked);
    assert_eq!(
        idle.summary().json["written_back"],
        json!({"records": 0, "refused": 0})
    );
}

#[needs(mongod)]
#[test]
fn a_killed_crawl_writes_the_rest_back_when_it_is_resumed() {
    check_kill_and_resume(|_| None);
}

#[needs(mongod)]
#[test]
fn a_killed_crawl_with_its_store_in_mongodb_writes_the_rest_back_when_it_is_resumed() {
    check_kill_and_resume(|people| Some(people.uri.clone()));
}

#[needs(mongod)]
#[test]
fn a_resumed_crawl_continues_after_the_fed_records() {
    let people = People::new();
    insert_people(&people, 1_200);
    people.insert(vec![doc! {"_id": "broken", "name": null}]);
    let limited = people.crawl_and_write_back().args(["--max-pages", "20"]);
    let first = limited.finish().expect_code(12);
    people.insert(vec![doc! {"_id": "new", "url": url("new"), "name": null}]);
    let run = people.crawl_and_write_back().finish().expect_code(0);
    assert_eq!(people.person("new")["name"], "Name of /new");
    assert_eq!(count_named(&people), 1_201);
    // The broken document was read and reported in only one of the two runs.
    let broken = |run: &Finished| run.summary().json["broken_seeds"]["count"].clone();
    let reported = broken(&first).as_u64().unwrap() + broken(&run).as_u64().unwrap();
    assert_eq!(reported, 1);
}

#[needs(mongod)]
#[test]
fn a_resumed_crawl_reads_documents_that_were_inserted_before_the_others() {
    let people = People::new();
    insert_people(&people, 1_200);
    let run = || people.crawl_and_write_back().finish().expect_code(0);
    run();
    let document = |id: i32, path: &str| doc! {"_id": id, "url": url(path), "name": null};
    people.insert(vec![document(-1, "before"), document(5_000, "behind")]);
    run();
    for (id, name) in [(-1, "Name of /before"), (5_000, "Name of /behind")] {
        assert_eq!(people.person(id)["name"], name);
    }
    // One document is deleted and another one is inserted before the others, so the number of documents stays the same.
    let delete = doc! {"q": {"_id": 3}, "limit": 1};
    people
        .documents
        .run(doc! {"delete": "people", "deletes": [delete]});
    people.insert(vec![document(-2, "instead")]);
    run();
    assert_eq!(people.person(-2)["name"], "Name of /instead");
    let link = doc! {"q": {"_id": 7}, "u": {"$set": {"url": url("moved"), "location": null}}};
    people
        .documents
        .run(doc! {"update": "people", "updates": [link]});
    run();
    let pages = people.web.visits().pages();
    assert_eq!(pages.for_path("/moved").len(), 1);
    assert_eq!(pages.len(), 1_204, "nothing is fetched again");
}

#[needs(mongod)]
#[test]
fn a_dataset_that_goes_away_is_waited_for() {
    let mut mongod = Mongod::start();
    let uri = mongod.uri("people") + "&serverSelectionTimeoutMS=500";
    let people = People::create_in(uri, None);
    people
        .web
        .site("people.example")
        .set_latency(Duration::from_millis(5));
    insert_people(&people, 2_000);
    let running = people.crawl_and_write_back().start();
    people
        .web
        .log()
        .wait_until("it is under way", |visits| visits.pages().len() > 100);
    mongod.stop();
    people
        .web
        .log()
        .wait_until("it continues", |visits| visits.pages().len() > 500);
    mongod.restart();
    let run = running.finish().expect_code(0);
    assert_eq!(count_named(&people), 2_000);
    assert_eq!(run.summary().records(), (2_000, 2_000));
    let logs = people.work.logs();
    let of_crawl = logs.iter().filter(|(name, _)| name.starts_with("crawl"));
    let reported = of_crawl.flat_map(|(_, lines)| lines).filter(|line| {
        matches!(
            line["event"].as_str(),
            Some("write_back_away" | "dataset_away")
        )
    });
    assert!(
        (1..=3).contains(&reported.count()),
        "reported, but not for ever: {logs:?}"
    );
}

/// Inserts `count` people with notes of this length. One person in a hundred lacks a value.
fn insert_mostly_complete(people: &People, count: i32, notes_bytes: usize) {
    let notes = "x".repeat(notes_bytes);
    let person = |number: i32| {
        let name = (number % 100 != 0).then_some("Known");
        doc! {"_id": number, "url": url(&number.to_string()), "name": name, "notes": &*notes}
    };
    for first in (0..count).step_by(5_000) {
        let numbers = first..count.min(first + 5_000);
        people.insert(numbers.map(person).collect());
    }
}

/// The time and memory that a crawl needed.
#[derive(Debug)]
struct Needed {
    elapsed: Duration,
    /// The highest memory use of the crawl process, and of the dispatcher, in MiB.
    crawl_mib: u64,
    dispatcher_mib: u64,
}

/// Runs a command and measures it until it ends, or until `is_wanted` returns false.
fn measure_until(run: Run, is_wanted: impl Fn() -> bool) -> (Needed, Running) {
    let mut needed = Needed {
        elapsed: Duration::ZERO,
        crawl_mib: 0,
        dispatcher_mib: 0,
    };
    let started = Instant::now();
    let running = run.start();
    loop {
        let peak = |role: &str| {
            let processes = running.processes_of_role(role).into_iter();
            processes.map(|process| process.peak_bytes() >> 20).max()
        };
        let crawl = peak("crawl");
        let has_ended = needed.crawl_mib > 0 && crawl.is_none();
        needed.crawl_mib = needed.crawl_mib.max(crawl.unwrap_or(0));
        needed.dispatcher_mib = needed.dispatcher_mib.max(peak("dispatcher").unwrap_or(0));
        if has_ended || !is_wanted() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    needed.elapsed = started.elapsed();
    (needed, running)
}

fn measure_to_its_end(run: Run) -> Needed {
    let (needed, running) = measure_until(run, || true);
    running.finish().expect_code(0);
    needed
}

#[needs(mongod)]
#[test]
fn memory_does_not_grow_with_the_number_of_records() {
    let people = People::new();
    insert_mostly_complete(&people, 20_000, 2_000);
    let few = people
        .crawl_and_write_back()
        .replace_flag("--crawl", "few")
        .args(["--records-query", r#"{"_id": {"$lt": 2000}}"#]);
    let few = measure_to_its_end(few);
    let all = people.crawl_and_write_back().replace_flag("--crawl", "all");
    let all = measure_to_its_end(all);
    // The second crawl has ten times as many records. If all of them were in memory, it would need 40 MB more.
    let grown = |few: u64, all: u64| all.saturating_sub(few);
    assert!(grown(few.crawl_mib, all.crawl_mib) < 25, "{few:?} {all:?}");
    assert!(
        grown(few.dispatcher_mib, all.dispatcher_mib) < 25,
        "{few:?} {all:?}"
    );
    assert_eq!(count_unnamed(&people), 0);
}

const MILLION: i32 = 1_000_000;
const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

fn assert_bounded(what: &str, needed: &Needed) {
    let rate = f64::from(MILLION) / needed.elapsed.as_secs_f64();
    println!("a million records, {what}: {rate:.0}/s, {needed:?}");
    let bounded = needed.crawl_mib < 100 && needed.dispatcher_mib < 200;
    assert!(bounded, "{needed:?}");
}

/// Run it with `cargo test -p webfill-tests --test crawls -- --ignored --nocapture a_million_records`.
#[test]
#[ignore = "takes minutes; prints what a million records need"]
fn a_million_records_are_read_and_the_few_open_ones_filled_in_bounded_memory() {
    let people = People::new();
    insert_mostly_complete(&people, MILLION, 200);
    let crawl = || people.crawl_and_write_back().time_limit(HALF_AN_HOUR);
    let embedded = crawl().replace_flag("--crawl", "embedded");
    assert_bounded("SQLite", &measure_to_its_end(embedded));
    let store = crawl().replace_flag("--store", &people.uri);
    let store = store.replace_flag("--crawl", "mongodb");
    assert_bounded("MongoDB", &measure_to_its_end(store));
    assert_eq!(count_unnamed(&people), 0);
}

#[test]
#[ignore = "takes minutes; prints what a million records need"]
fn a_million_records_that_all_wait_for_their_pages_take_no_more_memory() {
    let people = People::new();
    for first in (0..MILLION).step_by(5_000) {
        let person = |number: i32| {
            let url = format!("http://p{}.example/{number}", number % 1_000);
            doc! {"_id": number, "url": url, "name": null, "notes": "x".repeat(200)}
        };
        people.insert((first..first + 5_000).map(person).collect());
    }
    for (what, store) in [("SQLite", None), ("MongoDB", Some(&people.uri))] {
        let run = people.crawl_and_write_back().time_limit(HALF_AN_HOUR);
        let run = run
            .replace_flag("--crawl", what)
            .replace_flag("--delay", "3600");
        let run = match store {
            None => run,
            Some(uri) => run.replace_flag("--store", uri),
        };
        let frontier = people.work.path("state/dispatcher.db");
        let is_read = || {
            let db = rusqlite::Connection::open(&frontier)?;
            let sql = "SELECT discovered FROM crawls WHERE crawl_id = ?1";
            db.query_row(sql, [what], |row| row.get::<_, i32>(0))
        };
        let is_read = || is_read().is_ok_and(|found| found == MILLION);
        let (needed, running) = measure_until(run, || !is_read());
        assert_bounded(&format!("all to be fetched, {what}"), &needed);
        running.signal(Signal::INT);
        running.finish().expect_code(11);
    }
}

fn count_unnamed(people: &People) -> usize {
    let unnamed = vec![doc! {"$match": {"name": null}}, doc! {"$limit": 1}];
    people.documents.aggregate("people", unnamed).len()
}
