//! Tests the keys of a fleet on a network: which processes may join, and which refusals are logged.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::isolation::{add_address, run_isolated};
use webfill_tests::run::{Finished, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::files_under;

use crate::keyed_fleet::{Client, Fleet, read_secret};

/// Creates this many sites with one page each. Returns the URLs of the pages.
fn serve_small_sites(web: &Web, name: &str, sites: usize) -> Vec<String> {
    let sites = (0..sites).map(|number| {
        let site = web.site(&format!("{name}{number}.example"));
        site.serve("/", page("Hello").field("name", "Ada"));
        site.url("/")
    });
    sites.collect()
}

/// Drains processes, with the supervisors before the dispatcher, and waits until all have ended successfully.
fn terminate_all(processes: Vec<Running>) -> Vec<Finished> {
    let ended = processes.into_iter().map(|process| {
        process.signal(Signal::TERM);
        process.finish().expect_code(0)
    });
    ended.collect()
}

#[test]
fn a_fleet_with_keys_crawls_and_its_secrets_are_nowhere_but_in_their_files() {
    let web = Web::start();
    let urls = serve_small_sites(&web, "keyed", 6);
    let fleet = Fleet::new();
    fleet.new_member("supervisor", "vm-01");
    fleet.new_member("client", "feeder");
    let dispatcher = fleet.start_dispatcher();
    let supervisor = fleet.supervisor_run(&web, "vm-01").start();
    let client = fleet.client("feeder");
    let crawl = client.open_crawl("keyed", &urls);
    let status = client.wait_until_finished(&crawl);
    assert_eq!(status["outcomes"], json!({"ok": 6}), "{status}");

    let secrets = [
        "keys/dispatcher.key",
        "vm-01/supervisor.key",
        "feeder/client.key",
    ]
    .map(|file| read_secret(&fleet.work.path(file)));
    let processes = [dispatcher.processes(), supervisor.processes()].concat();
    assert!(processes.len() >= 3, "a dispatcher, a supervisor, a worker");
    let mut seen: Vec<(String, Vec<u8>)> = Vec::new();
    for process in processes {
        for file in ["cmdline", "environ"] {
            let path = format!("/proc/{}/{file}", process.pid);
            seen.push((path.clone(), fs::read(path).expect("it lives")));
        }
    }
    for ended in terminate_all(vec![supervisor, dispatcher]) {
        seen.push(("output".into(), (ended.stdout + &ended.stderr).into_bytes()));
    }
    for file in files_under(&fleet.work.path("")) {
        if file.is_file() && file.extension().is_none_or(|extension| extension != "key") {
            seen.push((file.display().to_string(), fs::read(file).expect("a file")));
        }
    }
    for (place, bytes) in &seen {
        let text = String::from_utf8_lossy(bytes);
        assert!(
            secrets.iter().all(|secret| !text.contains(secret)),
            "a secret is in {place}"
        );
    }
    assert_eq!(fleet.work.stored().pages().len(), 6);
    assert!(fleet.logged_lines("peer_refused").is_empty());
}

#[needs(namespaces)]
#[test]
fn with_keys_a_fleet_works_across_machines() {
    run_isolated(
        "fleet_keys::with_keys_a_fleet_works_across_machines",
        || {
            for (address, host) in [("10.11.12.13", "10.11.12.13"), ("fd00::1", "[fd00::1]")] {
                add_address(address);
                let web = Web::start();
                let fleet = Fleet::start_at(host);
                fleet.new_member("supervisor", "vm-01");
                fleet.new_member("client", "feeder");
                let dispatcher = fleet.start_dispatcher();
                let supervisor = fleet.supervisor_run(&web, "vm-01").start();
                let client = fleet.client("feeder");
                let crawl = client.open_crawl("far", &serve_small_sites(&web, "far", 2));
                let status = client.wait_until_finished(&crawl);
                assert_eq!(status["outcomes"], json!({"ok": 2}), "{status}");
                terminate_all(vec![supervisor, dispatcher]);
            }
        },
    );
}

#[test]
fn strangers_are_refused_and_logged_with_address_and_key() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    let stranger = fleet.new_keys("supervisor", "stranger");
    // The dispatcher knows the key of the supervisor `misled`, but this supervisor trusts another dispatcher.
    fleet.new_member("supervisor", "misled");
    let misled = fleet.work.path("misled/dispatcher.pub");
    fs::remove_file(&misled).expect("our own");
    fs::copy(fleet.work.path("stranger/supervisor.pub"), &misled).expect("our own");
    // The folder `nosy` has the keys of the client `feeder` in place of a supervisor's keys. With them, a client tries
    // to get tasks.
    let feeder = fs::read_to_string(fleet.work.path("feeder/client.pub")).expect("a key");
    for (from, to) in [
        ("client.key", "supervisor.key"),
        ("dispatcher.pub", "dispatcher.pub"),
    ] {
        let copy = fs::read(fleet.work.path("feeder").join(from)).expect("a key");
        let path = fleet.work.write(&format!("nosy/{to}"), copy);
        fs::set_permissions(path, fs::Permissions::from_mode(0o400)).expect("our own");
    }
    let _dispatcher = fleet.start_dispatcher();
    let _refused = ["stranger", "misled", "nosy"].map(|who| {
        let run = fleet.supervisor_run(&web, who);
        run.start()
    });

    let reported = fleet.wait_until_logged("peer_refused", &stranger);
    assert_eq!(
        (&reported["address"], &reported["key"]),
        (&json!("127.0.0.1"), &json!(stranger))
    );
    let reported = fleet.wait_until_logged("peer_refused", "another role");
    assert_eq!(
        (&reported["key"], &reported["name"]),
        (&json!(feeder.trim()), &json!("feeder"))
    );
    fleet.wait_until_logged("peer_refused", "it has not the public key of this process");
    fleet.connect_without_keys();
    for who in ["stranger", "misled", "nosy"] {
        let reported = fleet.wait_until_supervisor_logs(who, "not_admitted");
        assert!(
            reported["why"]
                .as_str()
                .is_some_and(|why| why.contains("key")),
            "{reported}"
        );
    }
    let client = fleet.client("feeder");
    let crawl = client.open_crawl("nobody", &serve_small_sites(&web, "waiting", 1));
    let status = client.status(&crawl);
    assert_eq!(
        (&status["supervisors"], &status["leased"]),
        (&json!(0), &json!(0))
    );
    assert!(fleet.logged_lines("supervisor_joined").is_empty());
    assert!(web.visits().is_empty());
}

#[test]
fn keys_on_one_side_only_are_reported_on_both() {
    let web = Web::start();
    let fleet = Fleet::new();
    let _dispatcher = fleet.start_dispatcher();
    let _plain = fleet.supervisor_without_keys(&web, "plain").start();
    let reported = fleet.wait_until_supervisor_logs("plain", "not_admitted");
    let why = reported["why"].as_str().expect("a reason");
    assert!(why.contains("it wants keys"), "{why}");
    fleet.wait_until_logged("peer_refused", "it has no keys");
}

#[test]
fn a_fleet_with_keys_outlives_its_dispatcher() {
    let web = Web::start();
    let urls = serve_small_sites(&web, "outlives", 6);
    let fleet = Fleet::new();
    fleet.new_member("supervisor", "vm-01");
    fleet.new_member("client", "feeder");
    let dispatcher = fleet.start_dispatcher();
    let supervisor = fleet.supervisor_run(&web, "vm-01").start();
    let client = fleet.client("feeder");
    let first = client.open_crawl("first", &urls[..3]);
    client.wait_until_finished(&first);
    dispatcher.signal(Signal::KILL);
    drop(dispatcher);
    let dispatcher = fleet.start_dispatcher();
    let client = fleet.client("feeder");
    let second = client.open_crawl("second", &urls[3..]);
    let status = client.wait_until_finished(&second);
    assert_eq!(status["outcomes"], json!({"ok": 3}), "{status}");
    terminate_all(vec![supervisor, dispatcher]);
}

#[test]
fn a_key_added_while_the_fleet_runs_is_admitted_without_a_restart() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    let key = fleet.new_keys("supervisor", "late");
    let dispatcher = fleet.start_dispatcher();
    let client = fleet.client("feeder");
    let crawl = client.open_crawl("late", &serve_small_sites(&web, "late", 2));
    let supervisor = fleet.supervisor_run(&web, "late").start();
    fleet.wait_until_logged("peer_refused", &key);
    fleet
        .run_keys(&["add", "supervisor", "late", &key])
        .expect_code(0);
    let status = client.wait_until_finished(&crawl);
    assert_eq!(status["outcomes"], json!({"ok": 2}), "{status}");
    terminate_all(vec![supervisor, dispatcher]);
}

#[test]
fn a_revoked_supervisor_gets_no_more_tasks_and_another_does_them() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    let key = fleet.new_member("supervisor", "old");
    fleet.new_member("supervisor", "new");
    let dispatcher = fleet.start_dispatcher();
    let client = fleet.client("feeder");
    let old = fleet.supervisor_run(&web, "old").start();
    let first = client.open_crawl("first", &serve_small_sites(&web, "first", 2));
    client.wait_until_finished(&first);
    let before = web.visits().len();

    fleet.run_keys(&["revoke", "old"]).expect_code(0);
    let logged = fleet.wait_until_logged("message_refused", &key);
    assert_eq!(logged["key"], json!(key));
    let second = client.open_crawl("second", &serve_small_sites(&web, "second", 3));
    // If messages of the revoked supervisor were still accepted, it would count as alive and get every other new site.
    fleet.wait_until_supervisor_logs("old", "dispatcher_silent");
    assert_eq!(web.visits().len(), before, "nothing was handed to it");
    let new = fleet.supervisor_run(&web, "new").start();
    let status = client.wait_until_finished(&second);
    assert_eq!(status["outcomes"], json!({"ok": 3}), "{status}");
    drop(old);
    terminate_all(vec![new, dispatcher]);
}

#[test]
fn a_revoked_client_is_not_answered_any_more() {
    let fleet = Fleet::new();
    fleet.new_member("client", "old");
    fleet.new_member("client", "new");
    let _dispatcher = fleet.start_dispatcher();
    let (old, new) = (fleet.client("old"), fleet.client("new"));
    let status = json!({"action": "status"});
    let supervisors = |client: &Client| client.request(&status)["supervisors"].clone();
    assert_eq!(supervisors(&old), json!([]));
    fleet.run_keys(&["revoke", "old"]).expect_code(0);
    old.send(&status);
    fleet.wait_until_logged("message_refused", "client");
    assert_eq!(supervisors(&new), json!([]));
    assert!(old.has_no_answer());
}

/// A client that may feed a fleet must not be able to end it, nor to change the crawls of others.
#[test]
fn a_client_is_refused_requests_reserved_for_the_command() {
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    let dispatcher = fleet.start_dispatcher();
    let client = fleet.client("feeder");
    for asked in [
        json!({"action": "end", "crawls": []}),
        json!({"action": "open_crawl", "spec": {"app_id": "a", "crawl_id": "c"}}),
        json!({"action": "crawl_status", "crawls": []}),
    ] {
        let refusal = client.request(&asked);
        assert_eq!(refusal["error"]["path"], "$.action", "{refusal}");
    }
    assert_eq!(
        client.request(&json!({"action": "status"}))["supervisors"],
        json!([])
    );
    terminate_all(vec![dispatcher]);
}

#[test]
fn a_supervisor_has_the_name_of_its_key() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    for name in ["vm-01", "swarm"] {
        fleet.new_member("supervisor", name);
    }
    let dispatcher = fleet.start_dispatcher();
    let thief = fleet
        .supervisor_elsewhere(&web, "swarm", "thief")
        .replace_flag("--id", "vm-01")
        .start();
    let logged = fleet.wait_until_logged("message_refused", "vm-01");
    assert_eq!(
        (&logged["name"], &logged["supervisor"]),
        (&json!("swarm"), &json!("vm-01"))
    );
    assert!(fleet.logged_lines("supervisor_joined").is_empty());
    let one_of_many = fleet
        .supervisor_run(&web, "swarm")
        .replace_flag("--id", "swarm:i-0abc");
    let one_of_many = one_of_many.start();
    let client = fleet.client("feeder");
    let crawl = client.open_crawl("swarm", &serve_small_sites(&web, "swarm", 2));
    client.wait_until_finished(&crawl);
    assert_eq!(
        fleet.logged_lines("supervisor_joined")[0]["supervisor"],
        "swarm:i-0abc"
    );
    // The refused supervisor has tried to join many times, but only one refusal is logged in a minute.
    assert_eq!(
        fleet.logged_lines("message_refused").len(),
        1,
        "once a minute"
    );
    drop(thief);
    terminate_all(vec![one_of_many, dispatcher]);
}
