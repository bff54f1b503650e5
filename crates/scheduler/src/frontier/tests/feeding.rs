use super::*;

#[test]
fn new_urls_are_queued_and_the_others_counted_by_reason() {
    let mut fixture = fixture_with_spec(|spec| spec.allowed_domains = vec!["a.org".into()]);
    let tally = fixture.feed(&[
        "http://a.org/1",
        "http://A.org:80/1#top",
        "mailto:me@a.org",
        "http://b.org/",
        "http://a.org/x.zip",
        "http://www.a.org/2",
    ]);
    assert_eq!(tally.accepted, 2);
    let expected = skipped_counts(&[
        (Reason::Duplicate, 1),
        (Reason::UnsupportedScheme, 1),
        (Reason::OutOfDomain, 1),
        (Reason::DeniedExtension, 1),
    ]);
    assert_eq!(tally.skipped, expected);
    let refused: Vec<_> = tally
        .refused
        .iter()
        .map(|one| (one.index, one.reason))
        .collect();
    let expected = [
        (2, Reason::UnsupportedScheme),
        (3, Reason::OutOfDomain),
        (4, Reason::DeniedExtension),
    ];
    assert_eq!(refused, expected);
    let status = fixture.status();
    assert_eq!((status.discovered, status.queued, status.sites), (6, 2, 1));
    fixture.assert_counts_consistent();
}

#[test]
fn crawls_do_not_see_each_others_urls() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/"]);
    let other = fixture
        .frontier
        .crawls()
        .open(&CrawlSpec::new("app", "other"))
        .unwrap();
    let first = std::mem::replace(&mut fixture.crawl, other);
    assert_ne!(first, other);
    assert_eq!(fixture.feed(&["http://a.org/"]).accepted, 1);
    assert_eq!(fixture.feed(&["http://a.org/"]).accepted, 0);
    fixture.assert_counts_consistent();
}

#[test]
fn links_go_one_level_deeper_and_ten_priorities_lower() {
    let mut fixture = fixture_with_spec(|spec| spec.max_depth = 1);
    fixture.feed(&["http://a.org/"]);
    let seed = fixture.lease_one();
    assert_eq!(
        (seed.depth, seed.priority, seed.parent.as_deref()),
        (0, 50, None)
    );
    let tally = fixture.complete_with_links(&seed, &["/next", "http://a.org/", "tel:1"]);
    assert_eq!(tally.links.accepted, 1);
    let expected = skipped_counts(&[(Reason::Duplicate, 1), (Reason::UnsupportedScheme, 1)]);
    assert_eq!(tally.links.skipped, expected);
    let link = fixture.lease_one();
    assert_eq!(link.url, "http://a.org/next");
    assert_eq!((link.depth, link.priority), (1, 40));
    assert_eq!(link.parent.as_deref(), Some("http://a.org/"));
    let tally = fixture.complete_with_links(&link, &["/deeper", "/deeper"]);
    assert_eq!(tally.links.skipped, skipped_counts(&[(Reason::TooDeep, 2)]));
    let status = fixture.status();
    assert_eq!(
        (status.pages, status.fields, status.links, status.bytes),
        (2, 4, 5, 2_000)
    );
    fixture.assert_counts_consistent();
}

#[test]
fn a_redirect_stays_at_its_depth_and_five_in_a_row_are_followed() {
    let mut fixture = fixture_with_spec(|spec| spec.max_depth = 0);
    fixture.feed(&["http://a.org/0"]);
    for hop in 1..=6 {
        let task = fixture.lease_one();
        assert_eq!((task.depth, task.priority), (0, 50));
        let redirect = Some(format!("http://a.org/{hop}"));
        let redirected = TaskDone {
            outcome: Outcome::Redirected,
            redirect,
            ..successful_report(&task)
        };
        let tally = fixture.complete_task(&redirected);
        let refused = if hop == 6 {
            skipped_counts(&[(Reason::TooDeep, 1)])
        } else {
            skipped_counts(&[])
        };
        assert_eq!(tally.links.skipped, refused, "hop {hop}");
    }
    assert_eq!(fixture.status().queued, 0);
    fixture.assert_counts_consistent();
}

#[test]
fn the_budget_of_a_site_is_kept_over_batches_and_restarts() {
    let mut fixture = fixture_with_spec(|spec| spec.domain_max_pages = Some(3));
    let tally = fixture.feed(&["http://a.org/1", "http://www.a.org/2", "http://b.org/1"]);
    assert_eq!(tally.accepted, 3);
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    let tally = fixture.feed(&["http://a.org/1", "http://a.org/3", "http://a.org/4"]);
    assert_eq!(tally.accepted, 1);
    assert_eq!(
        tally.skipped,
        skipped_counts(&[(Reason::Duplicate, 1), (Reason::Budget, 1)])
    );
    fixture.assert_counts_consistent();
}

#[test]
fn a_url_is_fetched_again_once_its_outcome_is_old_enough() {
    let mut fixture = fixture_with_spec(|spec| spec.refresh_after_ms = Some(1_000));
    fixture.feed(&["http://a.org/"]);
    assert_eq!(
        fixture
            .feed_for_records(&["http://a.org/"], &[], 5_000)
            .accepted,
        0,
        "still queued"
    );
    let task = fixture.lease_one();
    fixture.complete_task_at(&successful_report(&task), 5_000);
    assert_eq!(
        fixture
            .feed_for_records(&["http://a.org/"], &[], 5_999)
            .accepted,
        0,
        "too young"
    );
    assert_eq!(
        fixture
            .feed_for_records(&["http://a.org/"], &[], 6_000)
            .accepted,
        1
    );
    assert_eq!(
        fixture
            .feed_for_records(&["http://a.org/"], &[], 9_000)
            .accepted,
        0,
        "queued again"
    );
    let again = fixture.lease_one();
    assert!(again.task > task.task);
    fixture.assert_counts_consistent();
}

#[test]
fn seeds_begin_again_if_pages_are_to_be_fetched_again_and_the_crawl_was_finished() {
    let mut fixture = fixture_with_spec(|spec| spec.refresh_after_ms = Some(1_000));
    let open = |fixture: &mut Fixture| {
        fixture.frontier.crawls().open(&fixture.spec).unwrap();
        fixture.status().fed_lines
    };
    fixture.feed(&["http://a.org/1"]);
    fixture
        .frontier
        .crawls()
        .set_fed_lines(fixture.crawl, 7)
        .unwrap();
    assert_eq!(open(&mut fixture), 7, "there may be more seeds");
    fixture.frontier.crawls().end_seeds(fixture.crawl).unwrap();
    assert_eq!(open(&mut fixture), 7, "a page is still queued");
    let task = fixture.lease_one();
    fixture.complete_task(&successful_report(&task));
    fixture.frontier.crawls().end_seeds(fixture.crawl).unwrap();
    assert_eq!(open(&mut fixture), 0);
    assert_eq!(open(&mut fixture), 0, "said twice");
    fixture
        .frontier
        .crawls()
        .set_fed_lines(fixture.crawl, 3)
        .unwrap();
    assert_eq!(open(&mut fixture), 3, "the second time was interrupted");
    fixture.frontier.crawls().end_seeds(fixture.crawl).unwrap();
    fixture.spec.refresh_after_ms = None;
    assert_eq!(open(&mut fixture), 3);
}

#[test]
fn excluded_sites_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("top.csv");
    std::fs::write(&list, "1,big.com\n2,other.com\n").unwrap();
    let excluded = ExcludedSites::load(&format!("{}:1", list.display())).unwrap();
    let config = FrontierConfig {
        excluded,
        ..FrontierConfig::default()
    };
    let mut fixture = fixture();
    fixture.frontier = Frontier::open(dir.path(), config, 0).unwrap();
    fixture.crawl = fixture.frontier.crawls().open(&fixture.spec).unwrap();
    let tally = fixture.feed(&["http://www.big.com/", "http://other.com/"]);
    assert_eq!(tally.accepted, 1);
    assert_eq!(tally.skipped, skipped_counts(&[(Reason::ExcludedSite, 1)]));
}

#[test]
fn a_site_in_the_window_is_woken_when_it_gets_something() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/", "http://b.org/"]);
    let sites = fixture.frontier.sites().admit_due(i64::MAX, 1).unwrap();
    let site = sites[0].id;
    let turn = Turn {
        priority: 50,
        crawl: fixture.crawl,
        lane: Lane::Http,
    };
    assert_eq!(
        fixture.feed(&["http://b.org/1"]).woken,
        [],
        "it waits outside"
    );
    fixture
        .frontier
        .tasks()
        .lease(site, 10, Lane::Http, 0)
        .unwrap();
    assert_eq!(
        fixture.feed(&["http://a.org/2", "http://b.org/2"]).woken,
        [WokenSite { site, turn }]
    );
}

#[test]
fn a_crawl_with_an_unknown_key_is_refused_and_the_frontier_stays_usable() {
    let mut fixture = fixture();
    let error = fixture.frontier.tasks().feed(99, &[], 0).unwrap_err();
    assert!(matches!(error, FrontierError::UnknownCrawl(99)));
    assert_eq!(fixture.feed(&["http://a.org/"]).accepted, 1);
}

#[test]
fn however_many_links_a_page_has_each_is_the_task_that_the_index_names() {
    let mut fixture = fixture();
    let mut pages = 0;
    for links in [1, 2, 15, 16, 17, 18, 33, 100] {
        pages += 1;
        fixture.feed(&[&format!("http://start{pages}.org/")]);
        let task = fixture.lease_one();
        let links: Vec<String> = (0..links)
            .map(|nth| format!("http://site{}.org/{pages}/{nth}", nth % 3))
            .collect();
        let texts: Vec<&str> = links.iter().map(String::as_str).collect();
        // A page has each link twice; only one of the two is new.
        let twice = [&texts[..], &texts[..]].concat();
        let tally = fixture.complete_with_links(&task, &twice).links;
        assert_eq!(tally.accepted, links.len() as u64);
        let crawl = fixture.crawl;
        for link in &links {
            let key = fixture.frontier.0.cx.seen.key(crawl, link);
            let named = fixture.frontier.0.cx.seen.task_of(key).unwrap();
            let sql = "SELECT url FROM tasks WHERE id = ?1";
            let mut select = fixture.frontier.0.cx.db.prepare(sql).unwrap();
            let id = named.expect("it was taken") as i64;
            let stored: String = select.query_row([id], |row| row.get(0)).unwrap();
            assert_eq!(stored, *link);
        }
        fixture.assert_counts_consistent();
        for leased in fixture.lease_all() {
            fixture.complete_with_links(&leased, &[]);
        }
    }
}

#[test]
fn a_link_in_any_spelling_is_a_duplicate_of_the_queued_url() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/", "http://a.org/x?b=1"]);
    let task = fixture.lease_all().remove(0);
    let spellings = [
        "http://a.org/x?b=1",
        "HTTP://A.org:80/y/../x?b=1#there",
        "/x?b=1",
    ];
    let tally = fixture.complete_with_links(&task, &spellings).links;
    assert_eq!(tally.accepted, 0);
    assert_eq!(tally.skipped, skipped_counts(&[(Reason::Duplicate, 3)]));
    fixture.assert_counts_consistent();
}

#[test]
fn a_queued_url_stays_a_duplicate_when_its_site_is_excluded_later() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/", "http://big.com/"]);
    let task = fixture.lease_all().remove(0);
    let list = fixture.dir.path().join("top.csv");
    std::fs::write(&list, "1,big.com\n").unwrap();
    fixture.frontier.0.cx.excluded = ExcludedSites::load(&format!("{}:1", list.display())).unwrap();
    let links = ["http://big.com/", "http://big.com/new"];
    let tally = fixture.complete_with_links(&task, &links).links;
    let expected = [(Reason::Duplicate, 1), (Reason::ExcludedSite, 1)];
    assert_eq!(tally.skipped, skipped_counts(&expected));
}
