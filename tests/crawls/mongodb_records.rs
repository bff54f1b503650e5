//! Records that are documents of a dataset in MongoDB: read by query and projection, filled, and
//! written back; judged by a client of the database. Without a server these tests say that they
//! are skipped.

use std::time::Duration;

use mongodb::bson::{Bson, Document, doc, oid::ObjectId};
use serde_json::{Value, json};
use webfill_test_mongod::{Database, Mongod, fresh_database};
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, profile_mapping};

const HEX: &str = "0123456789abcdef01234567";
const HOSTILE: &str = "$name.x, {\"$gt\": \"\"} \u{1F600}";

/// A dataset, a web that knows more, and a place to crawl from.
struct People {
    documents: Documents,
    work: Workplace,
    web: Web,
    uri: String,
    /// Its server may drop it with this.
    _database: Option<Database>,
}

impl People {
    fn new() -> Option<People> {
        let database = fresh_database()?;
        let uri = database.uri().to_owned();
        Some(People::at(uri, Some(database)))
    }

    /// Every page of `people.example` knows a name and a location.
    fn at(uri: String, database: Option<Database>) -> People {
        let web = Web::start();
        web.site("people.example").otherwise(|request| {
            let name = format!("Name of {}", request.path);
            page("T").field("name", &name).field("location", "London").into()
        });
        People {
            documents: Documents::open(&uri),
            work: Workplace::new(),
            web,
            uri,
            _database: database,
        }
    }

    fn insert(&self, people: Vec<Document>) {
        self.documents.run(doc! {"insert": "people", "documents": people});
    }

    /// A crawl of all that `--records` brings, with the embedded store.
    fn crawl(&self) -> Run {
        let delay = ["--delay", "0"];
        let records = ["--records", &self.uri, "--records-collection", "people"];
        self.work.crawl_without_delay(&self.web).args(delay).args(records)
    }

    fn crawl_and_write_back(&self) -> Run {
        self.crawl().args(["--write-back", "people"])
    }

    /// A document of `people`, as relaxed extended JSON.
    fn person(&self, id: impl Into<Bson>) -> Value {
        self.document("people", id)
    }

    fn document(&self, collection: &str, id: impl Into<Bson>) -> Value {
        let found = self
            .documents
            .aggregate(collection, vec![doc! {"$match": {"_id": id.into()}}]);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }
}

fn url(path: &str) -> String {
    format!("http://people.example/{path}")
}

/// Ids of four types, and what their documents lack.
fn mixed_people() -> Vec<Document> {
    vec![
        doc! {"_id": "ada", "url": url("ada"), "name": null, "location": "Paris"},
        doc! {"_id": 7, "urls": [url("7")], "name": "", "location": null, "born": 1815},
        doc! {"_id": HEX.parse::<ObjectId>().unwrap(), "url": url("oid"), "name": []},
        doc! {"_id": {"x": 1}, "url": url("nested"), "want": ["name"]},
    ]
}

fn assert_mixed_people_are_filled(people: &People) {
    let id: ObjectId = HEX.parse().unwrap();
    assert_eq!(
        people.person("ada"),
        json!({"_id": "ada", "url": url("ada"), "name": "Name of /ada", "location": "Paris"})
    );
    assert_eq!(
        people.person(7),
        json!({"_id": 7, "urls": [url("7")], "name": "Name of /7", "location": "London",
            "born": 1815})
    );
    assert_eq!(people.person(id)["name"], "Name of /oid");
    assert_eq!(people.person(id).get("location"), None, "it was not wanted");
    let nested = people.person(doc! {"x": 1});
    assert_eq!(nested["name"], "Name of /nested");
    assert_eq!(nested["want"], json!(["name"]));
}

#[test]
fn what_is_missing_is_found_and_written_back() {
    let Some(people) = People::new() else { return };
    people.insert(mixed_people());
    let run = people.crawl_and_write_back().finish().expect(0);
    assert_mixed_people_are_filled(&people);
    assert_eq!(run.summary().records(), (4, 4));
    let told = &run.summary().json["written_back"];
    assert_eq!(*told, json!({"records": 4, "refused": 0}));
    let stored = people.work.stored().records();
    let mut ids: Vec<&str> = stored.keys().map(String::as_str).collect();
    ids.sort_unstable();
    assert_eq!(ids, [HEX, "7", "ada", r#"{"x":{"$numberInt":"1"}}"#]);
}

#[test]
fn records_and_store_may_be_one_database() {
    let Some(people) = People::new() else { return };
    people.insert(mixed_people());
    let crawl = people.crawl_and_write_back();
    let run = crawl.instead("--store", &people.uri).finish().expect(0);
    assert_mixed_people_are_filled(&people);
    assert_eq!(run.summary().records(), (4, 4));
    let left = doc! {"$match": {"unwritten": {"$exists": true}}};
    assert!(people.documents.aggregate("records", vec![left]).is_empty());
}

#[test]
fn without_write_back_the_dataset_is_only_read() {
    let Some(people) = People::new() else { return };
    people.insert(mixed_people());
    let before = people.documents.all("people");
    let run = people.crawl().finish().expect(0);
    assert_eq!(people.documents.all("people"), before);
    assert_eq!(run.summary().records(), (4, 4));
    assert_eq!(run.summary().json["written_back"], Value::Null);
}

#[test]
fn another_collection_gets_documents_with_the_same_ids() {
    let Some(people) = People::new() else { return };
    people.insert(mixed_people());
    let before = people.documents.all("people");
    let there = doc! {"_id": 7, "location": "Rome", "checked": true};
    let insert = doc! {"insert": "found", "documents": [there]};
    people.documents.run(insert);
    let crawl = people.crawl().args(["--write-back", "found"]);
    crawl.finish().expect(0);
    assert_eq!(people.documents.all("people"), before);
    assert_eq!(people.documents.count("found"), 4);
    let found = |id: Bson| people.document("found", id);
    let expected = json!({"_id": "ada", "name": "Name of /ada"});
    assert_eq!(found("ada".into()), expected, "of it only what was missing");
    let oid: ObjectId = HEX.parse().unwrap();
    assert_eq!(found(oid.into())["name"], "Name of /oid");
    let expected =
        json!({"_id": 7, "location": "Rome", "checked": true, "name": "Name of /7"});
    assert_eq!(found(7.into()), expected, "its values stay there too");
}

#[test]
fn only_a_refresh_writes_over_values() {
    let Some(people) = People::new() else { return };
    let born = doc! {"_id": 1, "url": url("1"), "name": "Old", "location": "", "born": 1815};
    people.insert(vec![born]);
    people.crawl_and_write_back().finish().expect(0);
    let kept = json!({"_id": 1, "url": url("1"), "name": "Old", "location": "London",
        "born": 1815});
    assert_eq!(people.person(1), kept);

    // The store knows the record as complete; a refresh asks again all the same.
    let refresh = people.crawl_and_write_back().arg("--refresh");
    let run = refresh.instead("--crawl", "again").finish().expect(0);
    let mut fresh = kept;
    fresh["name"] = json!("Name of /1");
    assert_eq!(people.person(1), fresh);
    assert_eq!(run.summary().records(), (1, 1), "nothing asks for `born`");
    assert_eq!(people.web.visits().pages().len(), 2);
}

#[test]
fn what_is_typed_into_the_dataset_meanwhile_is_kept() {
    let Some(people) = People::new() else { return };
    let slow = people.web.site("slow.example");
    slow.serve("/", page("S").field("name", "Found").field("location", "Bonn"));
    slow.latency(Duration::from_secs(2));
    let missing = doc! {"_id": 1, "url": slow.url("/"), "name": null, "location": null};
    people.insert(vec![missing]);
    let running = people.crawl_and_write_back().start();
    people.web.log().wait_until("its page is asked for", |visits| !visits.pages().is_empty());
    people.documents.run(doc! {"update": "people", "updates": [
        {"q": {"_id": 1}, "u": {"$set": {"name": "Typed"}}},
    ]});
    running.finish().expect(0);
    let person = people.person(1);
    assert_eq!((&person["name"], &person["location"]), (&json!("Typed"), &json!("Bonn")));
    assert_eq!(people.work.stored().record("1").fields["name"], "Found");
}

#[test]
fn values_arrive_while_the_crawl_runs_and_better_ones_replace_them() {
    let Some(people) = People::new() else { return };
    let mut official = profile_mapping();
    official["name"] = json!("official");
    official["url_patterns"] = json!([{"type": "host", "pattern": "official.example"}]);
    people.work.write_json("mappings/1-official.json", &official);
    let directory = people.web.site("directory.example");
    directory.serve("/", page("D").field("name", "A. L."));
    let site = people.web.site("official.example");
    site.serve("/", page("O").field("name", "Ada Lovelace"));
    site.latency(Duration::from_secs(8));
    let urls = [directory.url("/"), site.url("/")];
    let ada = doc! {"_id": 1, "urls": urls.to_vec(), "name": null, "location": null};
    people.insert(vec![ada]);

    let mut running = people.crawl_and_write_back().start();
    running.wait_until("the first value is written back", |_| {
        people.person(1)["name"] == "A. L."
    });
    running.finish().expect(0);
    assert_eq!(people.person(1)["name"], "Ada Lovelace");
    assert_eq!(people.person(1)["location"], Value::Null, "nobody knows it");
}

#[test]
fn a_value_that_was_chosen_by_hand_is_not_replaced_by_a_later_crawl() {
    let Some(people) = People::new() else { return };
    let site = people.web.site("two.example");
    site.serve("/1", page("1").field("name", "First"));
    site.serve("/2", page("2").field("name", "Second"));
    let urls = vec![site.url("/1"), site.url("/2")];
    people.insert(vec![doc! {"_id": 1, "urls": urls, "name": null, "location": null}]);
    people.crawl_and_write_back().finish().expect(0);
    let written = people.person(1)["name"].clone();
    let chosen = if written == "First" { "Second" } else { "First" };
    people.documents.run(doc! {"update": "people", "updates": [
        {"q": {"_id": 1}, "u": {"$set": {"name": chosen}}},
    ]});
    let again = people.crawl_and_write_back();
    again.instead("--crawl", "again").finish().expect(0);
    assert_eq!(people.person(1)["name"], chosen);
}

#[test]
fn texts_come_back_as_texts_whatever_they_look_like() {
    let Some(people) = People::new() else { return };
    let site = people.web.site("odd.example");
    site.serve("/", page("O").field("name", HOSTILE).field("location", "$$ROOT"));
    let odd = doc! {"_id": "$_id", "url": site.url("/"), "name": null, "location": null};
    people.insert(vec![odd]);
    people.crawl_and_write_back().finish().expect(0);
    let person = people.person("$_id");
    assert_eq!(person["name"], HOSTILE);
    assert_eq!(person["location"], "$$ROOT");
}

#[test]
fn a_query_and_a_projection_say_what_is_read() {
    let Some(people) = People::new() else { return };
    let person = |id: &str, state: &str| {
        let links = [url(&format!("{id}/profile")), url(&format!("{id}/more"))];
        doc! {"_id": id, "state": state, "homepage": url(id), "links": links.to_vec(),
            "person": {"name": "Known"}, "notes": "x"}
    };
    people.insert(vec![person("a", "open"), person("b", "done"), person("c", "open")]);
    let projection = json!({"urls": ["$homepage", "$links", "$fax"], "location": 1,
        "name": "$person.name"});
    let run = people
        .crawl_and_write_back()
        .args(["--records-query", r#"{"state": {"$ne": "done"}}"#])
        .args(["--records-projection", &projection.to_string()])
        .finish()
        .expect(0);
    let asked = people.web.visits().pages().counts();
    let expected = ["a", "a/more", "a/profile", "c", "c/more", "c/profile"];
    let asked: Vec<&str> = asked.keys().map(String::as_str).collect();
    assert_eq!(asked, expected.map(|path| format!("people.example/{path}")));
    assert_eq!(run.summary().records(), (2, 2));
    let stored = people.work.stored().record("a");
    assert_eq!(json!(stored.fields), json!({"location": "London", "name": "Known"}));
    assert_eq!(people.person("a")["location"], "London", "absent is missing");
    assert_eq!(people.person("a").get("name"), None, "it was known by projection");
    assert_eq!(people.person("b").get("location"), None);
}

#[test]
fn documents_that_cannot_be_used_are_listed_by_their_ids() {
    let Some(people) = People::new() else { return };
    let oid: ObjectId = HEX.parse().unwrap();
    people.insert(vec![
        doc! {"_id": 1, "name": null},
        doc! {"_id": 2, "url": 42, "name": null},
        doc! {"_id": 3, "url": url("3"), "name": null},
        doc! {"_id": "3", "url": url("another"), "name": null},
        doc! {"_id": "x".repeat(2_000), "url": url("4"), "name": null},
        doc! {"_id": oid, "url": "mailto:ada@people.example", "name": null},
    ]);
    let run = people.crawl_and_write_back().finish().expect(0);
    let broken = run.summary().json["broken_seeds"].clone();
    assert_eq!(broken["count"], 5);
    let listed = std::fs::read_to_string(broken["file"].as_str().unwrap()).unwrap();
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reason = |id: &str| {
        let of_id = listed.iter().find(|line| line["_id"] == id);
        of_id.unwrap_or_else(|| panic!("no {id}: {listed:?}"))["reason"].to_string()
    };
    assert!(reason("1").contains("no link"));
    assert!(reason("2").contains("`url` holds 42"));
    assert!(reason("3").contains("is another"), "42 and \"42\" read the same");
    assert!(reason(HEX).contains("mailto"));
    let too_long = listed.iter().find(|line| line["reason"].to_string().contains("2000 bytes"));
    assert!(too_long.is_some(), "{listed:?}");
    assert_eq!(run.summary().json["broken_seeds"]["first"][0]["_id"], "1");
    assert_eq!(people.person(3)["name"], "Name of /3");
    assert_eq!(people.person("3")["name"], Value::Null);
}

#[test]
fn flags_that_make_no_sense_are_refused_in_a_sentence() {
    let work = Workplace::new();
    let records = ["--records", "mongodb://127.0.0.1:1/x", "--records-collection", "people"];
    let crawl = || work.plain_crawl().arg("--allow-private-networks");
    for (flags, word) in [
        (&["--records-query", "{name: 1}"][..], "--records-query"),
        (&["--records-query", "[]"], "no JSON object"),
        (&["--records-projection", r#"{"_id": 0}"#], "`_id`"),
        (&["--write-back", "a$b"], "--write-back"),
        (&["--seeds", "x.csv"], "--seeds"),
    ] {
        let run = crawl().args(records).args(flags).finish().expect(2);
        assert!(run.one_sentence().contains(word), "{}", run.stderr);
    }
    for (flags, word) in [
        (&["--records", "mongodb://127.0.0.1:1/x"][..], "--records-collection"),
        (&["--records", "sqlite:x.db", "--records-collection", "x"], "--seeds"),
        (&["--refresh", "http://a.example/"], "--records"),
    ] {
        let run = crawl().args(flags).finish().expect(2);
        assert!(run.one_sentence().contains(word), "{}", run.stderr);
    }
    assert!(!work.path("state").exists(), "nothing was opened");
}

#[test]
fn a_dataset_that_cannot_be_read_or_written_is_told_at_once() {
    let Some(people) = People::new() else { return };
    people.insert(mixed_people());
    people.documents.run(doc! {"create": "seen", "viewOn": "people", "pipeline": []});
    let refused = |run: Run, code: i32, word: &str| {
        let run = run.finish().expect(code);
        assert!(run.one_sentence().contains(word), "{}", run.stderr);
    };
    let crawl = || people.crawl_and_write_back();
    refused(crawl().instead("--records-collection", "peolpe"), 2, "no such collection");
    refused(crawl().args(["--records-query", r#"{"$nor": 1}"#]), 2, "query");
    refused(crawl().args(["--records-projection", r#"{"a": {"$nonsense": 1}}"#]), 2, "projection");
    refused(crawl().instead("--write-back", "seen"), 2, "seen");
    let own = crawl().instead("--store", &people.uri).instead("--write-back", "records");
    refused(own, 2, "webfill's own");
    let away = "mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=300";
    refused(crawl().instead("--records", away), 1, "no server answers");
    // A view can be read.
    crawl().instead("--records-collection", "seen").finish().expect(0);
    assert_mixed_people_are_filled(&people);
}

/// So many people that a crawl of them takes a while; the last has no link.
fn many(people: &People, count: i32) {
    for first in (0..count).step_by(1_000) {
        let numbers = first..count.min(first + 1_000);
        let person = |number: i32| doc! {"_id": number, "url": url(&number.to_string()), "name": null};
        people.insert(numbers.map(person).collect());
    }
}

fn named(people: &People) -> u64 {
    let named = vec![
        doc! {"$match": {"name": {"$ne": null}}},
        doc! {"$count": "n"},
    ];
    let counted = people.documents.aggregate("people", named);
    counted.first().map_or(0, |counted| counted["n"].as_u64().unwrap())
}

fn killed_and_resumed(store: impl Fn(&People) -> Option<String>) {
    let Some(people) = People::new() else { return };
    const COUNT: i32 = 3_000;
    many(&people, COUNT);
    people.insert(vec![doc! {"_id": "a", "name": null}]);
    let crawl = || {
        let run = people.crawl_and_write_back();
        match store(&people) {
            Some(store) => run.instead("--store", store),
            None => run,
        }
    };
    let mut running = crawl().start();
    running.wait_until("something is written back", |_| named(&people) > 0);
    running.kill_role("crawl");
    running.finish();
    let before = named(&people);
    assert!(before < COUNT as u64, "it was killed in the middle");
    let run = crawl().finish().expect(0);
    assert_eq!(named(&people), COUNT as u64);
    for number in [0, 1, COUNT / 2, COUNT - 1] {
        assert_eq!(people.person(number)["name"], format!("Name of /{number}"));
    }
    assert_eq!(run.summary().records(), (COUNT as u64, COUNT as u64));
    // Resumed again, there is nothing to do.
    let asked = people.web.visits().pages().len();
    let idle = crawl().finish().expect(0);
    assert_eq!(people.web.visits().pages().len(), asked);
    assert_eq!(idle.summary().json["written_back"], json!({"records": 0, "refused": 0}));
}

#[test]
fn a_killed_crawl_writes_the_rest_back_when_it_is_resumed() {
    killed_and_resumed(|_| None);
}

#[test]
fn a_killed_crawl_with_its_store_in_mongodb_writes_the_rest_back_when_it_is_resumed() {
    killed_and_resumed(|people| Some(people.uri.clone()));
}

#[test]
fn a_resumed_crawl_reads_on_behind_what_was_fed() {
    let Some(people) = People::new() else { return };
    many(&people, 1_200);
    people.insert(vec![doc! {"_id": "broken", "name": null}]);
    let limited = people.crawl_and_write_back().args(["--max-pages", "20"]);
    let first = limited.finish().expect(12);
    let behind = doc! {"_id": "new", "url": url("new"), "name": null};
    let before = doc! {"_id": -1, "url": url("before"), "name": null};
    people.insert(vec![behind, before]);
    let run = people.crawl_and_write_back().finish().expect(0);
    assert_eq!(people.person("new")["name"], "Name of /new");
    assert_eq!(named(&people), 1_201 + u64::from(people.person(-1)["name"] != Value::Null));
    // Every document was read, and told once, in one run or the other.
    let broken = |run: &webfill_tests::run::Finished| run.summary().json["broken_seeds"]["count"].clone();
    let told = broken(&first).as_u64().unwrap() + broken(&run).as_u64().unwrap();
    assert_eq!(told, 1);
    let another = people.crawl_and_write_back().instead("--crawl", "another");
    another.finish().expect(0);
    assert_eq!(people.person(-1)["name"], "Name of /before");
}

#[test]
fn a_dataset_that_goes_away_is_waited_for() {
    let Some(mut mongod) = Mongod::start() else { return };
    let uri = mongod.uri("people") + "&serverSelectionTimeoutMS=500";
    let people = People::at(uri, None);
    people.web.site("people.example").latency(Duration::from_millis(5));
    many(&people, 2_000);
    let running = people.crawl_and_write_back().start();
    people.web.log().wait_until("it is under way", |visits| visits.pages().len() > 100);
    mongod.stop();
    people.web.log().wait_until("it goes on", |visits| visits.pages().len() > 500);
    mongod.restart();
    let run = running.finish().expect(0);
    assert_eq!(named(&people), 2_000);
    assert_eq!(run.summary().records(), (2_000, 2_000));
    let logs = people.work.logs();
    let of_crawl = logs.iter().filter(|(name, _)| name.starts_with("crawl"));
    let told = of_crawl.flat_map(|(_, lines)| lines).filter(|line| {
        matches!(line["event"].as_str(), Some("write_back_away" | "dataset_away"))
    });
    assert!((1..=3).contains(&told.count()), "told, but not for ever: {logs:?}");
}

#[test]
fn what_the_dataset_refuses_does_not_stop_the_rest() {
    let Some(people) = People::new() else { return };
    people.documents.run(doc! {"create": "people", "validator": {"name": {"$ne": "Name of /2"}}});
    many(&people, 5);
    let run = people.crawl_and_write_back().finish().expect(0);
    assert_eq!(run.summary().json["written_back"], json!({"records": 4, "refused": 1}));
    assert_eq!(people.person(2)["name"], Value::Null);
    assert_eq!(named(&people), 4);
}

/// Feeds so many records, of which one in a hundred is new to be fetched; returns the greatest
/// memory of the crawl process and of the dispatcher, in bytes.
fn memory_of_reading(people: &People, crawl: &str) -> [u64; 2] {
    let mut peaks = [0; 2];
    let mut running = people
        .crawl_and_write_back()
        .instead("--crawl", crawl)
        .instead("--workers", "1")
        .time_limit(Duration::from_secs(3_600))
        .start();
    let signal = running.wait_for_role("dispatcher", 1);
    assert_eq!(signal.len(), 1);
    loop {
        let processes = running.processes();
        for (peak, role) in peaks.iter_mut().zip(["crawl", "dispatcher"]) {
            let of_role = processes.iter().filter(|process| process.role() == role);
            *peak = of_role.map(|process| process.peak_bytes()).fold(*peak, u64::max);
        }
        if processes.iter().all(|process| process.role() != "crawl") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    running.finish().expect(0);
    peaks
}
