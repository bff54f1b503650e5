//! Tests that `prune` drops finished crawls, and that their ids can be used again.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::site::page;
use webfill_tests::stored::Stored;

use crate::clients::{Pipeline, post};
use crate::fleet::{APP, Fleet, action, epoch_seconds, request, request_with, wait_for};

const PAGES: usize = 5;

/// Crawls some pages of a site, and waits for the end of the crawl.
fn crawl_pages_of_host(fleet: &Fleet, host: &str, crawl_id: &str) {
    let site = fleet.web.site(host);
    let pages = (0..PAGES).map(|nth| request(&site.url(&format!("/{nth}")), crawl_id));
    fleet.feed(&pages.collect::<Vec<Value>>());
    fleet.wait_until_done(crawl_id);
}

fn count_tasks(fleet: &Fleet) -> i64 {
    let state = fleet.dispatcher_state.join("dispatcher.db");
    Stored::open(&state).query_number("SELECT count(*) FROM tasks")
}

#[test]
fn a_pruned_crawl_is_gone_and_its_id_fetches_everything_again() {
    let fleet = Fleet::start();
    for host in ["a.example", "b.example"] {
        fleet
            .web
            .site(host)
            .serve_otherwise(|request| page(&request.path).into());
    }
    crawl_pages_of_host(&fleet, "a.example", "old");
    crawl_pages_of_host(&fleet, "b.example", "kept");
    let (code, reported) = post(&fleet, "/prune", &json!({"appid": APP, "crawlid": "old"}));
    assert_eq!(code, 200, "{reported}");
    let pruned = (&reported["total_crawls"], &reported["total_tasks"]);
    assert_eq!(pruned, (&json!(1), &json!(PAGES)), "{reported}");
    wait_for("its tasks are deleted", || {
        (count_tasks(&fleet) == PAGES as i64).then_some(())
    });
    let unknown = fleet.client().ask(&action("info", Some("old")));
    assert_eq!(unknown["error"]["path"], "$.crawlid", "{unknown}");
    assert_eq!(fleet.info("kept")["done"], json!(PAGES));
    crawl_pages_of_host(&fleet, "a.example", "old");
    crawl_pages_of_host(&fleet, "b.example", "kept");
    let visits = |host: &str| fleet.web.visits().for_host(host).pages().len();
    assert_eq!(visits("a.example"), 2 * PAGES, "it was a new crawl");
    assert_eq!(visits("b.example"), PAGES, "it was known");
}

#[test]
fn running_or_recent_crawls_are_not_pruned() {
    let fleet = Fleet::start();
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|request| page(&request.path).into());
    fleet
        .run(&["site", "a.example", "--block-until", "1h"])
        .expect_code(0);
    fleet.feed(&[request(&site.url("/"), "goes-on")]);
    let refused = fleet.run(&["prune", APP, "goes-on"]).expect_code(1);
    assert!(
        refused.stderr.contains("stop the crawl first"),
        "{}",
        refused.stderr
    );
    fleet.run(&["stop", APP, "goes-on"]).expect_code(0);
    let young = fleet.run_json(&["prune", APP, "--older-than", "1h"]);
    assert_eq!(young["total_crawls"], 0, "{young}");
    let output = fleet.run(&["prune", APP, "goes-on"]).expect_code(0).stdout;
    assert_eq!(output.trim(), "testapp: 1 crawl with 1 URL pruned");
    fleet.run(&["prune", APP]).expect_code(2);
    fleet.feed(&[request(&site.url("/"), "goes-on")]);
    assert_eq!(
        fleet.info("goes-on")["total_pending"],
        1,
        "its id is free again"
    );
}

#[test]
fn a_crawl_that_has_expired_is_pruned_without_a_stop() {
    let fleet = Fleet::start();
    let block = ["site", "a.example", "--block-until", "1h"];
    fleet.run(&block).expect_code(0);
    let brief = json!({"expires": epoch_seconds() + 5});
    let pages = (0..PAGES).map(|nth| {
        let url = format!("http://a.example/{nth}");
        request_with(&url, "brief", brief.clone())
    });
    fleet.feed(&pages.collect::<Vec<Value>>());
    let refused = fleet.run(&["prune", APP, "brief"]).expect_code(1).stderr;
    assert!(refused.contains("stop the crawl first"), "{refused}");
    wait_for("it has expired", || {
        (fleet.pending_tasks("brief") == 0).then_some(())
    });
    let output = fleet.run(&["prune", APP, "brief"]).expect_code(0).stdout;
    assert_eq!(output.trim(), "testapp: 1 crawl with 5 URLs pruned");
    wait_for("its tasks are deleted", || {
        (count_tasks(&fleet) == 0).then_some(())
    });
    assert_eq!(fleet.web.visits().pages().len(), 0);
}

/// The pause of a crawl is answered only when a frozen supervisor can no longer start tasks of the crawl.
#[test]
fn a_crawl_is_not_pruned_before_its_pause_is_answered() {
    let mut fleet = Fleet::start();
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|request| page(&request.path).into());
    crawl_pages_of_host(&fleet, "a.example", "done");
    let slow = fleet.web.site("slow.example");
    slow.serve("/", page("Slow").latency(Duration::from_secs(60)));
    fleet.feed(&[request(&slow.url("/"), "slow")]);
    wait_for("a page is out", || {
        (fleet.info("slow")["leased"] == 1).then_some(())
    });
    fleet.supervisor().signal(Signal::STOP);
    let client = Pipeline::connect(&fleet.control_endpoint());
    client.send(&action("pause", Some("done")));
    client.send(&json!({"action": "prune", "appid": APP, "crawlid": "done"}));
    let refused = client.receive_answer();
    assert_eq!(refused["error"]["path"], "$.crawlid", "{refused}");
    assert_eq!(refused["error"]["retry"], true, "{refused}");
    // This prunes all finished crawls of the application, but must leave out the crawl whose pause is not answered yet.
    let prune = json!({"action": "prune", "appid": APP, "older_than": 0});
    client.send(&prune);
    assert_eq!(client.receive_answer()["total_crawls"], 0);
    let paused = client.receive_answer();
    assert_eq!(paused["action"], "pause", "{paused}");
    client.send(&prune);
    assert_eq!(client.receive_answer()["total_crawls"], 1);
    assert!(!fleet.has_dispatcher_ended());
    fleet.supervisor().signal(Signal::CONT);
}

#[test]
fn a_prune_right_behind_a_pause_or_a_stop_ends_nothing() {
    let mut fleet = Fleet::start();
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let client = Pipeline::connect(&fleet.control_endpoint());
    for round in 0..20 {
        let id = format!("c{round}");
        let prune = json!({"action": "prune", "appid": APP, "crawlid": &id});
        let urls = (0..3).map(|nth| request(&site.url(&format!("/{round}/{nth}")), &id));
        let urls: Vec<Value> = urls.collect();
        let between = [action("pause", Some(&id)), action("stop", Some(&id))];
        let asked = [
            json!(urls),
            between[round % 2].clone(),
            prune.clone(),
            between[(round + 1) % 2].clone(),
            prune.clone(),
        ];
        for request in &asked {
            client.send(request);
        }
        for _ in &asked {
            client.receive_answer();
        }
        wait_for("the prune is accepted, or nothing is left to prune", || {
            client.send(&prune);
            let answer = client.receive_answer();
            let is_gone = answer["error"]["message"]
                .as_str()
                .is_some_and(|why| why.contains("no crawl of this id"));
            (answer["total_crawls"] == 1 || is_gone).then_some(())
        });
    }
    assert!(!fleet.has_dispatcher_ended());
}

#[test]
fn a_prune_while_a_run_of_a_watch_begins_ends_neither() {
    let mut fleet = Fleet::start();
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let urls: Vec<String> = (0..3).map(|nth| site.url(&format!("/{nth}"))).collect();
    let client = fleet.client();
    let watch = json!({"name": "w", "app": APP, "schedule": "0 2 29 2 *", "urls": urls});
    let added = client.ask(&json!({"action": "watch_add", "watch": watch}));
    assert_eq!(added["name"], "w", "{added}");
    let prune = json!({"action": "prune", "appid": APP, "crawlid": "w"});
    for round in 1..=8 {
        let asked = client.ask(&json!({"action": "watch_run", "name": "w"}));
        assert_eq!(asked["error"], Value::Null, "{asked}");
        wait_for("the run has ended", || {
            client.ask(&prune);
            let shown = client.ask(&json!({"action": "watch_show", "name": "w", "runs": 1}));
            let last = &shown["runs"][0];
            (last["run"] == round && last["how"] != Value::Null).then(|| {
                assert_eq!(last["how"], "finished", "{last}");
            })
        });
    }
    assert!(!fleet.has_dispatcher_ended());
}

#[test]
fn the_file_is_smaller_after_a_prune() {
    const MANY: usize = 20_000;
    let mut fleet = Fleet::start();
    let block = ["site", "a.example", "--block-until", "1h"];
    fleet.run(&block).expect_code(0);
    let urls =
        (0..MANY).map(|nth| request(&format!("http://a.example/a-page-of-many/{nth}"), "many"));
    fleet.feed(&urls.collect::<Vec<Value>>());
    let full = stop_and_measure_file(&mut fleet);
    assert!(full > 40 * MANY as u64, "{full}");

    fleet.start_dispatcher();
    fleet.run(&["stop", APP, "many"]).expect_code(0);
    wait_for("it has stopped", || {
        (fleet.pending_tasks("many") == 0).then_some(())
    });
    fleet.run(&["prune", APP, "many"]).expect_code(0);
    wait_for("its tasks are deleted", || {
        (count_tasks(&fleet) == 0).then_some(())
    });
    let pruned = stop_and_measure_file(&mut fleet);
    assert!(pruned < full / 2, "{full} {pruned}");
}

/// Ends the dispatcher, so that all of its data are in one file. Returns the length of this file in bytes.
fn stop_and_measure_file(fleet: &mut Fleet) -> u64 {
    fleet.dispatcher().signal(Signal::TERM);
    fleet.wait_until_dispatcher_ended(0);
    let file = fleet.dispatcher_state.join("dispatcher.db");
    file.metadata().expect("it is there").len()
}
