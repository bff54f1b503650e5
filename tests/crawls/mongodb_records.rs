//! Tests records that are documents of a dataset in MongoDB: they are read by query and projection, filled, and written
//! back. The tests check the database with their own client.

use std::time::Duration;

use mongodb::bson::{Bson, Document, doc, oid::ObjectId};
use serde_json::{Value, json};
use webfill_test_mongod::{Database, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, profile_mapping};

pub(crate) const HEX: &str = "0123456789abcdef01234567";
const HOSTILE: &str = "$name.x, {\"$gt\": \"\"} \u{1F600}";

/// A dataset with missing values, a web that has these values, and a workplace.
pub(crate) struct People {
    pub(crate) documents: Documents,
    pub(crate) work: Workplace,
    pub(crate) web: Web,
    pub(crate) uri: String,
    /// The test's own database on a shared server. It is dropped together with this value.
    _database: Option<Database>,
}

impl People {
    pub(crate) fn new() -> People {
        let database = fresh_database();
        let uri = database.uri().to_owned();
        People::create_in(uri, Some(database))
    }

    /// Creates the dataset in a database. Every page of `people.example` has a name and a location.
    pub(crate) fn create_in(uri: String, database: Option<Database>) -> People {
        let web = Web::start();
        web.site("people.example").serve_otherwise(|request| {
            let name = format!("Name of {}", request.path);
            page("T")
                .field("name", &name)
                .field("location", "London")
                .into()
        });
        People {
            documents: Documents::open(&uri),
            work: Workplace::new(),
            web,
            uri,
            _database: database,
        }
    }

    pub(crate) fn insert(&self, people: Vec<Document>) {
        self.documents
            .run(doc! {"insert": "people", "documents": people});
    }

    /// The command that crawls all documents selected by `--records`, with the embedded store.
    fn crawl(&self) -> Run {
        let delay = ["--delay", "0"];
        let records = ["--records", &self.uri, "--records-collection", "people"];
        self.work
            .crawl_without_delay(&self.web)
            .args(delay)
            .args(records)
    }

    pub(crate) fn crawl_and_write_back(&self) -> Run {
        self.crawl().args(["--write-back", "people"])
    }

    /// The document of a person, as relaxed extended JSON.
    pub(crate) fn person(&self, id: impl Into<Bson>) -> Value {
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

pub(crate) fn url(path: &str) -> String {
    format!("http://people.example/{path}")
}

/// People with ids of four types, each without some values.
pub(crate) fn mixed_people() -> Vec<Document> {
    vec![
        doc! {"_id": "ada", "url": url("ada"), "name": null, "location": "Paris"},
        doc! {"_id": 7, "urls": [url("7")], "name": "", "location": null, "born": 1815},
        doc! {"_id": HEX.parse::<ObjectId>().unwrap(), "url": url("oid"), "name": []},
        doc! {"_id": {"x": 1}, "url": url("nested"), "want": ["name"]},
    ]
}

pub(crate) fn assert_mixed_people_are_filled(people: &People) {
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

#[needs(mongod)]
#[test]
fn missing_values_are_found_and_written_back() {
    let people = People::new();
    people.insert(mixed_people());
    let run = people.crawl_and_write_back().finish().expect_code(0);
    assert_mixed_people_are_filled(&people);
    assert_eq!(run.summary().records(), (4, 4));
    let reported = &run.summary().json["written_back"];
    assert_eq!(*reported, json!({"records": 4, "refused": 0}));
    let stored = people.work.stored().records();
    let mut ids: Vec<&str> = stored.keys().map(String::as_str).collect();
    ids.sort_unstable();
    assert_eq!(ids, [HEX, "7", "ada", r#"{"x":{"$numberInt":"1"}}"#]);
}

/// Programs that write tables of floats to a collection store NaN for empty cells.
#[needs(mongod)]
#[test]
fn nan_is_missing_and_overwritten() {
    let people = People::new();
    people.insert(vec![
        doc! {"_id": 1, "url": url("1"), "name": f64::NAN, "location": "Rome"},
        doc! {"_id": 2, "url": url("2"), "name": "NaN", "location": f64::NAN},
        doc! {"_id": 3, "url": url("3"), "name": f64::NAN, "location": f64::INFINITY},
    ]);
    people.crawl_and_write_back().finish().expect_code(0);
    let name_and_location = |id: i32| {
        let person = people.person(id);
        (person["name"].clone(), person["location"].clone())
    };
    assert_eq!(name_and_location(1), (json!("Name of /1"), json!("Rome")));
    assert_eq!(name_and_location(2), (json!("NaN"), json!("London")));
    assert_eq!(name_and_location(3).0, "Name of /3");
}

#[needs(mongod)]
#[test]
fn records_and_store_may_be_one_database() {
    let people = People::new();
    people.insert(mixed_people());
    let crawl = people.crawl_and_write_back();
    let run = crawl
        .replace_flag("--store", &people.uri)
        .finish()
        .expect_code(0);
    assert_mixed_people_are_filled(&people);
    assert_eq!(run.summary().records(), (4, 4));
    let left = doc! {"$match": {"unwritten": {"$exists": true}}};
    assert!(people.documents.aggregate("records", vec![left]).is_empty());
}

#[needs(mongod)]
#[test]
fn without_write_back_the_dataset_is_only_read() {
    let people = People::new();
    people.insert(mixed_people());
    let before = people.documents.all_documents("people");
    let run = people.crawl().finish().expect_code(0);
    assert_eq!(people.documents.all_documents("people"), before);
    assert_eq!(run.summary().records(), (4, 4));
    assert_eq!(run.summary().json["written_back"], Value::Null);
}

#[needs(mongod)]
#[test]
fn the_address_of_the_records_may_be_a_variable_that_no_list_of_processes_shows() {
    let people = People::new();
    people.insert(mixed_people());
    let crawl = people.work.crawl_without_delay(&people.web);
    let crawl = crawl
        .args(["--delay", "0", "--records-collection", "people"])
        .args(["--write-back", "people"])
        .env("WEBFILL_RECORDS", &people.uri);
    crawl.finish().expect_code(0);
    assert_mixed_people_are_filled(&people);
}

#[needs(mongod)]
#[test]
fn another_collection_gets_documents_with_the_same_ids() {
    let people = People::new();
    people.insert(mixed_people());
    let before = people.documents.all_documents("people");
    let there = doc! {"_id": 7, "location": "Rome", "checked": true};
    let insert = doc! {"insert": "found", "documents": [there]};
    people.documents.run(insert);
    let crawl = people.crawl().args(["--write-back", "found"]);
    crawl.finish().expect_code(0);
    assert_eq!(people.documents.all_documents("people"), before);
    assert_eq!(people.documents.count("found"), 4);
    let found = |id: Bson| people.document("found", id);
    let expected = json!({"_id": "ada", "name": "Name of /ada"});
    assert_eq!(found("ada".into()), expected, "of it only what was missing");
    let oid: ObjectId = HEX.parse().unwrap();
    assert_eq!(found(oid.into())["name"], "Name of /oid");
    let expected = json!({"_id": 7, "location": "Rome", "checked": true, "name": "Name of /7"});
    assert_eq!(found(7.into()), expected, "its values stay there too");
}

#[needs(mongod)]
#[test]
fn only_a_refresh_writes_over_values() {
    let people = People::new();
    let born = doc! {"_id": 1, "url": url("1"), "name": "Old", "location": "", "born": 1815};
    people.insert(vec![born]);
    people.crawl_and_write_back().finish().expect_code(0);
    let kept = json!({"_id": 1, "url": url("1"), "name": "Old", "location": "London",
        "born": 1815});
    assert_eq!(people.person(1), kept);

    // The stored record is complete, but a refresh fetches its page again.
    let refresh = people.crawl_and_write_back().arg("--refresh");
    let run = refresh
        .replace_flag("--crawl", "again")
        .finish()
        .expect_code(0);
    let mut fresh = kept;
    fresh["name"] = json!("Name of /1");
    assert_eq!(people.person(1), fresh);
    assert_eq!(run.summary().records(), (1, 1), "nothing asks for `born`");
    assert_eq!(people.web.visits().pages().len(), 2);
}

#[needs(mongod)]
#[test]
fn old_values_are_found_again_and_written_over_in_the_same_crawl() {
    old_values_are_written_over(false);
}

#[needs(mongod)]
#[test]
fn old_values_are_found_again_with_a_store_in_mongodb_too() {
    old_values_are_written_over(true);
}

fn old_values_are_written_over(is_store_in_mongodb: bool) {
    let people = People::new();
    people.insert(vec![doc! {"_id": 1, "url": url("1"), "location": "Rome"}]);
    let crawl = |after: &str| {
        let mut crawl = people.crawl_and_write_back();
        if is_store_in_mongodb {
            crawl = crawl.replace_flag("--store", &people.uri);
        }
        crawl
            .args(["--refresh-after", after])
            .finish()
            .expect_code(0);
    };
    people.documents.run(doc! {"update": "people", "updates": [
        {"q": {"_id": 1}, "u": {"$set": {"name": null}}},
    ]});
    crawl("1h");
    assert_eq!(people.person(1)["name"], "Name of /1");
    let site = people.web.site("people.example");
    site.serve(
        "/1",
        page("1").field("name", "New").field("location", "Bonn"),
    );
    // After this time, the first value is older than one second.
    std::thread::sleep(Duration::from_millis(1_100));
    crawl("1h");
    assert_eq!(people.person(1)["name"], "Name of /1");
    crawl("1s");
    let person = people.person(1);
    assert_eq!(person["name"], "New");
    assert_eq!(person["location"], "Rome", "no page has brought it");
    assert_eq!(people.web.visits().pages().len(), 2);
}

#[needs(mongod)]
#[test]
fn values_typed_into_the_dataset_meanwhile_are_kept() {
    let people = People::new();
    let slow = people.web.site("slow.example");
    slow.serve(
        "/",
        page("S").field("name", "Found").field("location", "Bonn"),
    );
    slow.set_latency(Duration::from_secs(2));
    let missing = doc! {"_id": 1, "url": slow.url("/"), "name": null, "location": null};
    people.insert(vec![missing]);
    let running = people.crawl_and_write_back().start();
    people
        .web
        .log()
        .wait_until("its page is asked for", |visits| !visits.pages().is_empty());
    people.documents.run(doc! {"update": "people", "updates": [
        {"q": {"_id": 1}, "u": {"$set": {"name": "Typed"}}},
    ]});
    running.finish().expect_code(0);
    let person = people.person(1);
    assert_eq!(
        (&person["name"], &person["location"]),
        (&json!("Typed"), &json!("Bonn"))
    );
    assert_eq!(people.work.stored().record("1").fields["name"], "Found");
}

#[needs(mongod)]
#[test]
fn values_arrive_while_the_crawl_runs_and_better_ones_replace_them() {
    let people = People::new();
    let mut official = profile_mapping();
    official["name"] = json!("official");
    official["url_patterns"] = json!([{"type": "host", "pattern": "official.example"}]);
    people
        .work
        .write_json("mappings/1-official.json", &official);
    let directory = people.web.site("directory.example");
    directory.serve("/", page("D").field("name", "A. L."));
    let site = people.web.site("official.example");
    site.serve("/", page("O").field("name", "Ada Lovelace"));
    site.set_latency(Duration::from_secs(8));
    let urls = [directory.url("/"), site.url("/")];
    let ada = doc! {"_id": 1, "urls": urls.to_vec(), "name": null, "location": null};
    people.insert(vec![ada]);

    let mut running = people.crawl_and_write_back().start();
    running.wait_until("the first value is written back", |_| {
        people.person(1)["name"] == "A. L."
    });
    running.finish().expect_code(0);
    assert_eq!(people.person(1)["name"], "Ada Lovelace");
    assert_eq!(people.person(1)["location"], Value::Null, "nobody knows it");
}

#[needs(mongod)]
#[test]
fn a_value_that_was_chosen_by_hand_is_not_replaced_by_a_later_crawl() {
    let people = People::new();
    let site = people.web.site("two.example");
    site.serve("/1", page("1").field("name", "First"));
    site.serve("/2", page("2").field("name", "Second"));
    let urls = vec![site.url("/1"), site.url("/2")];
    people.insert(vec![
        doc! {"_id": 1, "urls": urls, "name": null, "location": null},
    ]);
    people.crawl_and_write_back().finish().expect_code(0);
    let written = people.person(1)["name"].clone();
    let chosen = if written == "First" {
        "Second"
    } else {
        "First"
    };
    people.documents.run(doc! {"update": "people", "updates": [
        {"q": {"_id": 1}, "u": {"$set": {"name": chosen}}},
    ]});
    let again = people.crawl_and_write_back();
    again
        .replace_flag("--crawl", "again")
        .finish()
        .expect_code(0);
    assert_eq!(people.person(1)["name"], chosen);
}

#[needs(mongod)]
#[test]
fn texts_come_back_as_texts_whatever_they_look_like() {
    let people = People::new();
    let site = people.web.site("odd.example");
    site.serve(
        "/",
        page("O").field("name", HOSTILE).field("location", "$$ROOT"),
    );
    let odd = doc! {"_id": "$_id", "url": site.url("/"), "name": null, "location": null};
    people.insert(vec![odd]);
    people.crawl_and_write_back().finish().expect_code(0);
    let person = people.person("$_id");
    assert_eq!(person["name"], HOSTILE);
    assert_eq!(person["location"], "$$ROOT");
}

#[needs(mongod)]
#[test]
fn a_query_and_a_projection_say_what_is_read() {
    let people = People::new();
    let person = |id: &str, state: &str| {
        let links = [url(&format!("{id}/profile")), url(&format!("{id}/more"))];
        doc! {"_id": id, "state": state, "homepage": url(id), "links": links.to_vec(),
        "person": {"name": "Known"}, "notes": "x"}
    };
    people.insert(vec![
        person("a", "open"),
        person("b", "done"),
        person("c", "open"),
    ]);
    let projection = json!({"urls": ["$homepage", "$links", "$fax"], "location": 1,
        "name": "$person.name"});
    let run = people
        .crawl_and_write_back()
        .args(["--records-query", r#"{"state": {"$ne": "done"}}"#])
        .args(["--records-projection", &projection.to_string()])
        .finish()
        .expect_code(0);
    let asked = people.web.visits().pages().counts();
    let expected = ["a", "a/more", "a/profile", "c", "c/more", "c/profile"];
    let asked: Vec<&str> = asked.keys().map(String::as_str).collect();
    assert_eq!(asked, expected.map(|path| format!("people.example/{path}")));
    assert_eq!(run.summary().records(), (2, 2));
    let stored = people.work.stored().record("a");
    assert_eq!(
        json!(stored.fields),
        json!({"location": "London", "name": "Known"})
    );
    assert_eq!(
        people.person("a")["location"],
        "London",
        "absent is missing"
    );
    assert_eq!(
        people.person("a").get("name"),
        None,
        "it was known by projection"
    );
    assert_eq!(people.person("b").get("location"), None);
}
