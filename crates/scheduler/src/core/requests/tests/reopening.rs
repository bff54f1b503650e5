//! Tests of ended tasks that are queued again on request.

use super::*;

/// More tasks than two steps of queueing can queue.
const MANY: usize = 600;

fn retry_request(outcomes: &[&str]) -> Value {
    let mut retry = action("retry");
    retry["outcome"] = json!(outcomes);
    retry
}

fn failed_task(task: &Task) -> TaskDone {
    TaskDone {
        outcome: Outcome::HttpError,
        status_code: Some(500),
        ..done_task(task, &[])
    }
}

/// A fixture with a crawl of `n` pages at ten sites. All pages have failed.
fn fixture_with_failed_crawl(n: usize) -> Fixture {
    let mut fixture = fixture();
    let page = |page| request_with(json!({"url": format!("http://s{}.org/{page}", page % 10)}));
    fixture.ask_and_expect_success(&(0..n).map(page).collect());
    fixture.join_supervisor();
    fixture.grant_credit(1_000_000);
    fail_all(&mut fixture, n);
    fixture
}

/// Lets tasks fail until this many have failed.
fn fail_all(fixture: &mut Fixture, n: usize) {
    let mut failures = 0;
    for _ in 0..n {
        fixture.now_ms += 10;
        fixture.run_turn();
        let tasks = fixture.take_tasks();
        failures += tasks.len();
        fixture.report_outcomes(|outcomes| outcomes.done.extend(tasks.iter().map(failed_task)));
        if failures == n {
            return;
        }
    }
    panic!("only {failures} of {n} were handed out");
}

#[test]
fn many_tasks_are_queued_in_slices_and_the_answer_comes_after_the_last() {
    let mut fixture = fixture_with_failed_crawl(MANY);
    assert_eq!(
        fixture.ask(&retry_request(&["http_error"])),
        None,
        "one slice a turn"
    );
    let asked = fixture.asked;
    let info = fixture.ask_and_expect_success(&action("info"));
    assert_eq!(info["state"], "running", "{info}");
    assert!(
        !fixture.take_tasks().is_empty(),
        "they are handed out meanwhile"
    );
    fixture.run_turn();
    let answer = fixture.action_answer(asked).expect("three slices");
    assert_eq!(answer["total_requeued"], MANY, "{answer}");
    assert_eq!(
        (&answer["action"], &answer["crawlid"], &answer["uuid"]),
        (&json!("retry"), &json!("c1"), &json!("u1"))
    );
    assert_eq!(fixture.take_notifications(), [answer]);
}

#[test]
fn the_same_request_joins_the_one_under_way_and_a_later_one_finds_nothing() {
    let mut fixture = fixture_with_failed_crawl(MANY);
    assert_eq!(fixture.ask(&retry_request(&["http_error"])), None);
    assert_eq!(fixture.ask(&retry_request(&["http_error"])), None);
    let (first, second) = (fixture.asked - 1, fixture.asked);
    fixture.run_turn();
    let answer = fixture.action_answer(first);
    assert!(answer.is_some());
    assert_eq!(fixture.action_answer(second), answer);
    let later = fixture.ask_and_expect_success(&retry_request(&["http_error"]));
    assert_eq!(later["total_requeued"], 0, "{later}");
}

#[test]
fn a_restart_in_the_middle_leaves_whole_slices_and_the_rest_is_queued_when_asked_again() {
    let mut fixture = fixture_with_failed_crawl(MANY);
    assert_eq!(fixture.ask(&retry_request(&["http_error"])), None);
    fixture.restart();
    let info = fixture.ask_and_expect_success(&action("info"));
    let left = info["outcomes"]["http_error"].as_u64().unwrap();
    assert!(0 < left && left < MANY as u64, "{info}");
    let queued = info["total_pending"].as_u64().unwrap() + info["leased"].as_u64().unwrap();
    assert_eq!(queued + left, MANY as u64, "{info}");
    let asked = fixture.ask(&retry_request(&["http_error", "timeout"]));
    let number = fixture.asked;
    fixture.run_turn();
    let answer = asked.or_else(|| fixture.action_answer(number)).unwrap();
    assert_eq!(answer["total_requeued"], left, "{answer}");
}

#[test]
fn a_stop_ends_the_queueing() {
    let mut fixture = fixture_with_failed_crawl(MANY);
    assert_eq!(fixture.ask(&retry_request(&["http_error"])), None);
    let asked = fixture.asked;
    fixture.ask(&action("stop"));
    let answer = fixture.action_answer(asked).expect("it is refused now");
    assert_eq!(answer["error"]["path"], "$.crawlid", "{answer}");
    let ends = fixture.audited.iter().filter_map(|line| {
        let is_retry = matches!(
            line.audited,
            AuditedAction::Act {
                action: "retry",
                ..
            }
        );
        is_retry.then_some(&line.end)
    });
    assert!(
        matches!(&ends.collect::<Vec<_>>()[..], [ActionEnd::Begun, ActionEnd::Refused { path, .. }] if path == "$.crawlid"),
        "{:?}",
        fixture.audited
    );
    assert_eq!(
        fixture.ask_and_expect_refusal(&retry_request(&["http_error"])),
        "$.crawlid"
    );
}

#[test]
fn other_outcomes_statuses_and_crawls_are_left_alone() {
    let mut fixture = fixture_with_failed_crawl(2);
    assert_eq!(
        fixture.ask_and_expect_success(&retry_request(&["timeout"]))["total_requeued"],
        0
    );
    let mut narrow = retry_request(&["http_error"]);
    narrow["status"] = json!([503]);
    assert_eq!(fixture.ask_and_expect_success(&narrow)["total_requeued"], 0);
    narrow["status"] = json!([500, 503]);
    narrow["site"] = json!("s1.org");
    assert_eq!(fixture.ask_and_expect_success(&narrow)["total_requeued"], 1);
    narrow["site"] = json!("www.s1.org");
    assert_eq!(fixture.ask_and_expect_refusal(&narrow), "$.site");
    narrow["site"] = json!("never-seen.org");
    assert_eq!(fixture.ask_and_expect_success(&narrow)["total_requeued"], 0);
    fixture.ask_and_expect_success(&request_with(json!({"crawlid": "c2"})));
    let mut other = retry_request(&["http_error"]);
    other["crawlid"] = json!("c2");
    assert_eq!(fixture.ask_and_expect_success(&other)["total_requeued"], 0);
    other["crawlid"] = json!("c3");
    assert_eq!(fixture.ask_and_expect_refusal(&other), "$.crawlid");
}
