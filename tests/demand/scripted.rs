//! Pages that say nothing without their scripts, in fleets where some supervisors have a browser, and in fleets where
//! none has.

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::site::{Site, document};

use crate::fleet::{DELAY, Fleet, request};

/// A supervisor in the lane `browser`. The tests run as root, where Chromium's sandbox does not work.
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
    assert!(plain.visits().of_path("/app.js").is_empty());
    made.visits().assert_polite(DELAY);
    let info = fleet.info("both");
    assert_eq!(info["total_pending"], 0, "{info}");
    let status = fleet.json(&["status"]);
    assert_eq!(
        status["ended"]["ok"], 10,
        "each page has ended once: {status}"
    );
    let site = fleet.json(&["site", "made.example"]);
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
fn without_a_browser_in_the_fleet_a_page_is_kept_as_it_came() {
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
    let site = fleet.json(&["site", "made.example"]);
    assert_eq!(site["scripts"][0]["finding"], "wanted", "{site}");
    assert_eq!(site["scripts"][0]["pages"], 3, "{site}");
    let info = fleet.info("made");
    let told = &info["scripts"];
    assert_eq!(told["needs_browser"]["sites"], 1, "{info}");
    let text = told["text"].as_str().expect("a sentence");
    for part in [
        "1 site needs a browser, made.example (an empty shell: ",
        "no supervisor of lane browser is connected",
        "`webfill retry testapp made --outcome ok --site made.example`",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let told = fleet.run(&["info", "testapp", "made"]).expect(0);
    assert!(
        told.stdout.contains("1 site needs a browser"),
        "{}",
        told.stdout
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
