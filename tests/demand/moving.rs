//! Tests that the dispatcher can move to another address with its state folder, as described in docs/how-to/operate.md.

use std::time::Duration;

use webfill_test_needs::needs;
use webfill_tests::site::page;

use crate::fleet::{DELAY, Fleet, request, wait_for};

const SITES: usize = 5;
const PAGES: usize = 30;

#[needs(birth_time)]
#[test]
fn a_dispatcher_that_moves_loses_nothing_and_fetches_nothing_twice() {
    // These limits are short, because a moved dispatcher first waits for a lease and for the longest time of a request.
    let mut fleet = Fleet::start_with(&[
        ("DISPATCHER_LEASE", "1"),
        ("FETCH_CONNECT_TIMEOUT", "1"),
        ("FETCH_HEAD_TIMEOUT", "1"),
        ("FETCH_BODY_TIMEOUT", "1"),
        ("FETCH_TOTAL_TIMEOUT", "2"),
    ]);
    let mut requests = Vec::new();
    for number in 0..SITES {
        let site = fleet.web.site(&format!("s{number}.example"));
        site.serve_otherwise(|request| page(&request.path).into());
        site.set_latency(Duration::from_millis(20));
        requests.extend((0..PAGES).map(|n| request(&site.url(&format!("/{n}")), "c")));
    }
    fleet.feed(&requests);
    let asked = |fleet: &Fleet| fleet.web.visits().pages().len();
    wait_for("it is under way", || {
        (asked(&fleet) >= SITES * 3).then_some(())
    });
    let former = fleet.endpoint();
    fleet.move_dispatcher();
    assert_ne!(fleet.endpoint(), former);
    assert!(asked(&fleet) < SITES * PAGES, "it moved in the middle");
    fleet.add_supervisor("one");
    fleet.wait_until_done("c");
    let visits = fleet.web.visits();
    assert_eq!(visits.pages().counts().len(), SITES * PAGES);
    assert_eq!(visits.pages().len(), SITES * PAGES, "nothing twice");
    visits.assert_polite(DELAY);
    let stored = fleet.work.stored().pages();
    assert_eq!(stored.len(), SITES * PAGES);
    assert!(stored.values().all(|page| page.outcome == "ok"));
}
