//! Tests changes of mappings and settings while a fleet works.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::site::page;
use webfill_tests::workplace::profile_mapping;

use crate::clients::post;
use crate::fleet::{Fleet, request, wait_for};

const SITES: usize = 4;
const PAGES: usize = 30;

fn serve_and_feed(fleet: &Fleet, crawl_id: &str) {
    let mut requests = Vec::new();
    for number in 0..SITES {
        let site = fleet.web.site(&format!("s{number}.example"));
        site.serve_otherwise(|request| page(&request.path).field("shoe", &request.path).into());
        requests.extend((0..PAGES).map(|n| request(&site.url(&format!("/{n}")), crawl_id)));
    }
    fleet.feed(&requests);
}

fn wait_for_pages(fleet: &Fleet, count: usize) {
    wait_for(&format!("{count} pages"), || {
        (fleet.web.visits().pages().len() >= count).then_some(())
    });
}

/// The tests' mapping with one additional field, `shoe`.
fn mapping_with_shoe() -> Value {
    let mut mapping = profile_mapping();
    let mut field = mapping["fields"][1].clone();
    field["name"] = "shoe".into();
    field["processors"][0]["parameters"]["expression"] = "//p[@class='shoe']/text()".into();
    let fields = mapping["fields"].as_array_mut();
    fields.expect("it has fields").push(field);
    mapping
}

/// The expected version of the mapping file: its SHA-256, computed by another program.
fn version_of_file(fleet: &Fleet) -> String {
    let file = fleet.work.path("mappings/profile.json");
    let output = std::process::Command::new("sha256sum").arg(file).output();
    let printed = output.expect("coreutils are installed").stdout;
    String::from_utf8_lossy(&printed[..32]).into_owned()
}

/// The versions of the mapping that have read the pages of a crawl. `has_shoe` selects pages with a value for the new
/// field, or pages without.
fn mapping_versions(fleet: &Fleet, crawl_id: &str, has_shoe: bool) -> BTreeSet<String> {
    let sql = format!(
        "SELECT mapping_version FROM pages WHERE crawl_id = '{crawl_id}'
         AND (json_extract(fields, '$.shoe') IS NOT NULL) = {has_shoe}"
    );
    fleet.work.stored().query_texts(&sql).into_iter().collect()
}

#[test]
fn other_mappings_read_the_pages_after_a_reload_and_broken_ones_change_nothing() {
    let fleet = Fleet::start_with(&[]);
    let before = version_of_file(&fleet);
    serve_and_feed(&fleet, "c");
    wait_for_pages(&fleet, SITES * PAGES / 4);

    fleet
        .work
        .write("mappings/profile.json", "{\n  \"name\": 7\n}");
    let refused = fleet.run(&["reload"]).expect_code(1).stderr;
    for reported in ["nothing changed", "profile.json:2", "name"] {
        assert!(refused.contains(reported), "{refused}");
    }
    let logged = fleet.logged_lines("reload_refused");
    assert!(logged[0]["reason"].to_string().contains("profile.json:2"));
    let file = fleet.work.path("mappings/profile.json");
    std::fs::remove_file(file).expect("it was there");
    let refused = fleet.run(&["reload"]).expect_code(1).stderr;
    assert!(refused.contains("no mappings left"), "{refused}");
    wait_for_pages(&fleet, SITES * PAGES / 2);

    fleet
        .work
        .write_json("mappings/profile.json", &mapping_with_shoe());
    let after = version_of_file(&fleet);
    let answer = fleet.run_json(&["reload"]);
    assert_eq!(answer["mappings"]["changed"], true, "{answer}");
    serve_and_feed(&fleet, "later");
    for crawl in ["c", "later"] {
        fleet.wait_until_done(crawl);
    }
    let [before, after] = [before, after].map(|version| BTreeSet::from([version]));
    assert_eq!(mapping_versions(&fleet, "c", false), before);
    assert_eq!(mapping_versions(&fleet, "c", true), after);
    assert_eq!(mapping_versions(&fleet, "later", true), after);
    assert_eq!(mapping_versions(&fleet, "later", false), BTreeSet::new());

    let counts = fleet.web.visits().pages().counts();
    assert_eq!(counts.len(), SITES * PAGES);
    assert!(counts.values().all(|times| *times == 2), "{counts:?}");
    let stored = "SELECT count(*) FROM pages WHERE outcome = 'ok' AND mapping = 'profile'";
    assert_eq!(
        fleet.work.stored().query_number(stored),
        2 * (SITES * PAGES) as i64
    );
    assert_eq!(
        fleet.logged_lines("supervisor_joined").len(),
        1,
        "nobody was restarted"
    );
}

#[test]
fn a_signal_reloads_and_settings_that_need_a_restart_are_named() {
    let file = |busy: &str, window: u32| {
        format!("[backoff]\nbusy = {busy}\n[dispatcher]\nwindow_sites = {window}\n")
    };
    let fleet = Fleet::start_with_config_file(&file("[60.0]", 1_000));
    fleet.work.write("webfill.toml", file("[120.0]", 2_000));
    let answer = fleet
        .client()
        .ask(&json!({"action": "reload", "uuid": "u"}));
    assert_eq!(answer["uuid"], "u", "{answer}");
    assert_eq!(answer["changed"], json!(["backoff.busy"]));
    assert_eq!(answer["needs_restart"], json!(["dispatcher.window_sites"]));
    assert_eq!(answer["mappings"]["changed"], false);

    fleet
        .work
        .write("webfill.toml", "[backoff]\nbusi = [60.0]\n");
    let refused = fleet.run(&["reload"]).expect_code(1).stderr;
    assert!(refused.contains("busi"), "{refused}");
    let (status, answer) = post(&fleet, "/reload", &json!({}));
    assert_eq!(status, 400, "{answer}");

    // A signal has no answer, so the result is printed to standard error.
    fleet.dispatcher().signal(Signal::HUP);
    let refused = wait_for("the signal's refusal is reported", || {
        let reported = fleet.dispatcher().stderr_so_far();
        let mut lines = reported.lines().map(str::to_owned);
        lines.find(|line| line.contains("reload refused, nothing changed"))
    });
    assert!(refused.contains("busi"), "{refused}");

    fleet.work.write("webfill.toml", file("[120.0]", 1_000));
    fleet
        .work
        .write_json("mappings/profile.json", &mapping_with_shoe());
    fleet.dispatcher().signal(Signal::HUP);
    let reported = wait_for("it is reloaded", || {
        fleet.logged_lines("reloaded").into_iter().nth(1)
    });
    assert_eq!(
        (&reported["changed"], &reported["needs_restart"]),
        (&json!(""), &json!(""))
    );
    serve_and_feed(&fleet, "c");
    fleet.wait_until_done("c");
    assert_eq!(mapping_versions(&fleet, "c", true).len(), 1);
    assert_eq!(mapping_versions(&fleet, "c", false), BTreeSet::new());
}

/// Follows the runbook for a complaint by the owner of a site.
#[test]
fn an_excluded_site_is_never_visited_again_though_its_urls_were_queued() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let list = fleet.work.write("excluded.txt", "elsewhere.example\n");
    let settings = format!(
        "[dispatcher]\nexclude_sites = {:?}\n",
        list.display().to_string()
    );
    fleet.config = Some(fleet.work.write("webfill.toml", settings));
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    serve_and_feed(&fleet, "c");
    wait_for_pages(&fleet, SITES * 2);
    let site = |until: &str| {
        let block = ["site", "s0.example", "--block-until", until];
        fleet.run(&block).expect_code(0);
    };
    site("1h");
    let visits = || fleet.web.visits().for_host("s0.example").pages().len();
    let before = visits();
    assert!(before < PAGES, "it is too late");

    fleet
        .work
        .write("excluded.txt", "elsewhere.example\ns0.example\n");
    let reloaded = fleet.run_json(&["reload"]);
    assert_eq!(reloaded["changed"], json!(["dispatcher.exclude_sites"]));
    site("none");
    fleet.wait_until_done("c");
    assert_eq!(visits(), before);
    let stored = fleet.work.stored();
    let ok = "SELECT count(*) FROM pages WHERE outcome = 'ok'";
    let others = (SITES - 1) * PAGES;
    assert_eq!(stored.query_number(ok), (others + before) as i64);
    let answer = fleet.run_json(&["why", "http://s0.example/29"]);
    assert!(answer.to_string().contains("its site excluded"), "{answer}");
}
