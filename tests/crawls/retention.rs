//! Tests how old pages are dropped from the store, by command and by setting. A reader whose cursor is too old gets an
//! error, and filled values stay.

use std::path::PathBuf;

use bson::doc;
use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// A crawl whose list of records grows from run to run.
struct Town {
    web: Web,
    work: Workplace,
    store: String,
    records: Vec<Value>,
}

impl Town {
    fn new(work: Workplace, store: &str) -> Town {
        let web = Web::start();
        let site = web.site("town.example");
        site.serve("/a", page("A").field("name", "Ada"));
        site.serve("/b", page("B").field("location", "London"));
        site.serve("/c", page("C").field("name", "Zoë"));
        Town {
            web,
            work,
            store: store.to_owned(),
            records: Vec::new(),
        }
    }

    fn write_seeds(&self) -> PathBuf {
        self.work.write_lines("seeds.jsonl", &self.records)
    }

    /// A run of the crawl with one more record, which has these paths as URLs and wants these fields.
    fn crawl_for(&mut self, id: &str, paths: &[&str], want: &[&str]) -> Run {
        let site = self.web.site("town.example");
        let urls: Vec<String> = paths.iter().map(|path| site.url(path)).collect();
        self.records
            .push(json!({"id": id, "urls": urls, "fields": {}, "want": want}));
        let crawl = self
            .work
            .crawl(&self.web)
            .replace_flag("--store", &self.store);
        crawl.arg("--seeds").arg(self.write_seeds())
    }

    fn run_webfill(&self, command: &[&str], args: &[&str]) -> Finished {
        let run = Run::new(command.iter().copied());
        run.args(["--store", &self.store]).args(args).finish()
    }

    fn export(&self, what: &str) -> Vec<Value> {
        parse_lines(&self.run_webfill(&["export", what], &[]).expect_code(0))
    }

    fn urls(&self) -> Vec<String> {
        let pages = self.export("pages");
        let url = |page: &Value| page["url"].as_str().map(str::to_owned);
        pages.iter().filter_map(url).collect()
    }

    fn fields_of(&self, id: &str) -> Value {
        let records = self.export("records");
        let record = records.iter().find(|record| record["record_id"] == id);
        record.expect("it is stored")["fields"].clone()
    }
}

fn parse_lines(run: &Finished) -> Vec<Value> {
    let lines = run.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Checks that old pages are dropped. `make_old` sets the times of everything in the store to the year 2020.
fn assert_old_pages_are_dropped(mut town: Town, make_old: impl Fn()) {
    let first = town.crawl_for("one", &["/a", "/b"], &["name", "location"]);
    first.finish().expect_code(0);
    let all = parse_lines(
        &town
            .run_webfill(&["export", "pages"], &["--since", "0"])
            .expect_code(0),
    );
    assert_eq!(all.len(), 2);
    let late = all[0]["cursor"].as_str().unwrap();

    let none = town.run_webfill(&["prune", "--json"], &["--older-than", "1h"]);
    let none: Value = serde_json::from_str(&none.expect_code(0).stdout).unwrap();
    assert_eq!(none["total_pages"], 0, "{none}");
    let reported = town
        .run_webfill(&["prune"], &["--older-than", "0s"])
        .expect_code(0);
    assert!(
        reported.stdout.starts_with("2 pages and "),
        "{}",
        reported.stdout
    );
    assert_eq!(town.urls(), [""; 0]);
    let refused = town.run_webfill(&["export", "pages"], &["--since", late]);
    let refused = refused.expect_code(1).stderr;
    assert!(refused.contains("begin anew with 0"), "{refused}");
    let filled = json!({"name": "Ada", "location": "London"});
    assert_eq!(town.fields_of("one"), filled);

    // Another record needs a page that was fetched earlier and then dropped, so the page is fetched again.
    let second = town.crawl_for("two", &["/a"], &["name"]);
    second.finish().expect_code(0);
    assert_eq!(town.fields_of("two"), json!({"name": "Ada"}));
    assert_eq!(town.urls(), ["http://town.example/a"]);
    assert_eq!(town.web.visits().pages().len(), 3, "once more for it");

    make_old();
    let third = town.crawl_for("three", &["/c"], &["name"]);
    let third = third.env("WEBFILL_RETENTION_PAGES_DAYS", "30");
    third.finish().expect_code(0);
    assert_eq!(town.urls(), ["http://town.example/c"]);
    assert_eq!(town.fields_of("one"), filled);
    assert!(town.work.has_logged("old_pages_dropped"));
}

#[test]
fn pages_that_are_too_old_are_dropped_from_a_file() {
    let work = Workplace::new();
    let file = work.path("store.db");
    let town = Town::new(work, &format!("sqlite:{}", file.display()));
    assert_old_pages_are_dropped(town, || {
        let store = rusqlite::Connection::open(&file).unwrap();
        let sql = "UPDATE pages SET started_at = '2020-01-01T12:00:00.000Z'";
        store.execute(sql, ()).unwrap();
    });
}

#[needs(mongod)]
#[test]
fn pages_that_are_too_old_are_dropped_from_mongodb() {
    let database = fresh_database();
    let town = Town::new(Workplace::new(), database.uri());
    assert_old_pages_are_dropped(town, || {
        let old = bson::DateTime::from_millis(1_577_880_000_000);
        let documents = Documents::open(database.uri());
        for (collection, time) in [("pages", "started_at"), ("page_log", "at")] {
            let set = doc! {"q": {"_id": {"$ne": 0}}, "u": {"$set": {time: old}}, "multi": true};
            documents.run(doc! {"update": collection, "updates": [set]});
        }
    });
}

/// The log of pages is older than the setting allows, but the pages themselves are not old, so they stay.
#[needs(mongod)]
#[test]
fn the_log_of_pages_is_dropped_after_its_own_time() {
    let database = fresh_database();
    let mut town = Town::new(Workplace::new(), database.uri());
    let first = town.crawl_for("one", &["/a", "/b"], &["name", "location"]);
    first.finish().expect_code(0);
    let documents = Documents::open(database.uri());
    let old = bson::DateTime::from_millis(1_577_880_000_000);
    let set = doc! {"q": {"_id": {"$ne": 0}}, "u": {"$set": {"at": old}}, "multi": true};
    documents.run(doc! {"update": "page_log", "updates": [set]});
    let since = |town: &Town| {
        parse_lines(
            &town
                .run_webfill(&["export", "pages"], &["--since", "0"])
                .expect_code(0),
        )
    };
    assert_eq!(since(&town).len(), 2);

    let second = town.crawl_for("two", &["/c"], &["name"]);
    let second = second.env("WEBFILL_RETENTION_LOG_DAYS", "7");
    second.finish().expect_code(0);
    assert!(town.work.has_logged("old_pages_dropped"));
    let urls: Vec<Value> = since(&town)
        .iter()
        .map(|page| page["url"].clone())
        .collect();
    assert_eq!(urls, ["http://town.example/c"]);
    assert_eq!(town.urls().len(), 3, "the pages themselves stay");
}
