//! Tests that a supervisor reports `ready` once it can work, and the reason for waiting before that.

use std::net::TcpStream;
use std::time::Duration;

use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::Running;
use webfill_tests::workplace::files_under;

use crate::clients::get;
use crate::fleet::{Fleet, HTTP, request, wait_for};

/// Waits until a supervisor reports this reason for waiting, on standard error and in its log.
fn wait_until_logged(fleet: &Fleet, running: &mut Running, reason: &str) {
    running.wait_for_stderr(&format!("waiting: {reason}"));
    wait_for("it is in the log", || {
        let logs = files_under(&fleet.work.path("state"));
        let texts = logs
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok());
        let reported = |text: &str| {
            let mut lines = text.lines();
            lines.any(|line| line.contains("\"event\":\"waiting\"") && line.contains(reason))
        };
        texts.into_iter().any(|text| reported(&text)).then_some(())
    });
    assert!(!is_ready(running), "{}", running.stderr_so_far());
}

fn is_ready(running: &Running) -> bool {
    running.stderr_so_far().lines().any(|line| line == "ready")
}

#[test]
fn a_supervisor_waits_for_a_dispatcher_and_is_ready_when_it_is_welcome() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let mut running = fleet.supervisor_role("one", &[]).start();
    let silent = format!("the dispatcher at {}: it does not answer", fleet.endpoint());
    wait_until_logged(&fleet, &mut running, &silent);
    fleet.start_dispatcher();
    running.wait_until("it is ready", is_ready);
    let output = running.stderr_so_far();
    assert_eq!(output.matches(&silent).count(), 1, "{output}");
}

#[test]
fn a_supervisor_whose_name_is_taken_waits_until_it_is_free() {
    let mut fleet = Fleet::start_with(&[]);
    let other = fleet.work.path("state/other");
    let mut running = fleet
        .supervisor_role("one", &[])
        .replace_flag("--state", &other)
        .start();
    let taken = format!(
        "the dispatcher at {}: another supervisor has this name",
        fleet.endpoint()
    );
    wait_until_logged(&fleet, &mut running, &taken);
    fleet.drain_supervisor("one");
    running.wait_until("it is ready", is_ready);
}

#[test]
fn a_supervisor_whose_store_is_away_is_not_ready() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    // This address has no server.
    let away = "mongodb://127.0.0.1:9/webfill";
    let mut running = fleet
        .supervisor_role("one", &[])
        .replace_flag("--store", away)
        .time_limit(Duration::from_secs(120))
        .start();
    wait_until_logged(&fleet, &mut running, "no worker has opened the store yet");
}

/// The dispatcher must end although its store does not answer. The next dispatcher does the remaining work.
#[needs(mongod)]
#[test]
fn a_dispatcher_ends_although_its_store_does_not_answer() {
    let mongod = Mongod::start();
    let fleet = Fleet::unstarted_fleet(&[]);
    let start = || {
        let role = fleet.dispatcher_role();
        let role = role.replace_flag("--store", mongod.uri("fleet"));
        let mut running = role.time_limit(Duration::from_secs(60)).start();
        running.wait_for_stderr("ready");
        running
    };
    let running = start();
    mongod.pause();
    fleet.feed(&[request("http://a.example/", "c")]);
    running.signal(Signal::TERM);
    // Exit code 0 means that the dispatcher has ended by itself, before the time limit.
    running.finish().expect_code(0);
    mongod.resume();
    let successor = start();
    let stored = Documents::open(&mongod.uri("fleet"));
    wait_for("the crawl is in the store", || {
        (stored.count("crawls") == 1).then_some(())
    });
    successor.signal(Signal::TERM);
    successor.finish().expect_code(0);
}

/// If a supervisor could connect earlier, it would wait for an answer that cannot come yet.
#[test]
fn nothing_can_connect_before_the_frontier_is_open() {
    let mut fleet = Fleet::start_dispatcher_only(&[]);
    fleet.dispatcher().signal(Signal::TERM);
    fleet.wait_until_dispatcher_ended(0);
    let frontier = fleet.dispatcher_state.join("dispatcher.db");
    let db = rusqlite::Connection::open(frontier).expect("it is SQLite");
    // Another program holds the lock of the database, so the dispatcher waits ten seconds for it.
    db.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let mut running = fleet.dispatcher_role().start();
    wait_for("it opens the frontier", || {
        TcpStream::connect((fleet.host.as_str(), HTTP)).ok()
    });
    let (code, reported) = get(&fleet, "/healthz");
    assert_eq!(
        (code, &reported["why"][0]),
        (503, &"the frontier is being opened".into()),
        "{reported}"
    );
    for socket in 0..4 {
        let connected = TcpStream::connect((fleet.host.as_str(), 5555 + socket));
        assert!(connected.is_err(), "socket {socket} listens");
    }
    db.execute_batch("ROLLBACK").expect("the end");
    running.wait_for_stderr("ready");
    for socket in 0..4 {
        TcpStream::connect((fleet.host.as_str(), 5555 + socket)).expect("it listens");
    }
}

#[needs(mongod)]
#[test]
fn an_unavailable_store_is_reported_by_healthz_until_it_is_back() {
    let mongod = Mongod::start();
    let mut fleet = Fleet::unstarted_fleet(&[]);
    fleet.store = Some(mongod.uri("fleet"));
    fleet.start_dispatcher();
    assert_eq!(get(&fleet, "/healthz").0, 200);
    mongod.pause();
    fleet.feed(&[request("http://a.example/", "c")]);
    let answer = wait_for("it is reported", || {
        let (code, answer) = get(&fleet, "/healthz");
        (code == 503).then_some(answer)
    });
    assert_eq!(answer["why"][0], "the store accepts no writes", "{answer}");
    mongod.resume();
    wait_for("it is back", || {
        (get(&fleet, "/healthz").0 == 200).then_some(())
    });
}

/// The test plays a dispatcher whose versions of messages are far from those that the supervisor knows.
#[test]
fn a_supervisor_that_shares_no_version_says_so_and_waits() {
    let fleet = Fleet::unstarted_fleet(&[]);
    let context = zmq::Context::new();
    let socket = context.socket(zmq::ROUTER).expect("a socket");
    socket.set_linger(0).expect("an option");
    socket.set_rcvtimeo(30_000).expect("an option");
    socket.bind(&fleet.endpoint()).expect("a free address");
    let mut running = fleet.supervisor_role("one", &[]).start();
    let mut hellos = 0;
    while hellos < 3 {
        let frames = socket.recv_multipart(0).expect("a hello");
        // A supervisor says hello twice, in the new form and in an older one for older dispatchers. The new form begins
        // with 0, and only it can be refused.
        if frames[1][0] == 0 {
            hellos += 1;
            // The refusal consists of the session and the range of versions that the dispatcher supports.
            let refusal: &[u8] = &[0, 1, 200, 201];
            let answer = [frames[0].as_slice(), refusal];
            socket.send_multipart(answer, 0).expect("it is sent");
        }
    }
    let reason = format!(
        "the dispatcher at {}: it speaks wire versions 200 to 201",
        fleet.endpoint()
    );
    wait_until_logged(&fleet, &mut running, &reason);
    let logs = files_under(&fleet.work.path("state/supervisor-one/logs"));
    let logs = logs.iter().filter(|file| !file.is_symlink());
    let text: String = logs
        .map(|file| std::fs::read_to_string(file).expect("a log"))
        .collect();
    let reported = text.matches("\"event\":\"no_common_version\"").count();
    assert_eq!(reported, 1, "once a minute: {text}");
    assert!(text.contains("upgrade webfill at the supervisor"), "{text}");
}
