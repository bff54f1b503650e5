//! Tests a dispatcher that ends alone, supervisors that drain (finish their tasks and exit), and supervisors that
//! become silent. The access log shows the requests to each site.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::site::page;

use crate::fleet::{DELAY, Fleet, request, wait_for};

const PAGES: usize = 25;

/// The longest time of a request, in seconds. It is longer than any test, so no supervisor counts as lost.
const LONGEST_FETCH: &str = "100";

/// Feeds the pages of some sites that all answer after this latency. Returns the number of pages.
fn feed_sites(fleet: &Fleet, sites: usize, latency: Duration) -> usize {
    let mut requests = Vec::new();
    for number in 0..sites {
        let site = fleet.web.site(&format!("s{number}.example"));
        site.serve_otherwise(|request| page(&request.path).into());
        site.set_latency(latency);
        let url = |page: usize| request(&site.url(&format!("/{page}")), "drained");
        requests.extend((0..PAGES).map(url));
    }
    fleet.feed(&requests);
    requests.len()
}

fn wait_until_asked(fleet: &Fleet, pages: usize) {
    let enough = format!("{pages} pages were asked for");
    fleet
        .web
        .log()
        .wait_until(&enough, |visits| visits.pages().len() >= pages);
}

/// Checks that every page was requested once, and that the delay of every site was kept.
fn assert_asked_once(fleet: &Fleet, pages: usize) {
    let visits = fleet.web.visits();
    let mut asked: Vec<(String, String)> = visits
        .pages()
        .0
        .iter()
        .map(|visit| (visit.host.clone(), visit.path.clone()))
        .collect();
    asked.sort();
    let all = asked.len();
    asked.dedup();
    assert_eq!((asked.len(), all), (pages, pages));
    visits.assert_polite(DELAY);
}

fn supervisor_status(fleet: &Fleet, name: &str) -> Value {
    let status = fleet.run_json(&["status"]);
    let supervisors = status["supervisors"].as_array().cloned();
    let found = supervisors
        .into_iter()
        .flatten()
        .find(|one| one["id"] == name);
    found.unwrap_or(Value::Null)
}

#[test]
fn a_dispatcher_ends_alone_and_its_supervisors_go_on_with_the_next() {
    let mut fleet = Fleet::start();
    fleet.add_supervisor("two");
    let pages = feed_sites(&fleet, 6, Duration::from_millis(100));
    wait_until_asked(&fleet, 20);

    let asked = Instant::now();
    fleet.dispatcher().signal(Signal::TERM);
    let said = fleet.wait_until_dispatcher_ended(0);
    assert!(
        asked.elapsed() < Duration::from_secs(30),
        "it waits for nobody: {:?}, {said}",
        asked.elapsed()
    );
    fleet.assert_supervisors_run();

    fleet.start_dispatcher();
    fleet.wait_until_done("drained");
    fleet.assert_supervisors_run();
    assert_asked_once(&fleet, pages);
}

#[test]
fn one_supervisor_or_all_drain_on_request() {
    let mut fleet = Fleet::start();
    fleet.add_supervisor("two");
    let pages = feed_sites(&fleet, 8, Duration::from_millis(100));
    wait_until_asked(&fleet, 20);

    let refused = fleet
        .run(&["drain", "--supervisor", "three"])
        .expect_code(1)
        .stderr;
    assert!(
        refused.contains("supervisor three is not connected; connected: one, two"),
        "{refused}"
    );
    let reported = fleet.run(&["drain", "--supervisor", "two"]).expect_code(0);
    assert_eq!(reported.stdout, "drained: two\n");
    fleet.wait_until_supervisor_ended("two");
    let left = fleet.run_json(&["status"])["supervisors"].clone();
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");

    // The remaining supervisor takes over the sites.
    fleet.wait_until_done("drained");
    assert_asked_once(&fleet, pages);

    let answer = fleet.run_json(&["drain"]);
    assert_eq!(
        answer,
        json!({"action": "drain", "drained": ["one"], "lost": []})
    );
    fleet.wait_until_supervisor_ended("one");
    let reported = fleet.run(&["drain"]).expect_code(0).stdout;
    assert_eq!(reported, "nothing drained: no supervisor is connected\n");

    // The dispatcher still runs, and a new supervisor can join.
    fleet.feed(&[request(
        &fleet.web.site("s0.example").url("/later"),
        "later",
    )]);
    fleet.add_supervisor("three");
    fleet.wait_until_done("later");
}

#[test]
fn a_supervisor_that_drains_while_its_dispatcher_is_away_keeps_its_outcomes_for_it() {
    let mut fleet = Fleet::start();
    let pages = feed_sites(&fleet, 6, Duration::from_millis(100));
    wait_until_asked(&fleet, 20);
    fleet.kill_dispatcher();
    // While the dispatcher is dead, its supervisor fetches further pages. Their outcomes must reach the next
    // dispatcher.
    let asked = fleet.web.visits().pages().len();
    wait_until_asked(&fleet, asked + 6);

    let log = fleet
        .work
        .path("state/supervisor-one/logs/supervisor-one.log");
    fleet.signal_supervisor("one", Signal::TERM);
    wait_for("its workers have drained", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("worker_drained").then_some(())
    });
    fleet.assert_supervisors_run();
    fleet.start_dispatcher();
    fleet.wait_until_supervisor_ended("one");

    fleet.add_supervisor("two");
    fleet.wait_until_done("drained");
    assert_asked_once(&fleet, pages);
}

#[test]
fn a_silent_supervisor_is_reported_within_its_lease_and_its_idle_sites_move_immediately() {
    let lease = Duration::from_secs(12);
    let settings = [
        ("DISPATCHER_LEASE", "12"),
        ("FETCH_TOTAL_TIMEOUT", LONGEST_FETCH),
    ];
    let mut fleet = Fleet::start_with(&settings);
    // The two supervisors get new sites in turn.
    fleet.add_supervisor("two");
    let pages = feed_sites(&fleet, 8, Duration::ZERO);
    fleet.wait_until_done("drained");
    assert_eq!(supervisor_status(&fleet, "two")["lost_in_s"], Value::Null);

    let frozen = Instant::now();
    fleet.signal_supervisor("two", Signal::STOP);
    wait_for("it is reported", || {
        let lost_in_s = supervisor_status(&fleet, "two")["lost_in_s"].as_f64()?;
        assert!(lost_in_s > 60.0, "its requests may take long: {lost_in_s}");
        Some(())
    });
    assert!(
        frozen.elapsed() <= lease,
        "reported after {:?}",
        frozen.elapsed()
    );
    assert_eq!(fleet.logged_lines("supervisor_silent").len(), 1);

    // The idle sites of the silent supervisor have moved, so they can all be requested long before it counts as lost.
    let again: Vec<Value> = (0..8)
        .map(|site| {
            request(
                &fleet.web.site(&format!("s{site}.example")).url("/again"),
                "again",
            )
        })
        .collect();
    fleet.feed(&again);
    fleet.wait_until_done("again");
    assert_eq!(fleet.logged_lines("supervisor_lost").len(), 0);

    fleet.signal_supervisor("two", Signal::CONT);
    wait_for("it is back", || {
        let two = supervisor_status(&fleet, "two");
        (two["id"] == "two" && two["lost_in_s"].is_null()).then_some(())
    });
    assert_asked_once(&fleet, pages + again.len());
}
