//! `--refresh`: records out of files are filled again, whatever the store, and what their values were is
//! kept.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

const URL: &str = "http://people.example/ada";

/// The same record in each form of a seeds file.
fn files() -> [(&'static str, String); 3] {
    let fields = json!({"name": null, "location": "Paris", "notes": "mine"});
    let mut record = json!({"id": "1", "urls": [URL], "fields": fields});
    let plain = record.to_string();
    record["want"] = json!(["name", "location"]);
    let csv = format!("id,url,name,location,notes\n1,{URL},,Paris,mine\n");
    [
        ("plain.jsonl", plain),
        ("listed.jsonl", record.to_string()),
        ("table.csv", csv),
    ]
}

fn the_only_record(store: &str) -> Value {
    let export = Run::new(["export", "records", "--store", store]).finish();
    let text = export.expect(0).stdout;
    serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"))
}

/// Of each former value, what does not depend on the time.
fn history(record: &Value, field: &str) -> Vec<(Value, Value)> {
    let former = record["history"][field].as_array();
    let former = former.into_iter().flatten();
    former
        .map(|one| (one["value"].clone(), one["url"].clone()))
        .collect()
}

fn a_refresh_fills_again(store: &str, file: &str, seeds: &str) {
    let web = Web::start();
    let site = web.site("people.example");
    let ada = |name: &str| page("Ada").field("name", name).field("location", "London");
    site.serve("/ada", ada("Ada Byron"));
    let work = Workplace::new();
    let seeds = work.write(file, seeds);
    let crawl = |id: &str| {
        let crawl = work.crawl(&web).instead("--store", store);
        crawl.instead("--crawl", id).arg("--seeds").arg(&seeds)
    };
    crawl("first").finish().expect(0);
    let first = the_only_record(store);
    let known = json!({"name": "Ada Byron", "location": "Paris", "notes": "mine"});
    assert_eq!(first["fields"], known, "{file}");
    assert_eq!(first["history"], json!({}));
    crawl("second").finish().expect(0);
    assert_eq!(web.visits().pages().len(), 1, "nothing is missing");

    site.serve("/ada", ada("Ada Lovelace"));
    // A crawl that is run again, and one that finds nothing new.
    for (id, fetched) in [("third", 2), ("third", 2), ("fourth", 3)] {
        crawl(id).arg("--refresh").finish().expect(0);
        let fresh = the_only_record(store);
        let found = json!({"name": "Ada Lovelace", "location": "London", "notes": "mine"});
        assert_eq!(fresh["fields"], found, "{file}");
        let by_page = (json!("Ada Byron"), json!(URL));
        assert_eq!(history(&fresh, "name"), [by_page]);
        let by_user = (json!("Paris"), Value::Null);
        assert_eq!(history(&fresh, "location"), [by_user]);
        assert_eq!(web.visits().pages().len(), fetched, "once for each crawl");
    }
}

#[test]
fn a_refresh_fills_records_of_files_again_in_a_file() {
    for (file, seeds) in files() {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("store.db").display());
        a_refresh_fills_again(&store, file, &seeds);
    }
}

#[needs(mongod)]
#[test]
fn a_refresh_fills_records_of_files_again_in_mongodb() {
    for (file, seeds) in files() {
        a_refresh_fills_again(fresh_database().uri(), file, &seeds);
    }
}
