//! Tests the actions info, stop, pause and resume, and clients that send invalid messages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::process::Process;
use webfill_tests::site::page;

use crate::fleet::{APP, Fleet, action, epoch_seconds, request, request_with, wait_for};

/// Serves `count` pages of a site. Returns requests for them.
fn serve_pages(fleet: &Fleet, host: &str, count: usize, crawl_id: &str) -> Vec<Value> {
    let site = fleet.web.site(host);
    site.serve_otherwise(|request| page(&request.path).into());
    (0..count)
        .map(|page| request(&site.url(&format!("/{page}")), crawl_id))
        .collect()
}

/// A fleet where an operator has blocked these hosts, so that none of their pages is fetched.
fn fleet_with_blocked_sites(hosts: &[&str]) -> Fleet {
    let fleet = Fleet::start();
    for host in hosts {
        fleet
            .run(&["site", host, "--block-until", "1h"])
            .expect_code(0);
    }
    fleet
}

#[test]
fn info_of_a_crawl_has_the_fields_of_scrapy_cluster() {
    let fleet = fleet_with_blocked_sites(&["a.example", "b.example"]);
    let mut requests = serve_pages(&fleet, "a.example", 8, "abc123");
    requests.extend(serve_pages(&fleet, "b.example", 3, "abc123"));
    requests[0]["priority"] = json!(90);
    requests[1]["priority"] = json!(20);
    fleet.feed(&requests);
    let info = fleet.info("abc123");
    assert_eq!(info["total_pending"], 11, "{info}");
    assert_eq!(info["total_domains"], 2, "{info}");
    assert_eq!(
        (&info["high_priority"], &info["low_priority"]),
        (&json!(90), &json!(20)),
        "{info}"
    );
    assert_eq!(
        (&info["appid"], &info["crawlid"]),
        (&json!(APP), &json!("abc123"))
    );
    assert_eq!(info["uuid"], "someuuid");
    let server_time = info["server_time"].as_u64().expect("seconds");
    assert!(server_time.abs_diff(epoch_seconds()) < 60, "{server_time}");
    let as_reported = fleet.run_json(&["info", APP, "abc123"]);
    assert_eq!(as_reported["total_pending"], 11);
    let output = fleet.run(&["info", APP, "abc123"]).expect_code(0).stdout;
    assert!(
        output.contains("pending") && output.contains("11"),
        "{output}"
    );
}

#[test]
fn info_of_an_application_tallies_its_crawls() {
    let fleet = fleet_with_blocked_sites(&["a.example", "b.example"]);
    let expires = epoch_seconds() + 3_600;
    let mut requests = serve_pages(&fleet, "a.example", 11, "1aaabbb");
    requests.push(request_with(
        "http://b.example/",
        "2aaabbb",
        json!({"expires": expires, "priority": 29}),
    ));
    let mut foreign = request("http://b.example/", "3");
    foreign["appid"] = json!("other");
    requests.push(foreign);
    fleet.feed(&requests);
    let info = fleet.client().ask(&action("info", None));
    assert_eq!(info["total_pending"], 12, "{info}");
    assert_eq!(info["total_crawlids"], 2, "{info}");
    assert_eq!(info["total_domains"], 2, "{info}");
    assert_eq!(info["appid"], APP);
    let first = json!({"total": 11, "low_priority": 50, "high_priority": 50});
    let second = json!({"total": 1, "low_priority": 29, "high_priority": 29, "expires": expires});
    assert_eq!(
        info["crawlids"],
        json!({"1aaabbb": first, "2aaabbb": second})
    );
    let output = fleet.run(&["info", APP]).expect_code(0).stdout;
    for part in ["1aaabbb", "2aaabbb", "11", "29"] {
        assert!(output.contains(part), "`{part}` is not in:\n{output}");
    }
    let nothing = fleet
        .client()
        .ask(&json!({"action": "info", "appid": "nobody", "uuid": "u", "spiderid": "link"}));
    assert_eq!(nothing["total_pending"], 0, "{nothing}");
}

#[test]
fn names_that_do_not_exist_are_refused_with_a_similar_name() {
    let fleet = fleet_with_blocked_sites(&["a.example"]);
    fleet.feed(&serve_pages(&fleet, "a.example", 2, "spring"));
    for (args, part) in [
        (vec!["info", APP, "sprin"], "did you mean `spring`?"),
        (vec!["stop", APP, "sprnig"], "did you mean `spring`?"),
        (vec!["pause", APP, "sprin"], "did you mean `spring`?"),
        (
            vec!["resume", APP, "autumn"],
            "its latest crawl is `spring`",
        ),
        (
            vec!["retry", APP, "sprin", "--outcome", "timeout"],
            "did you mean `spring`?",
        ),
        (vec!["prune", APP, "sprin"], "did you mean `spring`?"),
        (
            vec![
                "why",
                "http://a.example/1",
                "--app",
                APP,
                "--crawl",
                "sprin",
            ],
            "no crawl `sprin`",
        ),
    ] {
        let run = fleet.run(&args).expect_code(1);
        assert!(
            run.one_sentence().contains(part),
            "{args:?}: {}",
            run.stderr
        );
    }
    // An application may be asked about before anything is fed for it.
    for (app, part) in [
        ("tset", String::from("no application `tset`")),
        ("spring", format!("webfill info {APP} spring")),
    ] {
        let run = fleet.run(&["info", app]).expect_code(0);
        assert!(run.stderr.contains(&part), "{}", run.stderr);
    }
}

#[test]
fn no_request_starts_after_a_stop_was_answered() {
    let mut fleet = Fleet::start_with(&[("POLITENESS_DELAY", "0.01")]);
    fleet.add_supervisor("two");
    // With so many sites, some requests are always in flight, and other tasks are queued at the workers.
    let hosts: Vec<String> = (0..30).map(|number| format!("s{number}.example")).collect();
    let mut requests = Vec::new();
    for host in &hosts {
        requests.extend(serve_pages(&fleet, host, 100, "halt"));
        fleet.web.site(host).set_latency(Duration::from_millis(30));
    }
    let other = serve_pages(&fleet, "other.example", 200, "goes-on");
    fleet.feed(&requests);
    fleet.feed(&other);
    fleet
        .web
        .log()
        .wait_until("it is under way", |visits| visits.pages().len() > 150);
    let answer = fleet.client().ask(&action("stop", Some("halt")));
    let answered = Instant::now();
    let purged = answer["total_purged"].as_u64().expect("a number");
    assert_eq!(
        (
            &answer["action"],
            &answer["appid"],
            &answer["crawlid"],
            &answer["spiderid"]
        ),
        (&json!("stop"), &json!(APP), &json!("halt"), &json!("link")),
        "{answer}"
    );
    assert_eq!(answer["uuid"], "someuuid");
    fleet.wait_until_done("goes-on");
    let visits = fleet.web.visits().pages();
    let late = visits
        .0
        .iter()
        .filter(|visit| visit.host.starts_with('s') && visit.started_at > answered);
    assert_eq!(late.count(), 0, "requests after the answer");
    let fetched = visits
        .0
        .iter()
        .filter(|visit| visit.host.starts_with('s'))
        .count() as u64;
    assert_eq!(purged + fetched, 3_000, "each was fetched or purged");
    assert!(
        visits.0.iter().all(|visit| !visit.cut_short),
        "what was in flight finished"
    );
    assert_eq!(fleet.info("halt")["total_pending"], 0);
    assert_eq!(
        visits.for_host("other.example").len(),
        200,
        "others continue"
    );
}

/// The lease of supervisors in tests with a stopped process. [`MORE`] is the additional time that an answer may take,
/// because clocks differ and the machine is busy.
const LEASE: Duration = Duration::from_secs(2);
const MORE: Duration = Duration::from_secs(25);

/// Checks that no request of a crawl starts after its stop was answered, although a process is frozen and a worker
/// still holds tasks. `latency` is the time that the site takes for an answer.
fn check_stop_is_kept(latency: Duration, standing_still: impl Fn(&Fleet) -> Process) {
    let lease = LEASE.as_secs().to_string();
    // With such a short delay, the dispatcher hands out up to four tasks of a site at a time.
    let fleet = Fleet::start_with(&[("DISPATCHER_LEASE", &lease), ("POLITENESS_DELAY", "0.1")]);
    let requests = serve_pages(&fleet, "a.example", 50, "c");
    fleet.web.site("a.example").set_latency(latency);
    fleet.feed(&requests);
    let process = standing_still(&fleet);
    let log = fleet.web.log();
    log.wait_until("it is under way", |visits| visits.pages().len() > 5);
    process.signal(Signal::STOP);
    let asked = Instant::now();
    let answer = fleet.client().ask(&action("stop", Some("c")));
    let answered = Instant::now();
    process.signal(Signal::CONT);
    assert!(answer["total_purged"].is_number(), "{answer}");
    let waited = answered - asked;
    assert!(waited < LEASE + MORE, "{waited:?}");
    wait_for("what was held is back", || {
        (fleet.info("c")["leased"] == 0).then_some(())
    });
    assert_eq!(fleet.pending_tasks("c"), 0);
    // The process that was frozen works again now. If it had kept its tasks, it would start them.
    fleet.feed(&serve_pages(&fleet, "b.example", 1, "after"));
    fleet.wait_until_done("after");
    let visits = fleet.web.visits().for_host("a.example").pages();
    let late = visits.0.iter().filter(|visit| visit.started_at > answered);
    assert_eq!(late.count(), 0, "requests after the answer");
}

#[test]
fn a_stop_is_obeyed_by_a_frozen_supervisor() {
    // With this latency, the worker of a frozen supervisor works on its tasks for a while.
    check_stop_is_kept(Duration::from_millis(600), |fleet| {
        fleet.supervisor().processes_of_role("supervisor").remove(0)
    });
}

#[test]
fn a_stop_is_obeyed_by_a_frozen_worker() {
    // When the frozen worker continues, its tasks are already due.
    check_stop_is_kept(Duration::ZERO, |fleet| {
        fleet.supervisor().processes_of_role("worker").remove(0)
    });
}

#[test]
fn a_stopped_crawl_id_is_refused_for_good() {
    let mut fleet = fleet_with_blocked_sites(&["a.example"]);
    fleet.feed(&serve_pages(&fleet, "a.example", 5, "never"));
    let run = fleet.run(&["stop", APP, "never"]).expect_code(0);
    assert!(
        run.stdout.contains("5 pending URLs purged"),
        "{}",
        run.stdout
    );
    let again = request("http://a.example/again", "never");
    let refused = |fleet: &Fleet| {
        let (path, message) = fleet.client().expect_refusal(&json!([again]));
        assert!(path.starts_with("$[0]"), "{path}");
        assert!(
            path.ends_with("crawlid") && message.contains("stop"),
            "{message}"
        );
    };
    refused(&fleet);
    fleet.restart();
    refused(&fleet);
    // Another application may use the same crawl id.
    let mut other = again.clone();
    other["appid"] = json!("another");
    fleet.feed(&[other]);
    let stopped_again = fleet.client().ask(&action("stop", Some("never")));
    assert_eq!(stopped_again["total_purged"], 0, "{stopped_again}");
}

#[test]
fn a_paused_crawl_waits_until_it_is_resumed() {
    let fleet = Fleet::start_with(&[("POLITENESS_DELAY", "0.02")]);
    let requests = serve_pages(&fleet, "a.example", 150, "backoff");
    fleet.feed(&requests);
    let log = fleet.web.log();
    log.wait_until("it is under way", |visits| visits.pages().len() > 5);
    let paused = fleet.client().ask(&action("pause", Some("backoff")));
    let answered = Instant::now();
    assert_eq!(paused["crawlid"], "backoff", "{paused}");
    // Another crawl on the same site continues, and only this one.
    fleet.feed(&[request("http://a.example/beside", "beside")]);
    fleet.wait_until_done("beside");
    let info = fleet.info("backoff");
    let pending = info["total_pending"].as_u64().expect("a number");
    assert!(pending > 50, "{info}");
    let started = fleet.web.visits().pages();
    let late = started.0.iter().filter(|visit| visit.started_at > answered);
    let late: Vec<&str> = late.map(|visit| visit.path.as_str()).collect();
    assert_eq!(late, ["/beside"]);
    let run = fleet.run(&["resume", APP, "backoff"]).expect_code(0);
    assert!(run.stdout.contains("resumed"), "{}", run.stdout);
    fleet.wait_until_done("backoff");
    assert_eq!(fleet.web.visits().pages().len(), 151);
    assert_eq!(
        fleet.web.visits().pages().counts().len(),
        151,
        "nothing was fetched twice"
    );
}

#[test]
fn a_pause_outlasts_a_restart() {
    let mut fleet = fleet_with_blocked_sites(&["a.example"]);
    fleet.feed(&serve_pages(&fleet, "a.example", 5, "backoff"));
    fleet.run(&["pause", APP, "backoff"]).expect_code(0);
    fleet
        .run(&["site", "a.example", "--block-until", "none"])
        .expect_code(0);
    fleet.restart();
    fleet.feed(&[request("http://a.example/beside", "beside")]);
    fleet.wait_until_done("beside");
    assert_eq!(fleet.web.visits().pages().len(), 1);
    assert_eq!(fleet.info("backoff")["total_pending"], 5);
    fleet.run(&["resume", APP, "backoff"]).expect_code(0);
    fleet.wait_until_done("backoff");
    assert_eq!(fleet.web.visits().pages().len(), 6);
}

#[test]
fn actions_that_are_off_are_refused_with_their_path() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let client = fleet.client();
    for (wrong, named) in [
        (
            json!({"action": "dance", "appid": APP, "uuid": "u", "spiderid": "link"}),
            "action",
        ),
        (
            json!({"action": "info", "uuid": "u", "spiderid": "link"}),
            "appid",
        ),
        (
            json!({"action": "stop", "appid": APP, "uuid": "u", "spiderid": "link"}),
            "crawlid",
        ),
        (
            json!({"action": "pause", "appid": APP, "uuid": "u", "spiderid": "link"}),
            "crawlid",
        ),
        (
            json!({"action": "info", "appid": APP, "uuid": "u", "spiderid": "link", "colour": 1}),
            "colour",
        ),
        (
            json!({"action": "info", "appid": 7, "uuid": "u", "spiderid": "link"}),
            "appid",
        ),
        (json!({"action": "site"}), "site"),
        (
            json!({"action": "site", "site": "a.example", "delay": -1}),
            "delay",
        ),
        (
            json!({"action": "site", "site": "a.example", "limit": "many"}),
            "limit",
        ),
    ] {
        let (path, message) = client.expect_refusal(&wrong);
        assert!(
            (path.clone() + &message).contains(named),
            "{wrong}: {path}: {message}"
        );
    }
    let run = fleet.run(&["stop", APP, "no-such-crawl"]).expect_code(1);
    assert!(
        run.stderr.contains("no-such-crawl") || run.stderr.contains("crawlid"),
        "{}",
        run.stderr
    );
    // The refused actions have not used up the crawl id.
    fleet.feed(&serve_pages(&fleet, "a.example", 1, "no-such-crawl"));
}

#[test]
fn invalid_requests_are_answered_with_an_error_and_disturb_nobody() {
    let fleet = Fleet::start();
    let requests = serve_pages(&fleet, "a.example", 60, "works");
    let client = fleet.client();
    fleet.feed(&requests);
    let rubbish: [&[u8]; 12] = [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"null",
        b"7",
        b"\"info\"",
        b"[",
        b"[7]",
        b"[[[]]]",
        b"{}",
        b"{\"action\": {}}",
        b"{\"url\": \"http://a.example/\", \"url\": 7}",
    ];
    for bytes in rubbish {
        let answer = client.ask_bytes(bytes);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{bytes:?}: {answer}");
        assert!(answer["error"]["path"].is_string(), "{answer}");
        assert!(
            fleet.info("works")["total_pending"].is_number(),
            "others are answered"
        );
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert!(client.ask_bytes(deep.as_bytes())["error"]["message"].is_string());
    let large = format!("{{\"url\": \"http://a.example/{}\"}}", "x".repeat(8 << 20));
    assert!(client.ask_bytes(large.as_bytes())["error"]["message"].is_string());
    // A REQ socket could not send these frames, so a DEALER socket is used.
    let odd = zmq::Context::new().socket(zmq::DEALER).expect("a socket");
    odd.set_linger(0).expect("an option");
    odd.connect(&fleet.control_endpoint()).expect("an endpoint");
    for frames in [
        vec!["no delimiter"],
        vec!["", "two", "frames"],
        vec!["", "", ""],
        vec![""],
    ] {
        odd.send_multipart(frames, 0).expect("it waits");
    }
    fleet.wait_until_done("works");
    assert_eq!(fleet.web.visits().pages().len(), 60);
    assert_eq!(client.ask(&action("info", None))["total_pending"], 0);
}

#[test]
fn status_describes_the_fleet() {
    let mut fleet = fleet_with_blocked_sites(&["a.example"]);
    fleet.add_supervisor("two");
    fleet.feed(&serve_pages(&fleet, "a.example", 7, "c"));
    let status = fleet.run_json(&["status"]);
    let text = status.to_string();
    assert!(
        text.contains("\"one\"") && text.contains("\"two\""),
        "{text}"
    );
    let output = fleet.run(&["status"]).expect_code(0).stdout;
    assert!(output.contains("one") && output.contains("two"), "{output}");
}
