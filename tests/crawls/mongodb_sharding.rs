//! Tests the claims of `docs/how-to/mongodb-fleet.md` about sharding, as far as possible without a router. Every write
//! goes to one shard, because each statement contains the shard key. Only this key is unique.

use std::collections::BTreeSet;

use bson::doc;
use serde_json::{Value, json};
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, profile_mapping};

/// The collections that are sharded by a hash of `_id` in the how-to.
const SHARDED: [&str; 4] = ["pages", "records", "bodies", "versions"];

/// The fields of each query that has no key in its filter and therefore goes to every shard. These queries count the
/// records of a crawl, or read pages again in the order of their keys.
const TO_EVERY_SHARD: [&str; 6] = [
    "records: crawls",
    "records: crawls, doubts.pages",
    "records: crawls, resolved_at",
    "pages: ",
    "pages: _id, outcome",
    "bodies: _id",
];

/// A server that logs all executed statements.
fn start_logging_server() -> (Mongod, Documents) {
    let mongod = Mongod::start();
    let documents = Documents::open(&mongod.uri("webfill"));
    documents.run(doc! {"create": "system.profile", "capped": true, "size": 64 << 20});
    for collection in SHARDED {
        let hashed = doc! {"name": "_id_hashed", "key": {"_id": "hashed"}};
        documents.run(doc! {"createIndexes": collection, "indexes": [hashed]});
    }
    documents.run(doc! {"profile": 2});
    (mongod, documents)
}

/// Crawls twice and extracts once, so that everything that a crawl can write is written: records, bodies, the state for
/// changes, and pages that are read again.
fn crawl_twice(store: &str) {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("town.example");
    site.serve(
        "/ada",
        page("Ada").field("name", "Ada").mapped_link("/more"),
    );
    site.serve("/more", page("More").field("location", "London"));
    let record = json!({"id": "ada", "urls": [site.url("/ada")], "fields": {"name": null, "location": null}});
    let request = json!({
        "url": site.url("/ada"), "appid": "shop", "crawlid": "c", "changes": true, "keep_bodies": true,
    });
    let seeds = work.write_lines("seeds.jsonl", &[record, request]);
    for run in ["first", "second"] {
        if run == "second" {
            site.serve(
                "/ada",
                page("Ada").field("name", "Ada King").mapped_link("/more"),
            );
        }
        let crawl = work.crawl(&web).replace_flag("--store", store);
        let crawl = crawl.args(["--keep-bodies", "--refresh-after", "0s"]);
        crawl.arg("--seeds").arg(&seeds).finish().expect_code(0);
    }
    let mut mapping = profile_mapping();
    mapping["fields"].as_array_mut().unwrap().pop();
    work.write_json("mappings/profile.json", &mapping);
    let extract = Run::new(["extract", "--crawl", "test", "--store", store, "--mappings"]);
    extract.arg(work.path("mappings")).finish().expect_code(0);
}

/// The filter of a statement, and whether the statement writes. `None` for statements without a filter, such as
/// inserts.
fn filter_of(statement: &Value) -> Option<(bool, &Value)> {
    let command = &statement["command"];
    match statement["op"].as_str()? {
        "update" | "remove" => Some((true, &command["q"])),
        "query" => Some((false, &command["filter"])),
        "command" if command.get("findAndModify").is_some() => Some((true, &command["query"])),
        "command" if command.get("aggregate").is_some() => {
            Some((false, &command["pipeline"][0]["$match"]))
        }
        "command" if command.get("count").is_some() => Some((false, &command["query"])),
        _ => None,
    }
}

/// Whether a router can determine the shards from this filter.
fn has_shard_key(filter: &Value) -> bool {
    match &filter["_id"] {
        Value::Null => false,
        Value::Object(operators) => ["$eq", "$in"]
            .iter()
            .any(|name| operators.contains_key(*name)),
        _ => true,
    }
}

#[needs(mongod)]
#[test]
fn sharded_collections_are_written_by_their_key_and_only_the_key_is_unique() {
    let (mongod, documents) = start_logging_server();
    crawl_twice(&mongod.uri("webfill"));
    let (mut written, mut asking_all) = (BTreeSet::new(), BTreeSet::new());
    for statement in documents.all_documents("system.profile") {
        let collection = statement["ns"]
            .as_str()
            .and_then(|name| name.strip_prefix("webfill."));
        let Some(collection) = SHARDED.into_iter().find(|name| Some(*name) == collection) else {
            continue;
        };
        let Some((writes, filter)) = filter_of(&statement) else {
            continue;
        };
        if writes {
            assert!(has_shard_key(filter), "to every shard: {statement}");
            written.insert(collection);
        } else if !has_shard_key(filter) {
            let members = filter.as_object().into_iter().flatten();
            let members: Vec<&str> = members.map(|(name, _)| name.as_str()).collect();
            asking_all.insert(format!("{collection}: {}", members.join(", ")));
        }
    }
    assert_eq!(written, BTreeSet::from(SHARDED), "all were written");
    let reported = BTreeSet::from(TO_EVERY_SHARD.map(str::to_owned));
    let unlisted: Vec<&String> = asking_all.difference(&reported).collect();
    assert_eq!(unlisted, [""; 0]);
    for collection in SHARDED {
        let listed = documents.run(doc! {"listIndexes": collection});
        let indexes = listed
            .get_document("cursor")
            .and_then(|cursor| cursor.get_array("firstBatch"));
        for index in indexes.expect("a list") {
            let index = index.as_document().expect("an index");
            assert!(
                !index.get_bool("unique").unwrap_or(false),
                "{collection}: {index}"
            );
        }
    }
}
