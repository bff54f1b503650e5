//! Tests that the machines of a fleet can be upgraded one after another: the latest release and today's webfill work
//! together in both roles. `tests/released.sh` builds the release.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use webfill_test_needs::needs;
use webfill_tests::run::Build;
use webfill_tests::site::page;

use crate::fleet::{Fleet, request, wait_for};

const SITES: usize = 6;
const PAGES: usize = 40;

/// Feeds many pages of some sites.
fn feed_much(fleet: &Fleet) {
    let mut requests = Vec::new();
    for number in 0..SITES {
        let site = fleet.web.site(&format!("s{number}.example"));
        site.serve_otherwise(|request| page(&request.path).into());
        requests.extend((0..PAGES).map(|n| request(&site.url(&format!("/{n}")), "c")));
    }
    fleet.feed(&requests);
}

fn wait_for_pages(fleet: &Fleet, count: usize) {
    wait_for(&format!("{count} pages"), || {
        (fleet.web.visits().pages().len() >= count).then_some(())
    });
}

/// Checks that all pages are stored, and that each was requested once.
fn assert_all_there_once(fleet: &Fleet) {
    fleet.wait_until_done("c");
    let visits = fleet.web.visits();
    let mut repeated: BTreeMap<String, usize> = visits.pages().counts();
    assert_eq!(repeated.len(), SITES * PAGES);
    repeated.retain(|_, count| *count > 1);
    assert_eq!(repeated, BTreeMap::new());
    assert_eq!(visits.overlaps(), [""; 0]);
    let stored = fleet.work.stored().pages();
    assert_eq!(stored.len(), SITES * PAGES);
    assert!(stored.values().all(|page| page.outcome == "ok"));
    assert_eq!(fleet.work.stored().integrity(), "ok");
}

/// The version of messages that the dispatcher uses with each supervisor, by the names of the supervisors.
fn message_versions(fleet: &Fleet) -> BTreeMap<String, Value> {
    let joined = fleet.logged_lines("supervisor_joined").into_iter();
    joined
        .map(|line| (line["supervisor"].to_string(), line["version"].clone()))
        .collect()
}

#[needs(released)]
#[test]
fn a_released_dispatcher_works_with_a_supervisor_of_today() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    fleet.build = Build::Released;
    fleet.start_dispatcher();
    fleet.add_supervisor("old");
    feed_much(&fleet);
    wait_for_pages(&fleet, SITES * PAGES / 8);
    fleet.build = Build::Today;
    fleet.add_supervisor("new");
    assert_all_there_once(&fleet);
    let pages = fleet.work.stored().pages();
    let workers: BTreeSet<&str> = pages.values().map(|page| page.worker.as_str()).collect();
    assert_eq!(workers, BTreeSet::from(["old/0", "new/0"]));
}

#[needs(released)]
#[test]
fn a_dispatcher_is_upgraded_while_released_supervisors_are_at_work() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    fleet.build = Build::Released;
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    fleet.add_supervisor("two");
    feed_much(&fleet);
    wait_for_pages(&fleet, SITES * PAGES / 4);
    fleet.kill_dispatcher();
    fleet.build = Build::Today;
    fleet.start_dispatcher();
    wait_for("both are back", || {
        (fleet.logged_lines("supervisor_joined").len() == 4).then_some(())
    });
    wait_for_pages(&fleet, SITES * PAGES / 2);
    // Supervisor `one` is upgraded, `two` keeps its version, and `three` is new.
    fleet.drain_supervisor("one");
    fleet.add_supervisor("one");
    fleet.add_supervisor("three");
    // The release knows only version 1 of the messages, so all supervisors must use it.
    let expected = ["one", "two", "three"].map(|name| (format!("{name:?}"), Value::from(1)));
    let expected = BTreeMap::from(expected);
    wait_for("all three have the same version", || {
        (message_versions(&fleet) == expected).then_some(())
    });
    assert_all_there_once(&fleet);
}

/// A handshake that offers these versions of the messages, as bytes. They are read from a file that must never change.
pub(crate) fn handshake(oldest: u8, newest: u8) -> Vec<u8> {
    let frozen = include_str!("../../crates/wire/tests/frozen/handshake.txt");
    let line = frozen
        .lines()
        .find_map(|line| line.strip_prefix("Handshake "));
    let versions = format!("{oldest:02x}{newest:02x}");
    let hex = line.expect("it is there").replace("VERSIONS", &versions);
    let bytes = (0..hex.len()).step_by(2);
    bytes
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect()
}

#[test]
fn a_build_that_shares_no_version_is_refused_in_bytes_that_every_version_reads() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let context = zmq::Context::new();
    let socket = context.socket(zmq::DEALER).expect("a socket");
    socket.set_linger(0).expect("an option");
    socket.set_rcvtimeo(30_000).expect("an option");
    socket.connect(&fleet.endpoint()).expect("an address");
    for _ in 0..3 {
        socket.send(handshake(20, 21), 0).expect("it is sent");
        let answer = socket.recv_bytes(0).expect("a refusal");
        // A refusal consists of 0 in place of a version, the session of the handshake, and the dispatcher's oldest and
        // newest version.
        assert_eq!(answer, [0, 92, 1, 1]);
    }
    let logged = wait_for("it is reported", || {
        Some(fleet.logged_lines("no_common_version")).filter(|logged| !logged.is_empty())
    });
    assert_eq!(logged.len(), 1, "once a minute");
    assert_eq!(logged[0]["supervisor"], "vm-01");
    let message = logged[0]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("upgrade webfill at the dispatcher"),
        "{message}"
    );
}
