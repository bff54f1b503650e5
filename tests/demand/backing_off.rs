//! Tests sites that back off in a fleet. The fleet shows them with their evidence, reports them to the application, and
//! lets an operator resume them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use webfill_tests::site::{page, status};

use crate::fleet::{APP, Fleet, request, wait_for};

/// The list of sites that `webfill sites --json` prints with these flags.
fn list_sites(fleet: &Fleet, flags: &[&str]) -> Vec<Value> {
    let args = [&["sites", "--json"], flags].concat();
    let run = fleet.run(&args).expect_code(0);
    let lines = run.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

#[test]
fn a_site_that_blocks_is_shown_reported_and_resumed() {
    let mut fleet = Fleet::start_with(&[("BACKOFF_BLOCKED", "3600")]);
    let blocks = fleet.web.site("blocks.example");
    let refuses = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&refuses);
    blocks.serve_otherwise(move |_| match still.load(Ordering::SeqCst) {
        true => status(403).into(),
        false => page("T").into(),
    });
    let firehose = fleet.subscribe_firehose(&format!("outbound.{APP}"));
    let requests: Vec<Value> = (0..9)
        .map(|page| request(&blocks.url(&format!("/{page}")), "c"))
        .collect();
    fleet.feed(&requests);
    let notification = firehose.wait_for(|message| message["action"] == "site_backs_off");
    assert_eq!(notification["site"], "blocks.example");
    assert_eq!(notification["reason"], "blocked");
    assert_eq!(notification["evidence"]["status_code"], 403);

    // Tasks that were handed out before the block are returned a moment later.
    let site = wait_for("all pages are queued again", || {
        let mut backing_off = list_sites(&fleet, &["--backing-off"]);
        assert_eq!(backing_off.len(), 1, "{backing_off:?}");
        Some(backing_off.remove(0)).filter(|site| site["queued"] == 9)
    });
    assert_eq!(
        (&site["site"], &site["state"]),
        (&json!("blocks.example"), &json!("backing_off"))
    );
    // The time of the backoff is counted from the first refusal.
    let rest_s = site["until"].as_f64().unwrap() - site["since"].as_f64().unwrap();
    assert!((3_599.0..3_660.0).contains(&rest_s), "{site}");
    let table = fleet.run(&["sites"]).expect_code(0);
    assert!(
        table
            .stdout
            .contains("blocks.example  backing_off  blocked")
    );

    refuses.store(false, Ordering::SeqCst);
    fleet.restart();
    let so_far = blocks.visits().pages().len();
    let answer = fleet.run_json(&["site", "blocks.example"]);
    assert_eq!(answer["state"], "backing_off", "over a restart: {answer}");
    fleet
        .run(&["site", "blocks.example", "--wake"])
        .expect_code(0);
    fleet.wait_until_done("c");
    assert_eq!(blocks.visits().pages().len(), so_far + 9);
    let answer = fleet.run_json(&["site", "blocks.example"]);
    assert_eq!(
        (&answer["state"], &answer["queued"]),
        (&json!("open"), &json!(0))
    );
    assert!(list_sites(&fleet, &["--backing-off"]).is_empty());
}
