//! Tests metrics for Prometheus. Their values equal the counts in the sites' access log, and never decrease when a
//! process dies. The number of series does not grow with the web. A real Prometheus scrapes them, with the shipped
//! alerts and dashboard.

pub(crate) mod documented;
mod due;
mod machines;
mod prometheus;
mod scraped;
mod waiting;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::site::{page, status};

use self::scraped::Scraped;
use crate::clients::try_http_at;
use crate::fleet::{APP, Fleet, request, request_with, wait_for};

pub(crate) const DISPATCHER: u16 = 9464;
const SUPERVISOR: u16 = 9465;

/// A dispatcher and a supervisor with one worker. Both publish metrics.
fn fleet_with_metrics() -> Fleet {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let at = |port| format!("{}:{port}", fleet.host);
    let (dispatcher, supervisor) = (at(DISPATCHER), at(SUPERVISOR));
    fleet.set_env("METRICS_DISPATCHER", &dispatcher);
    fleet.start_dispatcher();
    fleet.add_supervisor_with("one", &[("METRICS_SUPERVISOR", &supervisor)]);
    fleet
}

/// A dispatcher and a supervisor that publish metrics, with a mapping of rows.
fn fleet_with_rows() -> Fleet {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let text = |selector: &str| json!([{"type": "css", "parameters": {"selector": selector}}]);
    let mapping = json!({
        "name": "list",
        "url_patterns": [{"type": "host", "pattern": "list.example"}],
        "rows": {
            "dataset": "things",
            "select": text("li"),
            "fields": [{"name": "id", "processors": text("b")}, {"name": "note", "processors": text("i")}],
            "key": ["id"],
        },
    });
    fleet.work.write_json("mappings/list.json", &mapping);
    let at = format!("{}:{SUPERVISOR}", fleet.host);
    fleet.start_dispatcher();
    fleet.add_supervisor_with("one", &[("METRICS_SUPERVISOR", &at)]);
    fleet
}

pub(crate) fn scrape(fleet: &Fleet, port: u16) -> Scraped {
    Scraped::parse(&scrape_text(fleet, port))
}

fn scrape_text(fleet: &Fleet, port: u16) -> String {
    let (status, body) = send_request(fleet, port, "GET /metrics HTTP/1.1", &fleet.host);
    assert_eq!(status, 200, "{body}");
    body
}

fn send_request(fleet: &Fleet, port: u16, request: &str, host: &str) -> (u16, String) {
    let host = format!("Host: {host}:{port}");
    try_http_at((&fleet.host, port), &[request, &host], "").expect("an answer")
}

/// Crawls two sites. Each has some pages, one missing page, and one page that robots.txt disallows.
fn crawl_two_sites(fleet: &Fleet) {
    let mut requests = Vec::new();
    for host in ["one.example", "two.example"] {
        let site = fleet.web.site(host);
        site.serve_otherwise(|request| match request.path.as_str() {
            "/gone" => status(404).into(),
            path => page(path).field("name", path).into(),
        });
        site.serve_robots("User-agent: *\nDisallow: /secret\n");
        let paths = (0..9).map(|number| format!("/{number}"));
        let paths = paths.chain(["/gone".to_owned(), "/secret".to_owned()]);
        requests.extend(paths.map(|path| request(&site.url(&path), "c")));
    }
    fleet.feed(&requests);
    fleet.wait_until_done("c");
}

#[test]
fn metrics_equal_the_counts_of_the_access_log() {
    let fleet = fleet_with_metrics();
    crawl_two_sites(&fleet);
    let visits = fleet.web.visits();
    let (pages, all) = (visits.pages().len() as f64, visits.len() as f64);
    assert_eq!(pages, 20.0);
    let metrics = wait_for("the supervisor has reported all pages", || {
        let metrics = scrape(&fleet, SUPERVISOR);
        (metrics.sum("webfill_pages_total") == 22.0).then_some(metrics)
    });
    assert_eq!(
        metrics.value_of("webfill_pages_total{outcome=\"ok\"}"),
        18.0
    );
    assert_eq!(
        metrics.value_of("webfill_pages_total{outcome=\"http_error\"}"),
        2.0
    );
    assert_eq!(
        metrics.value_of("webfill_pages_total{outcome=\"disallowed\"}"),
        2.0
    );
    assert_eq!(
        metrics.value_of("webfill_responses_total{class=\"2xx\"}"),
        18.0
    );
    assert_eq!(
        metrics.value_of("webfill_responses_total{class=\"4xx\"}"),
        2.0
    );
    assert_eq!(
        metrics.value_of("webfill_robots_fetches_total"),
        all - pages
    );
    for name in [
        "webfill_fetch_duration_seconds",
        "webfill_queue_duration_seconds",
    ] {
        assert_eq!(metrics.value_of(&format!("{name}_count")), pages, "{name}");
        assert_eq!(
            metrics.value_of(&format!("{name}_bucket{{le=\"+Inf\"}}")),
            pages
        );
        assert!(metrics.value_of(&format!("{name}_sum")) > 0.0);
    }
    assert!(metrics.value_of("webfill_fetched_bytes_total") > 18.0 * 20.0);
    // The mapping has four fields. Each page has values for two of them, the title and the name.
    for state in ["filled", "empty"] {
        let fields = format!("webfill_fields_total{{mapping=\"profile\",state=\"{state}\"}}");
        assert_eq!(metrics.value_of(&fields), 18.0 * 2.0, "{state}");
    }
    assert_eq!(metrics.value_of("webfill_pages_unmatched_total"), 0.0);
    assert_eq!(metrics.value_of("webfill_workers{state=\"ready\"}"), 1.0);
    assert_eq!(metrics.value_of("webfill_dispatcher_up"), 1.0);
    assert_eq!(metrics.value_of("webfill_store_up"), 1.0);

    let metrics = wait_for("the dispatcher has counted all tasks", || {
        let metrics = scrape(&fleet, DISPATCHER);
        let is_reported = metrics.get("webfill_tasks{state=\"done\"}") == Some(22.0)
            && metrics.sum("webfill_tasks_ended_total") == 22.0
            && metrics.get("webfill_leases") == Some(0.0)
            && metrics.get("webfill_oldest_due_seconds") == Some(0.0)
            && metrics.get("webfill_crawls") == Some(1.0);
        is_reported.then_some(metrics)
    });
    assert_eq!(
        metrics.value_of("webfill_tasks_ended_total{outcome=\"ok\"}"),
        18.0
    );
    assert_eq!(metrics.sum("webfill_tasks_ended_total"), 22.0);
    assert_eq!(metrics.value_of("webfill_tasks_accepted_total"), 22.0);
    assert_eq!(metrics.value_of("webfill_tasks_handed_out_total"), 22.0);
    assert_eq!(metrics.value_of("webfill_leases"), 0.0);
    assert_eq!(metrics.value_of("webfill_oldest_due_seconds"), 0.0);
    assert_eq!(
        metrics.value_of("webfill_supervisors{state=\"connected\"}"),
        1.0
    );
    assert_eq!(metrics.value_of("webfill_crawls"), 1.0);
    assert!(
        metrics.value_of("webfill_process_resident_memory_bytes{process=\"dispatcher\"}") > 1e6
    );
}

/// Each page of the list has two rows, one of them without a key.
#[test]
fn rows_are_counted_by_result() {
    let fleet = fleet_with_rows();
    fleet.web.site("list.example").serve_otherwise(|request| {
        let rows = format!("<li><b>{}</b><li><i>no key</i>", request.path);
        page("A list").html(format!("<ul>{rows}</ul>")).into()
    });
    let urls = (0..3).map(|number| format!("http://list.example/{number}"));
    let requests: Vec<Value> = urls.map(|url| request(&url, "c")).collect();
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    let rows = |state: &str| format!("webfill_rows_total{{mapping=\"list\",state=\"{state}\"}}");
    let metrics = wait_for("the supervisor has reported all rows", || {
        let metrics = scrape(&fleet, SUPERVISOR);
        (metrics.get(&rows("stored")) == Some(3.0)).then_some(metrics)
    });
    assert_eq!(metrics.value_of(&rows("without_key")), 3.0);
    assert_eq!(metrics.value_of(&rows("same_key")), 0.0);
    assert_eq!(
        metrics.value_of("webfill_pages_rows_cut_total{mapping=\"list\"}"),
        0.0
    );
    let info = fleet.run_json(&["info", APP, "c"]);
    assert_eq!(info["rows"], 6, "{info}");
    assert_eq!(info["rows_stored"], 3, "{info}");
    let status = fleet.run_json(&["status"]);
    assert_eq!(status["rows_stored"], 3, "{status}");
}

#[test]
fn unfetched_tasks_are_shown_with_their_age_and_sites_that_back_off_with_their_reason() {
    let mut fleet = Fleet::unstarted_fleet(&[("BACKOFF_BLOCKED", "3600")]);
    let (dispatcher, supervisor) = (DISPATCHER, SUPERVISOR);
    let at = format!("{}:{dispatcher}", fleet.host);
    fleet.set_env("METRICS_DISPATCHER", &at);
    fleet.start_dispatcher();
    let blocks = fleet.web.site("blocks.example");
    blocks.serve_otherwise(|_| status(403).into());
    let requests: Vec<Value> = (0..9)
        .map(|page| request(&blocks.url(&format!("/{page}")), "c"))
        .collect();
    fleet.feed(&requests);
    let due = wait_for("the age of what is due grows", || {
        let metrics = scrape(&fleet, dispatcher);
        let age = metrics.get("webfill_oldest_due_seconds")?;
        (age >= 1.5 && metrics.get("webfill_tasks{state=\"queued\"}") == Some(9.0)).then_some(age)
    });
    assert!(due < 60.0, "{due}");
    let at = format!("{}:{supervisor}", fleet.host);
    fleet.add_supervisor_with("one", &[("METRICS_SUPERVISOR", &at)]);
    // These three metrics are updated at different times, so the test waits for each.
    let backoff = [
        "webfill_sites{state=\"backing_off\"}",
        "webfill_sites_backing_off{reason=\"blocked\"}",
        "webfill_site_backoffs_total{reason=\"blocked\"}",
    ];
    wait_for("the site backs off", || {
        let metrics = scrape(&fleet, dispatcher);
        let is_reported = |name: &&str| metrics.get(name) == Some(1.0);
        backoff.iter().all(is_reported).then_some(())
    });
    wait_for("nothing is due any more", || {
        let metrics = scrape(&fleet, dispatcher);
        (metrics.get("webfill_oldest_due_seconds") == Some(0.0)).then_some(())
    });
}

#[test]
fn a_killed_worker_makes_no_counter_go_back() {
    let fleet = fleet_with_metrics();
    let site = fleet.web.site("one.example");
    site.serve_otherwise(|request| page(&request.path).field("name", "x").into());
    fleet
        .run(&["site", "one.example", "--delay", "0.05"])
        .expect_code(0);
    let requests: Vec<Value> = (0..300)
        .map(|page| request(&site.url(&format!("/{page}")), "c"))
        .collect();
    fleet.feed(&requests);
    let mut last = scrape(&fleet, SUPERVISOR);
    for deaths in 1..=3 {
        let before = last.sum("webfill_pages_total");
        let mut follow = |what: &str, is_there: &dyn Fn(&Scraped) -> bool| {
            wait_for(what, || {
                let metrics = scrape(&fleet, SUPERVISOR);
                metrics.assert_not_behind(&last);
                last = metrics;
                is_there(&last).then_some(())
            });
        };
        follow("the worker has reported more pages", &|metrics| {
            metrics.sum("webfill_pages_total") > before
        });
        let worker = fleet.supervisor().processes_of_role("worker").remove(0);
        worker.signal(Signal::KILL);
        follow(
            "the death is reported, and the next worker is ready",
            &|metrics| {
                metrics.value_of("webfill_worker_deaths_total") == f64::from(deaths)
                    && metrics.value_of("webfill_workers{state=\"ready\"}") == 1.0
            },
        );
    }
    fleet.wait_until_done("c");
    let metrics = scrape(&fleet, SUPERVISOR);
    metrics.assert_not_behind(&last);
    let fetched = metrics.value_of("webfill_fetch_duration_seconds_count");
    assert!(fetched <= site.visits().pages().len() as f64);
    let metrics = wait_for("the dispatcher has reported all ends", || {
        let metrics = scrape(&fleet, DISPATCHER);
        (metrics.sum("webfill_tasks_ended_total") == 300.0).then_some(metrics)
    });
    assert_eq!(
        metrics.value_of("webfill_tasks_ended_total{outcome=\"ok\"}"),
        300.0
    );
    assert!(metrics.value_of("webfill_tasks_returned_total") >= 1.0);
}

#[test]
fn a_page_that_no_mapping_is_for_is_counted_as_such() {
    let fleet = fleet_with_metrics();
    let mapped = fleet.web.site("one.example");
    mapped.serve_otherwise(|_| page("T").into());
    let other = fleet.web.site("other.test");
    other.serve_otherwise(|_| page("T").into());
    let urls = [mapped.url("/"), other.url("/a"), other.url("/b")];
    fleet.feed(&urls.map(|url| request(&url, "c")));
    fleet.wait_until_done("c");
    wait_for("two pages are of no mapping", || {
        let reported = scrape(&fleet, SUPERVISOR);
        let is_reported = reported.get("webfill_pages_unmatched_total") == Some(2.0)
            && reported.get("webfill_pages_total{outcome=\"ok\"}") == Some(3.0);
        is_reported.then_some(())
    });
    let reported = fleet.info("c");
    assert_eq!(reported["unmatched"], 2, "{reported}");
    let application = fleet.run(&["info", "testapp", "c"]).expect_code(0);
    let line = application
        .stdout
        .lines()
        .find(|line| line.starts_with("pages of no mapping"));
    assert!(
        line.is_some_and(|line| line.ends_with(" 2")),
        "{}",
        application.stdout
    );
}

#[test]
fn the_number_of_series_does_not_grow_with_the_web() {
    let fleet = fleet_with_metrics();
    let site = fleet.web.site("first.example");
    site.serve_otherwise(|_| page("T").into());
    fleet.feed(&[request(&site.url("/"), "first")]);
    fleet.wait_until_done("first");
    let names = |port: u16| -> BTreeSet<String> { scrape(&fleet, port).names().collect() };
    // The tasks are counted from time to time, and workers report with a delay, so some metrics appear later.
    wait_for("everything is reported", || {
        let all = names(DISPATCHER);
        let has = |name: &str| all.iter().any(|found| found.starts_with(name));
        let pages = scrape(&fleet, SUPERVISOR).sum("webfill_pages_total");
        (has("webfill_records{") && has("webfill_extraction_alerts") && pages == 1.0).then_some(())
    });
    let before = [names(DISPATCHER), names(SUPERVISOR)];
    let requests: Vec<Value> = (0..3_000)
        .map(|number| {
            let site = format!("http://s{number}.example/");
            request_with(&site, &format!("c{}", number % 100), json!({"maxdepth": 1}))
        })
        .collect();
    requests.chunks(500).for_each(|some| fleet.feed(some));
    let metrics = wait_for("all sites were counted", || {
        let metrics = scrape(&fleet, DISPATCHER);
        (metrics.sum("webfill_sites{") == 3_001.0).then_some(metrics)
    });
    assert_eq!(metrics.value_of("webfill_crawls"), 101.0);
    wait_for("many sites were asked", || {
        let metrics = scrape(&fleet, SUPERVISOR);
        (metrics.sum("webfill_pages_total") > 100.0).then_some(())
    });
    let after = [names(DISPATCHER), names(SUPERVISOR)];
    assert_eq!(before, after);
    assert!(after.iter().map(BTreeSet::len).sum::<usize>() < 300);
    let all = scrape_text(&fleet, DISPATCHER) + &scrape_text(&fleet, SUPERVISOR);
    assert!(!all.contains("example"), "no label may name a site");
}

#[test]
fn only_metrics_are_served_and_only_to_this_machine() {
    let fleet = fleet_with_metrics();
    let host = fleet.host.clone();
    let status = |request: &str, host: &str| send_request(&fleet, DISPATCHER, request, host).0;
    assert_eq!(status("GET /metrics HTTP/1.1", &host), 200);
    assert_eq!(status("GET /metrics HTTP/1.1", "evil.example"), 403);
    assert_eq!(status("GET /status HTTP/1.1", &host), 404);
    assert_eq!(status("POST /metrics HTTP/1.1", &host), 405);
    let origin = format!("GET /metrics HTTP/1.1\r\nOrigin: http://{host}");
    assert_eq!(status(&origin, &host), 403);
    let (_, body) = send_request(&fleet, DISPATCHER, "HEAD /metrics HTTP/1.1", &host);
    assert_eq!(body, "");
    let mut open = Fleet::unstarted_fleet(&[("METRICS_DISPATCHER", "0.0.0.0:9464")]);
    let refused = open.dispatcher_role().finish().expect_code(2);
    assert!(
        refused.stderr.contains("metrics.allow_network"),
        "{}",
        refused.stderr
    );
    let at = format!("{host}:{DISPATCHER}");
    open.set_env("METRICS_DISPATCHER", &at);
    let refused = open.dispatcher_role().finish().expect_code(1);
    assert!(
        refused.stderr.contains("metrics.dispatcher"),
        "{}",
        refused.stderr
    );
}
