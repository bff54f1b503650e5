//! Tests that failed tasks are retried with growing waits, after other tasks, and only a few times.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::site::{Reply, Site, page, script, status};

use crate::fleet::{Fleet, request, request_with, wait_for};

/// A settings file where the waits before retries are short enough for a test.
pub(crate) const TABLE: &str = "\
[retries]
timeout = [0.3, 0.6]
network_error = [0.3, 0.6, 1.2]
http_503 = [0.3]
";

fn start_fleet() -> Fleet {
    Fleet::start_with_config_file(TABLE)
}

/// A page whose first `times` requests fail.
fn failing_page(
    times: u32,
    failure: impl Into<Reply>,
) -> impl Fn(&webfill_tests::site::Request) -> Reply {
    let asked = AtomicU32::new(0);
    let failure = failure.into();
    move |request| {
        if asked.fetch_add(1, Ordering::SeqCst) < times {
            return failure.clone();
        }
        page(&request.path).into()
    }
}

/// Makes the site close each connection after one request. Otherwise a request that fails on a used connection would be
/// repeated at once, which is no retry.
fn close_connections(site: &Site) {
    site.serve("/robots.txt", status(404).header("connection", "close"));
}

/// The page of a URL as it is exported from the store.
fn export_page(fleet: &Fleet, url: &str) -> Value {
    let run = webfill_tests::run::Run::new(["export", "pages", "--store", &fleet.store_uri()]);
    let lines = run.finish().expect_code(0).stdout;
    let documents = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut found: Vec<Value> = documents.filter(|page| page["url"] == url).collect();
    assert_eq!(found.len(), 1, "one document for {url}");
    found.remove(0)
}

#[test]
fn pages_that_fail_for_a_while_are_fetched_in_the_end_and_their_attempts_are_reported() {
    let fleet = start_fleet();
    let site = fleet.web.site("n.example");
    close_connections(&site);
    site.serve_with("/", failing_page(2, script().reset()));
    fleet.feed(&[request("http://n.example/", "c")]);
    fleet.wait_until_done("c");
    let visits = fleet.web.visits().pages();
    assert_eq!(visits.len(), 3);
    let gaps = visits.gaps();
    assert!(gaps[0] >= Duration::from_millis(300), "{gaps:?}");
    assert!(
        gaps[1] >= Duration::from_millis(600),
        "the waits grow: {gaps:?}"
    );
    let page = export_page(&fleet, "http://n.example/");
    assert_eq!(page["outcome"], "ok");
    let tries = page["tries"]
        .as_array()
        .unwrap_or_else(|| panic!("no tries: {page}"));
    assert_eq!(tries.len(), 2, "{page}");
    for attempt in tries {
        assert_eq!(attempt["outcome"], "network_error", "{page}");
    }
    let info = fleet.info("c");
    assert_eq!(info["total_pending"], 0);
}

#[test]
fn a_page_is_given_up_after_its_last_attempt() {
    let fleet = start_fleet();
    let site = fleet.web.site("g.example");
    close_connections(&site);
    site.serve_with("/gone", |_| script().reset().into());
    site.serve_with("/busy", |_| status(503).into());
    site.serve_with("/lost", |_| status(404).into());
    let paths = ["/gone", "/busy", "/lost"];
    let requests = paths.map(|path| request(&site.url(path), "c"));
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    let expected = [
        ("/gone", 4, "network_error", 3),
        ("/busy", 2, "http_error", 1),
        ("/lost", 1, "http_error", 0),
    ];
    for (path, attempts, outcome, tries) in expected {
        let visits = fleet.web.visits().without_lost_requests().for_path(path);
        assert_eq!(visits.len(), attempts, "{path}");
        let page = export_page(&fleet, &site.url(path));
        assert_eq!(page["outcome"], outcome, "{page}");
        let recorded = page["tries"].as_array().map_or(0, Vec::len);
        assert_eq!(recorded, tries, "{page}");
    }
}

#[test]
fn a_page_that_times_out_is_retried_after_other_pages() {
    let mut settings = TABLE.to_owned();
    settings += "[fetch]\nhead_timeout = 1.0\ntotal_timeout = 2.0\n";
    let fleet = Fleet::start_with_config_file(&settings);
    let site = fleet.web.site("t.example");
    site.serve_with("/slow", failing_page(1, script().hold_open()));
    site.serve_otherwise(|request| page(&request.path).into());
    let mut requests = vec![request_with(
        "http://t.example/slow",
        "c",
        json!({"priority": 60}),
    )];
    // These requests have a lower priority than the slow page, but come before its second attempt.
    requests.extend((0..3).map(|page| {
        request_with(
            &format!("http://t.example/{page}"),
            "c",
            json!({"priority": 55}),
        )
    }));
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    let order: Vec<String> = fleet
        .web
        .visits()
        .pages()
        .0
        .iter()
        .map(|visit| visit.path.clone())
        .collect();
    assert_eq!(
        order.first().map(String::as_str),
        Some("/slow"),
        "{order:?}"
    );
    assert_eq!(order.last().map(String::as_str), Some("/slow"), "{order:?}");
    assert_eq!(order.len(), 5);
    let page = export_page(&fleet, "http://t.example/slow");
    assert_eq!(
        (&page["outcome"], &page["tries"][0]["outcome"]),
        (&json!("ok"), &json!("timeout")),
        "{page}"
    );
}

#[test]
fn tasks_waiting_for_their_next_attempt_are_pending_and_can_be_stopped() {
    let fleet = Fleet::start_with_config_file("[retries]\nnetwork_error = [3600.0]\n");
    let site = fleet.web.site("w.example");
    close_connections(&site);
    site.serve_with("/", |_| script().reset().into());
    fleet.feed(&[request("http://w.example/", "c")]);
    fleet
        .web
        .log()
        .wait_until("the first attempt", |visits| !visits.pages().is_empty());
    wait_for("it waits for the second", || {
        let info = fleet.info("c");
        (info["total_pending"] == 1 && info["low_priority"] == 40).then_some(())
    });
    let answer = fleet.client().ask(&crate::fleet::action("stop", Some("c")));
    assert_eq!(answer["total_purged"], 1, "{answer}");
    assert_eq!(fleet.web.visits().pages().len(), 1);
}

#[test]
fn attempts_outlast_a_restart() {
    let mut fleet = Fleet::start_with_config_file("[retries]\nnetwork_error = [1.0]\n");
    let site = fleet.web.site("o.example");
    close_connections(&site);
    site.serve_with("/", failing_page(1, script().reset()));
    fleet.feed(&[request("http://o.example/", "c")]);
    fleet
        .web
        .log()
        .wait_until("the first attempt", |visits| !visits.pages().is_empty());
    wait_for("it waits for the second", || {
        (fleet.info("c")["low_priority"] == 40).then_some(())
    });
    fleet.restart();
    fleet.wait_until_done("c");
    assert_eq!(fleet.web.visits().pages().len(), 2);
    let page = export_page(&fleet, "http://o.example/");
    assert_eq!(page["tries"].as_array().map(Vec::len), Some(1), "{page}");
}
