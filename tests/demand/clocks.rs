//! Tests machines whose clock is an hour behind: later actions still count as later, and the operator is warned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Reply, page, status};
use webfill_tests::wall_clock;

use crate::backups::QUICK;
use crate::fleet::{Fleet, request, request_with, wait_for};

const HOUR_S: i64 = 3_600;
const PAGES: usize = 4;

fn export_pages(fleet: &Fleet) -> Vec<Value> {
    let run = Run::new(["export", "pages", "--store", &fleet.store_uri()]);
    let lines = run.finish().expect_code(0).stdout;
    let page = |line| serde_json::from_str(line).expect("JSON");
    lines.lines().map(page).collect()
}

fn page_outcomes(pages: &[Value]) -> Vec<&Value> {
    pages.iter().map(|page| &page["outcome"]).collect()
}

/// Serves pages that are missing until the returned switch is set. Returns the switch, and requests for all pages.
fn serve_healing_pages(fleet: &Fleet) -> (Arc<AtomicBool>, Vec<Value>) {
    let site = fleet.web.site("a.example");
    let heals = Arc::new(AtomicBool::new(false));
    let healed = heals.clone();
    site.serve_otherwise(move |request| -> Reply {
        match healed.load(Ordering::SeqCst) {
            true => page(&request.path).into(),
            false => status(404).into(),
        }
    });
    let requests = (0..PAGES).map(|number| request(&site.url(&format!("/{number}")), "c"));
    (heals, requests.collect())
}

#[needs(libfaketime)]
#[test]
fn a_machine_an_hour_behind_loses_no_fetched_page_and_is_reported() {
    let mut fleet = Fleet::start();
    let (heals, requests) = serve_healing_pages(&fleet);
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    let first = export_pages(&fleet);
    assert_eq!(page_outcomes(&first), [&json!("http_error"); PAGES]);
    assert_eq!(fleet.logged_lines("clocks_differ"), [Value::Null; 0]);

    heals.store(true, Ordering::SeqCst);
    fleet.drain_supervisor("one");
    let late = wall_clock::with_clock_ahead(fleet.supervisor_role("late", &[]), -HOUR_S);
    fleet.add_supervisor_role("late", late);
    wait_for("its clock is reported", || {
        (fleet.logged_lines("clocks_differ").len() == 1).then_some(())
    });
    let logged = fleet.logged_lines("clocks_differ").remove(0);
    assert_eq!(logged["supervisor"], "late", "{logged}");
    let ahead_ms = logged["ahead_ms"].as_i64().expect("a number");
    assert!((ahead_ms + HOUR_S * 1_000).abs() < 5_000, "{logged}");

    let again = ["retry", crate::fleet::APP, "c", "--outcome", "http_error"];
    fleet.run(&again).expect_code(0);
    fleet.wait_until_done("c");
    let second = export_pages(&fleet);
    assert_eq!(page_outcomes(&second), [&json!("ok"); PAGES]);
    for (first, second) in first.iter().zip(&second) {
        let at = |page: &Value| page["started_at"].as_str().expect("a time").to_owned();
        assert!(at(second) < at(first), "its clock was not behind: {second}");
    }
    assert_eq!(
        fleet.logged_lines("clocks_differ").len(),
        1,
        "it is reported once"
    );
}

/// The clock of the restored dispatcher is an hour behind. Its tasks must still count as later than those that the lost
/// dispatcher has handed out.
#[needs(libfaketime)]
#[test]
fn a_restored_dispatcher_an_hour_behind_loses_no_fetched_page() {
    let mut fleet = Fleet::start_with(&QUICK);
    let backup = fleet.back_up();
    // The restarted dispatcher gets a new epoch (a number that orders dispatchers), which the backup does not contain.
    fleet.kill_dispatcher();
    fleet.start_dispatcher();
    let (heals, requests) = serve_healing_pages(&fleet);
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    assert_eq!(
        page_outcomes(&export_pages(&fleet)),
        [&json!("http_error"); PAGES]
    );
    fleet.kill_dispatcher();

    heals.store(true, Ordering::SeqCst);
    fleet.start_restored_with(&backup, |role| wall_clock::with_clock_ahead(role, -HOUR_S));
    fleet.add_supervisor("two");
    fleet.feed(&requests);
    fleet.wait_until_done("c");
    assert_eq!(page_outcomes(&export_pages(&fleet)), [&json!("ok"); PAGES]);
}

/// A fault sets only the wall clock, not the monotonic clock that determines delays and leases.
#[needs(libfaketime)]
#[test]
fn a_crawl_expires_by_the_wall_clock_that_is_set_while_the_dispatcher_runs() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let ahead = fleet.work.write("ahead", "+0");
    let role = wall_clock::with_clock_file(fleet.dispatcher_role(), &ahead);
    fleet.start_dispatcher_role(role);
    let now_s = crate::fleet::epoch_seconds();
    let of = |crawl: &str, in_s: u64| {
        request_with("http://a.example/", crawl, json!({"expires": now_s + in_s}))
    };
    let hour_s = HOUR_S as u64;
    fleet.feed(&[of("soon", hour_s / 2), of("later", 3 * hour_s)]);
    assert_eq!(fleet.info("soon")["state"], "running");
    fleet.work.write("ahead", format!("{HOUR_S:+}"));
    let info = wait_for("the crawl has expired", || {
        let info = fleet.info("soon");
        (info["state"] == "expired").then_some(info)
    });
    let server_s = info["server_time"].as_u64().expect("a time");
    assert!(server_s >= now_s + hour_s - 5, "{info}");
    assert_eq!(fleet.info("later")["state"], "running");
    // By the changed wall clock, this request has already expired, so it is refused.
    let refused = fleet.client().ask(&of("past", hour_s / 2));
    assert_eq!(refused["error"]["path"], "$.expires", "{refused}");
    // The clock is set back by two hours, so the remaining crawl expires later.
    fleet.work.write("ahead", format!("{:+}", -HOUR_S));
    wait_for("the time is reported", || {
        let server_s = fleet.info("later")["server_time"].as_u64()?;
        (server_s < now_s).then_some(())
    });
    assert_eq!(fleet.info("later")["state"], "running");
}
