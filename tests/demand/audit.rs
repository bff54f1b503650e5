//! Tests the audit log, which records who did something. It is checked in its files, and by `webfill audit`.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::run::Run;

use crate::clients::Client;
use crate::fleet::{Fleet, action, request, wait_for};
use crate::keyed::Keyed;

/// The output of `webfill audit` for the dispatcher with this state folder.
fn run_audit(state: &std::path::Path, args: &[&str]) -> Vec<Value> {
    let run = Run::new(
        [
            &["audit", "--json", "--state"],
            &[state.to_str().expect("plain")][..],
            args,
        ]
        .concat(),
    );
    let output = run.finish().expect_code(0).stdout;
    let lines = output.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

#[test]
fn the_log_shows_who_did_what_by_name_and_address() {
    let keyed = Keyed::new();
    keyed.create_member("client", "chief", true);
    let public = keyed.create_member("client", "shop", false);
    keyed.run_keys(
        &["add", "client", "shop", &public, "--apps", "shop"],
        "keys",
    );
    let dispatcher = keyed.start_dispatcher();
    let (chief, shop) = (keyed.client("chief"), keyed.client("shop"));
    let one = |app: &str, n: u32| json!({"url": format!("http://a.example/{n}"), "appid": app, "crawlid": "c"});
    assert_eq!(
        shop.ask(&json!([one("shop", 1), one("shop", 2)]))["accepted"],
        2
    );
    chief.ask(&json!({"action": "site", "site": "a.example", "delay": 7}));
    chief.ask(&json!({"action": "site", "site": "a.example"}));
    chief.ask(&json!({"action": "status"}));
    shop.ask(&json!({"action": "stop", "appid": "shopping", "crawlid": "c"}));
    shop.ask(&json!({"action": "stop", "appid": "shop", "crawlid": "c"}));
    chief.ask(&json!({"action": "reload"}));
    dispatcher.signal(Signal::HUP);
    let state = keyed.work.path("state/dispatcher");
    wait_for("the signal is recorded", || {
        let logged = run_audit(&state, &["--what", "reload"]);
        logged
            .iter()
            .any(|line| line["by"] == "signal")
            .then_some(())
    });
    keyed.run_keys(&["revoke", "shop"], "keys");

    let keys = keyed.work.path("keys");
    let logged = run_audit(&state, &["--keys", keys.to_str().expect("plain")]);
    let short = |line: &Value| {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let who = if line["by"] == "user" {
            "user".into()
        } else {
            text("who")
        };
        (text("action"), who, text("result"))
    };
    let mut shortened: Vec<_> = logged.iter().map(short).collect();
    // All feeds of a second are one line, which comes after the other actions of this second. So the lines are compared
    // in sorted order.
    shortened.sort();
    let mut expected = [
        ("keys_add", "user", "done"),
        ("keys_add", "user", "done"),
        ("feed", "shop", "done"),
        ("site", "chief", "begun"),
        ("stop", "shop", "refused"),
        ("stop", "shop", "begun"),
        ("reload", "chief", "begun"),
        ("reload", "", "begun"),
        ("keys_revoke", "user", "done"),
    ]
    .map(|(action, who, result)| (action.to_owned(), who.to_owned(), result.to_owned()));
    expected.sort();
    assert_eq!(shortened, expected, "{logged:#?}");
    let of = |action: &str, result: &str| {
        let found = logged
            .iter()
            .find(|line| line["action"] == action && line["result"] == result);
        found.expect("it is reported").clone()
    };
    let fed = of("feed", "done");
    assert_eq!(
        (&fed["accepted"], &fed["by"], &fed["address"]),
        (&json!(2), &json!("key"), &json!("127.0.0.1")),
        "{fed}"
    );
    assert_eq!(fed["crawls"], json!([{"appid": "shop", "crawlid": "c"}]));
    assert_eq!(of("stop", "refused")["path"], "$.appid");
    assert_eq!(of("site", "begun")["delay_ms"], 7_000);
    assert_eq!(of("keys_revoke", "done")["name"], "shop");
    let own = run_audit(
        &state,
        &["--who", "shop", "--what", "stop", "--since", "1h"],
    );
    assert_eq!(own.len(), 2, "{own:#?}");
    assert!(run_audit(&state, &["--since", "2100-01-01"]).is_empty());
    let dispatcher_log = keyed.work.logs();
    assert!(!format!("{dispatcher_log:?}").contains("audit_not_written"));
}

/// The answer to a reload comes late, so the log first records that the reload has begun, and later how it ended.
#[test]
fn a_failed_reload_is_recorded_as_refused() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    fleet
        .work
        .write("mappings/profile.json", "{\n  \"name\": 7\n}");
    fleet.run(&["reload"]).expect_code(1);
    let answered = run_audit(&fleet.dispatcher_state, &["--what", "reload"]);
    let results = |logged: &[Value], by: &str| {
        let of_one = logged.iter().filter(|line| line["by"] == by);
        let results = of_one.map(|line| line["result"].as_str().unwrap_or_default().to_owned());
        results.collect::<BTreeSet<_>>()
    };
    let both = BTreeSet::from(["begun", "refused"].map(str::to_owned));
    assert_eq!(results(&answered, "socket"), both, "{answered:#?}");
    let refused = answered.iter().find(|line| line["result"] == "refused");
    let why = refused.expect("one is").to_string();
    assert!(why.contains("profile.json:2"), "{why}");
    fleet.dispatcher().signal(Signal::HUP);
    wait_for("the signal came to nothing, too", || {
        let logged = run_audit(&fleet.dispatcher_state, &["--what", "reload"]);
        (results(&logged, "signal") == both).then_some(())
    });
}

/// The log cannot contain who edited a list of keys by hand, but it contains the changes.
#[test]
fn a_hand_edited_list_of_keys_is_recorded() {
    let keyed = Keyed::new();
    keyed.create_member("client", "chief", true);
    let shop = keyed.create_member("client", "shop", true);
    keyed.create_member("supervisor", "vm-01", true);
    let _dispatcher = keyed.start_dispatcher();
    let list = keyed.work.path("keys/allowed");
    let text = fs::read_to_string(&list).expect("a list");
    let kept = text.lines().filter(|line| !line.contains("vm-01"));
    let edited = kept.map(|line| match line.contains(&shop) {
        true => format!("{line} apps=shop\n"),
        false => format!("{line}\n"),
    });
    let other = keyed.create_member("client", "other", false);
    let edited: String = edited.chain([format!("client other {other}\n")]).collect();
    fs::write(&list, edited).expect("our own");
    // The dispatcher reads the allow list again when a client sends a message.
    keyed.client("chief").ask(&json!({"action": "status"}));
    let state = keyed.work.path("state/dispatcher");
    let logged = wait_for("the change is reported", || {
        run_audit(&state, &["--what", "keys_changed"]).pop()
    });
    assert_eq!(logged["by"], "file", "{logged}");
    assert_eq!(logged["added"][0]["name"], "other", "{logged}");
    assert_eq!(logged["added"][0]["key"], json!(other), "{logged}");
    assert_eq!(logged["removed"][0]["name"], "vm-01", "{logged}");
    let changed = &logged["changed"][0];
    assert_eq!(
        (&changed["name"], &changed["rights"]),
        (&json!("shop"), &json!("apps=shop"))
    );
    assert_eq!(changed["was"]["rights"], "", "{logged}");
}

/// Every answered request must be in the log, even if the dispatcher dies right after the answer. Many clients feed at
/// the same time (their feeds are summed up), and send actions in between.
#[test]
fn answered_requests_are_in_the_log_of_a_killed_dispatcher() {
    let mut fleet = Fleet::start_dispatcher_only(&[("LOG_LEVEL", "off")]);
    let mut answered = 0;
    for round in 0..4 {
        let (fed, gone) = (AtomicU64::new(0), AtomicBool::new(false));
        let began = Instant::now();
        let paused = std::thread::scope(|scope| {
            for client in 0..3 {
                let (fleet, fed, gone) = (&fleet, &fed, &gone);
                scope.spawn(move || {
                    let connection = Client::connect(&fleet.control_endpoint());
                    for n in 0.. {
                        let url = format!("http://a.example/{round}/{client}/{n}");
                        let is_gone = || gone.load(Ordering::Relaxed);
                        match connection.ask_unless(&request(&url, "killed"), is_gone) {
                            Some(answer) if answer["accepted"] == 1 => {
                                fed.fetch_add(1, Ordering::Relaxed);
                            }
                            _ => return,
                        }
                    }
                });
            }
            wait_for("enough is fed", || {
                (fed.load(Ordering::Relaxed) > 200
                    && began.elapsed() > Duration::from_millis(1_200))
                .then_some(())
            });
            let connection = Client::connect(&fleet.control_endpoint());
            let paused = connection.ask(&action("pause", Some("killed")));
            connection.ask(&action("resume", Some("killed")));
            fleet.dispatcher().signal(Signal::KILL);
            gone.store(true, Ordering::Relaxed);
            paused
        });
        assert_eq!(paused["state"], "paused", "{paused}");
        answered += fed.into_inner();
        fleet.kill_dispatcher();
        let logged = run_audit(&fleet.dispatcher_state, &[]);
        let feeds = logged.iter().filter(|line| line["action"] == "feed");
        let lines = feeds.clone().count();
        let accepted: u64 = feeds.filter_map(|line| line["accepted"].as_u64()).sum();
        assert!(
            accepted >= answered,
            "{accepted} of {answered} are recorded"
        );
        assert!(
            lines as u64 * 10 < accepted,
            "{lines} lines of {accepted} feeds"
        );
        let actions = |name: &str| logged.iter().filter(|line| line["action"] == name).count();
        assert_eq!(
            (actions("pause"), actions("resume")),
            (round + 1, round + 1)
        );
        fleet.start_dispatcher();
    }
}

#[test]
fn a_folder_without_an_audit_log_is_reported() {
    let fleet = Fleet::unstarted_fleet(&[]);
    let folder = fleet.work.path("empty/logs");
    fs::create_dir_all(&folder).expect("a folder");
    let run = Run::new(["audit", "--state"]).arg(fleet.work.path("empty"));
    let said = run.finish().expect_code(2);
    assert!(said.one_sentence().contains("--state"), "{}", said.stderr);
}
