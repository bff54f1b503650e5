//! Tests that an unreachable host never delays other hosts, whatever tasks are still queued for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::site::{Site, page, status};

use crate::fleet::{APP, DELAY, Fleet, action, epoch_seconds, request, request_with, wait_for};

/// The backoffs of a host whose robots.txt answers 503, in seconds. [`SHORT`] has two short ones. [`THEN_LONG`] has a
/// short and a long one, and the duration of the long one.
const SHORT: &str = "0.2,0.2";
const THEN_LONG: (&str, Duration) = ("0.2,3", Duration::from_secs(3));

fn start_fleet(settings: &[(&str, &str)]) -> Fleet {
    Fleet::start_with(&[&[("BACKOFF_ROBOTS", SHORT)], settings].concat())
}

/// Serves a host that answers 503 to every request.
fn serve_dead_host(fleet: &Fleet, name: &str) -> Site {
    let site = fleet.web.site(name);
    site.serve("/robots.txt", status(503));
    site.serve_otherwise(|_| status(503).into());
    site
}

/// Feeds pages of healthy hosts and waits until they are crawled. This takes about ten seconds, so the backoffs of the
/// dead host are over then.
fn crawl_good_hosts(fleet: &Fleet, domain: &str) {
    let mut requests = Vec::new();
    for number in 0..5 {
        let site = fleet.web.site(&format!("good-{number}{domain}"));
        site.serve_otherwise(|request| page(&request.path).into());
        let urls = (0..200).map(|page| site.url(&format!("/{page}")));
        requests.extend(urls.map(|url| request(&url, "good")));
    }
    fleet.feed(&requests);
    fleet.wait_until_done("good");
}

fn pause(fleet: &Fleet, crawl_id: &str) {
    let answer = fleet.client().ask(&action("pause", Some(crawl_id)));
    assert_eq!(answer["crawlid"], crawl_id, "{answer}");
}

fn resume(fleet: &Fleet, crawl_id: &str) {
    let answer = fleet.client().ask(&action("resume", Some(crawl_id)));
    assert_eq!(answer["crawlid"], crawl_id, "{answer}");
}

fn wait_until_unreachable(fleet: &Fleet, host: &str) {
    let client = fleet.client();
    let asked = json!({"action": "site", "site": host, "uuid": "u"});
    wait_for("the host is unreachable", || {
        let answer = client.ask(&asked);
        (answer["state"] == "unreachable").then_some(())
    });
}

/// Runs `act` while an operator blocks the host, so that none of its tasks is handed out.
fn run_while_blocked(fleet: &Fleet, host: &str, act: impl FnOnce()) {
    let client = fleet.client();
    let block = |until: Value| {
        let asked = json!({"action": "site", "site": host, "block_until": until});
        let answer = client.ask(&asked);
        assert_eq!(answer["site"], host, "{answer}");
    };
    block(json!(epoch_seconds() + 3_600));
    act();
    block(Value::Null);
}

/// Feeds a crawl with a page of the host, and pauses the crawl before the page is requested.
fn feed_paused(fleet: &Fleet, site: &Site) {
    run_while_blocked(fleet, site.host(), || {
        fleet.feed(&[request(&site.url("/P"), "paused")]);
        pause(fleet, "paused");
    });
}

fn assert_nothing_was_set_aside(fleet: &Fleet) {
    let logged = fleet.logged_lines("site_set_aside");
    assert!(logged.is_empty(), "{logged:?}");
}

#[test]
fn a_paused_crawl_at_a_dead_host_keeps_no_other_host_waiting() {
    for domain in [".example", ".github.io"] {
        // With this setting, all hosts of one hosting provider share a limit.
        let bounds = [("POLITENESS_ADDRESS_DELAY", "0.005")];
        let mut fleet = start_fleet(&bounds);
        let dead = serve_dead_host(&fleet, &format!("dead{domain}"));
        feed_paused(&fleet, &dead);
        fleet.feed(&[request(&dead.url("/Q"), "other")]);
        fleet.wait_until_done("other");
        fleet.feed(&[request(&dead.url("/N"), "newer")]);
        crawl_good_hosts(&fleet, domain);
        fleet.wait_until_done("newer");

        fleet.restart();
        resume(&fleet, "paused");
        fleet.wait_until_done("paused");
        assert_nothing_was_set_aside(&fleet);
        assert_eq!(dead.visits().pages().len(), 0);
    }
}

#[test]
fn a_newer_task_of_higher_priority_leaves_no_older_one_behind() {
    let fleet = start_fleet(&[]);
    let dead = serve_dead_host(&fleet, "dead.example");
    let old = |number: usize| {
        let url = dead.url(&format!("/{number}"));
        request_with(&url, "old", json!({"priority": 30}))
    };
    let old: Vec<Value> = (0..3_000).map(old).collect();
    fleet.feed(&old);
    wait_until_unreachable(&fleet, "dead.example");
    let urgent = json!({"priority": 60});
    fleet.feed(&[request_with(&dead.url("/urgent"), "urgent", urgent)]);
    assert!(fleet.pending_tasks("old") > 100, "some are still queued");
    crawl_good_hosts(&fleet, ".example");
    fleet.wait_until_done("old");
    fleet.wait_until_done("urgent");
    assert_nothing_was_set_aside(&fleet);
}

/// The crawls at the dead host are not paused. They are held back by a limit or their lane, or have expired.
#[test]
fn limited_laned_and_expired_crawls_at_a_dead_host_keep_no_other_host_waiting() {
    let fleet = Fleet::start_with_config_file(&format!(
        "[backoff]\nrobots = [{SHORT}]\n[applications.limited]\nmax_sites = 1\n"
    ));
    let dead = serve_dead_host(&fleet, "dead.example");
    let slow = fleet.web.site("slow.example");
    slow.serve_otherwise(|_| page("T").into());
    slow.set_latency(Duration::from_millis(300));
    let of = |app: &str, crawl_id: &str, url: &str, more: Value| {
        let mut asked = request_with(url, crawl_id, more);
        asked["appid"] = app.into();
        asked
    };
    let expires = json!({"expires": epoch_seconds() + 3});
    let lane = json!({"spiderid": "browser", "priority": 90});
    run_while_blocked(&fleet, "dead.example", || {
        fleet.feed(&[
            of(APP, "laned", &dead.url("/laned"), lane),
            of(APP, "expired", &dead.url("/expired"), expires),
            of("limited", "here", &dead.url("/limited"), json!({})),
        ]);
        // The application may crawl one site at a time, and this crawl occupies it.
        let elsewhere = (0..20).map(|number| {
            let url = slow.url(&format!("/{number}"));
            of("limited", "elsewhere", &url, json!({"priority": 90}))
        });
        fleet.feed(&elsewhere.collect::<Vec<_>>());
        let log = fleet.web.log();
        log.wait_until("the site is taken", |visits| {
            !visits.for_host(slow.host()).is_empty()
        });
    });
    fleet.feed(&[request(&dead.url("/Q"), "other")]);
    fleet.wait_until_done("other");
    let urgent = json!({"priority": 80});
    fleet.feed(&[request_with(&dead.url("/N"), "newer", urgent)]);
    crawl_good_hosts(&fleet, ".example");
    fleet.wait_until_done("newer");
    wait_for("the expired task has ended", || {
        (fleet.pending_tasks("expired") == 0).then_some(())
    });
    fleet.wait_until_app_is_done("limited", "elsewhere");
    fleet.wait_until_app_is_done("limited", "here");
    assert_eq!(fleet.pending_tasks("laned"), 1, "no browser is there");
    assert_nothing_was_set_aside(&fleet);
}

#[test]
fn a_new_task_at_a_dead_host_waits_for_the_last_backoff() {
    let (backoff, last) = THEN_LONG;
    let fleet = Fleet::start_with(&[("BACKOFF_ROBOTS", backoff)]);
    let dead = serve_dead_host(&fleet, "dead.example");
    fleet.feed(&[request(&dead.url("/Q"), "other")]);
    fleet.wait_until_done("other");
    let before = dead.visits().len();
    let fed = Instant::now();
    fleet.feed(&[request(&dead.url("/N"), "newer")]);
    let log = fleet.web.log();
    let visits = log.wait_until("the host is requested", |visits| {
        visits.for_host(dead.host()).len() > before
    });
    let visits = visits.for_host(dead.host());
    let waited = visits.0[before].started_at.saturating_duration_since(fed);
    assert!(waited >= last - DELAY, "requested after {waited:?}");
    fleet.wait_until_done("newer");
    let stored = fleet.work.stored().pages();
    assert_eq!(stored[&dead.url("/N")].outcome, "robots_unreachable");
}
