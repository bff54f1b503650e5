//! Pauses, and what is set by hand for sites.

use super::*;

fn only_site(bench: &mut Bench) -> SiteDue {
    let mut sites = bench.frontier.next_sites(i64::MAX, 10).unwrap();
    assert_eq!(sites.len(), 1, "{sites:?}");
    sites.remove(0)
}

/// Lets the sites of all crawls that go on know it.
fn release(bench: &mut Bench) -> Vec<Woken> {
    let mut woken = Vec::new();
    while bench.frontier.has_to_release() {
        woken.extend(bench.frontier.release(0).unwrap());
    }
    woken
}

#[test]
fn a_paused_crawl_keeps_its_queue_and_its_sites_are_parked() {
    let mut bench = bench();
    bench.feed(&["http://a.org/1", "http://a.org/2"]);
    release(&mut bench);
    bench.frontier.pause_crawl(bench.crawl).unwrap();
    let site = only_site(&mut bench);
    let batch = bench.frontier.lease(site.id, 5, Lane::Http, 0).unwrap();
    assert_eq!(batch, LeaseBatch::default());
    bench.frontier.return_site(site.id, &site.clock).unwrap();
    bench.feed(&["http://a.org/3"]);
    assert!(bench.frontier.next_sites(i64::MAX, 9).unwrap().is_empty());
    assert_eq!(bench.frontier.next_due_ms().unwrap(), None);
    let pending = bench.frontier.pending(bench.crawl).unwrap();
    assert_eq!((pending.total, pending.sites), (3, 1));

    bench.frontier.commit().unwrap();
    let dir = bench.dir;
    drop(bench.frontier);
    let mut frontier = Frontier::open(dir.path(), FrontierConfig::default(), 0).unwrap();
    assert!(
        frontier.is_paused(bench.crawl).unwrap(),
        "also after a restart"
    );
    assert!(frontier.next_sites(i64::MAX, 9).unwrap().is_empty());
    frontier.resume_crawl(bench.crawl).unwrap();
    let mut bench = Bench {
        dir,
        frontier,
        spec: bench.spec,
        crawl: bench.crawl,
    };
    assert!(
        release(&mut bench).is_empty(),
        "the site is outside the window"
    );
    assert_eq!(bench.lease_all().len(), 3);
    bench.frontier.commit().unwrap();
}

#[test]
fn a_site_in_the_window_is_woken_when_its_crawl_goes_on() {
    let mut bench = bench();
    bench.feed(&["http://a.org/1"]);
    release(&mut bench);
    let site = only_site(&mut bench);
    bench.frontier.pause_crawl(bench.crawl).unwrap();
    assert_eq!(
        bench
            .frontier
            .lease(site.id, 5, Lane::Http, 0)
            .unwrap()
            .left,
        0
    );
    bench.frontier.resume_crawl(bench.crawl).unwrap();
    let turn = Turn {
        priority: 50,
        crawl: bench.crawl,
        lane: Lane::Http,
    };
    assert_eq!(
        release(&mut bench),
        [Woken {
            site: site.id,
            turn
        }]
    );
    assert_eq!(
        bench
            .frontier
            .lease(site.id, 5, Lane::Http, 0)
            .unwrap()
            .tasks
            .len(),
        1
    );
    bench.assert_conserved();
}

#[test]
fn a_resumed_crawl_of_many_sites_is_released_in_slices() {
    let mut bench = bench();
    let urls: Vec<String> = (0..1_200).map(|n| format!("http://s{n}.org/")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    release(&mut bench);
    bench.frontier.pause_crawl(bench.crawl).unwrap();
    bench.feed(&urls);
    assert!(bench.lease_all().is_empty());
    bench.frontier.resume_crawl(bench.crawl).unwrap();
    bench.frontier.release(0).unwrap();
    let first = bench.frontier.next_sites(i64::MAX, 5_000).unwrap();
    assert!(first.len() < 1_200 && !first.is_empty());
    release(&mut bench);
    let rest = bench.frontier.next_sites(i64::MAX, 5_000).unwrap();
    assert_eq!(first.len() + rest.len(), 1_200);
}

#[test]
fn what_comes_back_of_a_stopped_crawl_ends_at_once() {
    let mut bench = bench();
    bench.feed(&["http://a.org/1"]);
    let task = bench.lease_one();
    bench.frontier.stop_crawl(bench.crawl).unwrap();
    let back = bench.frontier.give_back(task.task, task.attempt, false, 0);
    assert_eq!(back.unwrap(), GivenBack::Ended);
    assert_eq!(bench.outcomes(), [(Outcome::Stopped, 1)]);
    bench.assert_conserved();
}

#[test]
fn pending_tells_priorities_and_sites() {
    let mut bench = bench();
    assert_eq!(
        bench.frontier.pending(bench.crawl).unwrap(),
        Pending::default()
    );
    bench.feed(&["http://a.org/1", "http://b.org/1"]);
    let candidate = Candidate {
        url: "http://b.org/2",
        depth: 0,
        priority: Some(90),
        parent: None,
        attrs: None,
        records: &[],
    };
    bench.frontier.feed(bench.crawl, &[candidate], 0).unwrap();
    let pending = bench.frontier.pending(bench.crawl).unwrap();
    let priorities = (pending.low_priority, pending.high_priority);
    assert_eq!(
        (pending.total, pending.sites, priorities),
        (3, 2, (Some(50), Some(90)))
    );
    let first = bench.lease_all().remove(0);
    assert_eq!(first.url, "http://b.org/2");
    assert_eq!(bench.frontier.pending(bench.crawl).unwrap().total, 0);
}

#[test]
fn a_site_that_is_blocked_is_not_due_before() {
    let mut bench = bench();
    bench.feed(&["http://a.org/1"]);
    let rule = SiteRule {
        block_until_ms: Some(9_000),
        ..SiteRule::default()
    };
    bench.frontier.set_site_rule("a.org", &rule).unwrap();
    assert_eq!(bench.frontier.next_due_ms().unwrap(), Some(9_000));
    assert!(bench.frontier.next_sites(8_999, 9).unwrap().is_empty());
    bench.frontier.commit().unwrap();
    let mut bench = bench.reopen(100);
    assert_eq!(bench.frontier.site_rule("a.org").unwrap(), Some(rule));
    let site = bench.frontier.next_sites(9_000, 9).unwrap().remove(0);
    assert_eq!(site.rule, rule);
}

#[test]
fn a_limit_lets_so_many_pages_out_and_then_the_queue_waits() {
    let mut bench = bench();
    bench.feed(&["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    let site = only_site(&mut bench);
    let first = bench
        .frontier
        .lease(site.id, 1, Lane::Http, 0)
        .unwrap()
        .tasks
        .remove(0);
    let mut rule = SiteRule {
        pages_left: Some(1),
        ..SiteRule::default()
    };
    bench.frontier.set_site_rule("a.org", &rule).unwrap();
    let back = |bench: &mut Bench, task: &Leased| {
        let back = bench.frontier.give_back(task.task, task.attempt, false, 0);
        assert!(matches!(back.unwrap(), GivenBack::Requeued(_)));
    };
    back(&mut bench, &first);
    let batch = bench.frontier.lease(site.id, 9, Lane::Http, 0).unwrap();
    assert_eq!(batch.tasks.len(), 1, "what was out before is not counted");
    assert_eq!((batch.left, batch.next), (0, None));
    assert!(
        bench
            .frontier
            .lease(site.id, 9, Lane::Http, 0)
            .unwrap()
            .tasks
            .is_empty()
    );
    back(&mut bench, &batch.tasks[0]);
    let again = bench
        .frontier
        .lease(site.id, 9, Lane::Http, 0)
        .unwrap()
        .tasks;
    assert_eq!(again.len(), 1, "it was not used");
    bench.done(&again[0], &[]);
    assert!(
        bench
            .frontier
            .lease(site.id, 9, Lane::Http, 0)
            .unwrap()
            .tasks
            .is_empty()
    );

    bench.frontier.return_site(site.id, &site.clock).unwrap();
    assert!(
        bench.frontier.next_sites(i64::MAX, 9).unwrap().is_empty(),
        "parked"
    );
    bench.frontier.commit().unwrap();
    let mut bench = bench.reopen(0);
    assert!(bench.lease_all().is_empty(), "also after a restart");
    rule.pages_left = None;
    bench.frontier.set_site_rule("a.org", &rule).unwrap();
    assert_eq!(bench.lease_all().len(), 2);
    bench.assert_conserved();
}

#[test]
fn a_site_that_is_forgotten_keeps_the_time_of_its_last_request() {
    let mut bench = bench();
    bench.feed(&["http://a.org/1"]);
    let site = only_site(&mut bench);
    let clock = Clock {
        due_at_ms: 9_000_000,
        delay_ms: Some(20_000),
        last_start_ms: Some(5_000),
        owner: Some("vm".into()),
    };
    bench.frontier.return_site(site.id, &clock).unwrap();
    let rule = SiteRule {
        delay_ms: Some(1),
        block_until_ms: Some(77),
        pages_left: Some(5),
    };
    bench.frontier.set_site_rule("a.org", &rule).unwrap();
    bench.frontier.forget_site("a.org", 15_000).unwrap();
    assert_eq!(
        bench.frontier.site_rule("a.org").unwrap(),
        Some(SiteRule::default())
    );
    let changed = bench.frontier.take_changed_sites().unwrap();
    let expected = Clock {
        due_at_ms: 25_000,
        delay_ms: None,
        ..clock
    };
    assert_eq!(
        changed[0].clock, expected,
        "the longer delay is kept once more"
    );
    assert_eq!(bench.frontier.site_rule("never.org").unwrap(), None);
}
