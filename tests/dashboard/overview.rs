//! The overview, while a crawl runs.

use serde_json::Value;
use webfill_test_browser::Browser;
use webfill_test_needs::needs;

use crate::fleet::{Fleet, wait_for};

/// The content of the snapshot events in a stream.
fn snapshots(text: &str) -> Vec<(u64, Value)> {
    let events = text
        .split("\n\n")
        .filter(|event| event.contains("event: snapshot"));
    let snapshot = |event: &str| {
        let line = |name: &str| {
            let mut lines = event.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().map(str::to_owned)
        };
        let number = line("id: ")?.parse().ok()?;
        Some((number, serde_json::from_str(&line("data: ")?).ok()?))
    };
    events.filter_map(snapshot).collect()
}

fn shows(snapshot: &Value, text: &str) -> bool {
    snapshot["html"]
        .as_str()
        .is_some_and(|html| html.contains(text))
}

#[test]
fn a_listener_gets_the_whole_content_as_it_changes() {
    let fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 60);
    let visitor = fleet.visitor();
    let reported = visitor.listen("/dashboard/live", |text| {
        let mut snapshots = snapshots(text);
        snapshots.retain(|(_, snapshot)| shows(snapshot, "testapp / monday"));
        (snapshots.len() >= 3).then_some(snapshots)
    });
    for pair in reported.windows(2) {
        assert!(pair[0].0 < pair[1].0, "events are numbered upwards");
        assert_ne!(
            pair[0].1["html"], pair[1].1["html"],
            "and say something new"
        );
    }
    for (_, snapshot) in &reported {
        let html = snapshot["html"].as_str().expect("markup");
        assert!(
            html.contains("testapp / monday") && html.contains("id=\"pages\""),
            "{html}"
        );
        assert!(!html.contains("<script"), "{html}");
    }
    // A visitor that comes later, or again, gets everything immediately.
    let again = visitor.listen("/dashboard/live", |text| snapshots(text).into_iter().next());
    assert!(
        again.1["html"]
            .as_str()
            .expect("markup")
            .contains("testapp / monday")
    );
}

#[test]
fn few_listen_at_once_and_places_become_free() {
    let fleet = Fleet::start();
    let visitor = fleet.visitor();
    let listening: Vec<_> = (0..24).map(|_| visitor.open("/dashboard/live")).collect();
    wait_for("no place is left", || {
        (visitor.get("/dashboard/live").status == 503).then_some(())
    });
    assert_eq!(
        visitor.get("/dashboard/").status,
        200,
        "pages are shown all the same"
    );
    drop(listening);
    wait_for("a place is free again", || {
        let mut text = String::new();
        visitor.listen("/dashboard/live", |so_far| {
            so_far.clone_into(&mut text);
            so_far.contains("\r\n\r\n").then_some(())
        });
        text.starts_with("HTTP/1.1 200").then_some(())
    });
}

#[test]
fn metrics_over_time_outlive_the_dispatcher() {
    let mut fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 150);
    let visitor = fleet.visitor();
    let noted = || {
        wait_for("a sample is noted", || {
            let metrics = visitor.get("/dashboard/charts?hours=3").body;
            let metrics: Value = serde_json::from_str(&metrics).ok()?;
            (!metrics["at"].as_array()?.is_empty()).then_some(metrics)
        })
    };
    let before = noted();
    for figure in [
        &before["queued"][0],
        &before["pages_per_second"][0],
        &before["ended"]["ok"][0],
    ] {
        assert!(figure.as_f64() > Some(0.0), "{before}");
    }
    fleet.kill_dispatcher();
    fleet.start_dispatcher();
    assert_eq!(noted()["at"][0], before["at"][0]);
}

#[needs(chromedriver)]
#[test]
fn the_page_changes_by_itself_and_says_when_it_is_not_live() {
    let mut fleet = Fleet::start();
    fleet.feed_pages("a.example", "monday", 300);
    let browser = Browser::start();
    browser.set_zone("Asia/Tokyo");
    browser.open(&fleet.url("/"));
    assert_eq!(browser.address(), fleet.url("/dashboard/"));
    let pages = || {
        let shown = browser.text_at("#pages")?;
        shown.replace('\u{a0}', "").parse::<u64>().ok()
    };
    let first = browser.wait_until("pages are counted", || pages().filter(|pages| *pages > 0));
    browser.wait_until("the figure changes", || {
        pages().filter(|pages| *pages > first)
    });
    browser.wait_until("it is live", || {
        browser.page_text().contains("Live.").then_some(())
    });
    assert!(
        browser.page_text().contains("Asia/Tokyo"),
        "{}",
        browser.page_text()
    );
    browser.wait_until("charts are drawn", || browser.find("#charts canvas"));
    browser.screenshot("first-snapshot");
    browser.prefer_dark(true);
    browser.screenshot("first-snapshot-dark");

    // The focus stays in place while the page changes.
    browser.run(
        "document.querySelector('#snapshot h3 a').focus()",
        serde_json::json!([]),
    );
    let before = pages();
    browser.wait_until("the figure changes again", || {
        pages().filter(|pages| Some(*pages) > before)
    });
    let focused = browser.run(
        "return document.activeElement.textContent",
        serde_json::json!([]),
    );
    assert_eq!(focused, "testapp / monday");

    fleet.kill_dispatcher();
    browser.wait_until("it says that it is not live", || {
        browser.page_text().contains("Not live").then_some(())
    });
    fleet.start_dispatcher();
    browser.wait_until("it is live again", || {
        browser.page_text().contains("Live.").then_some(())
    });

    let asked = browser.requested();
    let foreign = asked
        .iter()
        .filter(|url| !url.starts_with(&fleet.url("/")) && !url.starts_with("data:"));
    assert_eq!(foreign.collect::<Vec<_>>(), Vec::<&String>::new());
    let faults: Vec<String> = browser
        .console()
        .into_iter()
        .filter(|said| said.contains("Content Security Policy") || said.contains("Uncaught"))
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
}
