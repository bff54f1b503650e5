//! Tests with thousands of crawls, more than fit into memory.

use super::*;
use crate::frontier::crawl::Crawl;
use crate::scope::Scope;

/// Registers this many crawls.
fn register_crawls(fixture: &mut Fixture, count: u32, patterns: &[&str]) -> Vec<CrawlKey> {
    let register = |number| {
        let mut spec = CrawlSpec::new("app", format!("crawl {number}"));
        spec.on_demand = true;
        spec.allow_regex = patterns.iter().map(|text| (*text).into()).collect();
        fixture.frontier.crawls().upsert(None, spec).unwrap()
    };
    (0..count).map(register).collect()
}

#[test]
fn ten_thousand_active_crawls_stay_in_memory_whatever_the_commits_use() {
    let mut fixture = fixture();
    let crawls = register_crawls(&mut fixture, 10_000, &[]);
    fixture.frontier.commit().unwrap();
    for few in crawls.chunks(100).take(20) {
        for crawl in few {
            fixture.frontier.crawls().set_fed_lines(*crawl, 1).unwrap();
        }
        fixture.frontier.commit().unwrap();
        assert_eq!(fixture.frontier.crawls().count_in_memory(), 10_001);
    }
}

#[test]
fn far_more_crawls_are_written_and_read_again_in_bounded_memory() {
    let mut fixture = fixture();
    let crawls = register_crawls(&mut fixture, 45_000, &[]);
    let first = crawls[0];
    fixture.frontier.commit().unwrap();
    assert!(fixture.frontier.crawls().count_in_memory() <= 20_000);
    for (fed, crawl) in (1..).zip(&crawls) {
        fixture
            .frontier
            .crawls()
            .set_fed_lines(*crawl, fed)
            .unwrap();
        if fed % 1_000 == 0 {
            fixture.frontier.commit().unwrap();
            assert!(fixture.frontier.crawls().count_in_memory() <= 20_000);
        }
    }
    assert_eq!(
        fixture.frontier.crawls().status(first).unwrap().fed_lines,
        1
    );
    let last = crawls[crawls.len() - 1];
    assert_eq!(
        fixture.frontier.crawls().status(last).unwrap().fed_lines,
        45_000
    );
}

/// No crawl is read again, and patterns are compiled again only to judge a URL.
#[test]
fn ten_thousand_active_crawls_with_a_pattern_each_stay_in_memory() {
    let mut fixture = fixture();
    let crawls = register_crawls(&mut fixture, 10_000, &["/shop/"]);
    let seed = |url| Candidate {
        url,
        depth: 0,
        priority: None,
        parent: None,
        records: &[],
        attrs: None,
    };
    for (place, crawl) in crawls.iter().enumerate() {
        let (allowed, denied) = (seed("http://a.org/shop/"), seed("http://a.org/blog/"));
        fixture
            .frontier
            .tasks()
            .feed(*crawl, &[allowed, denied], 0)
            .unwrap();
        if place % 500 == 499 {
            fixture.frontier.commit().unwrap();
            assert_eq!(fixture.frontier.crawls().count_in_memory(), 10_001);
            let compiled = fixture.frontier.crawls().count_with_compiled_patterns();
            assert!(compiled < 1_000, "{compiled}");
        }
    }
    for crawl in [crawls[0], crawls[9_999]] {
        let status = fixture.frontier.crawls().status(crawl).unwrap();
        assert_eq!(
            (status.queued, status.skipped.values().sum::<u64>()),
            (1, 1)
        );
    }
}

#[test]
fn the_text_of_patterns_that_are_not_compiled_counts_too() {
    let mut spec = CrawlSpec::new("app", "crawl");
    spec.deny_regex = vec!["/a long section of the shop/".repeat(300)];
    let mut scope = Scope::compile(&spec).unwrap();
    scope.forget_compiled();
    assert_eq!(
        Crawl::new(spec, scope).memory_weight(),
        1 + 28 * 300 / 2_048
    );
}

/// A counter that is written late, or twice, shows once its crawl was dropped and read again.
#[test]
fn the_counters_of_dropped_crawls_are_those_of_the_last_use() {
    let mut fixture = fixture();
    let crawls = register_crawls(&mut fixture, 3_000, &["/shop/"]);
    for round in 1..=3 {
        for (place, crawl) in (0..).zip(&crawls) {
            fixture
                .frontier
                .crawls()
                .set_fed_lines(*crawl, round * 10_000 + place)
                .unwrap();
            if place % 700 == 0 {
                fixture.frontier.commit().unwrap();
            }
        }
    }
    fixture.frontier.commit().unwrap();
    for (place, crawl) in (0..).zip(&crawls) {
        let fed = fixture.frontier.crawls().status(*crawl).unwrap().fed_lines;
        assert_eq!(fed, 30_000 + place);
    }
}
