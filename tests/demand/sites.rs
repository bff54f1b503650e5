//! Tests settings of one site that are changed while the fleet runs. They apply on all machines, and also after
//! restarts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::site::page;

use crate::fleet::{Fleet, request, wait_for};

/// Serves `count` pages of each host. Returns requests for all of them.
fn serve_pages(fleet: &Fleet, hosts: &[&str], count: usize, crawl_id: &str) -> Vec<Value> {
    let mut requests = Vec::new();
    for host in hosts {
        let site = fleet.web.site(host);
        site.serve_otherwise(|request| page(&request.path).into());
        requests.extend((0..count).map(|page| request(&site.url(&format!("/{page}")), crawl_id)));
    }
    requests
}

/// A fleet with two supervisors, each crawling one site.
fn start_busy_fleet() -> Fleet {
    let mut fleet = Fleet::start();
    fleet.add_supervisor("two");
    let requests = serve_pages(&fleet, &["a.example", "b.example"], 400, "c");
    fleet.feed(&requests);
    fleet.web.log().wait_until("both are under way", |visits| {
        let of = |host| visits.pages().for_host(host).len();
        of("a.example") > 3 && of("b.example") > 3
    });
    fleet
}

/// The number of requests to a site that started after `moment`.
fn count_requests_after(fleet: &Fleet, host: &str, moment: Instant) -> usize {
    let visits = fleet.web.visits().for_host(host);
    visits
        .0
        .iter()
        .filter(|visit| visit.started_at > moment)
        .count()
}

#[test]
fn a_blocked_site_is_left_alone_on_all_machines_within_a_second() {
    let fleet = start_busy_fleet();
    for host in ["a.example", "b.example"] {
        let asked = Instant::now();
        fleet
            .run(&["site", host, "--block-until", "1h"])
            .expect_code(0);
        eprintln!("answered after {:?}", asked.elapsed());
        let answered = Instant::now();
        // Fetching all pages of another site takes some time. Meanwhile, the blocked site must get no request.
        let other = format!("after-{host}");
        fleet.feed(&serve_pages(&fleet, &[&other], 20, &other));
        fleet.wait_until_done(&other);
        assert_eq!(count_requests_after(&fleet, host, answered), 0, "{host}");
    }
    fleet
        .run(&["site", "a.example", "--block-until", "none"])
        .expect_code(0);
    let so_far = fleet.web.visits().for_host("a.example").len();
    fleet.web.log().wait_until("it continues", |visits| {
        visits.for_host("a.example").len() > so_far + 3
    });
}

#[test]
fn a_delay_takes_effect_on_all_machines_within_a_second() {
    let fleet = start_busy_fleet();
    for host in ["a.example", "b.example"] {
        fleet.run(&["site", host, "--delay", "0.8"]).expect_code(0);
        let answered = Instant::now();
        fleet
            .web
            .log()
            .wait_until("three more are fetched", |visits| {
                let visits = visits.for_host(host);
                visits
                    .0
                    .iter()
                    .filter(|visit| visit.started_at > answered)
                    .count()
                    >= 3
            });
        let visits = fleet.web.visits().for_host(host).pages();
        let late = visits.0.iter().filter(|visit| visit.started_at > answered);
        let late: Vec<Instant> = late.map(|visit| visit.started_at).collect();
        for pair in late.windows(2) {
            let gap = pair[1] - pair[0];
            assert!(gap >= Duration::from_millis(795), "{host}: {gap:?}");
        }
        fleet.run(&["site", host, "--delay", "none"]).expect_code(0);
        let so_far = fleet.web.visits().for_host(host).len();
        // A busy machine makes some gaps longer, but none shorter.
        fleet.web.log().wait_until("it is quick again", |visits| {
            let gaps = visits.for_host(host).gaps();
            let gaps = gaps.iter().skip(so_far);
            gaps.filter(|gap| **gap < Duration::from_millis(700))
                .count()
                > 3
        });
    }
}

#[test]
fn a_delay_set_by_hand_does_not_undercut_robots_txt() {
    let fleet = Fleet::start();
    let site = fleet.web.site("r.example");
    site.serve_robots("User-agent: *\nCrawl-delay: 0.5\n");
    let requests = serve_pages(&fleet, &["r.example"], 4, "c");
    fleet
        .run(&["site", "r.example", "--delay", "0.01"])
        .expect_code(0);
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    fleet.web.visits().assert_polite(Duration::from_millis(500));
}

#[test]
fn a_limit_is_so_many_further_pages_over_all_crawls() {
    let fleet = Fleet::start();
    fleet.feed(&serve_pages(&fleet, &["l.example"], 3, "before"));
    fleet.wait_until_done("before");
    fleet
        .run(&["site", "l.example", "--limit", "5"])
        .expect_code(0);
    fleet.feed(&serve_pages(&fleet, &["l.example"], 20, "c"));
    fleet.feed(&serve_pages(&fleet, &["l.example"], 20, "d"));
    let log = fleet.web.log();
    log.wait_until("the limit is used up", |visits| visits.pages().len() >= 8);
    fleet.feed(&serve_pages(&fleet, &["other.example"], 10, "other"));
    fleet.wait_until_done("other");
    assert_eq!(fleet.web.visits().pages().for_host("l.example").len(), 8);
    let pending = |crawl| {
        fleet.info(crawl)["total_pending"]
            .as_u64()
            .expect("a number")
    };
    wait_for("the rest is queued", || {
        (pending("c") + pending("d") == 35).then_some(())
    });
    // All reports about the limit contain the limit, the number of pages fetched under it, and the command that raises
    // it.
    let limit = "5 of 5 pages (--limit): `webfill site l.example --limit N` allows N further pages";
    let reported = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let info = fleet.info("c");
    let waits = info["waits"].as_array().expect("a list").iter();
    let waits: Vec<String> = waits.map(|wait| reported(&wait["text"])).collect();
    let why = fleet.run_json(&["why", "http://l.example/19", "--crawl", "c"]);
    let site = fleet.run_json(&["site", "l.example"]);
    for (place, text) in [
        ("waits", waits.join("; ")),
        ("waiting_for", reported(&info["waiting_for"])),
        ("why", reported(&why["crawls"][0]["text"])),
        ("site", reported(&site["limits"][0]["text"])),
    ] {
        assert!(text.contains(limit), "{place}: {text:?}");
    }
    assert_eq!(site["limit"], 0, "what is left: {site}");
    fleet
        .run(&["site", "l.example", "--limit", "none"])
        .expect_code(0);
    for crawl in ["c", "d"] {
        fleet.wait_until_done(crawl);
    }
    assert_eq!(fleet.web.visits().pages().for_host("l.example").len(), 43);
}

#[test]
fn settings_are_shown_kept_over_a_restart_and_forgotten() {
    let mut fleet = Fleet::start();
    let set = [
        "site",
        "k.example",
        "--delay",
        "0.3",
        "--limit",
        "2",
        "--block-until",
        "2000000000",
    ];
    fleet.run_json(&set);
    fleet.restart();
    let held = fleet.run_json(&["site", "k.example"]);
    assert_eq!(
        (&held["site"], &held["limit"]),
        (&json!("k.example"), &json!(2))
    );
    let number = |key: &str| held[key].as_f64();
    assert_eq!(number("delay"), Some(0.3), "{held}");
    assert_eq!(number("block_until"), Some(2_000_000_000.0), "{held}");
    let requests = serve_pages(&fleet, &["k.example"], 4, "c");
    fleet.feed(&requests);
    fleet.feed(&serve_pages(&fleet, &["other.example"], 10, "other"));
    fleet.wait_until_done("other");
    assert_eq!(
        fleet.web.visits().for_host("k.example").len(),
        0,
        "it is blocked"
    );
    fleet
        .run(&["site", "k.example", "--block-until", "none"])
        .expect_code(0);
    let log = fleet.web.log();
    log.wait_until("two are allowed", |visits| {
        visits.for_host("k.example").pages().len() == 2
    });
    fleet.run(&["site", "k.example", "--forget"]).expect_code(0);
    fleet.wait_until_done("c");
    let held = fleet.run_json(&["site", "k.example"]);
    for key in ["delay", "limit", "block_until"] {
        assert!(held.get(key).is_none_or(Value::is_null), "{key}: {held}");
    }
}

#[test]
fn an_invalid_site_is_refused_and_the_right_one_named() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let run = fleet.run(&["site", "www.s.example", "--delay", "7"]);
    let sentence = run.expect_code(1);
    assert!(sentence.one_sentence().contains("`s.example`"));
    fleet.run(&["site", "no site", "--forget"]).expect_code(1);
    for wrong in [
        ["--delay", "-1"],
        ["--delay", "soon"],
        ["--limit", "x"],
        ["--block-until", "y"],
    ] {
        let run = fleet.command(&["site", "s.example"]).args(wrong);
        run.finish().expect_code(2);
    }
}
