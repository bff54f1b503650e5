//! Crawls that are stopped or expire.

use super::*;

#[test]
fn stop_is_answered_when_nothing_can_start_any_more() {
    let mut bench = bench();
    bench.accept(&requests("c1", 5));
    bench.accept(&request(json!({"crawlid": "c2"})));
    bench.join();
    let tasks = bench.tasks();
    assert_eq!(tasks.len(), 6);
    let of_c1: Vec<Task> = tasks
        .into_iter()
        .filter(|task| task.url != "http://a.org/")
        .collect();
    assert_eq!(
        bench.ask(&action("stop")),
        None,
        "the supervisor has not answered"
    );
    let stopped = bench.asked;
    let recalls = bench.recalls();
    bench.report(|outcomes| {
        outcomes.done.push(done(&of_c1[0], &["http://a.org/link"]));
        outcomes.returned.extend(of_c1[2..].iter().map(unstarted));
        outcomes.recalled = recalls;
    });
    let answer = bench.answer_to(stopped).expect("all has come back");
    assert_eq!(
        answer["total_purged"], 3,
        "all but what was fetched and what is: {answer}"
    );
    assert_eq!(
        (&answer["action"], &answer["spiderid"]),
        (&json!("stop"), &json!("link"))
    );
    assert_eq!(bench.notices().last(), Some(&answer));
    let info = bench.accept(&action("info"));
    assert_eq!(
        (&info["state"], &info["total_pending"]),
        (&json!("stopped"), &json!(0))
    );
    bench.report(|outcomes| outcomes.done.push(done(&of_c1[1], &[])));
    assert!(bench.tasks().is_empty(), "nothing starts after the answer");
}

#[test]
fn who_asks_again_hears_the_same_end() {
    let mut bench = bench();
    let expires = NOW_MS / 1_000 + 1;
    bench.accept(&request(json!({"expires": expires})));
    bench.accept(&request(json!({"url": "http://b.org/"})));
    bench.join();
    let tasks = bench.tasks();
    bench.now_ms += 1_000;
    bench.turn();
    assert_eq!(bench.ask(&action("stop")), None);
    let first = bench.asked;
    assert_eq!(bench.ask(&action("stop")), None);
    let second = bench.asked;
    let recalls = bench.recalls();
    bench.report(|outcomes| {
        outcomes.returned.extend(tasks.iter().map(unstarted));
        outcomes.recalled = recalls;
    });
    let answer = bench.answer_to(first).unwrap();
    assert_eq!(answer["total_purged"], 2);
    assert_eq!(bench.answer_to(second), Some(answer));
    let told: Vec<Value> = bench.notices();
    let names: Vec<&Value> = told.iter().map(|notice| &notice["action"]).collect();
    assert_eq!(names, ["stop", "stop", "expired"]);
    assert_eq!(
        bench.refused(&request(json!({"expires": expires + 9}))),
        "$.crawlid"
    );
}

/// What a lease takes, with the difference between clocks.
const LEASE_MS: i64 = 11_000;

/// Whether the answer leaves at this time after now, and not before.
fn is_answered_after(bench: &mut Bench, number: u64, wait_ms: i64) -> bool {
    bench.now_ms += wait_ms - 1;
    bench.turn();
    let now_ms = bench.now_ms;
    let is_early = bench.answer_to(number).is_some();
    assert_eq!(
        is_early,
        bench.dispatcher().next_look_ms() > now_ms + 1,
        "it looks then"
    );
    bench.now_ms += 1;
    bench.turn();
    !is_early && bench.answer_to(number).is_some()
}

#[test]
fn a_supervisor_that_is_silent_keeps_a_stop_waiting_until_its_lease_is_over() {
    let mut bench = bench();
    bench.accept(&request(json!({})));
    bench.join();
    bench.now_ms += 500;
    assert_eq!(bench.ask(&action("stop")), None);
    let stopped = bench.asked;
    assert!(is_answered_after(&mut bench, stopped, LEASE_MS - 500));
    let answer = bench.answer_to(stopped).unwrap();
    assert_eq!(answer["total_purged"], 0);
    assert!(!bench.is_in_step(0), "it is to begin with nothing in hand");
}

#[test]
fn a_lease_that_was_given_before_the_recall_was_heard_is_waited_for() {
    for (received, wait_ms) in [(1, LEASE_MS), (2, LEASE_MS - 500)] {
        let mut bench = bench();
        bench.accept(&request(json!({})));
        bench.join();
        assert_eq!(bench.ask(&action("pause")), None);
        let paused = bench.asked;
        bench.now_ms += 500;
        assert!(bench.is_in_step(received));
        assert!(
            is_answered_after(&mut bench, paused, wait_ms),
            "{received} received"
        );
    }
}

#[test]
fn who_was_there_before_a_restart_is_waited_for() {
    for comes_back in [true, false] {
        let mut bench = bench();
        bench.accept(&request(json!({})));
        bench.join();
        bench.restart();
        bench.letters.clear();
        assert_eq!(
            bench.ask(&action("pause")),
            None,
            "it may start what it has"
        );
        let paused = bench.asked;
        if comes_back {
            bench.now_ms += 300;
            bench.join();
            assert_eq!(bench.answer_to(paused), None);
            let recalls = bench.recalls();
            bench.report(|outcomes| outcomes.recalled = recalls);
            assert!(bench.answer_to(paused).is_some());
        } else {
            assert!(is_answered_after(&mut bench, paused, LEASE_MS));
        }
    }
}

#[test]
fn an_id_that_was_stopped_before_it_was_used_is_refused() {
    let mut bench = bench();
    assert_eq!(bench.accept(&action("stop"))["total_purged"], 0);
    bench.restart();
    assert_eq!(bench.refused(&request(json!({}))), "$.crawlid");
    assert_eq!(bench.refused(&action("resume")), "$.crawlid");
    assert_eq!(
        bench.accept(&action("stop"))["total_purged"],
        0,
        "again does no harm"
    );
}

#[test]
fn a_crawl_whose_time_has_come_is_purged_and_its_application_told() {
    let mut bench = bench();
    let expires = NOW_MS / 1_000 + 10;
    bench.accept(&requests("c1", 3));
    bench.accept(&request(json!({"expires": expires})));
    let info = bench.accept(&json!({"action": "info", "appid": "app"}));
    assert_eq!(info["crawlids"]["c1"]["expires"], expires);
    bench.now_ms += 9_999;
    bench.turn();
    bench.notices();
    let now_ms = bench.now_ms;
    assert_eq!(
        bench.dispatcher().next_look_ms().max(now_ms + 1),
        now_ms + 1
    );
    bench.now_ms += 1;
    bench.turn();
    let notice = json!({
        "action": "expired", "total_expired": 4, "crawlid": "c1", "spiderid": "link", "appid": "app",
    });
    assert_eq!(bench.notices(), [notice]);
    assert_eq!(bench.refused(&request(json!({}))), "$.crawlid");
    let later = request(json!({"expires": expires + 60, "url": "http://b.org/"}));
    assert_eq!(bench.accept(&later), json!({"accepted": 1}));
    bench.join();
    assert_eq!(bench.tasks().len(), 1);
}

#[test]
fn the_end_of_a_crawl_goes_on_after_a_restart() {
    let mut bench = bench();
    bench.accept(&requests("c1", 3));
    let dispatcher = bench.dispatcher();
    let crawl = dispatcher
        .frontier
        .find_crawl("app", "c1")
        .unwrap()
        .unwrap();
    dispatcher.frontier.stop_crawl(crawl).unwrap();
    dispatcher.commit(NOW_MS).unwrap();
    bench.restart();
    bench.turn();
    let info = bench.accept(&action("info"));
    assert_eq!(
        (&info["total_pending"], &info["outcomes"]["stopped"]),
        (&json!(0), &json!(3))
    );
}
