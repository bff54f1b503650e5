//! A backup is made while the fleet is at work, and a dispatcher starts from it elsewhere.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use webfill_tests::site::page;

use crate::fleet::{Fleet, request, wait_for};

const SITES: usize = 4;
const PAGES: usize = 14;
const DELAY: Duration = Duration::from_millis(400);

/// As if the backup had been made an hour earlier.
fn make_an_hour_old(frontier: &Path) {
    let db = rusqlite::Connection::open(frontier).expect("a frontier");
    db.execute_batch(
        "UPDATE meta SET value = value - 3600000 WHERE name LIKE '%_at_ms';
         UPDATE sites SET due_at_ms = due_at_ms - 3600000, last_start_ms = last_start_ms - 3600000;
         UPDATE epochs SET epoch = epoch - 3600000;",
    )
    .expect("its tables");
}

#[test]
fn what_came_after_a_backup_is_fetched_again_politely() {
    let mut fleet = Fleet::with(&[
        ("POLITENESS_DELAY", "0.4"),
        ("DISPATCHER_LEASE", "1"),
        ("FETCH_CONNECT_TIMEOUT", "1"),
        ("FETCH_HEAD_TIMEOUT", "1"),
        ("FETCH_BODY_TIMEOUT", "1"),
        ("FETCH_TOTAL_TIMEOUT", "2"),
    ]);
    let mut requests = Vec::new();
    for number in 0..SITES {
        let site = fleet.web.site(&format!("s{number}.example"));
        site.otherwise(|request| page(&request.path).into());
        requests.extend((0..PAGES).map(|n| request(&site.url(&format!("/{n}")), "c")));
    }
    fleet.feed(&requests);
    let pages = |fleet: &Fleet| fleet.web.visits().pages().len();
    wait_for("some pages", || (pages(&fleet) >= SITES * 3).then_some(()));
    let backup = fleet.back_up();
    let at_backup = pages(&fleet);
    wait_for("more pages", || (pages(&fleet) >= SITES * 7).then_some(()));
    let lost = pages(&fleet);
    make_an_hour_old(&backup.join("dispatcher.db"));
    // Its supervisor lives on, and has tasks in its queue.
    fleet.kill_dispatcher();
    fleet.start_restored(&backup);
    let began = fleet.web.visits().pages().len();
    fleet.add_supervisor("two");
    fleet.wait_until_done("c");

    let visits = fleet.web.visits();
    assert_eq!(visits.overlaps(), [""; 0]);
    for number in 0..SITES {
        let gaps = visits.of_host(&format!("s{number}.example")).pages().gaps();
        assert!(gaps.iter().all(|gap| *gap >= DELAY), "{gaps:?}");
    }
    let stored = fleet.work.stored().pages();
    assert_eq!(stored.len(), SITES * PAGES);
    assert!(stored.values().all(|page| page.outcome == "ok"));
    let again = visits.pages().len() - SITES * PAGES;
    // What was fetched after the backup, and what was under way when it was made.
    assert!(
        again >= lost - at_backup && again <= began - at_backup + SITES,
        "{again}"
    );
    let info = fleet.info("c");
    assert_eq!(info["state"], Value::from("finished"));
}
