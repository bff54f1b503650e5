//! Tests clients that send more than can be answered, that do not read, or that send forbidden requests. Other clients
//! are still answered, and the dispatcher's memory stays bounded. `tests/bench/run.sh hostile` runs the same attacks
//! for longer.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clients::Pipeline;
use crate::fleet::{APP, Fleet, action, request, request_with, wait_for};
use crate::keyed::Keyed;

/// The most memory that a dispatcher may take in these tests. A debug build takes about 60 MiB when it is idle.
const MOST_MIB: u64 = 300;

const CRAWLS: usize = 1_000;

/// A fleet with many crawls of one application. None of them runs, because there is no supervisor.
fn fleet_with_many_crawls() -> Fleet {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let requests = (0..CRAWLS).map(|nth| {
        let url = format!("http://a.example/{nth}");
        request(&url, &format!("crawl-{nth:04}"))
    });
    fleet.feed(&requests.collect::<Vec<Value>>());
    fleet
}

fn peak_mib(fleet: &Fleet) -> u64 {
    let status = format!("/proc/{}/status", fleet.dispatcher().pid());
    let status = fs::read_to_string(status).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().split(' ').next()?.parse::<u64>().ok());
    kib.expect("its memory") / 1_024
}

/// Checks that an honest client is still answered quickly. The machine may be busy, so only the quickest of several
/// attempts counts.
fn assert_others_are_answered(fleet: &Fleet) {
    let honest = fleet.client();
    let attempt = |nth: usize| {
        let asked = Instant::now();
        let fed = honest.ask(&request(&format!("http://b.example/{nth}"), "honest"));
        assert_eq!(fed["accepted"], 1, "{fed}");
        asked.elapsed()
    };
    let best = (0..10).map(attempt).min().expect("ten");
    assert!(best < Duration::from_secs(5), "{best:?}");
}

fn is_refused_for_now(answer: &Value) -> bool {
    answer["error"]["retry"] == true
}

#[test]
fn a_client_that_reads_no_answers_costs_bounded_memory_and_holds_up_nobody() {
    let fleet = fleet_with_many_crawls();
    let hostile = Pipeline::connect(&fleet.control_endpoint());
    for _ in 0..10_000 {
        hostile.send(&action("info", None));
    }
    assert_others_are_answered(&fleet);
    // Ten thousand answers of 30 KB each would take more memory than this limit.
    assert!(peak_mib(&fleet) < MOST_MIB, "{} MiB", peak_mib(&fleet));
    // When the client reads at last, it first gets answers, and then refusals that advise to send again later.
    let first = hostile.receive_answer();
    assert_eq!(first["total_crawlids"], CRAWLS, "{first}");
    while !is_refused_for_now(&hostile.receive_answer()) {}
}

#[test]
fn an_application_with_many_crawls_is_listed_page_by_page() {
    let fleet = fleet_with_many_crawls();
    let client = fleet.client();
    let mut question = action("info", None);
    let mut reported = Vec::new();
    loop {
        let page = client.ask(&question);
        assert_eq!(page["total_crawlids"], CRAWLS);
        assert_eq!(page["total_pending"], CRAWLS);
        assert_eq!(page["total_domains"], 1);
        let crawls = page["crawlids"].as_object().expect("crawls");
        assert!(crawls.len() <= 500, "{}", crawls.len());
        reported.extend(crawls.keys().cloned());
        let Some(next) = page.get("next") else { break };
        question["after"] = next.clone();
    }
    let all: Vec<String> = (0..CRAWLS).map(|nth| format!("crawl-{nth:04}")).collect();
    assert_eq!(reported, all);
    let reported = fleet.run_json(&["info", APP]);
    let reported = reported["crawlids"].as_object().map(|crawls| crawls.len());
    assert_eq!(reported, Some(CRAWLS), "the command reads all pages");
}

#[test]
fn a_list_of_somebody_who_may_only_read_is_refused_unread() {
    let keyed = Keyed::new();
    let public = keyed.create_member("client", "reader", false);
    keyed.run_keys(&["add", "client", "reader", &public, "--read-only"], "keys");
    let _dispatcher = keyed.start_dispatcher();
    let reader = keyed.client("reader");
    for list in ["[this is no JSON", "  [1, 2, 3]"] {
        let answer = reader.ask_bytes(list.as_bytes());
        assert_eq!(answer["error"]["path"], "$", "{answer}");
        assert_eq!(answer["error"]["message"], "this key may only read");
    }
    let long = format!(
        "{{\"action\": \"status\", \"uuid\": \"{}\"}}",
        "x".repeat(100_000)
    );
    let answer = reader.ask_bytes(long.as_bytes());
    assert_eq!(
        answer["error"]["message"], "this key may only read",
        "{answer}"
    );
    assert_eq!(reader.ask(&json!({"action": "status"}))["action"], "status");
}

#[test]
fn a_long_list_is_accepted_or_refused_as_a_whole() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let client = Pipeline::connect(&fleet.control_endpoint());
    let requests = |name: &str| -> Vec<Value> {
        let one = |nth: usize| {
            request(
                &format!("http://a.example/{name}/{nth}"),
                &format!("{name}-{}", nth % 700),
            )
        };
        (0..3_000).map(one).collect()
    };
    client.send(&request("http://a.example/", "stopped"));
    client.send(&action("stop", Some("stopped")));
    client.receive_answer();
    client.receive_answer();
    let mut refused = requests("refused");
    refused.push(request("http://a.example/late", "stopped"));
    client.send(&json!(refused));
    let answer = client.receive_answer();
    assert_eq!(answer["error"]["path"], "$[3000].crawlid", "{answer}");
    let info = fleet.client().ask(&action("info", None));
    assert_eq!(info["total_pending"], 0, "nothing of it was taken: {info}");
    // The client sends these requests before the list is answered. They must be processed after the list.
    client.send(&json!(requests("accepted")));
    client.send(&action("info", None));
    client.send(&action("stop", Some("accepted-7")));
    assert_eq!(client.receive_answer()["accepted"], 3_000);
    assert_eq!(client.receive_answer()["total_pending"], 3_000);
    assert_eq!(client.receive_answer()["total_purged"], 5);
}

#[test]
fn expensive_patterns_cost_bounded_memory_and_delay_no_others() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let list = |tail: &str, requests: usize| -> Value {
        let one = |nth: usize| {
            let patterns = json!({"allow_regex": [format!("/{nth}/{tail}")]});
            let url = format!("http://a.example/{nth}/aaa");
            request_with(&url, &format!("{tail}-{nth}"), patterns)
        };
        (0..requests).map(one).collect()
    };
    let hostile = Pipeline::connect(&fleet.control_endpoint());
    // Each of these expressions takes at least half a megabyte once it is compiled.
    hostile.send(&list(r"\w{20}", 1_000));
    hostile.send(&list("a+", 800));
    assert_others_are_answered(&fleet);
    let refused = hostile.receive_answer();
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("in parts"), "{refused}");
    assert_eq!(hostile.receive_answer()["accepted"], 800);
    assert!(peak_mib(&fleet) < MOST_MIB, "{} MiB", peak_mib(&fleet));
    // The list is accepted if it is sent in smaller parts.
    for part in list(r"\w{20}", 100).as_array().expect("a list").chunks(10) {
        hostile.send(&json!(part));
        assert_eq!(hostile.receive_answer()["accepted"], 10);
    }
    assert!(peak_mib(&fleet) < MOST_MIB, "{} MiB", peak_mib(&fleet));
}

#[test]
fn many_stops_of_one_crawl_are_answered_once_each() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    fleet.feed(&[request("http://a.example/", "c")]);
    let hostile = Pipeline::connect(&fleet.control_endpoint());
    const STOPS: usize = 3_000;
    for _ in 0..STOPS {
        hostile.send(&action("stop", Some("c")));
    }
    assert_others_are_answered(&fleet);
    for _ in 0..STOPS {
        let answer = hostile.receive_answer();
        let is_stopped = answer["total_purged"].is_u64();
        assert!(is_stopped || is_refused_for_now(&answer), "{answer}");
    }
}

#[test]
fn questions_of_a_client_that_has_left_are_dropped() {
    let fleet = fleet_with_many_crawls();
    let hostile = Pipeline::connect(&fleet.control_endpoint());
    for _ in 0..20_000 {
        hostile.send(&json!({"action": "status"}));
    }
    drop(hostile);
    assert_others_are_answered(&fleet);
}

#[test]
fn clients_that_leave_before_their_answers_are_logged_once_a_minute() {
    let started = Instant::now();
    let fleet = fleet_with_many_crawls();
    for _ in 0..30 {
        let hostile = Pipeline::connect(&fleet.control_endpoint());
        (0..200).for_each(|_| hostile.send(&json!({"action": "status"})));
        // After this answer, the dispatcher is busy with answering the client.
        hostile.receive_answer();
    }
    assert_others_are_answered(&fleet);
    let logged = fleet.logged_lines("peer_gone").len() as u64;
    let minutes = started.elapsed().as_secs() / 60;
    assert!((1..=minutes + 1).contains(&logged), "{logged} lines");
}

#[test]
fn a_client_that_floods_is_disconnected_and_refused_for_a_while() {
    let keyed = Keyed::new();
    for name in ["flooding", "honest"] {
        keyed.create_member("client", name, true);
    }
    let _dispatcher = keyed.start_dispatcher();
    let honest = keyed.client("honest");
    let flooding = keyed.pipeline("flooding");
    let status = json!({"action": "status"});
    let mut rounds = 0..200;
    let is_disconnected = rounds.any(|_| {
        (0..1_000).for_each(|_| flooding.try_to_send(&status));
        assert_eq!(honest.ask(&status)["action"], "status");
        keyed
            .find_logged("client_disconnected", "flooding")
            .is_some()
    });
    assert!(is_disconnected, "it floods, and stays connected");
    let logged = keyed.wait_until_logged("client_disconnected", "flooding");
    assert_eq!(logged["refused_s"], 5, "{logged}");
    // libzmq first passes on the remaining answers. Then it notices that the server has closed the connection, and
    // opens another one.
    wait_for("the flooding client is refused", || {
        flooding.discard_answers();
        keyed.find_logged("handshake_failed", "it has flooded")
    });
    assert_eq!(honest.ask(&status)["action"], "status");
    drop(flooding);
    // When the time of the refusal is over, the client is answered again if it sends one request at a time.
    assert_eq!(keyed.client("flooding").ask(&status)["action"], "status");
}
