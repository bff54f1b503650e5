//! Applications with limits.

use super::*;
use crate::app_limits::AppLimits;

fn bench_limited(limits: AppLimits) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let frontier = open(dir.path(), limits);
    let spec = CrawlSpec::new("app", "crawl");
    let mut bench = Bench {
        dir,
        frontier,
        spec,
        crawl: 0,
    };
    bench.crawl = bench.frontier.open_crawl(&bench.spec).unwrap();
    bench.frontier.release(0).unwrap();
    bench
}

fn open(dir: &Path, limits: AppLimits) -> Frontier {
    let config = FrontierConfig {
        applications: [("app".to_owned(), limits)].into(),
        ..FrontierConfig::default()
    };
    Frontier::open(dir, config, 0).unwrap()
}

/// A turn of the dispatcher: what can go on does, and all that may be leased is.
fn turn(bench: &mut Bench, now_ms: i64) -> Vec<Leased> {
    bench.frontier.free_tenants(now_ms);
    while bench.frontier.has_to_release() {
        bench.frontier.release(now_ms).unwrap();
    }
    bench.lease_all_at(now_ms)
}

const URLS: [&str; 4] = [
    "http://a.org/1",
    "http://b.org/1",
    "http://c.org/1",
    "http://d.org/1",
];

#[test]
fn so_many_pages_go_out_and_no_more_also_after_a_restart() {
    let limits = AppLimits {
        max_pages: Some(2),
        ..AppLimits::default()
    };
    let mut bench = bench_limited(limits.clone());
    bench.feed(&URLS);
    let tasks = turn(&mut bench, 0);
    assert_eq!(tasks.len(), 2);
    let back = bench.frontier.give_back(tasks[0].task, 1, false, 0);
    assert!(matches!(back.unwrap(), GivenBack::Requeued(_)));
    bench.done(&tasks[1], &[]);
    let again = turn(&mut bench, 0);
    assert_eq!(again.len(), 1, "what came back was no page");
    bench.done(&again[0], &[]);
    assert!(turn(&mut bench, 0).is_empty());
    bench.assert_conserved();

    let Bench {
        dir,
        frontier,
        spec,
        crawl,
    } = bench;
    drop(frontier);
    let mut bench = Bench {
        frontier: open(dir.path(), limits),
        dir,
        spec,
        crawl,
    };
    assert!(turn(&mut bench, 0).is_empty());
    assert_eq!(bench.frontier.pending(crawl).unwrap().total, 2);
}

#[test]
fn pages_go_out_at_their_rate() {
    let mut bench = bench_limited(AppLimits {
        pages_per_second: Some(2.0),
        ..AppLimits::default()
    });
    bench.feed(&URLS);
    assert_eq!(turn(&mut bench, 1_000).len(), 1, "one at least");
    assert!(turn(&mut bench, 1_001).is_empty());
    let next_ms = bench.frontier.next_room_ms().expect("it waits");
    assert!((1_500..=1_510).contains(&next_ms), "{next_ms}");
    assert_eq!(turn(&mut bench, next_ms).len(), 1);
    let mut times = vec![next_ms];
    while let Some(at_ms) = bench.frontier.next_room_ms() {
        if !turn(&mut bench, at_ms).is_empty() {
            times.push(at_ms);
        }
    }
    assert_eq!(times.len(), 3, "all but the first");
    assert!(times[2] - times[0] >= 1_000, "{times:?}");
    bench.assert_conserved();
}

#[test]
fn so_many_sites_are_asked_at_once_and_another_application_does_not_notice() {
    let mut bench = bench_limited(AppLimits {
        max_sites: Some(1),
        ..AppLimits::default()
    });
    bench.feed(&URLS);
    let limited = bench.crawl;
    bench.crawl = bench
        .frontier
        .open_crawl(&CrawlSpec::new("other", "crawl"))
        .unwrap();
    bench.feed(&URLS);
    let tasks = turn(&mut bench, 0);
    let of_limited: Vec<Leased> = tasks
        .iter()
        .filter(|task| task.crawl == limited)
        .cloned()
        .collect();
    assert_eq!((of_limited.len(), tasks.len()), (1, 5));
    bench.done(&of_limited[0], &[]);
    let next = turn(&mut bench, 0);
    assert_eq!(next.len(), 1);
    assert_ne!(next[0].url, of_limited[0].url);
    bench.assert_conserved();
}
