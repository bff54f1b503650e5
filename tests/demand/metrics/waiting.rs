//! Tests the metrics that count queued tasks by what they wait for, and how long they have waited.

use serde_json::{Value, json};
use webfill_tests::site::{page, status};

use super::{DISPATCHER, Scraped, fleet_with_metrics, scrape};
use crate::fleet::{APP, Fleet, request, request_with, wait_for};

const REASONS: [&str; 7] = [
    "lane", "limit", "pause", "backoff", "delay", "store", "turn",
];

fn count_queued(reported: &Scraped, reason: &str) -> Option<f64> {
    reported.get(&format!("webfill_queued_tasks{{waits_for=\"{reason}\"}}"))
}

fn age_s(reported: &Scraped, reason: &str) -> f64 {
    reported.value_of(&format!(
        "webfill_queued_oldest_due_seconds{{waits_for=\"{reason}\"}}"
    ))
}

/// Waits until the metrics report these numbers of waiting tasks by reason, and 0 for all other reasons.
fn wait_until_waiting(fleet: &Fleet, expected: &[(&str, f64)]) -> Scraped {
    wait_for("what is queued is counted by what it waits for", || {
        let metrics = scrape(fleet, DISPATCHER);
        let is_reported = REASONS.iter().all(|reason| {
            let wanted = expected.iter().find(|(name, _)| name == reason);
            count_queued(&metrics, reason) == Some(wanted.map_or(0.0, |(_, tasks)| *tasks))
        });
        is_reported.then_some(metrics)
    })
}

fn page_urls(host: &str, number: usize) -> Vec<String> {
    let url = |page| format!("http://{host}/{page}");
    (0..number).map(url).collect()
}

fn page_requests(host: &str, number: usize, crawl: &str, more: &Value) -> Vec<Value> {
    let urls = page_urls(host, number).into_iter();
    urls.map(|url| request_with(&url, crawl, more.clone()))
        .collect()
}

#[test]
fn queued_tasks_are_counted_by_reason_with_their_age() {
    let fleet = fleet_with_metrics();
    for host in ["limited.example", "slow.example", "by-hand.example"] {
        fleet.web.site(host).serve_otherwise(|_| page("T").into());
    }
    wait_until_waiting(&fleet, &[]);
    // Feed tasks that wait for different reasons: a lane without supervisors, a pause, a limit, a manual block, and a
    // long delay.
    fleet.feed(&page_requests(
        "scripts.example",
        5,
        "scripts",
        &json!({"spiderid": "browser"}),
    ));
    wait_until_waiting(&fleet, &[("lane", 5.0)]);
    fleet
        .run(&["site", "limited.example", "--limit", "1"])
        .expect_code(0);
    fleet
        .run(&["site", "slow.example", "--delay", "600"])
        .expect_code(0);
    fleet
        .run(&["site", "by-hand.example", "--block-until", "1d"])
        .expect_code(0);
    fleet.feed(&page_requests("limited.example", 3, "limited", &json!({})));
    fleet.feed(&page_requests("slow.example", 4, "slow", &json!({})));
    fleet.feed(&page_requests("by-hand.example", 7, "by-hand", &json!({})));
    let metrics = wait_for("each waits for its own", || {
        let metrics = scrape(&fleet, DISPATCHER);
        let waits = REASONS.map(|reason| count_queued(&metrics, reason));
        // One of the limited site's three pages is fetched, so two wait for the limit. The first page of the slow site
        // is fetched, and the second one is already handed out and waits for the delay.
        let [lane, limit, pause, backoff, delay, store, turn] = waits;
        let is_reported = (lane, limit, pause) == (Some(5.0), Some(2.0), Some(7.0))
            && [backoff, store, turn] == [Some(0.0); 3]
            && delay.is_some_and(|delay| (2.0..=3.0).contains(&delay))
            && age_s(&metrics, "lane") > age_s(&metrics, "limit");
        is_reported.then_some(metrics)
    });
    assert_eq!(age_s(&metrics, "delay"), 0.0, "its time has not come");
    // Only the tasks that wait for a lane grow older.
    wait_for("the age grows", || {
        let now = scrape(&fleet, DISPATCHER);
        (age_s(&now, "lane") > age_s(&metrics, "lane") + 2.0).then_some(())
    });
    assert_eq!(age_s(&metrics, "turn"), 0.0);
}

#[test]
fn paused_tasks_and_tasks_without_a_lane_are_distinguished() {
    let mut fleet = fleet_with_metrics();
    fleet
        .web
        .site("a.example")
        .serve_otherwise(|_| page("T").into());
    fleet.feed(&[request("http://a.example/first", "done")]);
    fleet.wait_until_done("done");
    fleet.drain_supervisor("one");
    fleet.feed(&page_requests("a.example", 6, "queued", &json!({})));
    let reported = wait_until_waiting(&fleet, &[("lane", 6.0)]);
    assert_eq!(reported.value_of("webfill_tasks{state=\"queued\"}"), 6.0);
    fleet.run(&["pause", APP, "queued"]).expect_code(0);
    wait_until_waiting(&fleet, &[("pause", 6.0)]);
    fleet.run(&["resume", APP, "queued"]).expect_code(0);
    fleet.add_supervisor("two");
    fleet.wait_until_done("queued");
    wait_until_waiting(&fleet, &[]);
}

#[test]
fn sites_in_trouble_back_off_in_the_metrics() {
    let mut fleet = Fleet::unstarted_fleet(&[("BACKOFF_BLOCKED", "3600")]);
    let at = format!("{}:{DISPATCHER}", fleet.host);
    fleet.set_env("METRICS_DISPATCHER", &at);
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    fleet
        .web
        .site("blocks.example")
        .serve_otherwise(|_| status(403).into());
    fleet.feed(&page_requests("blocks.example", 9, "c", &json!({})));
    let metrics = wait_for("the site backs off", || {
        let metrics = scrape(&fleet, DISPATCHER);
        (count_queued(&metrics, "backoff")? >= 7.0).then_some(metrics)
    });
    assert!(age_s(&metrics, "backoff") > 0.0);
    assert_eq!(age_s(&metrics, "turn"), 0.0);
}
