//! `webfill keys`, and missing or invalid keys: mistakes are reported in one sentence before anything is
//! opened.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use webfill_tests::run::Run;
use webfill_tests::workplace::Workplace;

use crate::keyed_fleet::{Fleet, secret_in};

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
