//! Tests `/healthz` and `/readyz`, the probes for container platforms. They have a separate listener, so clients need
//! no token or key.

use serde_json::{Value, json};
use webfill_tests::site::page;

use crate::clients::try_http_at;
use crate::fleet::{Fleet, request, wait_for};

const DISPATCHER: u16 = 8181;
const SUPERVISOR: u16 = 8182;

fn probe_at(host: &str, port: u16, path: &str) -> Option<(u16, Value)> {
    let head = [
        &format!("GET {path} HTTP/1.1") as &str,
        &format!("Host: {host}:{port}"),
    ];
    let (status, body) = try_http_at((host, port), &head, "").ok()?;
    Some((status, serde_json::from_str(&body).unwrap_or(Value::Null)))
}

fn probe(fleet: &Fleet, port: u16, path: &str) -> (u16, Value) {
    probe_at(&fleet.host, port, path).expect("an answer")
}

/// Waits until both probes of a role answer with these statuses. Returns the answer of `/readyz`.
fn wait_for_statuses(fleet: &Fleet, port: u16, healthz: u16, readyz: u16) -> Value {
    wait_for("the probes are answered so", || {
        let (health, _) = probe(fleet, port, "/healthz");
        let (ready, reported) = probe(fleet, port, "/readyz");
        ((health, ready) == (healthz, readyz)).then_some(reported)
    })
}

fn probed_fleet() -> Fleet {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let at = format!("{}:{DISPATCHER}", fleet.host);
    fleet.set_env("PROBES_DISPATCHER", &at);
    fleet
}

#[test]
fn a_supervisor_is_alive_from_its_start_and_ready_while_it_may_fetch() {
    let mut fleet = probed_fleet();
    let at = format!("{}:{SUPERVISOR}", fleet.host);
    let mut running = fleet
        .supervisor_role("one", &[("PROBES_SUPERVISOR", &at)])
        .start();
    wait_for("it listens", || {
        probe_at(&fleet.host, SUPERVISOR, "/healthz")
    });
    wait_for("it says what it waits for", || {
        let reported = wait_for_statuses(&fleet, SUPERVISOR, 200, 503);
        let why = reported["why"][0].as_str()?.to_owned();
        why.contains("waits: the dispatcher").then_some(())
    });
    fleet.start_dispatcher();
    running.wait_for_stderr("ready");
    wait_for_statuses(&fleet, SUPERVISOR, 200, 200);
    fleet.kill_dispatcher();
    wait_for_statuses(&fleet, SUPERVISOR, 200, 503);
    fleet.start_dispatcher();
    wait_for_statuses(&fleet, SUPERVISOR, 200, 200);
}

#[test]
fn a_fleet_that_works_is_ready() {
    let mut fleet = probed_fleet();
    fleet.start_dispatcher();
    let at = format!("{}:{SUPERVISOR}", fleet.host);
    fleet.add_supervisor_with("one", &[("PROBES_SUPERVISOR", &at)]);
    let site = fleet.web.site("a.example");
    site.serve_otherwise(|_| page("T").into());
    fleet.feed(&[request(&site.url("/"), "c")]);
    fleet.wait_until_done("c");
    for port in [DISPATCHER, SUPERVISOR] {
        wait_for_statuses(&fleet, port, 200, 200);
        assert_eq!(probe(&fleet, port, "/healthz").1, json!({"ok": true}));
        assert_eq!(probe(&fleet, port, "/metrics").0, 404);
    }
}

#[test]
fn a_dispatcher_whose_loop_is_stuck_is_neither_alive_nor_ready() {
    let mut fleet = probed_fleet();
    fleet.start_dispatcher();
    wait_for_statuses(&fleet, DISPATCHER, 200, 200);
    let blocked = ["site", "a.example", "--block-until", "1h"];
    fleet.run(&blocked).expect_code(0);
    fleet.feed(&[request("http://a.example/1", "stuck")]);
    let frontier = fleet.dispatcher_state.join("dispatcher.db");
    let db = rusqlite::Connection::open(frontier).expect("it is SQLite");
    // Another program holds the lock of the database, so the dispatcher's loop waits ten seconds for it.
    db.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let reported = wait_for_statuses(&fleet, DISPATCHER, 503, 503);
    let why = reported["why"][0].as_str().unwrap_or_default();
    assert!(why.contains("stuck"), "{reported}");
    db.execute_batch("ROLLBACK").expect("the end");
    wait_for_statuses(&fleet, DISPATCHER, 200, 200);
}

#[test]
fn other_machines_are_answered_only_if_the_operator_says_so() {
    for key in ["PROBES_DISPATCHER", "PROBES_SUPERVISOR"] {
        let fleet = Fleet::unstarted_fleet(&[(key, "0.0.0.0:8181")]);
        let refused = fleet.dispatcher_role().finish().expect_code(2);
        assert!(
            refused.stderr.contains("probes.allow_network"),
            "{}",
            refused.stderr
        );
    }
}
