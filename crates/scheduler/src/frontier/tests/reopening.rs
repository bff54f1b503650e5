//! Tests of ended tasks that are queued again.

use webfill_wire::Delivery;

use super::*;

fn failed_task(task: &Leased) -> TaskDone {
    TaskDone {
        outcome: Outcome::HttpError,
        status_code: Some(500),
        fields: 0,
        ..successful_report(task)
    }
}

/// Feeds URLs for records, and lets all of them fail.
fn feed_and_fail(fixture: &mut Fixture, urls: &[&str], records: &[&str]) -> Vec<TaskId> {
    fixture.feed_for_records(urls, records, 0);
    let tasks = fixture.lease_all();
    for task in &tasks {
        fixture.complete_task(&failed_task(task));
    }
    tasks.iter().map(|task| task.task).collect()
}

fn reopen(fixture: &mut Fixture, tasks: &[TaskId]) -> Vec<WokenSite> {
    fixture.frontier.reopening().requeue(tasks, 0).unwrap()
}

#[test]
fn an_ended_task_is_queued_again_and_ends_once_more() {
    let mut fixture = fixture();
    let tasks = feed_and_fail(&mut fixture, &["http://a.org/1", "http://b.org/2"], &["r"]);
    fixture.assert_counts_consistent();
    assert!(reopen(&mut fixture, &tasks[..1]).is_empty(), "no window");
    fixture.assert_counts_consistent();
    let status = fixture.status();
    assert_eq!((status.queued, status.done, status.pages), (1, 1, 2));
    assert_eq!(fixture.outcomes(), [(Outcome::HttpError, 1)]);

    let again = fixture.lease_one();
    assert_eq!((again.task, again.delivery.number), (tasks[0], 2));
    assert_eq!(again.records, ["r"]);
    let tried: Vec<_> = again
        .failed_attempts
        .iter()
        .map(|one| (one.outcome, one.status_code))
        .collect();
    assert_eq!(tried, [(Outcome::HttpError, Some(500))]);
    fixture.complete_with_links(&again, &[]);
    assert_eq!(
        fixture.outcomes(),
        [(Outcome::Ok, 1), (Outcome::HttpError, 1)]
    );
    fixture.assert_counts_consistent();
}

#[test]
fn an_outcome_that_no_task_has_any_more_is_not_counted_after_a_restart() {
    let mut fixture = fixture();
    let tasks = feed_and_fail(&mut fixture, &["http://a.org/"], &[]);
    fixture.frontier.commit().unwrap();
    reopen(&mut fixture, &tasks);
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    assert!(fixture.outcomes().is_empty());
    assert_eq!(fixture.lease_one().task, tasks[0]);
    fixture.assert_counts_consistent();
}

#[test]
fn only_tasks_that_have_ended_are_queued_again() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let leased = fixture.lease_one();
    fixture.feed(&["http://a.org/2"]);
    let before = fixture.status();
    reopen(&mut fixture, &[leased.task, leased.task + 1, 4_711]);
    assert_eq!(fixture.status(), before);
    fixture.complete_with_links(&leased, &[]);
    reopen(&mut fixture, &[leased.task, leased.task]);
    let status = fixture.status();
    assert_eq!((status.queued, status.done), (2, 0));
    fixture.assert_counts_consistent();
}

#[test]
fn a_site_in_the_window_is_woken_with_the_highest_priority() {
    let mut fixture = fixture();
    let tasks = feed_and_fail(&mut fixture, &["http://a.org/1"], &[]);
    fixture.feed(&["http://a.org/2"]);
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 9)
        .unwrap()
        .remove(0);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site.id, 9, Lane::Http, 0)
        .unwrap();
    assert_eq!((batch.tasks.len(), batch.next), (1, None));
    let turn = Turn {
        priority: 50,
        crawl: fixture.crawl,
        lane: Lane::Http,
    };
    let site = site.id;
    assert_eq!(reopen(&mut fixture, &tasks), [WokenSite { site, turn }]);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site, 9, Lane::Http, 0)
        .unwrap();
    assert_eq!(urls(&batch.tasks), ["http://a.org/1"]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_parked_site_waits_again_once_it_has_a_task_to_hand_out() {
    let mut fixture = fixture();
    let tasks = feed_and_fail(&mut fixture, &["http://a.org/1"], &[]);
    let first = fixture.crawl;
    fixture.crawl = fixture
        .frontier
        .crawls()
        .open(&CrawlSpec::new("app", "paused"))
        .unwrap();
    fixture.feed(&["http://a.org/2"]);
    fixture.frontier.crawls().pause(fixture.crawl).unwrap();
    assert!(fixture.lease_all().is_empty());
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 9)
            .unwrap()
            .is_empty()
    );

    fixture.crawl = first;
    reopen(&mut fixture, &tasks);
    assert_eq!(fixture.lease_one().task, tasks[0]);
    fixture.assert_counts_consistent();
}

#[test]
fn tasks_of_a_paused_crawl_stay_queued_until_it_is_resumed() {
    let mut fixture = fixture();
    let tasks = feed_and_fail(&mut fixture, &["http://a.org/1"], &[]);
    fixture.frontier.crawls().pause(fixture.crawl).unwrap();
    assert!(reopen(&mut fixture, &tasks).is_empty());
    assert!(fixture.lease_all().is_empty());
    fixture.assert_counts_consistent();
    fixture.frontier.crawls().resume(fixture.crawl).unwrap();
    while fixture.frontier.has_crawls_to_release() {
        fixture.frontier.releases().release_next(0).unwrap();
    }
    assert_eq!(fixture.lease_one().task, tasks[0]);
}

#[test]
fn nothing_is_queued_again_in_a_crawl_that_is_over() {
    let mut fixture = fixture();
    let tasks = feed_and_fail(&mut fixture, &["http://a.org/1"], &[]);
    fixture.frontier.crawls().stop(fixture.crawl).unwrap();
    reopen(&mut fixture, &tasks);
    assert_eq!((fixture.status().queued, fixture.status().done), (0, 1));
    fixture.assert_counts_consistent();
}

#[test]
fn pages_that_only_resolved_records_want_are_not_queued_again() {
    let mut fixture = fixture();
    let tasks = feed_and_fail(&mut fixture, &["http://a.org/1"], &["ada"]);
    fixture.frontier.records().mark_resolved("ada", 0).unwrap();
    reopen(&mut fixture, &tasks);
    assert_eq!(fixture.status().queued, 0);
    fixture.feed_for_records(&["http://a.org/1"], &["bob"], 0);
    reopen(&mut fixture, &tasks);
    assert_eq!(fixture.lease_one().records, ["ada", "bob"]);
    fixture.assert_counts_consistent();
}

#[test]
fn of_two_tasks_of_a_refreshed_url_only_the_later_is_queued_again() {
    let mut fixture = fixture_with_spec(|spec| spec.refresh_after_ms = Some(1_000));
    let mut tasks = feed_and_fail(&mut fixture, &["http://a.org/1"], &[]);
    assert_eq!(
        fixture
            .feed_for_records(&["http://a.org/1"], &[], 2_000)
            .accepted,
        1
    );
    let later = fixture.lease_one();
    fixture.complete_task(&failed_task(&later));
    tasks.push(later.task);
    reopen(&mut fixture, &tasks);
    assert_eq!(fixture.lease_one().task, later.task);
    fixture.assert_counts_consistent();
}

#[test]
fn earlier_attempts_do_not_count_against_the_new_retries() {
    let mut fixture = retrying::fixture_that_retries();
    fixture.feed(&["http://a.org/"]);
    let task = fixture.lease_one();
    for (failed_at_ms, due_at_ms) in [(1_000, 11_000), (11_000, 111_000)] {
        let task = Leased {
            delivery: Delivery::new(
                task.delivery.epoch,
                task.delivery.number + u32::from(failed_at_ms > 1_000),
            ),
            ..task.clone()
        };
        assert!(retrying::complete_and_check_retry(
            &mut fixture,
            &task,
            failed_at_ms
        ));
        fixture
            .frontier
            .tasks()
            .requeue_due_retries(due_at_ms)
            .unwrap();
        fixture.lease_all_at(due_at_ms);
    }
    let last = Leased {
        delivery: Delivery::new(task.delivery.epoch, 3),
        ..task.clone()
    };
    assert!(!retrying::complete_and_check_retry(
        &mut fixture,
        &last,
        111_000
    ));

    fixture
        .frontier
        .reopening()
        .requeue(&[task.task], 200_000)
        .unwrap();
    let again = fixture.lease_all_at(200_000).remove(0);
    assert_eq!(again.failed_attempts.len(), 3, "its history");
    assert_eq!(again.priority, 30, "two retries have lowered it");
    assert!(retrying::complete_and_check_retry(
        &mut fixture,
        &again,
        201_000
    ));
    assert_eq!(
        fixture.frontier.next_retry_ms(),
        Some(211_000),
        "the first wait"
    );
    fixture.assert_counts_consistent();
}

#[test]
fn a_crashed_page_may_kill_three_workers_again() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/"]);
    let kill = |fixture: &mut Fixture| {
        let task = fixture.lease_one();
        let back = fixture
            .frontier
            .tasks()
            .return_task(task.task, task.delivery, true, 0);
        (task.task, back.unwrap())
    };
    kill(&mut fixture);
    kill(&mut fixture);
    let (task, given_back) = kill(&mut fixture);
    assert_eq!(given_back, ReturnResult::Quarantined);
    assert!(fixture.frontier.reopening().is_quarantined(task).unwrap());
    reopen(&mut fixture, &[task]);
    assert!(!fixture.frontier.reopening().is_quarantined(task).unwrap());
    assert!(
        fixture
            .frontier
            .tasks()
            .list_crashed_since(0)
            .unwrap()
            .is_empty()
    );
    assert!(matches!(kill(&mut fixture).1, ReturnResult::Requeued(_)));
    fixture.assert_counts_consistent();
}
