use super::*;
use crate::retry_table::RetryTable;

fn bench_that_retries() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let config = FrontierConfig {
        retries: RetryTable {
            timeout: vec![10.0, 100.0],
            ..RetryTable::default()
        },
        ..FrontierConfig::default()
    };
    let mut frontier = Frontier::open(dir.path(), config, 0).unwrap();
    let mut spec = CrawlSpec::new("app", "crawl");
    spec.retry = true;
    let crawl = frontier.open_crawl(&spec).unwrap();
    Bench {
        dir,
        frontier,
        spec,
        crawl,
    }
}

fn timed_out(task: &Leased) -> TaskDone {
    TaskDone {
        outcome: Outcome::Timeout,
        status_code: None,
        ..report(task)
    }
}

fn fails(bench: &mut Bench, task: &Leased, now_ms: i64) -> bool {
    let done = bench.frontier.done(&timed_out(task), now_ms).unwrap();
    matches!(done, Done::ToRetry { .. })
}

#[test]
fn what_timed_out_waits_ever_longer_and_ends_after_the_last_try() {
    let mut bench = bench_that_retries();
    bench.feed(&["http://a.org/"]);
    let task = bench.lease_one();
    assert!(fails(&mut bench, &task, 1_000));
    assert_eq!((bench.status().queued, bench.status().done), (1, 0));
    assert_eq!(bench.frontier.next_retry_ms(), Some(11_000));
    assert!(bench.frontier.take_up_retries(10_999).unwrap().is_empty());
    assert!(bench.lease_all_at(10_999).is_empty(), "it waits");
    bench.assert_conserved();

    bench.frontier.take_up_retries(11_000).unwrap();
    let task = bench.lease_all_at(11_000).remove(0);
    assert_eq!((task.attempt, task.priority), (2, 40));
    assert_eq!(task.tries.len(), 1);
    assert!(fails(&mut bench, &task, 11_000));
    assert_eq!(bench.frontier.next_retry_ms(), Some(111_000));
    bench.frontier.take_up_retries(111_000).unwrap();
    let task = bench.lease_all_at(111_000).remove(0);
    let tried: Vec<(i64, Outcome)> = task
        .tries
        .iter()
        .map(|t| (t.ended_at_ms, t.outcome))
        .collect();
    assert_eq!(
        tried,
        [(1_000, Outcome::Timeout), (11_000, Outcome::Timeout)]
    );
    assert!(!fails(&mut bench, &task, 112_000), "that was the last try");
    assert_eq!(bench.outcomes(), [(Outcome::Timeout, 1)]);
    assert_eq!(bench.frontier.next_retry_ms(), None);
    bench.assert_conserved();
}

#[test]
fn a_wait_goes_on_over_a_restart() {
    let mut bench = bench_that_retries();
    bench.feed(&["http://a.org/"]);
    let task = bench.lease_one();
    assert!(fails(&mut bench, &task, 1_000));
    bench.frontier.commit().unwrap();
    let mut bench = bench.reopen(2_000);
    assert_eq!(bench.frontier.next_retry_ms(), Some(11_000));
    assert!(bench.lease_all().is_empty());
    bench.frontier.take_up_retries(12_000).unwrap();
    assert_eq!(bench.lease_all().len(), 1);
    bench.assert_conserved();
}

#[test]
fn a_site_in_the_window_is_woken_when_a_wait_is_over() {
    let mut bench = bench_that_retries();
    bench.feed(&["http://a.org/1", "http://a.org/2"]);
    let site = bench.frontier.next_sites(i64::MAX, 1).unwrap().remove(0);
    let tasks = bench
        .frontier
        .lease(site.id, 9, Lane::Http, 0)
        .unwrap()
        .tasks;
    assert!(fails(&mut bench, &tasks[0], 1_000));
    let woken = bench.frontier.take_up_retries(11_000).unwrap();
    let turn = Turn {
        priority: 40,
        crawl: bench.crawl,
        lane: Lane::Http,
    };
    assert_eq!(
        woken,
        [Woken {
            site: site.id,
            turn
        }]
    );
}

#[test]
fn one_off_crawls_and_stopped_ones_do_not_retry() {
    let mut plain = bench();
    plain.feed(&["http://a.org/"]);
    let task = plain.lease_one();
    assert!(!fails(&mut plain, &task, 0));

    let mut stopped = bench_that_retries();
    stopped.feed(&["http://a.org/1", "http://a.org/2"]);
    let tasks = stopped.lease_all();
    assert!(fails(&mut stopped, &tasks[0], 0));
    stopped.frontier.stop_crawl(stopped.crawl).unwrap();
    assert!(!fails(&mut stopped, &tasks[1], 0));
    while stopped.frontier.end_queued(stopped.crawl, 0).unwrap() {}
    assert_eq!(
        stopped.outcomes(),
        [(Outcome::Timeout, 1), (Outcome::Stopped, 1)]
    );
    stopped.assert_conserved();
    assert!(
        stopped
            .frontier
            .take_up_retries(i64::MAX)
            .unwrap()
            .is_empty()
    );
}
