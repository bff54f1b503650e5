//! Tests the queries in docs/how-to/progress.md. They run exactly as written there on the results of a crawl. The
//! server's query plans show whether they use indexes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bson::{Bson, Document, doc};
use serde_json::{Value, json};
use webfill_test_mongod::{Database, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::site::{Web, page, status};
use webfill_tests::workplace::Workplace;

/// A query of `docs/how-to/progress.md`: the name of the collection, and the pipeline.
struct Query {
    collection: String,
    pipeline: Vec<Document>,
}

/// All queries of the document by their headings.
fn documented_queries() -> BTreeMap<String, Query> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/how-to/progress.md");
    let text = std::fs::read_to_string(path).expect("the page is there");
    let mut queries = BTreeMap::new();
    for section in text.split("\n## ").skip(1) {
        let (heading, body) = section.split_once('\n').expect("a heading has a text");
        let blocks: Vec<&str> = body.split("```js\n").skip(1).collect();
        assert_eq!(blocks.len(), 1, "{heading}: one query");
        let query = blocks[0].split("```").next().unwrap_or_default();
        queries.insert(heading.to_owned(), read_query(query));
    }
    queries
}

/// Reads `db.COLLECTION.aggregate([...])`, where the part between the brackets is JSON.
fn read_query(text: &str) -> Query {
    let call = text.trim().strip_prefix("db.");
    let (collection, rest) = call
        .and_then(|call| call.split_once(".aggregate("))
        .unwrap_or_else(|| panic!("no aggregation: {text}"));
    let stages = rest.strip_suffix(')').expect("a closing bracket");
    let stages: Vec<Value> =
        serde_json::from_str(stages).unwrap_or_else(|error| panic!("{error}: {stages}"));
    let stage = |stage: Value| match Bson::try_from(stage) {
        Ok(Bson::Document(stage)) => stage,
        other => panic!("a stage is a document, not {other:?}"),
    };
    Query {
        collection: collection.to_owned(),
        pipeline: stages.into_iter().map(stage).collect(),
    }
}

/// Crawls three sites: a good one, a slow one, and one that refuses requests.
fn crawl_three_sites() -> (Database, Documents) {
    let database = fresh_database();
    let web = Web::start();
    let good = web.site("good.example");
    let ada = page("Ada").field("name", "Ada").field("location", "London");
    good.serve("/ada", ada);
    good.serve("/bob", page("Bob").field("name", "Bob"));
    good.serve("/cleo", page("Cleo"));
    let slow = web.site("slow.example");
    slow.serve("/dan", page("Dan").field("location", "Delft"));
    slow.set_latency(Duration::from_millis(700));
    let refusing = web.site("refusing.example");
    refusing.serve("/eve", status(403));
    refusing.serve("/fay", status(429).header("retry-after", "600"));
    refusing.serve("/gus", page("Gus"));

    let record =
        |(id, url): (&str, String)| json!({"id": id, "urls": [url], "want": ["name", "location"]});
    let urls = [
        ("ada", good.url("/ada")),
        ("bob", good.url("/bob")),
        ("cleo", good.url("/cleo")),
        ("dan", slow.url("/dan")),
        ("eve", refusing.url("/gus")),
        ("fay", refusing.url("/eve")),
        ("gus", refusing.url("/fay")),
    ];
    let work = Workplace::new();
    let seeds = work.write_lines("seeds.jsonl", &urls.map(record));
    let crawl = work.crawl(&web).replace_flag("--store", database.uri());
    let crawl = crawl
        .replace_flag("--crawl", "people")
        .replace_flag("--delay", "0.1");
    crawl.arg("--seeds").arg(seeds).finish().expect_code(0);
    let documents = Documents::open(database.uri());
    (database, documents)
}

/// The result of the documented query under this heading.
fn run_query(documents: &Documents, heading: &str) -> Vec<Value> {
    let query = documented_queries().remove(heading);
    let query = query.unwrap_or_else(|| panic!("no query on {heading}"));
    documents.aggregate(&query.collection, query.pipeline)
}

#[needs(mongod)]
#[test]
fn the_documented_queries_describe_records_in_mongodb() {
    let (_database, documents) = crawl_three_sites();
    let hours = run_query(&documents, "Records resolved per hour");
    assert_eq!(hours.len(), 1, "{hours:?}");
    assert_eq!(hours[0]["records"], 1);
    let hour = hours[0]["_id"]["$date"].as_str().expect("a date");
    assert!(hour.ends_with(":00:00Z"), "{hour}");

    let missing = run_query(&documents, "Missing fields by name");
    let expected = [
        json!({"_id": "location", "records": 5}),
        json!({"_id": "name", "records": 5}),
    ];
    assert_eq!(missing, expected);
}

#[needs(mongod)]
#[test]
fn the_documented_queries_describe_pages_and_sites_in_mongodb() {
    let (_database, documents) = crawl_three_sites();
    let outcomes = run_query(&documents, "Outcomes per site");
    let expected = [
        json!({"_id": "good.example", "pages": 3, "outcomes": {"ok": 3}}),
        json!({"_id": "refusing.example", "pages": 3, "outcomes": {"http_error": 2, "ok": 1}}),
        json!({"_id": "slow.example", "pages": 1, "outcomes": {"ok": 1}}),
    ];
    assert_eq!(outcomes, expected);

    let slowest = run_query(&documents, "Slowest sites");
    assert_eq!(slowest.len(), 3);
    assert_eq!(slowest[0]["_id"], "slow.example");
    assert!(slowest[0]["mean_ms"].as_f64() >= Some(700.0), "{slowest:?}");
    assert!(slowest[0]["longest_ms"].as_i64() >= Some(700));

    let fill_rates = run_query(&documents, "Fill rate per mapping and field");
    let expected = [("location", 0.4), ("name", 0.4), ("title", 1.0)].map(|(field, rate)| {
        json!({"mapping": "profile", "field": field, "pages": 5, "fill_rate": rate})
    });
    assert_eq!(fill_rates, expected);

    let refusing = run_query(&documents, "Sites that block us");
    assert_eq!(refusing.len(), 1);
    let site = &refusing[0];
    assert_eq!(
        (&site["_id"], &site["pages"], &site["refused"]),
        (&json!("refusing.example"), &json!(3), &json!(2))
    );
    assert!((site["share"].as_f64().expect("a share") - 2.0 / 3.0).abs() < 1e-9);

    let waited_for = run_query(&documents, "Waiting sites");
    assert_eq!(waited_for.len(), 1, "{waited_for:?}");
    assert_eq!(waited_for[0]["_id"], "refusing.example");
}

#[needs(mongod)]
#[test]
fn the_documented_query_lists_sites_that_back_off_until_they_recover_in_mongodb() {
    let database = fresh_database();
    let web = Web::start();
    web.site("gone.example").serve("/robots.txt", status(500));
    let refusing = web.site("refusing.example");
    let is_well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_well);
    refusing.serve_robots("");
    refusing.serve_otherwise(move |_| match answers.load(Ordering::SeqCst) {
        true => page("T").into(),
        false => status(403).into(),
    });
    let work = Workplace::new();
    let mut running = work
        .crawl_without_delay(&web)
        .replace_flag("--store", database.uri())
        .args(["--delay", "0.1"])
        .env("WEBFILL_BACKOFF_ROBOTS", "0.3")
        .env("WEBFILL_BACKOFF_BLOCKED", "3,3,3,3,3,3,3,3")
        .arg("http://gone.example/")
        .args((0..6).map(|n| refusing.url(&format!("/{n}"))))
        .start();
    let documents = Documents::open(database.uri());
    let reported = || -> Vec<String> {
        let rows = run_query(&documents, "Sites that back off");
        let text = |row: &Value| {
            let ends = row["until"]["$date"].is_string() && row["since"]["$date"].is_string();
            let [site, state, reason, code] =
                ["_id", "state", "reason", "status_code"].map(|name| row[name].to_string());
            format!("{site} {state} {reason} {code} {ends}").replace('"', "")
        };
        rows.iter().map(text).collect()
    };
    let gone = "gone.example unreachable robots 500 false";
    let backoff = "refusing.example backing_off blocked 403 true";
    running.wait_until("both are in trouble", |_| reported() == [gone, backoff]);
    is_well.store(true, Ordering::SeqCst);
    running.finish().expect_code(0);
    assert_eq!(reported(), [gone]);
}

#[needs(mongod)]
#[test]
fn the_documented_queries_describe_workers_in_mongodb() {
    let (_database, documents) = crawl_three_sites();
    // Makes one page look an hour old, so that it must not be counted.
    let aged = documents.run(doc! {"update": "pages", "updates": [{
        "q": {"url": "http://good.example/cleo"},
        "u": [{"$set": {"started_at": {"$dateSubtract": {
            "startDate": "$started_at", "unit": "hour", "amount": 1,
        }}}}],
    }]});
    assert_eq!(aged.get_i32("nModified").ok(), Some(1));
    let workers = run_query(&documents, "Tasks of the last minute per worker");
    let tasks: i64 = workers
        .iter()
        .filter_map(|worker| worker["tasks"].as_i64())
        .sum();
    assert_eq!(tasks, 6, "{workers:?}");
    let pages = documents.pages();
    for worker in &workers {
        let name = worker["_id"].as_str().expect("a name");
        assert!(pages.values().any(|page| page.worker == name), "{name}");
        assert!(worker["sites"].as_i64() >= Some(1));
    }
}

#[needs(mongod)]
#[test]
fn every_documented_query_uses_an_index_of_mongodb() {
    let (_database, documents) = crawl_three_sites();
    let mut by_index = BTreeMap::new();
    for (heading, query) in documented_queries() {
        let explained = documents.run(doc! {
            "explain": {"aggregate": &query.collection, "pipeline": query.pipeline, "cursor": {}},
            "verbosity": "executionStats",
        });
        let plan = Bson::Document(explained).into_relaxed_extjson().to_string();
        // The server drops old clocks, so the collection `sites` is small. `site_states` has only sites in trouble and
        // is even smaller. Both may be read without an index.
        let is_read_whole = ["sites", "site_states"].contains(&query.collection.as_str());
        let goes_by_index = !plan.contains("\"COLLSCAN\"");
        assert!(goes_by_index || is_read_whole, "{heading}: {plan}");
        let index = ["crawls_resolved_at", "crawl_id_started_at"]
            .into_iter()
            .find(|index| plan.contains(&format!("\"indexName\":\"{index}\"")));
        by_index.insert(heading, (index, plan));
    }
    let (index, plan) = &by_index["Tasks of the last minute per worker"];
    assert_eq!(*index, Some("crawl_id_started_at"));
    let bounds = plan.split("\"indexBounds\"").nth(1).expect("bounds");
    let bounds = bounds.split("\"started_at\"").nth(1).expect("a bound");
    assert!(
        bounds.starts_with(":[\"[new Date("),
        "the last minute alone: {plan}"
    );
    assert_eq!(
        by_index["Missing fields by name"].0,
        Some("crawls_resolved_at")
    );
}
