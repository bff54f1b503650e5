use super::retrying::{complete_and_check_retry, fixture_that_retries};
use super::*;
use crate::frontier::{HeldBy, HeldSites, HeldSitesScope};

fn held_sites(fixture: &mut Fixture, now_ms: i64) -> Vec<HeldSites> {
    let of_crawl = HeldSitesScope::Crawl(fixture.crawl);
    let of_crawl = fixture
        .frontier
        .reports()
        .held_sites(of_crawl, 10_000, now_ms)
        .unwrap();
    let app_id = fixture
        .frontier
        .crawls()
        .spec(fixture.crawl)
        .unwrap()
        .app_id
        .clone();
    let of_app = HeldSitesScope::Application(&app_id);
    assert_eq!(
        fixture
            .frontier
            .reports()
            .held_sites(of_app, 10_000, now_ms)
            .unwrap(),
        of_crawl
    );
    of_crawl
}

#[test]
fn sites_that_hold_tasks_back_are_reported_by_their_reason() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/", "http://b.org/", "http://c.org/"]);
    assert_eq!(held_sites(&mut fixture, 0), []);
    let limit = SiteRule {
        pages_left: Some(0),
        ..SiteRule::default()
    };
    fixture.frontier.sites().set_rule("c.org", &limit).unwrap();
    fixture.frontier.sites().set_rule("b.org", &limit).unwrap();
    let block = SiteRule {
        block_until_ms: Some(1_000),
        ..SiteRule::default()
    };
    fixture.frontier.sites().set_rule("a.org", &block).unwrap();
    let by = |by, sites, example: &str| HeldSites {
        by,
        sites,
        has_more: false,
        example: example.into(),
    };
    let limits = by(HeldBy::Limit, 2, "b.org");
    let blocked = by(HeldBy::BlockUntil, 1, "a.org");
    assert_eq!(held_sites(&mut fixture, 999), [limits.clone(), blocked]);
    assert_eq!(held_sites(&mut fixture, 1_000), [limits]);
}

#[test]
fn tasks_that_wait_for_retries_make_their_site_wait() {
    let mut fixture = fixture_that_retries();
    fixture.feed(&["http://a.org/"]);
    let task = fixture.lease_one();
    assert_eq!(held_sites(&mut fixture, 0), [], "leased, not queued");
    assert!(complete_and_check_retry(&mut fixture, &task, 1_000));
    let reported = held_sites(&mut fixture, 1_000);
    assert_eq!(
        (reported.len(), reported[0].by),
        (1, HeldBy::Retries),
        "{reported:?}"
    );
    fixture
        .frontier
        .tasks()
        .requeue_due_retries(11_000)
        .unwrap();
    assert_eq!(held_sites(&mut fixture, 11_000), []);
}
