//! Tests `webfill keys`, and missing or invalid keys. Mistakes are reported in one sentence before anything is opened.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::workplace::Workplace;

use crate::keyed_fleet::{Fleet, read_secret};

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
        let run = run.finish().expect_code(2);
        let said = run.one_sentence();
        assert!(
            said.contains(args[2].trim_start_matches("tcp://")),
            "{said}"
        );
        assert!(
            said.contains("which needs keys") && said.contains("--keys"),
            "{said}"
        );
        assert!(!work.path(".webfill").exists(), "nothing was opened");
    }
}

#[test]
fn faulty_keys_are_reported_before_anything_is_opened() {
    let fleet = Fleet::new();
    let dispatcher = || {
        Run::new(["dispatcher", "--listen", &fleet.host, "--keys"])
            .arg(fleet.work.path("keys"))
            .in_folder(fleet.work.path(""))
    };
    let secret = fleet.work.path("keys/dispatcher.key");
    let refuses = |text: &str| {
        let run = dispatcher().finish().expect_code(2);
        let said = run.one_sentence();
        assert!(said.contains(text), "`{text}` is not in: {said}");
        assert!(!said.contains(&read_secret(&secret)), "{said}");
        assert!(!fleet.work.path(".webfill").exists(), "nothing was opened");
    };
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o440)).expect("our own");
    refuses("keys/dispatcher.key is readable by others than its owner (mode 440)");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o400)).expect("our own");
    let list = fleet.work.path("keys/allowed");
    let good = fs::read_to_string(&list).expect("a list");
    fs::write(&list, format!("{good}supervisor vm-01 short\n")).expect("our own");
    refuses("keys/allowed: line 2: the key of vm-01: a key has 40 characters, not 5");
    fs::remove_file(&list).expect("our own");
    refuses("cannot read the allow list");
}

#[test]
fn webfill_keys_makes_secret_files_and_overwrites_none() {
    let fleet = Fleet::new();
    let mode = |file: &str| {
        let file = fs::metadata(fleet.work.path(file)).expect("it was made");
        file.permissions().mode() & 0o777
    };
    assert_eq!((mode("keys"), mode("keys/dispatcher.key")), (0o700, 0o400));
    let secret = read_secret(&fleet.work.path("keys/dispatcher.key"));
    let again = fleet.run_keys(&["new", "dispatcher"]).expect_code(2);
    assert!(again.one_sentence().contains("keys/dispatcher.key exists"));
    assert_eq!(read_secret(&fleet.work.path("keys/dispatcher.key")), secret);

    let one = fleet.new_member("supervisor", "vm-01");
    let two = fleet.new_member("client", "feeder");
    let listed = fleet.run_keys(&["list"]).expect_code(0).stdout;
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
        (&["add", "supervisor", "vm-01", &two], "already listed"),
        (
            &["add", "supervisor", "vm-02", &file("a.pub")],
            "already listed",
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
        let run = fleet.run_keys(args).expect_code(2);
        assert!(
            run.one_sentence().contains(says),
            "{args:?}: {}",
            run.stderr
        );
    }
    assert_eq!(
        fleet.run_keys(&["list"]).expect_code(0).stdout,
        listed,
        "nothing changed"
    );
    fleet.run_keys(&["revoke", &two]).expect_code(0);
    fleet.run_keys(&["revoke", "vm-01"]).expect_code(0);
    assert_eq!(fleet.run_keys(&["list"]).expect_code(0).stdout, "");
}

/// A key may begin with a hyphen, as an option does. This is the case for one key in 85.
#[test]
fn keys_that_begin_with_a_hyphen_are_taken_and_revoked() {
    let fleet = Fleet::new();
    let key = "-hV00".repeat(8);
    fleet
        .run_keys(&["add", "client", "feeder", &key])
        .expect_code(0);
    let listed = fleet.run_keys(&["list"]).expect_code(0).stdout;
    assert!(listed.contains(&key), "{listed}");
    fleet.run_keys(&["revoke", &key]).expect_code(0);
    assert_eq!(fleet.run_keys(&["list"]).expect_code(0).stdout, "");
    fs::remove_file(fleet.work.path("keys/dispatcher.pub")).expect("the fleet's own");
    let trusting = ["new", "supervisor", "--dispatcher-key", &key];
    fleet.run_keys(&trusting).expect_code(0);
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
            scope.spawn(move || {
                fleet
                    .run_keys(&["add", "supervisor", &name, key])
                    .expect_code(0)
            });
        }
    });
    let listed = fleet.run_keys(&["list"]).expect_code(0).stdout;
    assert!(keys.iter().all(|key| listed.contains(key)), "{listed}");
    assert!(!fleet.work.path("keys/allowed.new").exists());
}

/// Root makes the first change of the allow list. The files created by root must not prevent the dispatcher's user from
/// making the next change.
#[needs(root)]
#[test]
fn files_written_by_root_belong_to_the_owner_of_the_keys() {
    let fleet = Fleet::new();
    let nobody = 65_534;
    let keys = fleet.work.path("keys");
    let owner = |name: &str| fs::metadata(keys.join(name)).expect("it is there").uid();
    fs::remove_file(keys.join("audit.log")).ok();
    let own = fs::read_dir(&keys).expect("it is there").flatten();
    for path in own.map(|file| file.path()).chain([keys.clone()]) {
        std::os::unix::fs::chown(path, Some(nobody), Some(nobody)).expect("we are root");
    }
    let made = fleet.new_keys("supervisor", "vm-01");
    fleet
        .run_keys(&["add", "supervisor", "vm-01", &made])
        .expect_code(0);
    fleet
        .run_keys(&["new", "dispatcher", "--next"])
        .expect_code(0);
    for file in [
        "audit.log",
        "allowed",
        "dispatcher-next.key",
        "dispatcher-next.pub",
    ] {
        assert_eq!(owner(file), nobody, "{file}");
    }
    fleet.run_keys(&["revoke", "vm-01"]).expect_code(0);
    // The audit log is a link to a file elsewhere. Root must not write to that file on behalf of the folder's owner.
    let elsewhere = fleet.work.write("elsewhere", "untouched\n");
    fs::remove_file(keys.join("audit.log")).expect("we are root");
    std::os::unix::fs::symlink(&elsewhere, keys.join("audit.log")).expect("our own");
    let refused = fleet
        .run_keys(&["add", "supervisor", "vm-01", &made])
        .expect_code(2);
    assert!(
        refused.one_sentence().contains("audit.log"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        fs::read_to_string(&elsewhere).expect("it is there"),
        "untouched\n"
    );
}

/// The shipped folder for keys belongs to root, and every role may create files in it (`deploy/systemd/tmpfiles.conf`).
#[needs(root)]
#[test]
fn files_written_by_root_into_a_shared_folder_belong_to_the_user_of_the_dispatcher() {
    use std::os::unix::fs::chown;

    let fleet = Fleet::new();
    let (dispatcher, webfill) = (64_001, 64_002);
    let keys = fleet.work.path("keys");
    let owner = |name: &str| {
        let found = fs::metadata(keys.join(name)).expect("it is there");
        (found.uid(), found.gid())
    };
    chown(&keys, Some(0), Some(webfill)).expect("we are root");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o1770)).expect("we are root");
    fs::write(keys.join("audit.log"), "").expect("we are root");
    for file in ["dispatcher.key", "dispatcher.pub", "allowed", "audit.log"] {
        chown(keys.join(file), Some(dispatcher), Some(webfill)).expect("we are root");
    }
    let made = fleet.new_keys("supervisor", "vm-01");
    fleet
        .run_keys(&["add", "supervisor", "vm-01", &made])
        .expect_code(0);
    fleet
        .run_keys(&["new", "dispatcher", "--next"])
        .expect_code(0);
    let files = ["audit.log", "allowed", "dispatcher-next.key"];
    for file in files.into_iter().chain(["dispatcher-next.pub"]) {
        assert_eq!(owner(file), (dispatcher, webfill), "{file}");
    }
    // The new owner of the log stays its owner, although it is not the dispatcher's user.
    chown(keys.join("audit.log"), Some(64_003), Some(webfill)).expect("we are root");
    fleet.run_keys(&["revoke", "vm-01"]).expect_code(0);
    assert_eq!(owner("audit.log"), (64_003, webfill));

    // A dispatcher that cannot read its next key would not start, so the rotation is refused.
    chown(keys.join("dispatcher-next.key"), Some(0), Some(0)).expect("we are root");
    let refused = fleet.run_keys(&["rotate"]).expect_code(2);
    let said = refused.one_sentence();
    assert!(said.contains("dispatcher-next.key belongs to"), "{said}");
    chown(keys.join("dispatcher-next.key"), Some(dispatcher), None).expect("we are root");
    // Only root can read this public key, as if root had copied it. The rotation still succeeds.
    chown(keys.join("dispatcher-next.pub"), Some(0), Some(0)).expect("we are root");
    let narrow = fs::Permissions::from_mode(0o600);
    fs::set_permissions(keys.join("dispatcher-next.pub"), narrow).expect("we are root");
    fleet.run_keys(&["rotate"]).expect_code(0);
    for file in ["dispatcher.key", "dispatcher.pub", "dispatcher-former.key"] {
        assert_eq!(owner(file), (dispatcher, webfill), "{file}");
    }
    let mode = fs::metadata(keys.join("dispatcher.pub"))
        .expect("it is there")
        .mode();
    assert_eq!(mode & 0o777, 0o444);
}

#[test]
fn the_dispatchers_key_is_replaced_by_the_next_one_and_kept() {
    let fleet = Fleet::new();
    let path = |name: &str| fleet.work.path(&format!("keys/{name}"));
    let refused = fleet.run_keys(&["rotate"]).expect_code(2);
    assert!(
        refused.one_sentence().contains("--next"),
        "{}",
        refused.stderr
    );
    let former = read_secret(&path("dispatcher.key"));
    let next = fleet
        .run_keys(&["new", "dispatcher", "--next"])
        .expect_code(0);
    let (public, next) = (next.stdout, read_secret(&path("dispatcher-next.key")));
    assert_eq!(
        read_secret(&path("dispatcher.key")),
        former,
        "it is in force"
    );
    let again = fleet
        .run_keys(&["new", "dispatcher", "--next"])
        .expect_code(2);
    assert!(again.one_sentence().contains("exists"), "{}", again.stderr);
    // The public key next to the secret key now belongs to another pair, so the rotation is refused.
    let kept = fs::read(path("dispatcher-next.pub")).expect("a key");
    fs::remove_file(path("dispatcher-next.pub")).expect("our own");
    fs::copy(path("dispatcher.pub"), path("dispatcher-next.pub")).expect("our own");
    let refused = fleet.run_keys(&["rotate"]).expect_code(2);
    assert!(
        refused.one_sentence().contains("is not the public key"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        read_secret(&path("dispatcher.key")),
        former,
        "nothing has changed"
    );
    fs::remove_file(path("dispatcher-next.pub")).expect("our own");
    fs::write(path("dispatcher-next.pub"), kept).expect("our own");

    // The state of the files as if a rotation was interrupted after the new secret key was put in place. The command
    // completes the rotation.
    fs::hard_link(path("dispatcher.key"), path("dispatcher-former.key")).expect("our own");
    fs::rename(path("dispatcher-next.key"), path("dispatcher.key")).expect("our own");
    assert_eq!(fleet.run_keys(&["rotate"]).expect_code(0).stdout, public);
    assert_eq!(read_secret(&path("dispatcher.key")), next);
    assert_eq!(read_secret(&path("dispatcher-former.key")), former);
    assert_eq!(
        fs::read_to_string(path("dispatcher.pub")).expect("a key"),
        public
    );
    let mode = |name: &str| {
        fs::metadata(path(name))
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode("dispatcher.key"), mode("dispatcher-former.key")),
        (0o400, 0o400)
    );
    let audit = fs::read_to_string(path("audit.log")).expect("a log");
    assert!(audit.contains(r#""action":"keys_rotate""#), "{audit}");

    // The former key is still there, and the next rotation must not overwrite it.
    fleet
        .run_keys(&["new", "dispatcher", "--next"])
        .expect_code(0);
    let refused = fleet.run_keys(&["rotate"]).expect_code(2);
    assert!(
        refused.one_sentence().contains("dispatcher-former.key"),
        "{}",
        refused.stderr
    );
    assert_eq!(read_secret(&path("dispatcher.key")), next);
    for name in ["dispatcher-former.key", "dispatcher-former.pub"] {
        fs::remove_file(path(name)).expect("our own");
    }
    fleet.run_keys(&["rotate"]).expect_code(0);
    assert_eq!(read_secret(&path("dispatcher-former.key")), next);
}
