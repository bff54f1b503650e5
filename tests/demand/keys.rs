//! Tests keys: which clients may feed, send actions and subscribe.

use std::fs;

use serde_json::Value;
use webfill_tests::site::page;

use crate::fleet::{APP, request, wait_for};
use crate::keyed::Keyed;

#[test]
fn clients_with_keys_feed_act_and_listen_and_strangers_do_not() {
    let keyed = Keyed::new();
    for (role, name, admitted) in [
        ("supervisor", "vm-01", true),
        ("client", "feeder", true),
        ("client", "stranger", false),
    ] {
        keyed.create_member(role, name, admitted);
    }
    let _dispatcher = keyed.start_dispatcher();
    let resolve = keyed.web.resolve_args()[1].clone();
    let _supervisor = keyed
        .supervisor_run("vm-01")
        .env("WEBFILL_FETCH_RESOLVE", resolve)
        .start();
    let site = keyed.web.site("k.example");
    site.serve_otherwise(|request| page(&request.path).into());

    let mut dump = keyed.command(&["dump"], Some("feeder")).start();
    dump.wait_until("it listens", |dump| {
        keyed
            .command(&["info", APP], Some("feeder"))
            .finish()
            .expect_code(0);
        dump.stdout_so_far().contains("total_pending")
    });
    let mut nosy = keyed.command(&["dump"], Some("stranger")).start();
    let one = request(&site.url("/1"), "keyed").to_string();
    keyed
        .command(&["feed", &one], Some("feeder"))
        .finish()
        .expect_code(0);
    dump.wait_until("the result is shown", |dump| {
        dump.stdout_so_far().contains("http://k.example/1")
    });
    wait_for("it is stored", || {
        let info = keyed
            .command(&["info", APP, "keyed", "--json"], Some("feeder"))
            .finish()
            .expect_code(0);
        let info: Value = serde_json::from_str(&info.stdout).expect("JSON");
        (info["state"] == "finished").then_some(())
    });

    let two = request(&site.url("/2"), "keyed").to_string();
    for keys in [Some("stranger"), None] {
        let run = keyed.command(&["feed", &two], keys).finish().expect_code(1);
        assert!(run.one_sentence().contains("key"), "{}", run.stderr);
    }
    assert_eq!(nosy.stdout_so_far(), "", "a stranger hears nothing");
    assert!(nosy.exit_status().is_none(), "it waits to be let in");
    assert_eq!(site.visits().pages().len(), 1);
    let secret = fs::read_to_string(keyed.work.path("feeder/client.key")).expect("a key");
    let secret = secret.trim().trim_start_matches("secret ");
    let logs = format!("{:?}", keyed.work.logs());
    assert!(!logs.contains(secret), "a secret is in a log");
}

#[test]
fn a_supervisor_says_that_its_key_is_refused_until_it_is_admitted() {
    let keyed = Keyed::new();
    let public = keyed.create_member("supervisor", "vm-01", false);
    let _dispatcher = keyed.start_dispatcher();
    let mut supervisor = keyed.supervisor_run("vm-01").start();
    let dispatcher = format!("the dispatcher at tcp://{}:5555", keyed.host);
    supervisor.wait_for_stderr(&format!(
        "waiting: {dispatcher}: it has not let this key in"
    ));
    assert!(!supervisor.stderr_so_far().contains("ready"));
    keyed.run_keys(&["add", "supervisor", "vm-01", &public], "keys");
    supervisor.wait_for_stderr("ready");
}
