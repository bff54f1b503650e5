//! Tests pages that are empty until their scripts have run, in fleets with and without supervisors that have a browser.

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::site::{Site, document};

use crate::fleet::{DELAY, Fleet, request};

/// The settings of a supervisor in the lane `browser`. Chromium's sandbox is off, because it does not work for root.
const BROWSER: [(&str, &str); 2] = [("SUPERVISOR_LANE", "browser"), ("BROWSER_SANDBOX", "false")];

fn serve_application(site: &Site, pages: usize) {
    let shell = "<body><div id=root></div><script src=/app.js></script></body>";
    let app = "document.getElementById('root').innerHTML = '<h1>' + location.pathname + '</h1>'";
    site.serve("/app.js", document("text/javascript", app));
    for n in 0..pages {
        site.serve(&format!("/{n}"), document("text/html", shell));
    }
}

#[needs(chromium)]
#[test]
fn a_page_that_needs_a_browser_goes_to_a_supervisor_that_has_one() {
    let mut fleet = Fleet::start();
    fleet.add_supervisor_with("two", &BROWSER);
    let (made, plain) = (
        fleet.web.site("made.example"),
        fleet.web.site("plain.example"),
    );
    serve_application(&made, 5);
    for n in 0..5 {
        let text = "<body><h1>plain</h1><script src=/app.js></script></body>";
        plain.serve(&format!("/{n}"), document("text/html", text));
    }
    let urls = |site: &Site| {
        (0..5)
            .map(|n| site.url(&format!("/{n}")))
            .collect::<Vec<_>>()
    };
    for (made, plain) in urls(&made).iter().zip(urls(&plain)) {
        fleet.feed(&[request(made, "both"), request(&plain, "both")]);
    }
    fleet.wait_until_done("both");
    let pages = fleet.work.stored().pages();
    for n in 0..5 {
        let page = &pages[&made.url(&format!("/{n}"))];
        assert_eq!(page.fields["title"], format!("/{n}"));
        assert!(page.worker.starts_with("two/"), "{}", page.worker);
        assert_eq!(pages[&plain.url(&format!("/{n}"))].fields["title"], "plain");
    }
    assert_eq!(pages.len(), 10);
    assert!(plain.visits().for_path("/app.js").is_empty());
    made.visits().assert_polite(DELAY);
    let info = fleet.info("both");
    assert_eq!(info["total_pending"], 0, "{info}");
    let status = fleet.run_json(&["status"]);
    assert_eq!(
        status["ended"]["ok"], 10,
        "each page has ended once: {status}"
    );
    let site = fleet.run_json(&["site", "made.example"]);
    let known = &site["scripts"][0];
    assert_eq!(
        (&known["finding"], &known["mapping"]),
        (&json!("filled"), &json!("profile")),
        "{site}"
    );
    assert!(
        known["seen"]
            .as_str()
            .unwrap()
            .contains("scripts fill title"),
        "{site}"
    );
}

#[test]
fn without_a_browser_in_the_fleet_a_page_is_kept_as_it_was_sent() {
    let fleet = Fleet::start();
    let made = fleet.web.site("made.example");
    serve_application(&made, 3);
    let urls: Vec<String> = (0..3).map(|n| made.url(&format!("/{n}"))).collect();
    fleet.feed(
        &urls
            .iter()
            .map(|url| request(url, "made"))
            .collect::<Vec<_>>(),
    );
    fleet.wait_until_done("made");
    let pages = fleet.work.stored().pages();
    for url in &urls {
        assert_eq!((&*pages[url].outcome, pages[url].fields.len()), ("ok", 0));
    }
    assert_eq!(made.visits().pages().len(), 3);
    let site = fleet.run_json(&["site", "made.example"]);
    assert_eq!(site["scripts"][0]["finding"], "wanted", "{site}");
    assert_eq!(site["scripts"][0]["pages"], 3, "{site}");
    let info = fleet.info("made");
    let reported = &info["scripts"];
    assert_eq!(reported["needs_browser"]["sites"], 1, "{info}");
    let text = reported["text"].as_str().expect("a sentence");
    for part in [
        "1 site needs a browser, made.example (an empty shell: ",
        "no supervisor of lane browser is connected",
        "`webfill retry testapp made --outcome ok --site made.example`",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let reported = fleet.run(&["info", "testapp", "made"]).expect_code(0);
    assert!(
        reported.stdout.contains("1 site needs a browser"),
        "{}",
        reported.stdout
    );
}

#[needs(chromium)]
#[test]
fn pages_wait_for_no_browser_that_has_left() {
    let mut fleet = Fleet::start();
    fleet.add_supervisor_with("two", &BROWSER);
    let made = fleet.web.site("made.example");
    serve_application(&made, 4);
    let url = |n: usize| made.url(&format!("/{n}"));
    fleet.feed(&[request(&url(0), "first")]);
    fleet.wait_until_done("first");
    assert_eq!(fleet.work.stored().pages()[&url(0)].fields["title"], "/0");
    fleet.drain_supervisor("two");
    let later: Vec<_> = (1..4).map(|n| request(&url(n), "later")).collect();
    fleet.feed(&later);
    fleet.wait_until_done("later");
    let pages = fleet.work.stored().pages();
    for n in 1..4 {
        let page = &pages[&url(n)];
        assert_eq!((&*page.outcome, page.fields.len()), ("ok", 0), "{n}");
    }
    made.visits().assert_polite(DELAY);
}

/// The number of requests for the script of a site.
fn count_script_requests(site: &Site) -> usize {
    site.visits().for_path("/app.js").len()
}

#[needs(chromium)]
#[test]
fn a_lane_set_for_a_site_applies_is_shown_and_can_be_removed() {
    let mut fleet = Fleet::start();
    fleet.add_supervisor_with("two", &BROWSER);
    let made = fleet.web.site("made.example");
    serve_application(&made, 6);
    let crawl = |crawl: &str, n: usize| {
        let url = made.url(&format!("/{n}"));
        fleet.feed(&[request(&url, crawl)]);
        fleet.wait_until_done(crawl);
        fleet.work.stored().pages()[&url]
            .fields
            .get("title")
            .is_some()
    };
    let set =
        |lane: &str| fleet.run_json(&["site", "made.example", "--lane", lane])["lane"].clone();
    assert_eq!(set("http"), "http");
    assert!(!crawl("http", 0), "none of its pages is rendered");
    assert_eq!(count_script_requests(&made), 0);
    assert_eq!(set("browser"), "browser");
    assert!(crawl("browser", 1), "each of its pages is");
    assert_eq!(set("auto"), "auto");
    assert!(crawl("auto", 2), "an unread one is");
    assert_eq!(set("http"), "http");
    assert!(!crawl("again", 3), "a rule goes before what was found out");
    fleet
        .run(&["site", "made.example", "--forget"])
        .expect_code(0);
    let site = fleet.run_json(&["site", "made.example"]);
    assert_eq!(site["lane"], "auto", "{site}");
    assert!(
        crawl("forgotten", 4),
        "no worker keeps a rule that was dropped"
    );
    made.visits().assert_polite(DELAY);
}

#[needs(chromium)]
#[test]
fn a_lane_set_for_a_site_outlasts_a_restart_and_an_invalid_one_is_refused() {
    let mut fleet = Fleet::start();
    fleet.run_json(&["site", "a.example", "--lane", "browser"]);
    fleet.restart();
    assert_eq!(fleet.run_json(&["site", "a.example"])["lane"], "browser");
    fleet
        .run(&["site", "a.example", "--lane", "tor"])
        .expect_code(2);
}

#[needs(chromium)]
#[test]
fn a_restart_of_the_fleet_renders_no_new_sample() {
    let mut fleet = Fleet::start_dispatcher_only(&[]);
    fleet.add_supervisor_with("two", &BROWSER);
    let empty = fleet.web.site("empty.example");
    // The script runs, but adds nothing to the page.
    let shell = "<body><div id=root></div><script src=/app.js></script></body>";
    empty.serve_otherwise(move |request| match request.path.as_str() {
        "/app.js" => document("text/javascript", "1")
            .header("cache-control", "no-store")
            .into(),
        _ => document("text/html", shell).into(),
    });
    let feed = |fleet: &Fleet, crawl: &str, pages: std::ops::Range<usize>| {
        let requests = pages.map(|n| request(&empty.url(&format!("/{n}")), crawl));
        fleet.feed(&requests.collect::<Vec<_>>());
        fleet.wait_until_done(crawl);
    };
    feed(&fleet, "first", 0..1);
    assert_eq!(count_script_requests(&empty), 1);
    let known = fleet.run_json(&["site", "empty.example"])["scripts"][0].clone();
    assert_eq!(
        (&known["finding"], &known["tries"]),
        (&json!("tried"), &json!(1))
    );
    fleet.kill_all();
    fleet.start_dispatcher();
    fleet.add_supervisor_with("three", &BROWSER);
    feed(&fleet, "second", 1..8);
    assert_eq!(
        count_script_requests(&empty),
        3,
        "the sample of three continues where it was"
    );
    fleet.drain_supervisor("three");
    fleet.add_supervisor_with("four", &BROWSER);
    feed(&fleet, "third", 8..12);
    assert_eq!(count_script_requests(&empty), 3, "it is known");
    let known = fleet.run_json(&["site", "empty.example"])["scripts"][0].clone();
    assert_eq!(
        (&known["finding"], &known["tries"]),
        (&json!("empty"), &json!(3))
    );
    empty.visits().assert_polite(DELAY);
}
