//! Tests of crawls that are stopped or expire.

use super::*;

#[test]
fn stop_is_answered_when_nothing_can_start_any_more() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&requests("c1", 5));
    fixture.ask_and_expect_success(&request_with(json!({"crawlid": "c2"})));
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    assert_eq!(tasks.len(), 6);
    let of_c1: Vec<Task> = tasks
        .into_iter()
        .filter(|task| task.url != "http://a.org/")
        .collect();
    assert_eq!(
        fixture.ask(&action("stop")),
        None,
        "the supervisor has not answered"
    );
    let stopped = fixture.asked;
    let recalls = fixture.sent_recalls();
    fixture.report_outcomes(|outcomes| {
        outcomes
            .done
            .push(done_task(&of_c1[0], &["http://a.org/link"]));
        outcomes
            .returned
            .extend(of_c1[2..].iter().map(unstarted_task));
        outcomes.recalled = recalls;
    });
    let answer = fixture.action_answer(stopped).expect("all has come back");
    assert_eq!(
        answer["total_purged"], 3,
        "all but what was fetched and what is: {answer}"
    );
    assert_eq!(
        (&answer["action"], &answer["spiderid"]),
        (&json!("stop"), &json!("link"))
    );
    assert_eq!(fixture.take_notifications().last(), Some(&answer));
    let info = fixture.ask_and_expect_success(&action("info"));
    assert_eq!(
        (&info["state"], &info["total_pending"]),
        (&json!("stopped"), &json!(0))
    );
    fixture.report_outcomes(|outcomes| outcomes.done.push(done_task(&of_c1[1], &[])));
    assert!(
        fixture.take_tasks().is_empty(),
        "nothing starts after the answer"
    );
}

#[test]
fn a_second_stop_gets_the_same_answer() {
    let mut fixture = fixture();
    let expires = NOW_MS / 1_000 + 1;
    fixture.ask_and_expect_success(&request_with(json!({"expires": expires})));
    fixture.ask_and_expect_success(&request_with(json!({"url": "http://b.org/"})));
    fixture.join_supervisor();
    let tasks = fixture.take_tasks();
    fixture.now_ms += 1_000;
    fixture.run_turn();
    assert_eq!(fixture.ask(&action("stop")), None);
    let first = fixture.asked;
    assert_eq!(fixture.ask(&action("stop")), None);
    let second = fixture.asked;
    let recalls = fixture.sent_recalls();
    fixture.report_outcomes(|outcomes| {
        outcomes.returned.extend(tasks.iter().map(unstarted_task));
        outcomes.recalled = recalls;
    });
    let answer = fixture.action_answer(first).unwrap();
    assert_eq!(answer["total_purged"], 2);
    assert_eq!(fixture.action_answer(second), Some(answer));
    let reported: Vec<Value> = fixture.take_notifications();
    let names: Vec<&Value> = reported
        .iter()
        .map(|notification| &notification["action"])
        .collect();
    assert_eq!(names, ["stop", "stop", "expired"]);
    assert_eq!(
        fixture.ask_and_expect_refusal(&request_with(json!({"expires": expires + 9}))),
        "$.crawlid"
    );
}

/// The duration of a lease, with the slack for the difference of clocks.
const LEASE_MS: i64 = 11_000;

/// Whether the answer leaves exactly `wait_ms` from now, and not earlier.
fn check_answered_after(fixture: &mut Fixture, number: u64, wait_ms: i64) -> bool {
    fixture.now_ms += wait_ms - 1;
    fixture.run_turn();
    let now_ms = fixture.now_ms;
    let is_early = fixture.action_answer(number).is_some();
    assert_eq!(
        is_early,
        fixture.core().next_tick_ms() > now_ms + 1,
        "it checks then"
    );
    fixture.now_ms += 1;
    fixture.run_turn();
    !is_early && fixture.action_answer(number).is_some()
}

#[test]
fn a_supervisor_that_is_silent_keeps_a_stop_waiting_until_its_lease_is_over() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&request_with(json!({})));
    fixture.join_supervisor();
    fixture.now_ms += 500;
    assert_eq!(fixture.ask(&action("stop")), None);
    let stopped = fixture.asked;
    assert!(check_answered_after(&mut fixture, stopped, LEASE_MS - 500));
    let answer = fixture.action_answer(stopped).unwrap();
    assert_eq!(answer["total_purged"], 0);
    assert!(
        !fixture.send_heartbeat(0),
        "it is to begin with nothing in hand"
    );
}

#[test]
fn a_lease_renewed_before_the_recall_was_received_is_waited_for() {
    for (received, wait_ms) in [(1, LEASE_MS), (2, LEASE_MS - 500)] {
        let mut fixture = fixture();
        fixture.ask_and_expect_success(&request_with(json!({})));
        fixture.join_supervisor();
        assert_eq!(fixture.ask(&action("pause")), None);
        let paused = fixture.asked;
        fixture.now_ms += 500;
        assert!(fixture.send_heartbeat(received));
        assert!(
            check_answered_after(&mut fixture, paused, wait_ms),
            "{received} received"
        );
    }
}

#[test]
fn a_supervisor_from_before_a_restart_is_waited_for() {
    for comes_back in [true, false] {
        let mut fixture = fixture();
        fixture.ask_and_expect_success(&request_with(json!({})));
        fixture.join_supervisor();
        fixture.restart();
        fixture.outgoing.clear();
        assert_eq!(
            fixture.ask(&action("pause")),
            None,
            "it may start what it has"
        );
        let paused = fixture.asked;
        if comes_back {
            fixture.now_ms += 300;
            fixture.join_supervisor();
            assert_eq!(fixture.action_answer(paused), None);
            let recalls = fixture.sent_recalls();
            fixture.report_outcomes(|outcomes| outcomes.recalled = recalls);
            assert!(fixture.action_answer(paused).is_some());
        } else {
            assert!(check_answered_after(&mut fixture, paused, LEASE_MS));
        }
    }
}

#[test]
fn stopping_an_unknown_crawl_is_refused_and_takes_no_id() {
    let mut fixture = fixture();
    assert_eq!(fixture.ask_and_expect_refusal(&action("stop")), "$.crawlid");
    fixture.ask_and_expect_success(&request_with(json!({})));
    assert_eq!(
        fixture.ask_and_expect_success(&action("stop"))["total_purged"],
        1
    );
    fixture.restart();
    assert_eq!(
        fixture.ask_and_expect_refusal(&request_with(json!({}))),
        "$.crawlid"
    );
    assert_eq!(
        fixture.ask_and_expect_refusal(&action("resume")),
        "$.crawlid"
    );
    assert_eq!(
        fixture.ask_and_expect_success(&action("stop"))["total_purged"],
        0,
        "again does no harm"
    );
}

#[test]
fn an_expired_crawl_is_purged_and_its_application_notified() {
    let mut fixture = fixture();
    let expires = NOW_MS / 1_000 + 10;
    fixture.ask_and_expect_success(&requests("c1", 3));
    fixture.ask_and_expect_success(&request_with(json!({"expires": expires})));
    let info = fixture.ask_and_expect_success(&json!({"action": "info", "appid": "app"}));
    assert_eq!(info["crawlids"]["c1"]["expires"], expires);
    fixture.now_ms += 9_999;
    fixture.run_turn();
    fixture.take_notifications();
    let now_ms = fixture.now_ms;
    assert_eq!(fixture.core().next_tick_ms().max(now_ms + 1), now_ms + 1);
    fixture.now_ms += 1;
    fixture.run_turn();
    let notification = json!({
        "action": "expired", "total_expired": 4, "crawlid": "c1", "spiderid": "link", "appid": "app",
    });
    assert_eq!(fixture.take_notifications(), [notification]);
    assert_eq!(
        fixture.ask_and_expect_refusal(&request_with(json!({}))),
        "$.crawlid"
    );
    let later = request_with(json!({"expires": expires + 60, "url": "http://b.org/"}));
    assert_eq!(
        fixture.ask_and_expect_success(&later),
        json!({"accepted": 1})
    );
    fixture.join_supervisor();
    assert_eq!(fixture.take_tasks().len(), 1);
}

#[test]
fn closing_a_crawl_continues_after_a_restart() {
    let mut fixture = fixture();
    fixture.ask_and_expect_success(&requests("c1", 3));
    let core = fixture.core();
    let crawl = core
        .cx
        .frontier
        .crawls()
        .find("app", "c1")
        .unwrap()
        .unwrap();
    core.cx.frontier.crawls().stop(crawl).unwrap();
    let _ = core.commit(NOW_MS).unwrap();
    fixture.restart();
    fixture.run_turn();
    let info = fixture.ask_and_expect_success(&action("info"));
    assert_eq!(
        (&info["total_pending"], &info["outcomes"]["stopped"]),
        (&json!(0), &json!(3))
    );
}
