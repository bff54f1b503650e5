//! Tests of crawls that need browsers, among other crawls.

use super::*;

/// Opens another crawl of this lane and feeds it.
fn open_and_feed_crawl(fixture: &mut Fixture, name: &str, lane: Lane, urls: &[&str]) -> CrawlKey {
    let mut spec = CrawlSpec::new("app", name);
    spec.lane = lane;
    let crawl = fixture.frontier.crawls().open(&spec).unwrap();
    let first = std::mem::replace(&mut fixture.crawl, crawl);
    fixture.feed(urls);
    fixture.crawl = first;
    crawl
}

fn release_all(fixture: &mut Fixture) -> Vec<WokenSite> {
    let mut woken = Vec::new();
    while fixture.frontier.has_crawls_to_release() {
        woken.extend(fixture.frontier.releases().release_next(0).unwrap());
    }
    woken
}

fn admit_only_site(fixture: &mut Fixture) -> SiteDue {
    let mut sites = fixture.frontier.sites().admit_due(i64::MAX, 10).unwrap();
    assert_eq!(sites.len(), 1, "{sites:?}");
    sites.remove(0)
}

fn lease(fixture: &mut Fixture, site: &SiteDue, limit: usize, lane: Lane) -> LeaseBatch {
    fixture
        .frontier
        .tasks()
        .lease(site.id, limit, lane, 0)
        .unwrap()
}

fn crawls(batch: &LeaseBatch) -> Vec<CrawlKey> {
    batch.tasks.iter().map(|task| task.crawl).collect()
}

#[test]
fn a_batch_ends_where_a_crawl_needs_another_lane() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    let urls = ["http://a.org/1", "http://a.org/2"];
    let scripts = open_and_feed_crawl(&mut fixture, "scripts", Lane::Browser, &urls);
    let plain = fixture.crawl;
    let site = admit_only_site(&mut fixture);
    assert_eq!(site.next.map(|turn| turn.lane), Some(Lane::Http));

    let batch = lease(&mut fixture, &site, 4, Lane::Http);
    assert_eq!(crawls(&batch), [plain, plain], "its share of four");
    let next = batch.next.expect("the other crawl's turn");
    assert_eq!((next.crawl, next.lane), (scripts, Lane::Browser));
    let batch = lease(&mut fixture, &site, 4, Lane::Http);
    assert!(batch.tasks.is_empty(), "it is not passed over");
    assert_eq!(batch.next, Some(next));

    let batch = lease(&mut fixture, &site, 9, Lane::Browser);
    assert_eq!(crawls(&batch), [scripts, scripts, plain]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_crawl_without_a_lane_delays_no_other() {
    let mut fixture = fixture();
    let urls = ["http://a.org/1", "http://a.org/2", "http://b.org/"];
    let scripts = open_and_feed_crawl(&mut fixture, "scripts", Lane::Browser, &urls);
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 9)
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        fixture
            .frontier
            .reports()
            .unserved_lane_of(scripts)
            .unwrap(),
        Some(Lane::Browser)
    );
    fixture.feed(&["http://a.org/1"]);
    release_all(&mut fixture);
    let site = admit_only_site(&mut fixture);
    let batch = lease(&mut fixture, &site, 9, Lane::Http);
    assert_eq!(crawls(&batch), [fixture.crawl]);
    assert_eq!((batch.left, batch.next), (0, None));

    fixture.frontier.releases().set_has_browsers(true);
    assert_eq!(
        fixture
            .frontier
            .reports()
            .unserved_lane_of(scripts)
            .unwrap(),
        None
    );
    let woken = release_all(&mut fixture);
    let turn = Turn {
        priority: 50,
        crawl: scripts,
        lane: Lane::Browser,
    };
    let site = site.id;
    assert_eq!(
        woken,
        [WokenSite { site, turn }],
        "of the site in the window"
    );
    assert_eq!(admit_only_site(&mut fixture).name, "b.org");
    fixture.assert_counts_consistent();
}

#[test]
fn a_crawl_waits_for_a_browser_and_continues_with_the_next_one_even_after_a_restart() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    let scripts = open_and_feed_crawl(&mut fixture, "scripts", Lane::Browser, &["http://a.org/1"]);
    release_all(&mut fixture);
    fixture.frontier.releases().set_has_browsers(false);
    let site = admit_only_site(&mut fixture);
    assert_eq!(
        lease(&mut fixture, &site, 9, Lane::Http),
        LeaseBatch::default()
    );
    fixture
        .frontier
        .sites()
        .evict(site.id, &site.clock)
        .unwrap();

    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    release_all(&mut fixture);
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 9)
            .unwrap()
            .is_empty()
    );
    fixture.frontier.releases().set_has_browsers(true);
    release_all(&mut fixture);
    let site = admit_only_site(&mut fixture);
    let batch = lease(&mut fixture, &site, 9, Lane::Browser);
    assert_eq!(crawls(&batch), [scripts]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_crawl_can_be_ended_without_a_supervisor_of_its_lane() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    let scripts = open_and_feed_crawl(&mut fixture, "scripts", Lane::Browser, &["http://a.org/1"]);
    fixture.frontier.crawls().stop(scripts).unwrap();
    let site = admit_only_site(&mut fixture);
    let batch = lease(&mut fixture, &site, 9, Lane::Http);
    assert_eq!(batch, LeaseBatch::default());
    let status = fixture.frontier.crawls().status(scripts).unwrap();
    assert_eq!((status.queued, status.done), (0, 1));
    fixture.assert_counts_consistent();
}

#[test]
fn a_changed_lane_applies_from_the_next_lease_on() {
    let mut fixture = fixture();
    let scripts = open_and_feed_crawl(&mut fixture, "scripts", Lane::Browser, &["http://a.org/1"]);
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 9)
            .unwrap()
            .is_empty()
    );
    let mut spec = fixture.frontier.crawls().spec(scripts).unwrap().clone();
    spec.lane = Lane::Http;
    fixture
        .frontier
        .crawls()
        .upsert(Some(scripts), spec.clone())
        .unwrap();
    release_all(&mut fixture);
    let site = admit_only_site(&mut fixture);
    assert_eq!(site.next.map(|turn| turn.lane), Some(Lane::Http));

    fixture.frontier.releases().set_has_browsers(true);
    spec.lane = Lane::Browser;
    fixture
        .frontier
        .crawls()
        .upsert(Some(scripts), spec)
        .unwrap();
    let batch = lease(&mut fixture, &site, 9, Lane::Http);
    assert!(batch.tasks.is_empty(), "whatever was said before");
    assert_eq!(batch.next.map(|turn| turn.lane), Some(Lane::Browser));
}

#[test]
fn the_lane_of_a_crawl_that_is_not_in_memory_is_known_too() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    open_and_feed_crawl(&mut fixture, "scripts", Lane::Browser, &["http://a.org/"]);
    fixture.feed(&["http://b.org/"]);
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    fixture.frontier.releases().set_has_browsers(true);
    assert_eq!(
        fixture.frontier.crawls().count_in_memory(),
        1,
        "the one that is open"
    );
    let sites = fixture.frontier.sites().admit_due(i64::MAX, 9).unwrap();
    let lanes: Vec<(&str, Option<Lane>)> = sites
        .iter()
        .map(|site| (&*site.name, site.next.map(|turn| turn.lane)))
        .collect();
    assert_eq!(
        lanes,
        [("a.org", Some(Lane::Browser)), ("b.org", Some(Lane::Http))]
    );
}
