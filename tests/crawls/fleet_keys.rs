//! Keys on the network: who joins, who does not, and what is told of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use webfill_tests::Signal;
use webfill_tests::isolation::{add_address, isolated};
use webfill_tests::run::{Finished, Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, files_under};

use crate::keyed_fleet::Fleet;

/// Sites of one page each; returns the URLs.
fn small_web(web: &Web, name: &str, sites: usize) -> Vec<String> {
    let sites = (0..sites).map(|number| {
        let site = web.site(&format!("{name}{number}.example"));
        site.serve("/", page("Hello").field("name", "Ada"));
        site.url("/")
    });
    sites.collect()
}

/// Asks processes to drain, supervisors first, and waits for their good end.
fn drain(processes: Vec<Running>) -> Vec<Finished> {
    let ended = processes.into_iter().map(|process| {
        process.signal(Signal::TERM);
        process.finish().expect(0)
    });
    ended.collect()
}

fn secret_in(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a key");
    let secret = text.trim().strip_prefix("secret ").expect("a secret");
    secret.to_owned()
}

#[test]
fn a_fleet_with_keys_crawls_and_its_secrets_are_nowhere_but_in_their_files() {
    let web = Web::start();
    let urls = small_web(&web, "keyed", 6);
    let fleet = Fleet::new();
    fleet.new_member("supervisor", "vm-01");
    fleet.new_member("client", "feeder");
    let dispatcher = fleet.dispatcher();
    let supervisor = fleet.supervisor(&web, "vm-01").start();
    let client = fleet.client("feeder");
    let crawl = client.feed("keyed", &urls);
    let status = client.wait_until_finished(&crawl);
    assert_eq!(status["outcomes"], json!({"ok": 6}), "{status}");

    let secrets = [
        "keys/dispatcher.key",
        "vm-01/supervisor.key",
        "feeder/client.key",
    ]
    .map(|file| secret_in(&fleet.work.path(file)));
    let processes = [dispatcher.processes(), supervisor.processes()].concat();
    assert!(processes.len() >= 3, "a dispatcher, a supervisor, a worker");
    let mut seen: Vec<(String, Vec<u8>)> = Vec::new();
    for process in processes {
        for file in ["cmdline", "environ"] {
            let path = format!("/proc/{}/{file}", process.pid);
            seen.push((path.clone(), fs::read(path).expect("it lives")));
        }
    }
    for ended in drain(vec![supervisor, dispatcher]) {
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
    assert!(fleet.told("peer_refused").is_empty());
}

#[test]
fn with_keys_a_fleet_speaks_beyond_its_machine() {
    isolated(
        "fleet_keys::with_keys_a_fleet_speaks_beyond_its_machine",
        || {
            for (address, host) in [("10.11.12.13", "10.11.12.13"), ("fd00::1", "[fd00::1]")] {
                add_address(address);
                let web = Web::start();
                let fleet = Fleet::at(host);
                fleet.new_member("supervisor", "vm-01");
                fleet.new_member("client", "feeder");
                let dispatcher = fleet.dispatcher();
                let supervisor = fleet.supervisor(&web, "vm-01").start();
                let client = fleet.client("feeder");
                let crawl = client.feed("far", &small_web(&web, "far", 2));
                let status = client.wait_until_finished(&crawl);
                assert_eq!(status["outcomes"], json!({"ok": 2}), "{status}");
                drain(vec![supervisor, dispatcher]);
            }
        },
    );
}

#[test]
fn strangers_are_refused_and_told_with_address_and_key() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    let stranger = fleet.new_keys("supervisor", "stranger");
    // Its own key is known, but it trusts another dispatcher.
    fleet.new_member("supervisor", "misled");
    let misled = fleet.work.path("misled/dispatcher.pub");
    fs::remove_file(&misled).expect("our own");
    fs::copy(fleet.work.path("stranger/supervisor.pub"), &misled).expect("our own");
    // A feeder that would like to see tasks.
    let feeder = fs::read_to_string(fleet.work.path("feeder/client.pub")).expect("a key");
    for (from, to) in [
        ("client.key", "supervisor.key"),
        ("dispatcher.pub", "dispatcher.pub"),
    ] {
        let copy = fs::read(fleet.work.path("feeder").join(from)).expect("a key");
        let path = fleet.work.write(&format!("nosy/{to}"), copy);
        fs::set_permissions(path, fs::Permissions::from_mode(0o400)).expect("our own");
    }
    let _dispatcher = fleet.dispatcher();
    let _refused = ["stranger", "misled", "nosy"].map(|who| {
        let run = fleet.supervisor(&web, who);
        run.start()
    });

    let told = fleet.wait_until_told("peer_refused", &stranger);
    assert_eq!(
        (&told["address"], &told["key"]),
        (&json!("127.0.0.1"), &json!(stranger))
    );
    let told = fleet.wait_until_told("peer_refused", "another role");
    assert_eq!(
        (&told["key"], &told["name"]),
        (&json!(feeder.trim()), &json!("feeder"))
    );
    fleet.wait_until_told("peer_refused", "it has not the public key of this process");
    fleet.knock_without_keys();
    for who in ["stranger", "misled", "nosy"] {
        let told = fleet.wait_until_supervisor_tells(who, "not_let_in");
        assert!(
            told["why"].as_str().is_some_and(|why| why.contains("key")),
            "{told}"
        );
    }
    let client = fleet.client("feeder");
    let crawl = client.feed("nobody", &small_web(&web, "waiting", 1));
    let status = client.status(&crawl);
    assert_eq!(
        (&status["supervisors"], &status["leased"]),
        (&json!(0), &json!(0))
    );
    assert!(fleet.told("supervisor_joined").is_empty());
    assert!(web.visits().is_empty());
}

#[test]
fn keys_on_one_side_only_are_told_on_both() {
    let web = Web::start();
    let fleet = Fleet::new();
    let _dispatcher = fleet.dispatcher();
    let _plain = fleet.supervisor_without_keys(&web, "plain").start();
    let told = fleet.wait_until_supervisor_tells("plain", "not_let_in");
    assert_eq!(told["why"], "it wants keys: set `keys`");
    fleet.wait_until_told("peer_refused", "it has no keys");
}

#[test]
fn a_fleet_with_keys_outlives_its_dispatcher() {
    let web = Web::start();
    let urls = small_web(&web, "outlives", 6);
    let fleet = Fleet::new();
    fleet.new_member("supervisor", "vm-01");
    fleet.new_member("client", "feeder");
    let dispatcher = fleet.dispatcher();
    let supervisor = fleet.supervisor(&web, "vm-01").start();
    let client = fleet.client("feeder");
    let first = client.feed("first", &urls[..3]);
    client.wait_until_finished(&first);
    dispatcher.signal(Signal::KILL);
    drop(dispatcher);
    let dispatcher = fleet.dispatcher();
    let client = fleet.client("feeder");
    let second = client.feed("second", &urls[3..]);
    let status = client.wait_until_finished(&second);
    assert_eq!(status["outcomes"], json!({"ok": 3}), "{status}");
    drain(vec![supervisor, dispatcher]);
}

#[test]
fn a_key_that_is_added_while_all_runs_gets_in_without_a_restart() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    let key = fleet.new_keys("supervisor", "late");
    let dispatcher = fleet.dispatcher();
    let client = fleet.client("feeder");
    let crawl = client.feed("late", &small_web(&web, "late", 2));
    let supervisor = fleet.supervisor(&web, "late").start();
    fleet.wait_until_told("peer_refused", &key);
    fleet.keys(&["add", "supervisor", "late", &key]).expect(0);
    let status = client.wait_until_finished(&crawl);
    assert_eq!(status["outcomes"], json!({"ok": 2}), "{status}");
    drain(vec![supervisor, dispatcher]);
}

#[test]
fn a_revoked_supervisor_gets_no_more_tasks_and_another_does_them() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    let key = fleet.new_member("supervisor", "old");
    fleet.new_member("supervisor", "new");
    let dispatcher = fleet.dispatcher();
    let client = fleet.client("feeder");
    let old = fleet.supervisor(&web, "old").start();
    let first = client.feed("first", &small_web(&web, "first", 2));
    client.wait_until_finished(&first);
    let before = web.visits().len();

    fleet.keys(&["revoke", "old"]).expect(0);
    let told = fleet.wait_until_told("message_refused", &key);
    assert_eq!(told["key"], json!(key));
    let second = client.feed("second", &small_web(&web, "second", 3));
    // By its messages it would still be taken for alive, and sites go to the living in turn.
    fleet.wait_until_supervisor_tells("old", "dispatcher_silent");
    assert_eq!(web.visits().len(), before, "nothing was handed to it");
    let new = fleet.supervisor(&web, "new").start();
    let status = client.wait_until_finished(&second);
    assert_eq!(status["outcomes"], json!({"ok": 3}), "{status}");
    drop(old);
    drain(vec![new, dispatcher]);
}

#[test]
fn a_revoked_client_is_not_answered_any_more() {
    let fleet = Fleet::new();
    fleet.new_member("client", "old");
    fleet.new_member("client", "new");
    let _dispatcher = fleet.dispatcher();
    let (old, new) = (fleet.client("old"), fleet.client("new"));
    let status = json!({"action": "crawl_status", "crawls": []});
    assert_eq!(old.ask(&status)["supervisors"], 0);
    fleet.keys(&["revoke", "old"]).expect(0);
    old.say(&status);
    fleet.wait_until_told("message_refused", "client");
    assert_eq!(new.ask(&status)["supervisors"], 0);
    assert!(old.has_no_answer());
}

#[test]
fn a_supervisor_goes_by_the_name_of_its_key() {
    let web = Web::start();
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    for name in ["vm-01", "swarm"] {
        fleet.new_member("supervisor", name);
    }
    let dispatcher = fleet.dispatcher();
    let thief = fleet
        .supervisor(&web, "swarm")
        .instead("--id", "vm-01")
        .start();
    let told = fleet.wait_until_told("message_refused", "vm-01");
    assert_eq!(
        (&told["name"], &told["supervisor"]),
        (&json!("swarm"), &json!("vm-01"))
    );
    drop(thief);
    assert!(fleet.told("supervisor_joined").is_empty());
    let one_of_many = fleet
        .supervisor(&web, "swarm")
        .instead("--id", "swarm:i-0abc");
    let one_of_many = one_of_many.start();
    let client = fleet.client("feeder");
    let crawl = client.feed("swarm", &small_web(&web, "swarm", 2));
    client.wait_until_finished(&crawl);
    assert_eq!(
        fleet.told("supervisor_joined")[0]["supervisor"],
        "swarm:i-0abc"
    );
    drain(vec![one_of_many, dispatcher]);
}

#[test]
fn without_keys_nothing_leaves_this_machine() {
    let work = Workplace::new();
    let refused = [
        vec!["dispatcher", "--listen", "0.0.0.0"],
        vec!["dispatcher", "--listen", "*"],
        vec!["dispatcher", "--listen", "192.0.2.1"],
        vec!["dispatcher", "--listen", "[::]"],
        vec!["supervisor", "--dispatcher", "tcp://192.0.2.1:5555"],
        vec![
            "supervisor",
            "--dispatcher",
            "tcp://dispatcher.example:5555",
        ],
    ];
    for args in refused {
        let run = Run::new(&args).in_folder(work.path(""));
        let run = run.finish().expect(2);
        let said = run.one_sentence();
        assert!(
            said.contains(args[2].trim_start_matches("tcp://")),
            "{said}"
        );
        assert!(
            said.contains("without keys") && said.contains("--keys"),
            "{said}"
        );
        assert!(!work.path(".webfill").exists(), "nothing was opened");
    }
}

#[test]
fn faulty_keys_are_told_before_anything_is_opened() {
    let fleet = Fleet::new();
    let dispatcher = || {
        Run::new(["dispatcher", "--listen", &fleet.host, "--keys"])
            .arg(fleet.work.path("keys"))
            .in_folder(fleet.work.path(""))
    };
    let secret = fleet.work.path("keys/dispatcher.key");
    let refuses = |text: &str| {
        let run = dispatcher().finish().expect(2);
        let said = run.one_sentence();
        assert!(said.contains(text), "`{text}` is not in: {said}");
        assert!(!said.contains(&secret_in(&secret)), "{said}");
        assert!(!fleet.work.path(".webfill").exists(), "nothing was opened");
    };
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o440)).expect("our own");
    refuses("keys/dispatcher.key is open to others than its owner (mode 440)");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o400)).expect("our own");
    let list = fleet.work.path("keys/allowed");
    let good = fs::read_to_string(&list).expect("a list");
    fs::write(&list, format!("{good}supervisor vm-01 short\n")).expect("our own");
    refuses("keys/allowed: line 2: the key of vm-01: a key has 40 characters, not 5");
    fs::remove_file(&list).expect("our own");
    refuses("cannot read the list of keys");
}

#[test]
fn webfill_keys_makes_secret_files_and_overwrites_none() {
    let fleet = Fleet::new();
    let mode = |file: &str| {
        let file = fs::metadata(fleet.work.path(file)).expect("it was made");
        file.permissions().mode() & 0o777
    };
    assert_eq!((mode("keys"), mode("keys/dispatcher.key")), (0o700, 0o400));
    let secret = secret_in(&fleet.work.path("keys/dispatcher.key"));
    let again = fleet.keys(&["new", "dispatcher"]).expect(2);
    assert!(again.one_sentence().contains("keys/dispatcher.key exists"));
    assert_eq!(secret_in(&fleet.work.path("keys/dispatcher.key")), secret);

    let one = fleet.new_member("supervisor", "vm-01");
    let two = fleet.new_member("client", "feeder");
    let listed = fleet.keys(&["list"]).expect(0).stdout;
    let words: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        words,
        [["supervisor", "vm-01", &one], ["client", "feeder", &two]]
    );
    fs::write(fleet.work.path("a.pub"), format!("{two}\n")).expect("our own");
    let file = |name: &str| fleet.work.path(name).display().to_string();
    let mistakes: [(&[&str], &str); 8] = [
        (&["add", "supervisor", "vm-01", &two], "listed already"),
        (
            &["add", "supervisor", "vm-02", &file("a.pub")],
            "listed already",
        ),
        (
            &["add", "supervisor", "vm-02", &file("vm-01/supervisor.key")],
            "secret key",
        ),
        (
            &["add", "supervisor", "vm-02", "nonsense"],
            "neither a file nor a public key",
        ),
        (&["add", "supervisor", "vm:02", &two], "a name has"),
        (&["add", "admin", "vm-02", &two], "admin"),
        (&["revoke", "vm-02"], "vm-02"),
        (
            &["new", "dispatcher", "--dispatcher-key", &two],
            "--dispatcher-key",
        ),
    ];
    for (args, says) in mistakes {
        let run = fleet.keys(args).expect(2);
        assert!(
            run.one_sentence().contains(says),
            "{args:?}: {}",
            run.stderr
        );
    }
    assert_eq!(
        fleet.keys(&["list"]).expect(0).stdout,
        listed,
        "nothing changed"
    );
    fleet.keys(&["revoke", &two]).expect(0);
    fleet.keys(&["revoke", "vm-01"]).expect(0);
    assert_eq!(fleet.keys(&["list"]).expect(0).stdout, "");
}

#[test]
fn changes_of_the_list_at_the_same_time_are_all_kept() {
    let fleet = Fleet::new();
    let keys: Vec<String> = (0..8)
        .map(|number| fleet.new_keys("supervisor", &format!("vm-{number}")))
        .collect();
    std::thread::scope(|scope| {
        for (number, key) in keys.iter().enumerate() {
            let (fleet, name) = (&fleet, format!("vm-{number}"));
            scope.spawn(move || fleet.keys(&["add", "supervisor", &name, key]).expect(0));
        }
    });
    let listed = fleet.keys(&["list"]).expect(0).stdout;
    assert!(keys.iter().all(|key| listed.contains(key)), "{listed}");
    assert!(!fleet.work.path("keys/allowed.new").exists());
}
