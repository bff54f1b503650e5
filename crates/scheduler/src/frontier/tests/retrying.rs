use super::*;
use crate::backoff_table::BackoffTable;
use crate::retry_table::RetryTable;

pub(super) fn fixture_that_retries() -> Fixture {
    fixture_that_retries_in(tempfile::tempdir().unwrap())
}

/// A fixture with waits before retries. The folder may already have a frontier.
pub(super) fn fixture_that_retries_in(dir: TempDir) -> Fixture {
    let config = FrontierConfig {
        retries: RetryTable {
            timeout: vec![10.0, 100.0],
            ..RetryTable::default()
        },
        backoff: BackoffTable {
            unreachable: Vec::new(),
            ..BackoffTable::default()
        },
        ..FrontierConfig::default()
    };
    fixture_in_folder(dir, config, |spec| spec.retry = true)
}

pub(super) fn timed_out_task(task: &Leased) -> TaskDone {
    TaskDone {
        outcome: Outcome::Timeout,
        status_code: None,
        ..successful_report(task)
    }
}

pub(super) fn complete_and_check_retry(fixture: &mut Fixture, task: &Leased, now_ms: i64) -> bool {
    let done = fixture
        .frontier
        .tasks()
        .complete(&timed_out_task(task), now_ms)
        .unwrap();
    matches!(done, Completion::WillRetry)
}

#[test]
fn a_timeout_is_retried_after_longer_and_longer_waits_and_then_ends() {
    let mut fixture = fixture_that_retries();
    fixture.feed(&["http://a.org/"]);
    let task = fixture.lease_one();
    assert!(complete_and_check_retry(&mut fixture, &task, 1_000));
    assert_eq!((fixture.status().queued, fixture.status().done), (1, 0));
    assert_eq!(fixture.frontier.next_retry_ms(), Some(11_000));
    assert!(
        fixture
            .frontier
            .tasks()
            .requeue_due_retries(10_999)
            .unwrap()
            .is_empty()
    );
    assert!(fixture.lease_all_at(10_999).is_empty(), "it waits");
    fixture.assert_counts_consistent();

    fixture
        .frontier
        .tasks()
        .requeue_due_retries(11_000)
        .unwrap();
    let task = fixture.lease_all_at(11_000).remove(0);
    assert_eq!((task.delivery.number, task.priority), (2, 40));
    assert_eq!(task.failed_attempts.len(), 1);
    assert!(complete_and_check_retry(&mut fixture, &task, 11_000));
    assert_eq!(fixture.frontier.next_retry_ms(), Some(111_000));
    fixture
        .frontier
        .tasks()
        .requeue_due_retries(111_000)
        .unwrap();
    let task = fixture.lease_all_at(111_000).remove(0);
    let tried: Vec<(i64, Outcome)> = task
        .failed_attempts
        .iter()
        .map(|t| (t.ended_at_ms, t.outcome))
        .collect();
    assert_eq!(
        tried,
        [(1_000, Outcome::Timeout), (11_000, Outcome::Timeout)]
    );
    assert!(
        !complete_and_check_retry(&mut fixture, &task, 112_000),
        "that was the last try"
    );
    assert_eq!(fixture.outcomes(), [(Outcome::Timeout, 1)]);
    assert_eq!(fixture.frontier.next_retry_ms(), None);
    fixture.assert_counts_consistent();
}

#[test]
fn a_retry_waits_through_a_restart() {
    let mut fixture = fixture_that_retries();
    fixture.feed(&["http://a.org/"]);
    let task = fixture.lease_one();
    assert!(complete_and_check_retry(&mut fixture, &task, 1_000));
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(2_000);
    assert_eq!(fixture.frontier.next_retry_ms(), Some(11_000));
    assert!(fixture.lease_all().is_empty());
    fixture
        .frontier
        .tasks()
        .requeue_due_retries(12_000)
        .unwrap();
    assert_eq!(fixture.lease_all().len(), 1);
    fixture.assert_counts_consistent();
}

#[test]
fn a_site_in_the_window_is_woken_when_a_wait_is_over() {
    let mut fixture = fixture_that_retries();
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 1)
        .unwrap()
        .remove(0);
    let tasks = fixture
        .frontier
        .tasks()
        .lease(site.id, 9, Lane::Http, 0)
        .unwrap()
        .tasks;
    assert!(complete_and_check_retry(&mut fixture, &tasks[0], 1_000));
    let woken = fixture
        .frontier
        .tasks()
        .requeue_due_retries(11_000)
        .unwrap();
    let turn = Turn {
        priority: 40,
        crawl: fixture.crawl,
        lane: Lane::Http,
    };
    assert_eq!(
        woken,
        [WokenSite {
            site: site.id,
            turn
        }]
    );
}

#[test]
fn one_off_crawls_and_stopped_ones_do_not_retry() {
    let mut plain = fixture();
    plain.feed(&["http://a.org/"]);
    let task = plain.lease_one();
    assert!(!complete_and_check_retry(&mut plain, &task, 0));

    let mut stopped = fixture_that_retries();
    stopped.feed(&["http://a.org/1", "http://a.org/2"]);
    let tasks = stopped.lease_all();
    assert!(complete_and_check_retry(&mut stopped, &tasks[0], 0));
    stopped.frontier.crawls().stop(stopped.crawl).unwrap();
    assert!(!complete_and_check_retry(&mut stopped, &tasks[1], 0));
    while stopped
        .frontier
        .crawls()
        .end_queued_tasks(stopped.crawl, 0)
        .unwrap()
    {}
    assert_eq!(
        stopped.outcomes(),
        [(Outcome::Timeout, 1), (Outcome::Stopped, 1)]
    );
    stopped.assert_counts_consistent();
    assert!(
        stopped
            .frontier
            .tasks()
            .requeue_due_retries(i64::MAX)
            .unwrap()
            .is_empty()
    );
}
