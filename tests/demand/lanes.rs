//! Tests crawls that require a browser, in a fleet without one.

use serde_json::{Value, json};
use webfill_tests::site::page;

use crate::fleet::{APP, Fleet, request, request_with};

const AWAITED: &str = "a supervisor of lane browser";

fn browser_request(url: &str) -> Value {
    request_with(url, "scripts", json!({"spiderid": "browser"}))
}

#[test]
fn a_crawl_that_needs_a_browser_waits_for_one_and_delays_no_others() {
    let fleet = Fleet::start();
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let urls = |prefix: &str| -> Vec<String> {
        let url = |number| site.url(&format!("/{prefix}/{number}"));
        (0..5).map(url).collect()
    };
    let of_scripts = urls("scripts");
    fleet.feed(
        &of_scripts
            .iter()
            .map(|url| browser_request(url))
            .collect::<Vec<_>>(),
    );
    let plain = urls("plain");
    let plain = plain.iter().map(|url| request(url, "plain"));
    fleet.feed(&plain.collect::<Vec<_>>());

    fleet.wait_until_done("plain");
    let visits = fleet.web.visits().pages();
    assert_eq!(visits.len(), 5);
    let paths = visits.0.iter().map(|visit| visit.path.as_str());
    let foreign: Vec<&str> = paths.filter(|path| !path.starts_with("/plain")).collect();
    assert!(foreign.is_empty(), "nobody could fetch {foreign:?}");

    let info = fleet.info("scripts");
    assert_eq!(
        (&info["state"], &info["total_pending"], &info["spiderid"]),
        (&json!("running"), &json!(5), &json!("browser")),
        "{info}"
    );
    assert_eq!(info["waiting_for"], AWAITED);
    let output = fleet.run(&["info", APP, "scripts"]).expect_code(0).stdout;
    assert!(output.contains(AWAITED), "{output}");
    let status = fleet.run_json(&["status"]);
    let supervisor = &status["supervisors"][0];
    assert_eq!(
        (
            &supervisor["id"],
            &supervisor["lane"],
            &supervisor["egress"]
        ),
        (&json!("one"), &json!("http"), &json!("open")),
        "{status}"
    );

    // This request makes the crawl no longer require a browser.
    let without = request_with(&of_scripts[0], "scripts", json!({"spiderid": "link"}));
    fleet.feed(&[without]);
    fleet.wait_until_done("scripts");
    assert_eq!(fleet.web.visits().pages().len(), 10);
    assert_eq!(fleet.info("scripts").get("waiting_for"), None);
}
