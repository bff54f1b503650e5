//! Tests the metric of due sites (sites that could be fetched from at once). It shows how many supervisors are needed.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::site::page;

use super::{DISPATCHER, scrape};
use crate::fleet::{APP, Fleet, request_with, wait_for};

const SITES: usize = 30;

fn wait_until_due(fleet: &Fleet, what: &str, http: f64, browser: f64) {
    wait_for(what, || {
        let metrics = scrape(fleet, DISPATCHER);
        let count = |lane| metrics.get(&format!("webfill_sites_due{{lane=\"{lane}\"}}"));
        (count("http") == Some(http) && count("browser") == Some(browser)).then_some(())
    });
}

/// Requests for two pages of each site. The sites are named after `name`.
fn two_requests_per_site(name: &str, sites: usize, crawl: &str, more: &Value) -> Vec<Value> {
    let paths = (0..2 * sites).map(|n| format!("http://{name}{}.test/{}", n / 2, n % 2));
    paths
        .map(|url| request_with(&url, crawl, more.clone()))
        .collect()
}

#[test]
fn due_sites_are_those_that_could_be_fetched_from_at_once() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let at = format!("{}:{DISPATCHER}", fleet.host);
    fleet.set_env("METRICS_DISPATCHER", &at);
    fleet.start_dispatcher();
    wait_until_due(&fleet, "nothing is due", 0.0, 0.0);
    let none = json!({});
    // A site counts only once, however many tasks and crawls it has.
    fleet.feed(&two_requests_per_site("s", SITES, "one", &none));
    fleet.feed(&two_requests_per_site("s", 3, "another", &none));
    fleet.feed(&two_requests_per_site(
        "scripts",
        2,
        "scripts",
        &json!({"spiderid": "browser"}),
    ));
    wait_until_due(
        &fleet,
        "all sites are due without a supervisor",
        SITES as f64,
        2.0,
    );
    fleet
        .run(&["site", "s0.test", "--block-until", "1h"])
        .expect_code(0);
    wait_until_due(&fleet, "a blocked site is not due", SITES as f64 - 1.0, 2.0);
    fleet.run(&["pause", APP, "one"]).expect_code(0);
    wait_until_due(&fleet, "those of the other crawl are due", 2.0, 2.0);
    fleet.run(&["resume", APP, "one"]).expect_code(0);
    wait_until_due(&fleet, "all are due again", SITES as f64 - 1.0, 2.0);

    // All first pages except for one are answered immediately. After that, the long delay of the sites applies.
    for number in 0..SITES {
        let site = fleet.web.site(&format!("s{number}.test"));
        site.serve_robots("User-agent: *\nCrawl-delay: 600\n");
        let latency = Duration::from_secs(if number == 1 { 12 } else { 0 });
        site.serve_otherwise(move |_| page("P").latency(latency).into());
    }
    fleet.add_supervisor("one");
    wait_until_due(
        &fleet,
        "a site is due while its page is being fetched",
        1.0,
        2.0,
    );
    wait_until_due(
        &fleet,
        "sites that wait for their delay are not due",
        0.0,
        2.0,
    );
}
