//! Tests of applications with limits on pages, pace and sites.

use super::*;
use crate::application_limits::ApplicationLimits;

fn limited_fixture(limits: ApplicationLimits) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let frontier = open_with_limits(dir.path(), limits);
    let spec = CrawlSpec::new("app", "crawl");
    let mut fixture = Fixture {
        dir,
        frontier,
        spec,
        crawl: 0,
    };
    fixture.crawl = fixture.frontier.crawls().open(&fixture.spec).unwrap();
    fixture.frontier.releases().release_next(0).unwrap();
    fixture
}

fn open_with_limits(dir: &Path, limits: ApplicationLimits) -> Frontier {
    let config = FrontierConfig {
        applications: [("app".to_owned(), limits)].into(),
        ..FrontierConfig::default()
    };
    Frontier::open(dir, config, 0).unwrap()
}

/// Does what the dispatcher does in a turn of the loop: lets crawls continue that may, and leases all available tasks.
fn release_and_lease(fixture: &mut Fixture, now_ms: i64) -> Vec<Leased> {
    fixture
        .frontier
        .releases()
        .queue_application_releases(now_ms);
    while fixture.frontier.has_crawls_to_release() {
        fixture.frontier.releases().release_next(now_ms).unwrap();
    }
    fixture.lease_all_at(now_ms)
}

const URLS: [&str; 4] = [
    "http://a.org/1",
    "http://b.org/1",
    "http://c.org/1",
    "http://d.org/1",
];

#[test]
fn max_pages_holds_after_a_restart_too() {
    let limits = ApplicationLimits {
        max_pages: Some(2),
        ..ApplicationLimits::default()
    };
    let mut fixture = limited_fixture(limits.clone());
    fixture.feed(&URLS);
    let tasks = release_and_lease(&mut fixture, 0);
    assert_eq!(tasks.len(), 2);
    let back = fixture
        .frontier
        .tasks()
        .return_task(tasks[0].task, tasks[0].delivery, false, 0);
    assert!(matches!(back.unwrap(), ReturnResult::Requeued(_)));
    fixture.complete_with_links(&tasks[1], &[]);
    let again = release_and_lease(&mut fixture, 0);
    assert_eq!(again.len(), 1, "what came back was no page");
    fixture.complete_with_links(&again[0], &[]);
    assert!(release_and_lease(&mut fixture, 0).is_empty());
    fixture.assert_counts_consistent();

    let Fixture {
        dir,
        frontier,
        spec,
        crawl,
    } = fixture;
    drop(frontier);
    let mut fixture = Fixture {
        frontier: open_with_limits(dir.path(), limits),
        dir,
        spec,
        crawl,
    };
    assert!(release_and_lease(&mut fixture, 0).is_empty());
    assert_eq!(
        fixture
            .frontier
            .crawls()
            .queued_counts(crawl)
            .unwrap()
            .total,
        2
    );
}

#[test]
fn pages_are_handed_out_at_the_rate_of_the_application() {
    let mut fixture = limited_fixture(ApplicationLimits {
        pages_per_second: Some(2.0),
        ..ApplicationLimits::default()
    });
    fixture.feed(&URLS);
    assert_eq!(
        release_and_lease(&mut fixture, 1_000).len(),
        1,
        "one at least"
    );
    assert!(release_and_lease(&mut fixture, 1_001).is_empty());
    let next_ms = fixture.frontier.next_allowance_ms().expect("it waits");
    assert!((1_500..=1_510).contains(&next_ms), "{next_ms}");
    assert_eq!(release_and_lease(&mut fixture, next_ms).len(), 1);
    let mut times = vec![next_ms];
    while let Some(at_ms) = fixture.frontier.next_allowance_ms() {
        if !release_and_lease(&mut fixture, at_ms).is_empty() {
            times.push(at_ms);
        }
    }
    assert_eq!(times.len(), 3, "all but the first");
    assert!(times[2] - times[0] >= 1_000, "{times:?}");
    fixture.assert_counts_consistent();
}

#[test]
fn max_sites_holds_and_leaves_other_applications_alone() {
    let mut fixture = limited_fixture(ApplicationLimits {
        max_sites: Some(1),
        ..ApplicationLimits::default()
    });
    fixture.feed(&URLS);
    let limited = fixture.crawl;
    fixture.crawl = fixture
        .frontier
        .crawls()
        .open(&CrawlSpec::new("other", "crawl"))
        .unwrap();
    fixture.feed(&URLS);
    let tasks = release_and_lease(&mut fixture, 0);
    let of_limited: Vec<Leased> = tasks
        .iter()
        .filter(|task| task.crawl == limited)
        .cloned()
        .collect();
    assert_eq!((of_limited.len(), tasks.len()), (1, 5));
    fixture.complete_with_links(&of_limited[0], &[]);
    let next = release_and_lease(&mut fixture, 0);
    assert_eq!(next.len(), 1);
    assert_ne!(next[0].url, of_limited[0].url);
    fixture.assert_counts_consistent();
}
