//! Tests many applications that share a fleet: a large crawl of one application does not delay the crawls of other
//! applications.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::site::page;

use crate::fleet::{APP, Fleet, request, wait_for};

/// The most sites whose tasks the dispatcher keeps in memory.
const WINDOW: u64 = 200;

/// Feeds a large crawl as lists of ten thousand requests.
fn feed_large(fleet: &Fleet, count: usize, host: impl Fn(usize) -> String) {
    let client = fleet.client();
    let mut fed = 0;
    while fed < count {
        let many = 10_000.min(count - fed);
        let requests: Vec<Value> = (fed..fed + many)
            .map(|number| {
                let mut request =
                    request(&format!("http://{}/large/{number}", host(number)), "large");
                request["appid"] = json!("large");
                request
            })
            .collect();
        assert_eq!(client.ask(&json!(requests))["accepted"], many);
        fed += many;
    }
}

/// Checks a small crawl and a large crawl on the same site: every second page must be of the small crawl.
fn check_small_beside_large_on_one_site(count: usize) {
    let fleet = Fleet::start_with(&[("POLITENESS_DELAY", "0.02")]);
    let site = fleet.web.site("shared.example");
    site.serve_otherwise(|request| page(&request.path).into());
    feed_large(&fleet, count, |_| "shared.example".into());
    let log = fleet.web.log();
    log.wait_until("the large one is under way", |visits| {
        visits.pages().len() > 10
    });
    let small: Vec<Value> = (0..20)
        .map(|page| request(&site.url(&format!("/small/{page}")), "small"))
        .collect();
    fleet.feed(&small);
    let before = fleet.web.visits().pages().len();
    fleet.wait_until_done("small");
    let visits = fleet.web.visits().pages();
    let last = visits
        .0
        .iter()
        .rposition(|visit| visit.path.starts_with("/small"));
    let between = last.expect("it was fetched") - before;
    eprintln!("{between} fetches for a small crawl of 20 beside {count}");
    // First come the tasks of the large crawl that were already handed out. After them, the two crawls take turns.
    assert!(between < 20 * 2 + 40, "{between} fetches");
}

/// Checks that a small crawl on its own sites is not delayed by a large crawl on thousands of sites.
fn check_small_beside_large_on_many_sites(count: usize, sites: usize) {
    let fleet = Fleet::start_with(&[
        ("POLITENESS_DELAY", "30"),
        ("DISPATCHER_WINDOW_SITES", &WINDOW.to_string()),
        ("WORKER_CONCURRENCY", "32"),
    ]);
    let host = move |number: usize| format!("h{}.example", number % sites);
    for number in 0..sites {
        let site = fleet.web.site(&host(number));
        site.serve_otherwise(|request| page(&request.path).into());
    }
    feed_large(&fleet, count, host);
    // More sites must be waiting for their delay than the dispatcher keeps in memory.
    wait_for("the large one has met many sites", || {
        (fleet.web.connection_count() > 3 * WINDOW).then_some(())
    });
    let small: Vec<Value> = (0..40)
        .map(|number| {
            let site = fleet.web.site(&format!("small{number}.example"));
            site.serve_otherwise(|request| page(&request.path).into());
            request(&site.url("/"), "small")
        })
        .collect();
    let fed = Instant::now();
    fleet.feed(&small);
    fleet.wait_until_done("small");
    let took = fed.elapsed();
    let left = fleet
        .client()
        .ask(&json!({"action": "info", "appid": "large", "uuid": "u", "spiderid": "link"}));
    eprintln!(
        "a small crawl took {took:?} beside {count} URLs of {sites} sites; left: {}",
        left["total_pending"]
    );
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_large_crawl_on_the_same_site_does_not_delay_a_small_one() {
    check_small_beside_large_on_one_site(20_000);
}

#[test]
#[ignore = "a million URLs: minutes alone on a machine"]
fn a_crawl_of_a_million_on_the_same_site_does_not_delay_a_small_one() {
    check_small_beside_large_on_one_site(1_000_000);
}

#[test]
fn a_large_crawl_on_many_sites_does_not_delay_a_small_one() {
    check_small_beside_large_on_many_sites(20_000, 2_000);
}

#[test]
#[ignore = "a million URLs: minutes alone on a machine"]
fn a_crawl_of_a_million_on_many_sites_does_not_delay_a_small_one() {
    check_small_beside_large_on_many_sites(1_000_000, 10_000);
}

#[test]
fn an_application_asks_no_more_sites_at_once_than_it_may() {
    let limits = format!("[applications.{APP}]\nmax_sites = 2\n");
    let fleet = Fleet::start_with_config_file(&limits);
    let mut requests = Vec::new();
    for number in 0..8 {
        let site = fleet.web.site(&format!("m{number}.example"));
        site.serve_otherwise(|request| page(&request.path).into());
        site.set_latency(Duration::from_millis(30));
        requests.extend((0..4).map(|page| request(&site.url(&format!("/{page}")), "c")));
    }
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    let visits = fleet.web.visits();
    assert_eq!(visits.pages().len(), 32);
    for one in &visits.0 {
        let beside = visits.0.iter().filter(|other| {
            other.started_at <= one.started_at
                && other.ended_at.is_none_or(|end| end > one.started_at)
        });
        assert!(beside.count() <= 2, "at {}{}", one.host, one.path);
    }
}

#[test]
fn an_application_keeps_to_its_limits_and_others_do_not_notice() {
    let limits = format!("[applications.{APP}]\npages_per_second = 10.0\nmax_pages = 25\n");
    let fleet = Fleet::start_with_config_file(&limits);
    let mut requests = Vec::new();
    for number in 0..10 {
        let site = fleet.web.site(&format!("m{number}.example"));
        site.serve_otherwise(|request| page(&request.path).into());
        requests.extend((0..6).map(|page| request(&site.url(&format!("/{page}")), "limited")));
    }
    fleet.feed(&requests);
    let log = fleet.web.log();
    let visits = log.wait_until("the limit is reached", |visits| visits.pages().len() >= 25);
    let pages = visits.pages().0;
    let took = pages[24].started_at - pages[0].started_at;
    assert!(
        took > Duration::from_millis(1_500),
        "25 pages at 10 a second: {took:?}"
    );
    let site = fleet.web.site("other.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let mut others: Vec<Value> = (0..20)
        .map(|page| request(&site.url(&format!("/{page}")), "free"))
        .collect();
    others
        .iter_mut()
        .for_each(|request| request["appid"] = json!("other"));
    fleet.feed(&others);
    fleet.wait_until_app_is_done("other", "free");
    let visits = fleet.web.visits().pages();
    assert_eq!(visits.len(), 25 + 20, "no more than its limit");
    assert_eq!(fleet.info("limited")["total_pending"], 35);
}
