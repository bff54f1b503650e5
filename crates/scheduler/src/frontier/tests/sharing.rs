//! Tests of crawls that have tasks at the same sites.

use super::*;

/// Opens another crawl of this priority and feeds it. The fixture's crawl stays the first one.
fn open_and_feed_crawl(fixture: &mut Fixture, name: &str, priority: u8, urls: &[&str]) -> CrawlKey {
    let first = fixture.crawl;
    let mut spec = CrawlSpec::new("app", name);
    spec.priority = priority;
    let crawl = fixture.frontier.crawls().open(&spec).unwrap();
    fixture.crawl = crawl;
    fixture.feed(urls);
    fixture.crawl = first;
    crawl
}

fn numbered_urls(site: &str, n: usize) -> Vec<String> {
    (0..n).map(|n| format!("http://{site}/{n}")).collect()
}

fn as_strs(urls: &[String]) -> Vec<&str> {
    urls.iter().map(String::as_str).collect()
}

#[test]
fn crawls_of_one_priority_take_turns_at_a_site() {
    let mut fixture = fixture();
    fixture.feed(&as_strs(&numbered_urls("a.org", 500)));
    let small = open_and_feed_crawl(
        &mut fixture,
        "small",
        50,
        &["http://a.org/x", "http://a.org/y"],
    );
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 1)
        .unwrap()
        .remove(0);
    let mut crawls = Vec::new();
    for _ in 0..5 {
        let batch = fixture
            .frontier
            .tasks()
            .lease(site.id, 1, Lane::Http, 0)
            .unwrap();
        crawls.push(batch.tasks[0].crawl);
    }
    let big = fixture.crawl;
    assert_eq!(crawls, [big, small, big, small, big]);
    fixture.assert_counts_consistent();
}

#[test]
fn crawls_share_a_batch_and_fill_it() {
    let mut fixture = fixture();
    fixture.feed(&as_strs(&numbered_urls("a.org", 500)));
    let small = open_and_feed_crawl(
        &mut fixture,
        "small",
        50,
        &["http://a.org/x", "http://a.org/y"],
    );
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 1)
        .unwrap()
        .remove(0);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site.id, 64, Lane::Http, 0)
        .unwrap();
    let of_small = batch.tasks.iter().filter(|task| task.crawl == small);
    assert_eq!((of_small.count(), batch.tasks.len()), (2, 64));
    assert_eq!(batch.left, 500 - 62);
    fixture.assert_counts_consistent();
}

#[test]
fn a_stream_of_new_crawls_does_not_delay_an_old_one() {
    let mut fixture = fixture();
    fixture.feed(&as_strs(&numbered_urls("a.org", 10)));
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 1)
        .unwrap()
        .remove(0);
    let mut of_the_old = 0;
    for n in 0..10 {
        open_and_feed_crawl(
            &mut fixture,
            &format!("new-{n}"),
            50,
            &[&format!("http://a.org/of-{n}")],
        );
        let batch = fixture
            .frontier
            .tasks()
            .lease(site.id, 1, Lane::Http, 0)
            .unwrap();
        of_the_old += usize::from(batch.tasks[0].crawl == fixture.crawl);
    }
    assert!((2..=8).contains(&of_the_old), "{of_the_old}");
    fixture.assert_counts_consistent();
}

#[test]
fn a_few_sites_of_a_crawl_are_found_among_many_of_another() {
    let mut fixture = fixture();
    let big: Vec<String> = (0..300).map(|n| format!("http://s{n}.org/")).collect();
    fixture.feed(&as_strs(&big));
    let small = open_and_feed_crawl(
        &mut fixture,
        "small",
        50,
        &["http://t1.org/", "http://t2.org/"],
    );
    let found = fixture
        .frontier
        .sites()
        .admit_due_of_crawl(small, i64::MAX, 10)
        .unwrap();
    let mut names: Vec<String> = found.into_iter().map(|site| site.name).collect();
    names.sort();
    assert_eq!(names, ["t1.org", "t2.org"]);
    assert!(
        fixture
            .frontier
            .sites()
            .admit_due_of_crawl(small, i64::MAX, 10)
            .unwrap()
            .is_empty()
    );
    let others = fixture.frontier.sites().admit_due(i64::MAX, 1_000).unwrap();
    assert_eq!(others.len(), 300);
}

#[test]
fn a_crawl_at_its_page_limit_does_not_delay_another() {
    let mut fixture = fixture_with_spec(|spec| spec.max_pages = Some(1));
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://b.org/1"]);
    let other = open_and_feed_crawl(&mut fixture, "other", 40, &["http://a.org/x"]);
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
    let crawls: Vec<CrawlKey> = batch.tasks.iter().map(|task| task.crawl).collect();
    assert_eq!(crawls, [fixture.crawl, other]);
    assert_eq!(
        (batch.left, batch.next),
        (0, None),
        "the rest waits for a higher limit"
    );

    // No page was fetched, so there is room for another one.
    let mut failed = successful_report(&batch.tasks[0]);
    (failed.outcome, failed.status_code) = (Outcome::UnsafeAddress, None);
    fixture.complete_task(&failed);
    assert!(fixture.frontier.has_crawls_to_release());
    let woken = fixture.frontier.releases().release_next(0).unwrap();
    assert_eq!(woken.first().map(|woken| woken.site), Some(site.id));
    assert_eq!(
        fixture
            .frontier
            .tasks()
            .lease(site.id, 9, Lane::Http, 0)
            .unwrap()
            .tasks
            .len(),
        1
    );
    fixture.assert_counts_consistent();
}
