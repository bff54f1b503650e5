//! Crawls by the thousand.

use super::*;

/// As many crawls with a queued task each.
fn with_crawls(fixture: &mut Fixture, count: u32) -> Vec<CrawlKey> {
    let register = |number| {
        let mut spec = CrawlSpec::new("app", format!("crawl {number}"));
        spec.on_demand = true;
        fixture.frontier.upsert_crawl(None, spec).unwrap()
    };
    (0..count).map(register).collect()
}

#[test]
fn ten_thousand_active_crawls_stay_in_memory_whatever_the_commits_use() {
    let mut fixture = fixture();
    let crawls = with_crawls(&mut fixture, 10_000);
    fixture.frontier.commit().unwrap();
    for few in crawls.chunks(100).take(20) {
        for crawl in few {
            fixture.frontier.set_fed(*crawl, 1).unwrap();
        }
        fixture.frontier.commit().unwrap();
        assert_eq!(fixture.frontier.crawls_in_memory(), 10_001);
    }
}

#[test]
fn far_more_crawls_are_written_and_read_again_in_bounded_memory() {
    let mut fixture = fixture();
    let crawls = with_crawls(&mut fixture, 45_000);
    let first = crawls[0];
    fixture.frontier.commit().unwrap();
    assert!(fixture.frontier.crawls_in_memory() <= 20_000);
    for (fed, crawl) in (1..).zip(&crawls) {
        fixture.frontier.set_fed(*crawl, fed).unwrap();
        if fed % 1_000 == 0 {
            fixture.frontier.commit().unwrap();
            assert!(fixture.frontier.crawls_in_memory() <= 20_000);
        }
    }
    assert_eq!(fixture.frontier.crawl_status(first).unwrap().fed_lines, 1);
    let last = crawls[crawls.len() - 1];
    assert_eq!(
        fixture.frontier.crawl_status(last).unwrap().fed_lines,
        45_000
    );
}
