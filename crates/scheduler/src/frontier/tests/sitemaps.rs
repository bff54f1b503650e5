//! Tests of crawls with sitemaps: which tasks seeds add, and how listed URLs are judged.

use webfill_wire::LinkKind;

use super::*;

fn fixture_with_sitemaps() -> Fixture {
    fixture_with_spec(|spec| {
        spec.max_depth = 0;
        spec.sitemaps = true;
        spec.allowed_domains = vec!["a.org".into()];
        spec.allow_regex = vec!["/p".into()];
    })
}

fn urls(tasks: &[Leased]) -> Vec<&str> {
    tasks.iter().map(|task| task.url.as_str()).collect()
}

#[test]
fn the_robots_txt_of_each_seeds_origin_is_queued_once() {
    let mut fixture = fixture_with_sitemaps();
    let tally = fixture.feed(&["http://a.org/p1", "http://a.org/p2", "https://a.org/p3"]);
    assert_eq!((tally.accepted, tally.skipped), (5, skipped_counts(&[])));
    let tally = fixture.feed(&["http://a.org/p4", "http://b.org/p", "http://a.org/other"]);
    assert_eq!(tally.accepted, 1);
    let refused = [(Reason::OutOfDomain, 1), (Reason::DeniedPattern, 1)];
    assert_eq!(tally.skipped, skipped_counts(&refused));
    let tasks = fixture.lease_all();
    let robots = urls(&tasks)
        .into_iter()
        .filter(|url| url.ends_with("/robots.txt"))
        .collect::<Vec<_>>();
    assert_eq!(
        robots,
        ["http://a.org/robots.txt", "https://a.org/robots.txt"]
    );
    fixture.assert_counts_consistent();
}

#[test]
fn listed_urls_stay_at_their_depth_and_sitemaps_need_only_an_allowed_domain() {
    let mut fixture = fixture_with_sitemaps();
    fixture.feed_for_records(&["http://a.org/p1"], &["people/1"], 0);
    let links: Vec<String> = [
        (LinkKind::Sitemap, "http://a.org/map.zip"),
        (LinkKind::Sitemap, "http://b.org/map.xml"),
        (LinkKind::Listed, "http://a.org/p2"),
        (LinkKind::Listed, "http://a.org/other"),
        (LinkKind::Link, "http://a.org/p3"),
    ]
    .map(|(kind, url)| kind.mark_url(url))
    .into();
    let tasks = fixture.lease_all();
    assert_eq!(urls(&tasks), ["http://a.org/p1", "http://a.org/robots.txt"]);
    let counted = fixture.complete_task(&TaskDone {
        links,
        ..successful_report(&tasks[1])
    });
    let refused = [
        (Reason::OutOfDomain, 1),
        (Reason::DeniedPattern, 1),
        (Reason::TooDeep, 1),
    ];
    assert_eq!(counted.links.skipped, skipped_counts(&refused));
    fixture.complete_with_links(&tasks[0], &[]);
    let tasks = fixture.lease_all();
    assert_eq!(urls(&tasks), ["http://a.org/map.zip", "http://a.org/p2"]);
    let found = |task: &Leased| (task.depth, task.priority, task.records.len());
    assert_eq!(tasks.iter().map(found).collect::<Vec<_>>(), [(0, 50, 0); 2]);
    fixture.assert_counts_consistent();
}

#[test]
fn nested_sitemaps_come_to_an_end() {
    let mut fixture = fixture_with_sitemaps();
    fixture.feed(&["http://a.org/p"]);
    let mut tasks = fixture.lease_all();
    let mut steps = 0;
    while let Some(task) = tasks.pop() {
        steps += 1;
        let next = LinkKind::Sitemap.mark_url(&format!("http://a.org/map{steps}"));
        fixture.complete_with_links(&task, &[&next]);
        tasks = fixture.lease_all();
    }
    assert_eq!(steps, 6, "robots.txt and five sitemaps");
}

#[test]
fn listed_urls_are_judged_as_such_after_the_crawl_stops_using_sitemaps() {
    let mut fixture = fixture_with_spec(|spec| spec.max_depth = 1);
    assert_eq!(fixture.feed(&["http://a.org/p"]).accepted, 1);
    let task = fixture.lease_one();
    fixture.complete_with_links(&task, &[&LinkKind::Listed.mark_url("http://a.org/p2")]);
    let listed = fixture.lease_one();
    assert_eq!((&*listed.url, listed.depth), ("http://a.org/p2", 0));
}

#[test]
fn listed_urls_do_not_end_with_the_records_of_their_seed() {
    let mut fixture = fixture_with_sitemaps();
    fixture.feed_for_records(&["http://a.org/p1"], &["people/1"], 0);
    let tasks = fixture.lease_all();
    let links = [
        LinkKind::Link.mark_url("http://a.org/p2"),
        LinkKind::Sitemap.mark_url("http://a.org/feed"),
    ];
    let counted = fixture.complete_task(&TaskDone {
        links: links.into(),
        resolved: vec!["people/1".into()],
        ..successful_report(&tasks[0])
    });
    assert_eq!((counted.links.accepted, counted.links.unwanted), (1, 1));
    assert_eq!(fixture.lease_one().url, "http://a.org/feed");
    let tally = fixture.feed_for_records(&["http://a.org:81/p1"], &["people/1"], 0);
    assert_eq!((tally.accepted, tally.unwanted), (1, 1));
    assert_eq!(fixture.lease_one().url, "http://a.org:81/robots.txt");
}

#[test]
fn a_sites_budget_does_not_keep_its_sitemaps_from_being_looked_for() {
    let mut fixture = fixture_with_spec(|spec| {
        spec.sitemaps = true;
        spec.domain_max_pages = Some(1);
    });
    let tally = fixture.feed(&["http://a.org/", "http://a.org/2"]);
    assert_eq!(tally.skipped, skipped_counts(&[(Reason::Budget, 1)]));
    let tasks = fixture.lease_all();
    assert_eq!(urls(&tasks), ["http://a.org/", "http://a.org/robots.txt"]);
    let counted = fixture.complete_with_links(
        &tasks[1],
        &[&LinkKind::Sitemap.mark_url("http://a.org/map")],
    );
    assert_eq!(
        counted.links.skipped,
        skipped_counts(&[(Reason::Budget, 1)])
    );
    fixture.assert_counts_consistent();
}

#[test]
fn the_target_of_a_redirected_sitemap_is_judged_as_a_sitemap() {
    let mut fixture = fixture_with_sitemaps();
    fixture.feed(&["http://a.org/p1"]);
    let tasks = fixture.lease_all();
    let (page, robots) = (&tasks[0], &tasks[1]);
    let moved = |task: &Leased, to: &str| TaskDone {
        redirect: Some(to.into()),
        outcome: Outcome::Redirected,
        ..successful_report(task)
    };
    // robots.txt names a sitemap whose URL could also be that of a page.
    fixture.complete_with_links(
        robots,
        &[&LinkKind::Sitemap.mark_url("http://a.org/pages.xml")],
    );
    let sitemap = fixture.lease_one();
    fixture.complete_task(&moved(&sitemap, "/map.gz"));
    let sitemap = fixture.lease_one();
    assert_eq!(sitemap.url, "http://a.org/map.gz");
    let refused = fixture.complete_task(&moved(&sitemap, "http://b.org/map"));
    assert_eq!(
        refused.links.skipped,
        skipped_counts(&[(Reason::OutOfDomain, 1)])
    );
    let refused = fixture.complete_task(&moved(page, "/other"));
    assert_eq!(
        refused.links.skipped,
        skipped_counts(&[(Reason::DeniedPattern, 1)])
    );
}
