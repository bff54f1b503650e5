//! Tests of paused crawls, and of rules that were set for sites by hand.

use super::*;

fn admit_only_site(fixture: &mut Fixture) -> SiteDue {
    let mut sites = fixture.frontier.sites().admit_due(i64::MAX, 10).unwrap();
    assert_eq!(sites.len(), 1, "{sites:?}");
    sites.remove(0)
}

/// Lets all crawls continue that may, at all of their sites.
fn release_all(fixture: &mut Fixture) -> Vec<WokenSite> {
    let mut woken = Vec::new();
    while fixture.frontier.has_crawls_to_release() {
        woken.extend(fixture.frontier.releases().release_next(0).unwrap());
    }
    woken
}

#[test]
fn a_paused_crawl_keeps_its_queue_and_its_sites_are_parked() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    release_all(&mut fixture);
    fixture.frontier.crawls().pause(fixture.crawl).unwrap();
    let site = admit_only_site(&mut fixture);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site.id, 5, Lane::Http, 0)
        .unwrap();
    assert_eq!(batch, LeaseBatch::default());
    fixture
        .frontier
        .sites()
        .evict(site.id, &site.clock)
        .unwrap();
    fixture.feed(&["http://a.org/3"]);
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 9)
            .unwrap()
            .is_empty()
    );
    assert_eq!(fixture.frontier.sites().next_due_ms().unwrap(), None);
    let pending = fixture
        .frontier
        .crawls()
        .queued_counts(fixture.crawl)
        .unwrap();
    assert_eq!((pending.total, pending.sites.count), (3, 1));

    fixture.frontier.commit().unwrap();
    let dir = fixture.dir;
    drop(fixture.frontier);
    let mut frontier = Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap();
    assert!(
        frontier.crawls().is_paused(fixture.crawl).unwrap(),
        "also after a restart"
    );
    assert!(frontier.sites().admit_due(i64::MAX, 9).unwrap().is_empty());
    frontier.crawls().resume(fixture.crawl).unwrap();
    let mut fixture = Fixture {
        dir,
        frontier,
        spec: fixture.spec,
        crawl: fixture.crawl,
    };
    assert!(
        release_all(&mut fixture).is_empty(),
        "the site is outside the window"
    );
    assert_eq!(fixture.lease_all().len(), 3);
    fixture.frontier.commit().unwrap();
}

#[test]
fn a_site_in_memory_is_woken_when_its_crawl_is_resumed() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    release_all(&mut fixture);
    let site = admit_only_site(&mut fixture);
    fixture.frontier.crawls().pause(fixture.crawl).unwrap();
    assert_eq!(
        fixture
            .frontier
            .tasks()
            .lease(site.id, 5, Lane::Http, 0)
            .unwrap()
            .left,
        0
    );
    fixture.frontier.crawls().resume(fixture.crawl).unwrap();
    let turn = Turn {
        priority: 50,
        crawl: fixture.crawl,
        lane: Lane::Http,
    };
    assert_eq!(
        release_all(&mut fixture),
        [WokenSite {
            site: site.id,
            turn
        }]
    );
    assert_eq!(
        fixture
            .frontier
            .tasks()
            .lease(site.id, 5, Lane::Http, 0)
            .unwrap()
            .tasks
            .len(),
        1
    );
    fixture.assert_counts_consistent();
}

#[test]
fn a_resumed_crawl_of_many_sites_is_released_in_slices() {
    let mut fixture = fixture();
    let urls: Vec<String> = (0..1_200).map(|n| format!("http://s{n}.org/")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    release_all(&mut fixture);
    fixture.frontier.crawls().pause(fixture.crawl).unwrap();
    fixture.feed(&urls);
    assert!(fixture.lease_all().is_empty());
    fixture.frontier.crawls().resume(fixture.crawl).unwrap();
    fixture.frontier.releases().release_next(0).unwrap();
    let first = fixture.frontier.sites().admit_due(i64::MAX, 5_000).unwrap();
    assert!(first.len() < 1_200 && !first.is_empty());
    release_all(&mut fixture);
    let rest = fixture.frontier.sites().admit_due(i64::MAX, 5_000).unwrap();
    assert_eq!(first.len() + rest.len(), 1_200);
}

#[test]
fn a_returned_task_of_a_stopped_crawl_ends_at_once() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let task = fixture.lease_one();
    fixture.frontier.crawls().stop(fixture.crawl).unwrap();
    let back = fixture
        .frontier
        .tasks()
        .return_task(task.task, task.delivery, false, 0);
    assert_eq!(back.unwrap(), ReturnResult::Ended);
    assert_eq!(fixture.outcomes(), [(Outcome::Stopped, 1)]);
    fixture.assert_counts_consistent();
}

#[test]
fn pending_counts_priorities_and_sites() {
    let mut fixture = fixture();
    assert_eq!(
        fixture
            .frontier
            .crawls()
            .queued_counts(fixture.crawl)
            .unwrap(),
        QueuedCounts::default()
    );
    fixture.feed(&["http://a.org/1", "http://b.org/1"]);
    let candidate = Candidate {
        url: "http://b.org/2",
        depth: 0,
        priority: Some(90),
        parent: None,
        attrs: None,
        records: &[],
    };
    fixture
        .frontier
        .tasks()
        .feed(fixture.crawl, &[candidate], 0)
        .unwrap();
    let pending = fixture
        .frontier
        .crawls()
        .queued_counts(fixture.crawl)
        .unwrap();
    let priorities = (pending.low_priority, pending.high_priority);
    assert_eq!(
        (pending.total, pending.sites.count, priorities),
        (3, 2, (Some(50), Some(90)))
    );
    let first = fixture.lease_all().remove(0);
    assert_eq!(first.url, "http://b.org/2");
    assert_eq!(
        fixture
            .frontier
            .crawls()
            .queued_counts(fixture.crawl)
            .unwrap()
            .total,
        0
    );
}

#[test]
fn a_site_that_is_blocked_is_not_due_before() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let rule = SiteRule {
        block_until_ms: Some(9_000),
        ..SiteRule::default()
    };
    fixture.frontier.sites().set_rule("a.org", &rule).unwrap();
    assert_eq!(fixture.frontier.sites().next_due_ms().unwrap(), Some(9_000));
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(8_999, 9)
            .unwrap()
            .is_empty()
    );
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(100);
    assert_eq!(fixture.frontier.sites().rule("a.org").unwrap(), Some(rule));
    let site = fixture
        .frontier
        .sites()
        .admit_due(9_000, 9)
        .unwrap()
        .remove(0);
    assert_eq!(site.rule, rule);
}

#[test]
fn a_site_limit_holds_further_pages_back() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    let site = admit_only_site(&mut fixture);
    let first = fixture
        .frontier
        .tasks()
        .lease(site.id, 1, Lane::Http, 0)
        .unwrap()
        .tasks
        .remove(0);
    let mut rule = SiteRule {
        pages_left: Some(1),
        ..SiteRule::default()
    };
    fixture.frontier.sites().set_rule("a.org", &rule).unwrap();
    let back = |fixture: &mut Fixture, task: &Leased| {
        let back = fixture
            .frontier
            .tasks()
            .return_task(task.task, task.delivery, false, 0);
        assert!(matches!(back.unwrap(), ReturnResult::Requeued(_)));
    };
    back(&mut fixture, &first);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site.id, 9, Lane::Http, 0)
        .unwrap();
    assert_eq!(batch.tasks.len(), 1, "what was out before is not counted");
    assert_eq!((batch.left, batch.next), (0, None));
    assert!(
        fixture
            .frontier
            .tasks()
            .lease(site.id, 9, Lane::Http, 0)
            .unwrap()
            .tasks
            .is_empty()
    );
    back(&mut fixture, &batch.tasks[0]);
    let again = fixture
        .frontier
        .tasks()
        .lease(site.id, 9, Lane::Http, 0)
        .unwrap()
        .tasks;
    assert_eq!(again.len(), 1, "it was not used");
    fixture.complete_with_links(&again[0], &[]);
    assert!(
        fixture
            .frontier
            .tasks()
            .lease(site.id, 9, Lane::Http, 0)
            .unwrap()
            .tasks
            .is_empty()
    );

    fixture
        .frontier
        .sites()
        .evict(site.id, &site.clock)
        .unwrap();
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 9)
            .unwrap()
            .is_empty(),
        "parked"
    );
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    assert!(fixture.lease_all().is_empty(), "also after a restart");
    rule.pages_left = None;
    fixture.frontier.sites().set_rule("a.org", &rule).unwrap();
    assert_eq!(fixture.lease_all().len(), 2);
    fixture.assert_counts_consistent();
}

#[test]
fn a_site_that_is_forgotten_keeps_the_time_of_its_last_request() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let site = admit_only_site(&mut fixture);
    let clock = Clock {
        due_at_ms: 9_000_000,
        delay_ms: Some(20_000),
        last_start_ms: Some(5_000),
        owner: Some("vm".into()),
        address: None,
    };
    fixture.frontier.sites().evict(site.id, &clock).unwrap();
    let rule = SiteRule {
        delay_ms: Some(1),
        block_until_ms: Some(77),
        pages_left: Some(5),
    };
    fixture.frontier.sites().set_rule("a.org", &rule).unwrap();
    fixture
        .frontier
        .sites()
        .reset_site("a.org", 15_000)
        .unwrap();
    assert_eq!(
        fixture.frontier.sites().rule("a.org").unwrap(),
        Some(SiteRule::default())
    );
    let changed = fixture.frontier.sites().take_changed_sites().unwrap();
    let expected = Clock {
        due_at_ms: 25_000,
        delay_ms: None,
        ..clock
    };
    assert_eq!(
        changed[0].clock, expected,
        "the longer delay is kept once more"
    );
    assert_eq!(fixture.frontier.sites().rule("never.org").unwrap(), None);
}
