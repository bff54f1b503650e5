//! A supervisor says `ready` when it can work, and what it waits for until then.

use std::time::Duration;

use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::Running;
use webfill_tests::workplace::files_under;

use crate::fleet::{Fleet, request, wait_for};

/// Waits until a supervisor says on standard error, and in its log, what it waits for.
fn wait_until_told(fleet: &Fleet, running: &mut Running, reason: &str) {
    running.wait_for_stderr(&format!("waiting: {reason}"));
    wait_for("it is in the log", || {
        let logs = files_under(&fleet.work.path("state"));
        let texts = logs
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok());
        let told = |text: &str| {
            let mut lines = text.lines();
            lines.any(|line| line.contains("\"event\":\"waiting\"") && line.contains(reason))
        };
        texts.into_iter().any(|text| told(&text)).then_some(())
    });
    assert!(!is_ready(running), "{}", running.stderr_so_far());
}

fn is_ready(running: &Running) -> bool {
    running.stderr_so_far().lines().any(|line| line == "ready")
}

#[test]
fn a_supervisor_waits_for_a_dispatcher_and_is_ready_when_it_is_welcome() {
    let mut fleet = Fleet::unstarted(&[]);
    let mut running = fleet.supervisor_role("one", &[]).start();
    let silent = format!("the dispatcher at {}: it does not answer", fleet.endpoint());
    wait_until_told(&fleet, &mut running, &silent);
    fleet.start_dispatcher();
    running.wait_until("it is ready", is_ready);
    let told = running.stderr_so_far();
    assert_eq!(told.matches(&silent).count(), 1, "{told}");
}

#[test]
fn a_supervisor_whose_name_is_taken_waits_until_it_is_free() {
    let mut fleet = Fleet::with(&[]);
    let other = fleet.work.path("state/other");
    let mut running = fleet
        .supervisor_role("one", &[])
        .instead("--state", &other)
        .start();
    let taken = format!(
        "the dispatcher at {}: another supervisor has this name",
        fleet.endpoint()
    );
    wait_until_told(&fleet, &mut running, &taken);
    fleet.drain_supervisor("one");
    running.wait_until("it is ready", is_ready);
}

#[test]
fn a_supervisor_whose_store_is_away_is_not_ready() {
    let fleet = Fleet::dispatcher_only(&[]);
    // Nothing listens there.
    let away = "mongodb://127.0.0.1:9/webfill";
    let mut running = fleet
        .supervisor_role("one", &[])
        .instead("--store", away)
        .time_limit(Duration::from_secs(120))
        .start();
    wait_until_told(&fleet, &mut running, "no worker has opened the store yet");
}

/// The fleet waits for its successor, which does what this one has left.
#[needs(mongod)]
#[test]
fn a_dispatcher_ends_though_its_store_stands_still() {
    let mongod = Mongod::start();
    let fleet = Fleet::unstarted(&[]);
    let start = || {
        let role = fleet.dispatcher_role();
        let role = role.instead("--store", mongod.uri("fleet"));
        let mut running = role.time_limit(Duration::from_secs(60)).start();
        running.wait_for_stderr("ready");
        running
    };
    let running = start();
    mongod.pause();
    fleet.feed(&[request("http://a.example/", "c")]);
    running.signal(Signal::TERM);
    // It is killed at the time limit, which would be no 0.
    running.finish().expect(0);
    mongod.resume();
    let successor = start();
    let stored = Documents::open(&mongod.uri("fleet"));
    wait_for("the crawl is in the store", || {
        (stored.count("crawls") == 1).then_some(())
    });
    successor.signal(Signal::TERM);
    successor.finish().expect(0);
}
