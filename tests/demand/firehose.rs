//! Tests the firehose (the stream of results and notifications): topics, `webfill dump`, and slow subscribers. Exports
//! with a cursor miss nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::office::pdf;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{document, page};

use crate::fleet::{APP, Fleet, action, request, request_with};

/// The keys that each result of a page must have.
const RESULT_KEYS: [&str; 13] = [
    "url",
    "response_url",
    "status_code",
    "status_msg",
    "appid",
    "crawlid",
    "links",
    "headers",
    "attrs",
    "timestamp",
    "fields",
    "mapping",
    "outcome",
];

/// Serves `count` pages of each site. Returns requests for all of them.
fn serve_pages(fleet: &Fleet, sites: usize, count: usize, crawl_id: &str) -> Vec<Value> {
    let mut requests = Vec::new();
    for number in 0..sites {
        let site = fleet.web.site(&format!("{crawl_id}{number}.example"));
        site.serve_otherwise(|request| page(&request.path).into());
        requests.extend((0..count).map(|page| request(&site.url(&format!("/{page}")), crawl_id)));
    }
    requests
}

#[test]
fn a_result_has_every_field_of_the_contract() {
    let fleet = Fleet::start();
    let site = fleet.web.site("r.example");
    site.serve(
        "/",
        page("Title")
            .field("name", "Ada")
            .link("/next")
            .header("x-own", "1")
            .header("x-own", "2"),
    );
    let firehose = fleet.subscribe_firehose("crawled.testapp");
    let keys = json!({"attrs": {"a": 1}, "maxdepth": 1});
    fleet.feed(&[request_with("http://r.example/", "c", keys)]);
    // The result contains a link only if this crawl follows links.
    let (topic, result) = firehose.next();
    assert_eq!(topic, "crawled.testapp");
    for key in RESULT_KEYS {
        assert!(result.get(key).is_some(), "`{key}` is not in {result}");
    }
    for (key, value) in [
        ("url", json!("http://r.example/")),
        ("response_url", json!("http://r.example/")),
        ("status_code", json!(200)),
        ("status_msg", json!("OK")),
        ("appid", json!(APP)),
        ("crawlid", json!("c")),
        ("attrs", json!({"a": 1})),
        ("mapping", json!("profile")),
        ("outcome", json!("ok")),
    ] {
        assert_eq!(result[key], value, "{key}");
    }
    assert_eq!(result["fields"]["name"], "Ada");
    let links = result["links"].to_string();
    assert!(links.contains("http://r.example/next"), "{links}");
    let headers: BTreeMap<String, Value> = result["headers"]
        .as_object()
        .expect("an object")
        .iter()
        .map(|(name, values)| (name.to_lowercase(), values.clone()))
        .collect();
    assert_eq!(headers["x-own"], json!(["1", "2"]), "{headers:?}");
    assert_eq!(headers["content-type"], json!(["text/html; charset=utf-8"]));
    let timestamp = result["timestamp"].as_str().expect("a text");
    assert!(
        timestamp.contains('T') && timestamp.starts_with("20"),
        "{timestamp}"
    );
}

#[test]
fn a_document_is_a_result_with_its_text_and_its_metadata() {
    let fleet = Fleet::start_with(&[("DOCUMENTS_READ", "true")]);
    let site = fleet.web.site("papers.test");
    let paper = pdf("A paper", "Contract number 4711");
    // The URL must not end in `.pdf`, because links with this ending are skipped.
    site.serve("/paper", document("application/pdf", paper));
    site.serve("/", page("Home"));
    let firehose = fleet.subscribe_firehose("crawled.testapp");
    let url = site.url("/paper");
    fleet.feed(&[request_with(&url, "c", json!({"body": true}))]);
    let (_, result) = firehose.next();
    assert_eq!(result["outcome"], "ok", "{result}");
    assert_eq!(result["body"], "Contract number 4711");
    let document = &result["document"];
    for (key, value) in [
        ("status", json!("text")),
        ("type", json!("pdf")),
        ("title", json!("A paper")),
        ("author", json!("Ada")),
        ("created", json!("2024-01-31T12:00:00Z")),
        ("pages", json!(1)),
    ] {
        assert_eq!(document[key], value, "{key}: {document}");
    }
    fleet.feed(&[request(&site.url("/"), "d")]);
    assert_eq!(firehose.next().1.get("document"), None);
}

#[test]
fn a_failed_fetch_is_a_result_with_its_outcome() {
    let fleet = Fleet::start();
    let site = fleet.web.site("f.example");
    site.serve_robots("User-agent: *\nDisallow: /private\n");
    let firehose = fleet.subscribe_firehose("crawled.testapp");
    fleet.feed(&[
        request("http://f.example/lost", "c"),
        request("http://f.example/private", "c"),
    ]);
    let mut outcomes = BTreeMap::new();
    for _ in 0..2 {
        let (_, result) = firehose.next();
        let url = result["url"].as_str().expect("text").to_owned();
        outcomes.insert(
            url,
            (result["outcome"].clone(), result["status_code"].clone()),
        );
    }
    let lost = &outcomes["http://f.example/lost"];
    assert_eq!(*lost, (json!("http_error"), json!(404)));
    let private = &outcomes["http://f.example/private"];
    assert_eq!(private.0, json!("disallowed"));
}

#[test]
fn topics_separate_applications_and_kinds_and_an_empty_one_is_everything() {
    let fleet = Fleet::start();
    let mine = fleet.subscribe_firehose("crawled.testapp");
    let notifications = fleet.subscribe_firehose("outbound.testapp");
    let all = fleet.subscribe_firehose("");
    let mut foreign = serve_pages(&fleet, 1, 2, "theirs");
    foreign
        .iter_mut()
        .for_each(|request| request["appid"] = json!("other"));
    fleet.feed(&foreign);
    fleet.wait_until_app_is_done("other", "theirs");
    fleet.feed(&serve_pages(&fleet, 1, 3, "mine"));
    fleet.wait_until_done("mine");
    fleet.client().ask(&action("stop", Some("mine")));
    let notification = notifications.wait_for(|notification| notification["action"] == "stop");
    assert_eq!(notification["crawlid"], "mine");
    for _ in 0..3 {
        let (topic, result) = mine.next();
        assert_eq!(
            (topic.as_str(), &result["crawlid"]),
            ("crawled.testapp", &json!("mine"))
        );
    }
    let mut topics: BTreeMap<String, usize> = BTreeMap::new();
    // Answers to an application's requests are published, too, so they are left out here.
    while topics.values().sum::<usize>() < 6 {
        let (topic, message) = all.next();
        if message["action"] != "info" {
            *topics.entry(topic).or_default() += 1;
        }
    }
    let expected = [
        ("crawled.other", 2),
        ("crawled.testapp", 3),
        ("outbound.testapp", 1),
    ];
    assert_eq!(
        topics,
        expected
            .map(|(topic, count)| (topic.to_owned(), count))
            .into()
    );
    assert!(
        mine.next_within(Duration::from_millis(100)).is_none(),
        "nothing else was for it"
    );
}

/// Starts `webfill dump`, and causes notifications until it has printed one of them.
fn start_dump(fleet: &Fleet, args: &[&str]) -> Running {
    let mut dump = fleet.command(&["dump"]).args(args).start();
    let client = fleet.client();
    dump.wait_until("it is subscribed", |dump| {
        client.ask(&action("info", None));
        dump.stdout_so_far().contains("total_pending")
    });
    dump
}

/// The JSON lines on the standard output of a process so far.
fn printed_lines(run: &Running) -> Vec<Value> {
    let text = run.stdout_so_far();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON lines"));
    lines.collect()
}

#[test]
fn dump_prints_a_line_for_each_message_and_outlives_the_dispatcher() {
    let mut fleet = Fleet::start();
    let mut dump = start_dump(&fleet, &["--app", APP]);
    fleet.feed(&serve_pages(&fleet, 2, 3, "first"));
    let results = |dump: &Running, crawl: &str| {
        printed_lines(dump)
            .iter()
            .filter(|line| line["crawlid"] == crawl && line.get("url").is_some())
            .count()
    };
    dump.wait_until("the first six are printed", |dump| {
        results(dump, "first") == 6
    });
    fleet.restart();
    let client = fleet.client();
    let before = printed_lines(&dump).len();
    dump.wait_until("it is subscribed again", |dump| {
        client.ask(&action("info", None));
        printed_lines(dump).len() > before
    });
    fleet.feed(&serve_pages(&fleet, 1, 2, "second"));
    dump.wait_until("the others are printed", |dump| {
        results(dump, "second") == 2
    });
    dump.signal(Signal::INT);
    dump.finish().expect_code(0);
}

#[test]
fn a_subscriber_that_stands_still_slows_nothing() {
    let fleet = Fleet::start_with(&[("POLITENESS_DELAY", "0.001")]);
    let requests = |crawl: &str| {
        let mut requests = serve_pages(&fleet, 20, 60, crawl);
        let blob = json!({"blob": "x".repeat(8_000)});
        requests
            .iter_mut()
            .for_each(|request| request["attrs"] = blob.clone());
        requests
    };
    let undisturbed = Instant::now();
    fleet.feed(&requests("alone"));
    fleet.wait_until_done("alone");
    let undisturbed = undisturbed.elapsed();
    let dump = start_dump(&fleet, &[]);
    dump.signal(Signal::STOP);
    let awake = fleet.subscribe_firehose("crawled.testapp");
    let disturbed = Instant::now();
    fleet.feed(&requests("watched"));
    fleet.wait_until_done("watched");
    let disturbed = disturbed.elapsed();
    eprintln!("{undisturbed:?} alone, {disturbed:?} beside a stopped subscriber");
    assert!(
        disturbed < 3 * undisturbed + Duration::from_secs(5),
        "{disturbed:?} instead of {undisturbed:?}"
    );
    // A subscriber that reads in time gets every message.
    for _ in 0..1_200 {
        assert_eq!(awake.next().1["crawlid"], "watched");
    }
    let held = fleet.dispatcher().processes_of_role("dispatcher")[0].peak_bytes();
    assert!(held < 400 << 20, "{} MiB", held >> 20);
    dump.signal(Signal::CONT);
}

/// The URLs of the pages that an export from a cursor prints, and the cursor at its end.
fn export_pages(fleet: &Fleet, cursor: &str) -> (Vec<String>, String) {
    let run = Run::new([
        "export",
        "pages",
        "--store",
        &fleet.store_uri(),
        "--since",
        cursor,
    ]);
    read_export(&run.finish().expect_code(0).stdout, cursor)
}

/// Reads the JSON lines of an export. Returns the URLs of the pages, and the last cursor.
fn read_export(text: &str, cursor: &str) -> (Vec<String>, String) {
    let mut urls = Vec::new();
    let mut cursor = cursor.to_owned();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        if let Some(url) = line["url"].as_str() {
            urls.push(url.to_owned());
        }
        match &line["cursor"] {
            Value::String(text) => cursor.clone_from(text),
            Value::Number(number) => cursor = number.to_string(),
            _ => {}
        }
    }
    (urls, cursor)
}

#[test]
fn a_cursor_misses_nothing_and_repeats_nothing_over_restarts() {
    let mut fleet = Fleet::start_with(&[("POLITENESS_DELAY", "0.005")]);
    fleet.add_supervisor("two");
    let requests = serve_pages(&fleet, 12, 60, "c");
    fleet.feed(&requests);
    let mut all = Vec::new();
    let mut cursor = String::from("0");
    let mut restarts = 0;
    while all.len() < requests.len() {
        let (urls, next) = export_pages(&fleet, &cursor);
        all.extend(urls);
        cursor = next;
        if restarts == 0 && all.len() > 100 {
            restarts += 1;
            fleet.restart();
        } else if restarts == 1 && all.len() > 300 {
            restarts += 1;
            fleet.kill_dispatcher();
            fleet.start_dispatcher();
        }
    }
    fleet.wait_until_done("c");
    let (none, _) = export_pages(&fleet, &cursor);
    assert_eq!(none, Vec::<String>::new());
    assert_eq!(restarts, 2);
    assert_complete(&all, &requests);
}

#[test]
fn follow_continues_while_the_dispatcher_is_restarted() {
    let mut fleet = Fleet::start_with(&[("POLITENESS_DELAY", "0.005")]);
    let requests = serve_pages(&fleet, 6, 40, "c");
    fleet.feed(&requests[..1]);
    fleet.wait_until_done("c");
    let mut follow = Run::new(["export", "pages", "--store", &fleet.store_uri()])
        .args(["--since", "0", "--follow"])
        .start();
    fleet.feed(&requests[1..]);
    let count = |run: &Running| read_export(&run.stdout_so_far(), "").0.len();
    follow.wait_until("some are reported", |run| {
        let text = run.stdout_so_far();
        text.matches('\n').count() > 30
    });
    fleet.restart();
    fleet.wait_until_done("c");
    follow.wait_until("all are reported", |run| {
        run.stdout_so_far().ends_with('\n') && count(run) >= requests.len()
    });
    follow.signal(Signal::INT);
    let run = follow.finish().expect_code(0);
    assert_complete(&read_export(&run.stdout, "").0, &requests);
}

/// Checks that each requested page was exported exactly once.
fn assert_complete(exported: &[String], requests: &[Value]) {
    let expected: BTreeSet<&str> = requests
        .iter()
        .map(|one| one["url"].as_str().expect("text"))
        .collect();
    let found: BTreeSet<&str> = exported.iter().map(String::as_str).collect();
    let missed: Vec<_> = expected.difference(&found).collect();
    assert!(missed.is_empty(), "missed: {missed:#?}");
    assert_eq!(exported.len(), expected.len(), "repeated");
}
