//! Tests datasets in MongoDB, and documents in them, that cannot be used. Each problem is reported in words, and as
//! early as possible.

use mongodb::bson::{doc, oid::ObjectId};
use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::workplace::Workplace;

use crate::mongodb_records::{HEX, People, assert_mixed_people_are_filled, mixed_people, url};

#[needs(mongod)]
#[test]
fn documents_that_cannot_be_used_are_listed_by_their_ids() {
    let people = People::new();
    let oid: ObjectId = HEX.parse().unwrap();
    people.insert(vec![
        doc! {"_id": 1, "name": null},
        doc! {"_id": 2, "url": 42, "name": null},
        doc! {"_id": 3, "url": url("3"), "name": null},
        doc! {"_id": "3", "url": url("another"), "name": null},
        doc! {"_id": "x".repeat(2_000), "url": url("4"), "name": null},
        doc! {"_id": oid, "url": "mailto:ada@people.example", "name": null},
    ]);
    let run = people.crawl_and_write_back().finish().expect_code(0);
    let broken = run.summary().json["broken_seeds"].clone();
    assert_eq!(broken["count"], 5);
    let listed = std::fs::read_to_string(broken["file"].as_str().unwrap()).unwrap();
    let listed: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let reason = |id: &str| {
        let of_id = listed.iter().find(|line| line["_id"] == id);
        of_id.unwrap_or_else(|| panic!("no {id}: {listed:?}"))["reason"].to_string()
    };
    assert!(reason("1").contains("no link"));
    assert!(reason("2").contains("`url` holds 42"));
    assert!(
        reason("3").contains("is another"),
        "42 and \"42\" read the same"
    );
    assert!(reason(HEX).contains("mailto"));
    let too_long = listed
        .iter()
        .find(|line| line["reason"].to_string().contains("2000 bytes"));
    assert!(too_long.is_some(), "{listed:?}");
    assert_eq!(run.summary().json["broken_seeds"]["first"][0]["_id"], "1");
    assert_eq!(people.person(3)["name"], "Name of /3");
    assert_eq!(people.person("3")["name"], Value::Null);
}

#[test]
fn flags_that_make_no_sense_are_refused_in_a_sentence() {
    let work = Workplace::new();
    let records = [
        "--records",
        "mongodb://127.0.0.1:1/x",
        "--records-collection",
        "people",
    ];
    let crawl = || work.plain_crawl().arg("--allow-private-networks");
    for (flags, word) in [
        (&["--records-query", "{name: 1}"][..], "--records-query"),
        (&["--records-query", "[]"], "no JSON object"),
        (&["--records-projection", r#"{"_id": 0}"#], "`_id`"),
        (&["--write-back", "a$b"], "--write-back"),
        (&["--seeds", "x.csv"], "--seeds"),
    ] {
        let run = crawl().args(records).args(flags).finish().expect_code(2);
        assert!(run.one_sentence().contains(word), "{}", run.stderr);
    }
    for (flags, word) in [
        (
            &["--records", "mongodb://127.0.0.1:1/x"][..],
            "--records-collection",
        ),
        (
            &["--records", "sqlite:x.db", "--records-collection", "x"],
            "--seeds",
        ),
        (&["--refresh", "http://a.example/"], "--records"),
    ] {
        let run = crawl().args(flags).finish().expect_code(2);
        assert!(run.one_sentence().contains(word), "{}", run.stderr);
    }
    assert!(!work.path("state").exists(), "nothing was opened");
}

#[needs(mongod)]
#[test]
fn an_unreadable_or_unwritable_dataset_is_reported_immediately() {
    let people = People::new();
    people.insert(mixed_people());
    people
        .documents
        .run(doc! {"create": "seen", "viewOn": "people", "pipeline": []});
    let refused = |run: Run, code: i32, word: &str| {
        let run = run.finish().expect_code(code);
        assert!(run.one_sentence().contains(word), "{}", run.stderr);
    };
    let crawl = || people.crawl_and_write_back();
    refused(
        crawl().replace_flag("--records-collection", "peolpe"),
        2,
        "no such collection",
    );
    refused(
        crawl().args(["--records-query", r#"{"$nor": 1}"#]),
        2,
        "query",
    );
    refused(
        crawl().args(["--records-projection", r#"{"a": {"$nonsense": 1}}"#]),
        2,
        "projection",
    );
    refused(crawl().replace_flag("--write-back", "seen"), 2, "seen");
    let own = crawl()
        .replace_flag("--store", &people.uri)
        .replace_flag("--write-back", "records");
    refused(own, 2, "webfill's own");
    let away = "mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=300";
    refused(
        crawl().replace_flag("--records", away),
        1,
        "no server answers",
    );
    // The records are in a view, which can be read but not written. Without `--write-back`, this suffices.
    crawl()
        .replace_flag("--records-collection", "seen")
        .finish()
        .expect_code(0);
    assert_mixed_people_are_filled(&people);
}

#[needs(mongod)]
#[test]
fn documents_refused_by_the_dataset_do_not_stop_the_rest() {
    let people = People::new();
    people
        .documents
        .run(doc! {"create": "people", "validator": {"name": {"$ne": "Name of /2"}}});
    let person = |number: i32| doc! {"_id": number, "url": url(&number.to_string()), "name": null};
    people.insert((0..5).map(person).collect());
    let run = people.crawl_and_write_back().finish().expect_code(0);
    assert_eq!(
        run.summary().json["written_back"],
        json!({"records": 4, "refused": 1})
    );
    assert_eq!(people.person(2)["name"], Value::Null);
    assert_eq!(people.person(4)["name"], "Name of /4");
}
