//! Tests requests whose `spiderid` asks for a browser, in a fleet where only some supervisors have a browser.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::site::{Page, document, page, script};

use crate::fleet::{DELAY, Fleet, action, request, request_with, wait_for};

/// The settings of a supervisor in the lane `browser`. Chromium's sandbox is off, because it does not work for root.
const BROWSER: [(&str, &str); 2] = [("SUPERVISOR_LANE", "browser"), ("BROWSER_SANDBOX", "false")];

fn browser_request(url: &str, crawl_id: &str) -> Value {
    request_with(url, crawl_id, json!({"spiderid": "browser"}))
}

/// A page whose heading is written by its script.
fn page_with_script(title: &str) -> Page {
    let text = format!("document.body.innerHTML = '<h1>{title}</h1>'");
    let html = format!("<html><body><h1>without</h1><script>{text}</script></body></html>");
    document("text/html", html)
}

#[needs(chromium)]
#[test]
fn a_request_for_a_browser_goes_to_a_supervisor_that_has_one() {
    let mut fleet = Fleet::start();
    let (shown, plain) = (
        fleet.web.site("shown.example"),
        fleet.web.site("plain.example"),
    );
    shown.serve("/", page_with_script("with"));
    plain.serve("/", page_with_script("with"));
    fleet.feed(&[browser_request(&shown.url("/"), "shown")]);
    fleet.feed(&[request(&plain.url("/"), "plain")]);
    fleet.wait_until_done("plain");
    assert_eq!(fleet.pending_tasks("shown"), 1, "nobody can do it");
    assert!(shown.visits().is_empty());
    fleet.add_supervisor_with("two", &BROWSER);
    fleet.wait_until_done("shown");
    let pages = fleet.work.stored().pages();
    let of = |url: &str| {
        let page = &pages[url];
        let supervisor = page.worker.split('/').next().unwrap_or_default().to_owned();
        (page.fields["title"].clone(), supervisor)
    };
    assert_eq!(of(&shown.url("/")), (json!("with"), "two".to_owned()));
    assert_eq!(of(&plain.url("/")), (json!("without"), "one".to_owned()));
}

#[needs(chromium)]
#[test]
fn a_site_with_pages_for_both_keeps_its_distance() {
    let mut fleet = Fleet::start();
    fleet.add_supervisor_with("two", &BROWSER);
    let site = fleet.web.site("both.example");
    site.serve_otherwise(|_| page_with_script("with").into());
    let urls = |kind: &str| {
        (0..8)
            .map(|n| site.url(&format!("/{kind}/{n}")))
            .collect::<Vec<_>>()
    };
    let (plain, shown) = (urls("plain"), urls("shown"));
    for (plain, shown) in plain.iter().zip(&shown) {
        fleet.feed(&[request(plain, "plain"), browser_request(shown, "shown")]);
    }
    fleet.wait_until_done("plain");
    fleet.wait_until_done("shown");
    let pages = fleet.work.stored().pages();
    for (urls, title) in [(plain, "without"), (shown, "with")] {
        for url in urls {
            assert_eq!(pages[&url].fields["title"], title, "{url}");
        }
    }
    let visits = site.visits();
    visits.assert_polite(DELAY);
    assert_eq!(visits.pages().len(), 16);
}

#[needs(chromium)]
#[test]
fn a_stop_ends_the_requests_of_a_page() {
    let mut fleet = Fleet::start_dispatcher_only(&[("POLITENESS_DELAY", "0.3")]);
    fleet.add_supervisor_with("two", &BROWSER);
    let site = fleet.web.site("asking.example");
    let ask = "let n = 0; const ask = () => fetch('/data/' + n++).then(ask); ask()";
    site.serve(
        "/",
        document("text/html", format!("<script>{ask}</script>")),
    );
    site.serve_otherwise(|_| page("data").into());
    fleet.feed(&[browser_request(&site.url("/"), "asking")]);
    let log = fleet.web.log();
    log.wait_until("the page asks", |visits| visits.len() >= 5);
    let answer = fleet.client().ask(&action("stop", Some("asking")));
    let answered = Instant::now();
    assert_eq!(answer["spiderid"], "browser", "{answer}");
    // The next two requests to this site are of another crawl.
    let others = ["/other", "/another"];
    fleet.feed(&others.map(|path| browser_request(&site.url(path), "others")));
    fleet.wait_until_done("others");
    let visits = site.visits();
    let late = visits.0.iter().filter(|visit| visit.started_at > answered);
    let late = late.filter(|visit| !others.contains(&visit.path.as_str()));
    assert_eq!(late.count(), 0, "requests after the answer");
    assert_eq!(fleet.pending_tasks("asking"), 0);
    let pages = fleet.work.stored().pages();
    let stored = pages.get(&site.url("/")).map(|page| page.outcome.as_str());
    assert!(matches!(stored, None | Some("stopped")), "{stored:?}");
}

#[needs(chromium)]
#[test]
fn a_page_paused_while_the_browser_shows_it_is_shown_again() {
    let mut fleet = Fleet::start_dispatcher_only(&[("POLITENESS_DELAY", "0.2")]);
    fleet.add_supervisor_with("two", &BROWSER);
    let site = fleet.web.site("paused.example");
    let ask = "fetch('/data/1').then(() => fetch('/data/2')).then(() => fetch('/data/3'))
        .then(() => document.body.innerHTML = '<h1>whole</h1>')";
    site.serve(
        "/",
        document(
            "text/html",
            format!("<html><body><script>{ask}</script></body></html>"),
        ),
    );
    site.serve(
        "/data/2",
        script()
            .pause(Duration::from_millis(300))
            .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    );
    site.serve_otherwise(|_| page("data").into());
    fleet.feed(&[browser_request(&site.url("/"), "paused")]);
    let log = fleet.web.log();
    log.wait_until("the page asks", |visits| {
        !visits.for_path("/data/1").is_empty()
    });
    fleet.client().ask(&action("pause", Some("paused")));
    wait_for("it is given back", || {
        (fleet.pending_tasks("paused") == 1).then_some(())
    });
    fleet.client().ask(&action("resume", Some("paused")));
    fleet.wait_until_done("paused");
    let pages = fleet.work.stored().pages();
    let page = &pages[&site.url("/")];
    assert_eq!(
        (page.outcome.as_str(), &page.fields["title"]),
        ("ok", &json!("whole"))
    );
    site.visits().assert_polite(Duration::from_millis(200));
}
