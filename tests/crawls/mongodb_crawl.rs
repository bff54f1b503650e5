//! Tests whole crawls with their store or cache in MongoDB. The tests read the documents with their own client.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::doc;
use serde_json::{Value, json};
use webfill_test_mongod::{Mongod, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::stored::StoredPage;
use webfill_tests::workplace::Workplace;

use crate::wide_web::{
    PAGES_PER_SITE, SITES, assert_pages_complete, repeated_pages, serve_wide_web,
};

const DELAY: Duration = Duration::from_millis(200);

/// Serves the pages of two people, of whom only one can be completed. Returns the path of the seeds.
fn serve_two_people(web: &Web, work: &Workplace) -> std::path::PathBuf {
    let site = web.site("people.example");
    let ada = page("Ada").field("name", "Ada, \"the\" $first.one \u{1F600}");
    site.serve("/ada", ada.mapped_link("/ada/contact"));
    site.serve("/ada/contact", page("Contact").field("location", "=London"));
    site.serve("/bob", page("Bob").field("name", "Bob"));
    site.serve("/bob/gone", page("Gone").status(404));
    let record = |id: &str, urls: Value| {
        let fields = json!({"name": null, "location": null, "known": "as before"});
        json!({"id": id, "urls": urls, "fields": fields})
    };
    let ada = json!([site.url("/ada")]);
    let bob = json!([site.url("/bob"), site.url("/bob/gone")]);
    work.write_lines("seeds.jsonl", &[record("ada", ada), record("bob", bob)])
}

/// The stored pages without the parts that depend on time or chance, such as the name of the worker.
fn without_varying_parts(pages: BTreeMap<String, StoredPage>) -> Vec<StoredPage> {
    let without_worker = |page: StoredPage| StoredPage {
        worker: String::new(),
        ..page
    };
    pages.into_values().map(without_worker).collect()
}

/// The test reads the server's own log of received commands.
#[needs(mongod)]
#[test]
fn each_write_waits_for_the_journals_of_a_majority() {
    let mongod = Mongod::start();
    let uri = mongod.uri("journals");
    // With this profile, the server treats each command as slow and logs it.
    Documents::open(&uri).run(doc! {"profile": 0, "slowms": -1});
    let web = Web::start();
    let work = Workplace::new();
    let seeds = serve_two_people(&web, &work);
    let crawl = work.crawl(&web).replace_flag("--store", &uri);
    crawl.arg("--seeds").arg(seeds).finish().expect_code(0);
    let log = mongod.log();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let commands = lines.map(|line: Value| line["attr"]["command"].clone());
    let is_write = |command: &Value| {
        let of_ours = command["$db"] == "journals";
        let writes = ["update", "insert", "delete", "findAndModify"];
        of_ours && writes.iter().any(|name| command.get(name).is_some())
    };
    let writes: Vec<Value> = commands.filter(is_write).collect();
    assert!(writes.len() > 5, "{} writes", writes.len());
    for write in writes {
        let concern = &write["writeConcern"];
        let is_safe = concern["w"] == "majority" && concern["j"] == true;
        assert!(is_safe, "{write:#}");
    }
}

#[needs(mongod)]
#[test]
fn mongodb_holds_the_same_data_as_the_embedded_store() {
    let database = fresh_database();
    let web = Web::start();
    let work = Workplace::new();
    let seeds = serve_two_people(&web, &work);
    let crawl = |work: &Workplace| work.crawl(&web).arg("--seeds").arg(&seeds);
    let embedded = crawl(&work).finish().expect_code(0);
    let other = Workplace::new();
    let run = crawl(&other).replace_flag("--store", database.uri());
    let run = run.finish().expect_code(0);

    let documents = Documents::open(database.uri());
    assert_eq!(
        without_varying_parts(documents.pages()),
        without_varying_parts(work.stored().pages())
    );
    let (theirs, ours) = (documents.records(), work.stored().records());
    assert_eq!(theirs.len(), 2);
    for (id, record) in theirs {
        assert_eq!(record.fields, ours[&id].fields);
        assert_eq!(record.missing, ours[&id].missing);
        assert_eq!(record.resolved, id == "ada");
        for (field, source) in &record.sources {
            assert_eq!(source["url"], ours[&id].sources[field]["url"], "{field}");
            assert!(source["at"]["$date"].is_string(), "{source}");
        }
    }
    assert_eq!(run.summary().records(), (2, 1));
    assert_eq!(run.summary().outcomes(), embedded.summary().outcomes());
    assert_eq!(run.summary().fields(), embedded.summary().fields());
}

#[needs(mongod)]
#[test]
fn a_crawl_and_its_caches_are_documents_with_dates() {
    let database = fresh_database();
    let web = Web::start();
    let work = Workplace::new();
    let seeds = serve_two_people(&web, &work);
    // The clock of a site is stored only if it still delays requests, so this delay is long.
    let run = work.crawl(&web).replace_flag("--delay", "2");
    let run = run.replace_flag("--store", database.uri());
    run.arg("--seeds").arg(seeds).finish().expect_code(0);

    let documents = Documents::open(database.uri());
    let crawls = documents.all_documents("crawls");
    assert_eq!(crawls.len(), 1);
    let crawl = &crawls[0];
    assert_eq!(crawl["_id"], "local/test");
    assert_eq!(crawl["state"], "finished", "{crawl}");
    assert!(crawl["finished_at"]["$date"].is_string(), "{crawl}");
    assert_eq!(documents.count("pages"), 4);
    for page in documents.all_documents("pages") {
        assert!(page["started_at"]["$date"].is_string(), "{page}");
    }
    let robots = documents.all_documents("robots");
    assert_eq!(robots.len(), 1);
    assert_eq!(robots[0]["_id"], "http://people.example");
    assert!(robots[0]["expires_at"]["$date"].is_string());
    let sites = documents.all_documents("sites");
    assert_eq!(sites.len(), 1);
    assert_eq!(sites[0]["_id"], "people.example");
    assert_eq!(sites[0]["delay_ms"], 2_000);
    assert!(sites[0]["last_start"]["$date"].is_string());
}

#[needs(mongod)]
#[test]
fn an_interrupted_crawl_in_mongodb_is_resumed() {
    let database = fresh_database();
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let crawl = || -> Run {
        let crawl = work.crawl(&web).replace_flag("--store", database.uri());
        crawl.args(&roots)
    };
    let running = crawl().start();
    web.log()
        .wait_until("a third is fetched", |visits| visits.pages().len() > 18);
    running.signal(Signal::INT);
    running.finish().expect_code(11);
    let documents = Documents::open(database.uri());
    let fetched = web.visits().pages().len();
    assert_eq!(documents.count("pages") as usize, fetched);
    assert!(fetched < SITES * PAGES_PER_SITE, "it was interrupted");

    // The command names no seeds, so the crawl must be known from the store.
    let resumed = work.crawl(&web).replace_flag("--store", database.uri());
    let run = resumed.finish().expect_code(0);
    assert_pages_complete(&documents.pages());
    assert_eq!(run.summary().tasks() as usize, SITES * PAGES_PER_SITE);
    assert_eq!(repeated_pages(&web), BTreeMap::new());
    web.visits().assert_polite(DELAY);
}

#[needs(mongod)]
#[test]
fn mongodb_survives_the_death_of_every_process_of_a_crawl() {
    let database = fresh_database();
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let crawl = || {
        let crawl = work.crawl(&web).replace_flag("--store", database.uri());
        crawl.args(&roots)
    };
    let running = crawl().start();
    web.log()
        .wait_until("it is under way", |visits| visits.pages().len() > 18);
    for process in running.processes() {
        process.signal(Signal::KILL);
    }
    drop(running);
    let documents = Documents::open(database.uri());
    let before = documents.pages();
    assert!(before.len() < SITES * PAGES_PER_SITE);
    crawl().finish().expect_code(0);
    let after = documents.pages();
    assert_pages_complete(&after);
    for (url, page) in before {
        assert_eq!(after[&url].fields, page.fields, "{url}");
    }
    web.visits().assert_polite(DELAY);
}

#[needs(mongod)]
#[test]
fn records_in_mongodb_are_exported_as_lines_and_as_a_table() {
    let database = fresh_database();
    let web = Web::start();
    let work = Workplace::new();
    let seeds = serve_two_people(&web, &work);
    let run = work.crawl(&web).replace_flag("--store", database.uri());
    run.arg("--seeds").arg(seeds).finish().expect_code(0);
    let export = |args: &[&str]| {
        let run = Run::new(["export", "--store", database.uri()]).args(args);
        run.finish().expect_code(0).stdout
    };
    let lines = export(&["records", "--format", "jsonl", "--crawl", "test"]);
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON on every line"))
        .collect();
    assert_eq!(records.len(), 2);
    let ada = &records[0];
    assert_eq!(
        (&ada["_id"], &ada["record_id"]),
        (&json!("seeds/ada"), &json!("ada"))
    );
    assert_eq!(ada["fields"]["name"], "Ada, \"the\" $first.one \u{1F600}");
    assert!(ada["resolved_at"].is_string(), "a date is text: {ada}");
    let table = export(&["pages", "--format", "csv"]);
    assert_eq!(table.lines().count(), 1 + 4, "{table}");
    assert!(table.contains("http://people.example/bob/gone"), "{table}");
    assert_eq!(export(&["pages", "--crawl", "another"]), "");
}

#[needs(mongod)]
#[test]
fn store_and_cache_may_be_two_servers_of_mongodb() {
    let (store, cache) = (Mongod::start(), Mongod::start());
    let web = Web::start();
    let work = Workplace::new();
    let seeds = serve_two_people(&web, &work);
    let run = work.crawl(&web).replace_flag("--delay", "2");
    run.replace_flag("--store", store.uri("people"))
        .args(["--cache", &cache.uri("crawling")])
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let documents = Documents::open(&store.uri("people"));
    let counts = |documents: &Documents| {
        ["records", "pages", "crawls", "robots", "sites"].map(|name| documents.count(name))
    };
    assert_eq!(counts(&documents), [2, 4, 1, 0, 0]);
    let cached = Documents::open(&cache.uri("crawling"));
    assert_eq!(counts(&cached), [0, 0, 0, 1, 1]);
}

/// A run of a deployment that shares only the cache with other deployments.
fn deployment_run(work: &Workplace, web: &Web, cache: &str, delay: &str) -> Run {
    work.crawl_without_delay(web)
        .args(["--delay", delay, "--cache", cache])
}

#[needs(mongod)]
#[test]
fn a_deployment_waits_for_the_clock_that_another_left_in_the_mongodb_cache() {
    let cache = fresh_database();
    let web = Web::start();
    let hosts = ["one.example", "two.example"];
    for host in hosts {
        let site = web.site(host);
        site.serve_robots("User-agent: *\nCrawl-delay: 4\n");
        site.serve_otherwise(|request| page(&request.path).into());
    }
    let [first, second] = [Workplace::new(), Workplace::new()];
    let urls = |path: &str| hosts.map(|host| format!("http://{host}{path}"));
    deployment_run(&first, &web, cache.uri(), "4")
        .args(urls("/first"))
        .finish()
        .expect_code(0);
    deployment_run(&second, &web, cache.uri(), "4")
        .args(urls("/second"))
        .finish()
        .expect_code(0);
    let visits = web.visits();
    assert_eq!(visits.pages().len(), 4);
    assert_eq!(visits.robots().len(), 2, "one deployment asked for both");
    visits.assert_polite(Duration::from_secs(4));
}

#[test]
fn a_mongodb_that_is_not_there_is_named_at_the_start() {
    let web = Web::start();
    let work = Workplace::new();
    let store = "mongodb://someone:hidden@127.0.0.1:1/people?serverSelectionTimeoutMS=300";
    let run = work.crawl(&web).replace_flag("--store", store);
    let run = run.arg("http://people.example/").finish().expect_code(1);
    let sentence = run.one_sentence();
    assert!(
        sentence.contains("mongodb://127.0.0.1:1/people") && sentence.contains("refused"),
        "{sentence}"
    );
    assert!(!sentence.contains("hidden"), "{sentence}");
}
