//! Tests that applications and operators are informed when a mapping stops fitting its pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use webfill_tests::receiver::{Posted, Receiver};
use webfill_tests::site::page;
use webfill_tests::workplace::profile_mapping_with_alternative;

use crate::fleet::{Fleet, request, wait_for};

#[test]
fn a_changed_layout_is_published_once_and_stands_in_the_status() {
    let fleet = Fleet::start();
    let site = fleet.web.site("shop.example");
    site.serve_otherwise(|request| {
        let number: usize = request.path.trim_start_matches('/').parse().unwrap_or(0);
        let page = page(&format!("Thing {number}"));
        match number < 120 {
            true => page.field("name", &format!("Name {number}")).into(),
            false => page
                .html(format!("<table><tr><td>Name {number}</table>"))
                .into(),
        }
    });
    fleet
        .run(&["site", "shop.example", "--delay", "0"])
        .expect_code(0);
    let firehose = fleet.subscribe_firehose("outbound.testapp");
    let requests = |numbers: std::ops::Range<usize>| -> Vec<Value> {
        let url = |number| format!("http://shop.example/{number}");
        numbers
            .map(|number| request(&url(number), "shop"))
            .collect()
    };
    fleet.feed(&requests(0..160));
    let notification = firehose.wait_for(|message| message["action"] == "layout_changed");
    assert_eq!(
        (
            &notification["mapping"],
            &notification["appid"],
            &notification["crawlid"]
        ),
        (&"profile".into(), &"testapp".into(), &"shop".into()),
        "{notification}"
    );
    assert_eq!(notification["fields"][0]["field"], "name");
    assert_eq!(notification["urls_after"].as_array().map(Vec::len), Some(3));
    let status = fleet.run(&["status", "--json"]).expect_code(0).stdout;
    let status: Value = serde_json::from_str(&status).expect("an object");
    assert_eq!(status["alerts"][0]["mapping"], "profile", "{status}");
    assert_eq!(status["alerts"][0]["fields"], "name");
    let output = fleet.run(&["status"]).expect_code(0).stdout;
    assert!(
        output.contains("alerts\nmapping  layout changed"),
        "{output}"
    );
}

/// The first event with this name in the delivered notifications.
fn first_event(receiver: &Receiver, event: &str) -> Option<Value> {
    let of_notification = |posted: Posted| match posted.json()["events"].take() {
        Value::Array(events) => events,
        _ => Vec::new(),
    };
    let mut events = receiver
        .all_delivered()
        .into_iter()
        .flat_map(of_notification);
    events.find(|reported| reported["event"] == event)
}

/// Runs the watch `shop` over pages that no earlier run had. Waits for the end of the run.
fn run_shop(fleet: &Fleet, receiver: &Receiver, number: usize) {
    const PAGES: usize = 150;
    let pages = number * PAGES..(number + 1) * PAGES;
    let urls: Vec<String> = pages
        .map(|page| format!("http://shop.example/{page}"))
        .collect();
    let watch = json!({
        "name": "shop", "urls": urls, "schedule": "0 0 29 2 *", "crawl": {"changes": false},
        "notify": [{"webhook": receiver.url(), "when": "at_once", "about": ["health"]}],
    });
    fleet
        .run(&["watch", "add", &watch.to_string()])
        .expect_code(0);
    fleet.run(&["watch", "run", "shop"]).expect_code(0);
    wait_for("the run has ended", || {
        let shown = fleet.run_json(&["watch", "show", "shop"]);
        let last = &shown["runs"][0];
        (last["run"] == number && last["how"] == "finished").then_some(())
    });
}

#[test]
fn a_watch_reports_that_an_alternative_serves_and_that_nothing_does() {
    let mut fleet = Fleet::unstarted_fleet(&[("NOTIFICATIONS_ALLOW_PRIVATE_WEBHOOKS", "true")]);
    fleet
        .work
        .write_json("mappings/profile.json", &profile_mapping_with_alternative());
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    let layout = Arc::new(AtomicUsize::new(0));
    let served = Arc::clone(&layout);
    fleet
        .web
        .site("shop.example")
        .serve_otherwise(move |request| {
            let page = page("A thing");
            let name = format!("Name {}", request.path);
            match served.load(Ordering::SeqCst) {
                0 => page.field("name", &name).into(),
                1 => page
                    .html(format!("<h1>A thing</h1><dl><dt>Name<dd>{name}</dl>"))
                    .into(),
                _ => page.field("other", &name).into(),
            }
        });
    fleet
        .run(&["site", "shop.example", "--delay", "0"])
        .expect_code(0);
    let receiver = Receiver::start();
    run_shop(&fleet, &receiver, 1);
    assert_eq!(fleet.run_json(&["status"])["warnings"], Value::Null);

    layout.store(1, Ordering::SeqCst);
    run_shop(&fleet, &receiver, 2);
    let event = wait_for("it is reported", || {
        first_event(&receiver, "alternative_serves")
    });
    let line = "field name of mapping profile: its first chain yields nothing any more; its alternative 2 serves";
    assert_eq!(event["line"], line, "{event:#}");
    assert_eq!(event["about"], "health");
    let status = fleet.run_json(&["status"]);
    assert_eq!(status["warnings"][0]["mapping"], "profile", "{status:#}");
    assert_eq!(status["warnings"][0]["field"], "name");
    assert_eq!(status["alerts"], Value::Null, "nothing is lost");
    let output = fleet.run(&["status"]).expect_code(0).stdout;
    assert!(output.contains("its alternative 2 serves"), "{output}");

    layout.store(0, Ordering::SeqCst);
    run_shop(&fleet, &receiver, 3);
    wait_for("it is over", || {
        first_event(&receiver, "alternative_cleared")
    });
    assert_eq!(fleet.run_json(&["status"])["warnings"], Value::Null);
    assert_eq!(first_event(&receiver, "layout_changed"), None);

    layout.store(2, Ordering::SeqCst);
    run_shop(&fleet, &receiver, 4);
    let event = wait_for("it is reported", || {
        first_event(&receiver, "layout_changed")
    });
    let line = event["line"].as_str().unwrap_or_default();
    assert!(
        line.contains("profile") && line.contains("name"),
        "{event:#}"
    );
}
