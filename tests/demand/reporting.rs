//! Tests the reports of a fleet where crawls cannot continue: `status`, `info`, `why`.

use serde_json::{Value, json};
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_tests::site::{page, status};

use crate::clients::get;
use crate::fleet::{APP, Fleet, request, request_with, wait_for};

/// A fleet with two supervisors and several crawls. Each crawl waits for another reason.
fn fleet_that_waits() -> Fleet {
    let mut fleet = Fleet::start_with(&[("BACKOFF_BLOCKED", "10800")]);
    fleet.add_supervisor("two");
    let site = |host: &str| {
        let site = fleet.web.site(host);
        site.serve_otherwise(|request| page(&request.path).into());
        site
    };
    let refuses = site("blocks.example");
    refuses.serve_otherwise(|_| status(403).into());
    for host in ["limited.example", "halted.example", "scripts.example"] {
        site(host);
    }
    let slow = site("slow.example");
    slow.serve_robots("User-agent: *\nCrawl-delay: 900\n");
    let urls = |host: &str, numbers: std::ops::Range<u32>| -> Vec<String> {
        numbers
            .map(|number| format!("http://{host}/{number}"))
            .collect()
    };
    let feed = |host: &str, numbers: std::ops::Range<u32>, crawl: &str| {
        let requests = urls(host, numbers).into_iter();
        let requests: Vec<Value> = requests.map(|url| request(&url, crawl)).collect();
        fleet.feed(&requests);
    };
    let order = |args: &[&str]| {
        fleet.run(args).expect_code(0);
    };
    feed("slow.example", 0..4, "slow");
    feed("blocks.example", 0..9, "blocked");
    order(&["site", "limited.example", "--limit", "0"]);
    feed("limited.example", 0..4, "limited");
    let scripts = urls("scripts.example", 0..4).into_iter();
    let browser = json!({"spiderid": "browser"});
    let scripts = scripts.map(|url| request_with(&url, "scripts", browser.clone()));
    fleet.feed(&scripts.collect::<Vec<_>>());
    order(&["site", "halted.example", "--block-until", "2h"]);
    feed("halted.example", 0..4, "halted");
    order(&["pause", APP, "halted"]);
    order(&["site", "halted.example", "--block-until", "none"]);
    fleet
}

/// The entry about a crawl in the list of unfinished crawls in `status`.
fn unfinished_crawl<'a>(status: &'a Value, crawl: &str) -> Option<&'a Value> {
    let crawls = status["unfinished"].as_array().expect("a list");
    crawls.iter().find(|reported| reported["crawlid"] == crawl)
}

/// The entry of a crawl's report for the reason `what`, if the crawl waits for that.
fn find_wait(reported: &Value, what: &str) -> Option<Value> {
    let waits = reported["waits"].as_array()?;
    waits.iter().find(|wait| wait["for"] == what).cloned()
}

/// Waits until `status` reports that a crawl waits for the reason `what`. Returns the entry.
fn wait_until_waiting(fleet: &Fleet, crawl: &str, what: &str) -> Value {
    wait_for(&format!("{crawl} waits for {what}"), || {
        let status = fleet.run_json(&["status"]);
        find_wait(unfinished_crawl(&status, crawl)?, what)
    })
}

#[test]
fn status_shows_the_machines_and_what_each_crawl_waits_for() {
    let fleet = fleet_that_waits();
    let rest = wait_until_waiting(&fleet, "blocked", "backoff");
    assert_eq!(
        (&rest["sites"], &rest["reason"]),
        (&json!(1), &json!("blocked"))
    );
    assert_eq!(rest["example"], "blocks.example");
    let text = rest["text"].as_str().expect("a sentence");
    assert!(
        text.starts_with("1 site has been backing off since "),
        "{text}"
    );
    assert!(
        text.ends_with("because it blocks (blocks.example), about 3 h left"),
        "{text}"
    );
    let delay = wait_until_waiting(&fleet, "slow", "delay");
    let text = delay["text"].as_str().expect("a sentence");
    assert!(
        text.starts_with("1 site waits for its delay (slow.example), 15 min"),
        "{text}"
    );
    wait_until_waiting(&fleet, "limited", "limit");
    wait_until_waiting(&fleet, "scripts", "lane");
    wait_until_waiting(&fleet, "halted", "paused");

    let reported = wait_for("both have reported", || {
        let status = fleet.run_json(&["status"]);
        let supervisors = status["supervisors"].as_array()?.clone();
        let are_ready = |one: &Value| one["workers_ready"] == 1;
        let is_asked = status["store"]["up"] == true && status["cache"]["up"] == true;
        (supervisors.len() == 2 && supervisors.iter().all(are_ready) && is_asked).then_some(status)
    });
    for supervisor in reported["supervisors"].as_array().expect("a list") {
        assert_eq!(supervisor["state"], "working", "{supervisor}");
        assert_eq!(supervisor["webfill"], reported["webfill"], "{supervisor}");
        assert_eq!(supervisor["wire_version"], 1, "{supervisor}");
        let address = supervisor["address"].as_str().unwrap_or_default();
        assert!(address.starts_with("127."), "{supervisor}");
        for memory in ["memory_bytes", "workers_memory_bytes"] {
            let bytes = supervisor[memory].as_u64().expect("a number");
            assert!((1 << 20..1 << 32).contains(&bytes), "{supervisor}");
        }
        assert!(supervisor["cores"].as_u64() > Some(0), "{supervisor}");
        assert_eq!(supervisor["worker_deaths"], 0, "{supervisor}");
    }
    assert!(
        reported["store"]["latency_ms"].as_f64() > Some(0.0),
        "{reported}"
    );
    // Nobody knows when a person will act on these crawls, so their end is not estimated.
    for crawl in ["limited", "scripts", "halted"] {
        let reported = unfinished_crawl(&reported, crawl).expect("it is listed");
        assert_eq!(reported["estimated_end"], Value::Null, "{reported}");
        assert_eq!(reported["not_before"], Value::Null, "{reported}");
    }
    // Two more pages wait for the delay after the next page, so the crawl cannot end earlier than this.
    let slow = unfinished_crawl(&reported, "slow").expect("it is listed");
    let least_s =
        slow["not_before"].as_f64().expect("a time") - reported["server_time"].as_f64().unwrap();
    assert!((2_600.0..2_705.0).contains(&least_s), "{slow}");

    let reported = fleet.run(&["status"]).expect_code(0).stdout;
    for sentence in [
        "because it blocks (blocks.example), about 3 h left",
        "1 site waits for its delay (slow.example), 15 min left",
        "it is paused: resume it with `webfill resume testapp halted`",
        "it waits for a supervisor of lane browser: none is connected",
        "1 site has reached its limit of pages (limited.example)",
        "one   working",
        "two   working",
        "1 of 1",
    ] {
        assert!(
            reported.contains(sentence),
            "`{sentence}` is not in:\n{reported}"
        );
    }
    let reported = fleet.run(&["info", APP, "slow"]).expect_code(0).stdout;
    assert!(
        reported.contains("1 site waits for its delay (slow.example)"),
        "{reported}"
    );
    assert!(
        reported.contains("earliest finish of the pending tasks"),
        "{reported}"
    );
}

#[test]
fn status_shows_the_rate_of_a_crawl_and_its_estimated_finish() {
    const DELAY_S: f64 = 0.25;
    let fleet = Fleet::start_with(&[("POLITENESS_DELAY", "0.25")]);
    let site = fleet.web.site("long.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let urls = (0..120).map(|number| site.url(&format!("/{number}")));
    fleet.feed(&urls.map(|url| request(&url, "long")).collect::<Vec<_>>());
    let status = wait_for("an end is foreseen", || {
        let status = fleet.run_json(&["status"]);
        let is_foreseen = unfinished_crawl(&status, "long")?["estimated_end"].is_number();
        is_foreseen.then_some(status)
    });
    let reported = unfinished_crawl(&status, "long").expect("it is listed");
    let number = |value: &Value| value.as_f64().expect("a number");
    let pace = number(&reported["done_per_second"]);
    assert!(0.0 < pace && pace <= 1.05 / DELAY_S, "{reported}");
    let (left, now) = (number(&reported["pending"]), number(&status["server_time"]));
    let lasts_s = number(&reported["estimated_end"]) - now;
    assert!(
        lasts_s >= (left - 2.0) * DELAY_S - 1.0,
        "{reported} at {now}"
    );
    assert!(lasts_s <= left / pace + 3.0, "{reported} at {now}");
    let reported = fleet.run(&["status"]).expect_code(0).stdout;
    let sentence = " tasks a second: estimated finish of the pending tasks: ";
    assert!(
        reported.contains(sentence),
        "`{sentence}` is not in:\n{reported}"
    );
}

#[needs(mongod)]
#[test]
fn status_says_that_pages_wait_for_a_store_that_is_away() {
    let mongod = Mongod::start();
    let mut fleet = Fleet::unstarted_fleet(&[]);
    fleet.store = Some(mongod.uri("webfill"));
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|request| page(&request.path).into());
    mongod.pause();
    let urls = (0..5).map(|number| site.url(&format!("/{number}")));
    fleet.feed(&urls.map(|url| request(&url, "c")).collect::<Vec<_>>());
    let wait = wait_until_waiting(&fleet, "c", "store");
    assert_says(&wait, &["pages wait for the store: "]);
    let status = fleet.run_json(&["status"]);
    assert_eq!(status["store"]["up"], false, "{status}");
    let output = fleet.run(&["status"]).expect_code(0).stdout;
    assert!(output.contains("pages wait for the store: "), "{output}");
    mongod.resume();
    fleet.wait_until_done("c");
}

/// The report of `webfill why` about a URL, which only one crawl has.
fn report_why(fleet: &Fleet, url: &str) -> Value {
    let answer = fleet.run_json(&["why", url]);
    let crawls = answer["crawls"].as_array().expect("a list");
    assert_eq!(crawls.len(), 1, "{answer}");
    crawls[0].clone()
}

#[track_caller]
fn assert_says(reported: &Value, parts: &[&str]) {
    let text = reported["text"].as_str().expect("a sentence");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn why_shows_where_a_url_is_and_what_it_waits_for() {
    let fleet = fleet_that_waits();
    wait_until_waiting(&fleet, "blocked", "backoff");
    wait_until_waiting(&fleet, "slow", "delay");
    let first = report_why(&fleet, "http://slow.example/0");
    assert_eq!(
        (&first["state"], &first["outcome"]),
        (&json!("ended"), &json!("ok")),
        "{first}"
    );
    assert_says(
        &first,
        &["it ended with `ok` (status 200) at ", "after 1 delivery"],
    );
    // The URL is written as people type it, and not in its canonical form.
    let last = report_why(&fleet, "HTTP://slow.example:80/3#top");
    assert_eq!(
        (&last["state"], &last["waits_for"]),
        (&json!("queued"), &json!("delay")),
        "{last}"
    );
    assert_eq!(last["ahead"], json!({"own": 2, "others": 0}));
    assert_says(
        &last,
        &[
            "its site slow.example waits for its delay of 15 min, 15 min left",
            "2 others of its crawl go before it there",
        ],
    );
    assert_says(
        &report_why(&fleet, "http://blocks.example/2"),
        &[
            "its site blocks.example has been backing off since ",
            "because it blocks, about 3 h left",
        ],
    );
    assert_says(
        &report_why(&fleet, "http://limited.example/0"),
        &["limited.example has reached its limit"],
    );
    let scripts = report_why(&fleet, "http://scripts.example/0");
    assert_eq!(scripts["waits_for"], "lane", "{scripts}");
    assert_says(
        &scripts,
        &["its crawl waits for a supervisor of lane browser"],
    );
    assert_says(
        &report_why(&fleet, "http://halted.example/0"),
        &["its crawl is paused"],
    );

    // The crawl does not know these URLs, so `why` says whether it would accept them.
    let of_crawl = |url: &str, crawl: &str| {
        let answer = fleet.run_json(&["why", url, "--app", APP, "--crawl", crawl]);
        answer["crawls"][0].clone()
    };
    let unheard = of_crawl("http://elsewhere.example/", "slow");
    assert_eq!(
        (&unheard["state"], &unheard["reason"]),
        (&json!("unknown"), &Value::Null)
    );
    assert_says(&unheard, &["not known", "it is in scope"]);
    let narrow = json!({"allowed_domains": ["slow.example"]});
    fleet.feed(&[request_with("http://slow.example/0", "slow", narrow)]);
    let refused = of_crawl("http://elsewhere.example/", "slow");
    assert_eq!(refused["reason"], "out_of_domain", "{refused}");
    assert_says(&refused, &["out of scope", "outside the allowed domains"]);

    // After the crawl was stopped, `why` gives another reason.
    fleet.run(&["stop", APP, "limited"]).expect_code(0);
    assert_says(
        &report_why(&fleet, "http://limited.example/0"),
        &[
            "it ended with `stopped`",
            "because its crawl was stopped",
            "without being handed out",
        ],
    );
    let output = fleet
        .run(&["why", "http://limited.example/0"])
        .expect_code(0)
        .stdout;
    assert!(
        output.starts_with("testapp/limited: it ended with `stopped`"),
        "{output}"
    );
    let (status, output) = get(&fleet, "/why?url=http://limited.example/0");
    assert_eq!(
        (status, &output["crawls"][0]["outcome"]),
        (200, &json!("stopped")),
        "{output}"
    );
    let wrong = fleet.run(&["why", "no URL"]).expect_code(1);
    assert!(wrong.stderr.contains("$.url"), "{}", wrong.stderr);
}

#[test]
fn why_shows_who_holds_a_url() {
    let mut fleet = Fleet::start();
    fleet.add_supervisor("two");
    let site = fleet.web.site("a.example");
    site.serve("/", page("T"));
    site.set_latency(std::time::Duration::from_secs(20));
    fleet.feed(&[request("http://a.example/", "c")]);
    let leased = wait_for("it is leased", || {
        Some(report_why(&fleet, "http://a.example/"))
            .filter(|reported| reported["state"] == "leased")
    });
    let supervisor = leased["supervisor"].as_str().expect("a name");
    assert!(["one", "two"].contains(&supervisor), "{leased}");
    assert_says(
        &leased,
        &[
            &format!("it is leased to {supervisor} since "),
            "by its 1st delivery",
        ],
    );
    let status = fleet.run_json(&["status"]);
    let reported = unfinished_crawl(&status, "c").expect("it is listed");
    assert_eq!(
        reported["oldest_lease"]["url"], "http://a.example/",
        "{reported}"
    );
    assert_eq!(
        reported["oldest_lease"]["supervisor"], supervisor,
        "{reported}"
    );
}
