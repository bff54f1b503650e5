use super::*;

#[test]
fn a_url_is_reported_with_the_number_of_tasks_ahead_of_it() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    let of = |fixture: &mut Fixture, url: &str| {
        let crawl = fixture.crawl;
        fixture.frontier.reports().task_of_url(crawl, url).unwrap()
    };
    assert_eq!(of(&mut fixture, "http://a.org/4"), None);
    let last = of(&mut fixture, "http://a.org/3").unwrap();
    assert_eq!(last.stage, TaskStage::Queued { not_before_ms: 0 });
    assert_eq!(
        (last.site_name.as_str(), last.depth, last.deliveries),
        ("a.org", 0, 0)
    );
    let ahead = |own| TasksAhead {
        own,
        others: 0,
        most: 100,
    };
    assert_eq!(
        fixture
            .frontier
            .reports()
            .count_tasks_ahead(&last, 100)
            .unwrap(),
        ahead(2)
    );
    assert_eq!(
        fixture
            .frontier
            .reports()
            .count_tasks_ahead(&last, 1)
            .unwrap()
            .own,
        1
    );
    let leased = fixture.lease_all();
    let first = of(&mut fixture, "http://a.org/1").unwrap();
    assert_eq!((first.stage, first.deliveries), (TaskStage::Leased, 1));
    fixture.complete_with_links(&leased[0], &["/linked"]);
    let first = of(&mut fixture, "http://a.org/1").unwrap();
    let done = TaskStage::Done {
        outcome: Outcome::Ok,
        status_code: Some(200),
        at_ms: Some(0),
    };
    assert_eq!(first.stage, done);
    let linked = of(&mut fixture, "http://a.org/linked").unwrap();
    assert_eq!(
        (linked.parent.as_deref(), linked.depth),
        (Some("http://a.org/1"), 1)
    );
    assert_eq!(
        fixture
            .frontier
            .reports()
            .count_tasks_ahead(&linked, 100)
            .unwrap(),
        ahead(0)
    );
    // Another crawl does not have the URL. Its task at the same site precedes `linked`.
    let other = CrawlSpec::new("app", "other");
    let other = fixture.frontier.crawls().open(&other).unwrap();
    assert_eq!(
        fixture
            .frontier
            .reports()
            .task_of_url(other, "http://a.org/1")
            .unwrap(),
        None
    );
    let candidate = Candidate {
        url: "http://a.org/",
        depth: 0,
        priority: None,
        parent: None,
        records: &[],
        attrs: None,
    };
    fixture
        .frontier
        .tasks()
        .feed(other, &[candidate], 0)
        .unwrap();
    let expected = TasksAhead {
        others: 1,
        ..ahead(0)
    };
    assert_eq!(
        fixture
            .frontier
            .reports()
            .count_tasks_ahead(&linked, 100)
            .unwrap(),
        expected
    );
    let both = fixture
        .frontier
        .reports()
        .find_crawls(Some("app"), None, 10)
        .unwrap();
    assert_eq!(both, [other, fixture.crawl]);
    let one = fixture
        .frontier
        .reports()
        .find_crawls(None, Some("other"), 10)
        .unwrap();
    assert_eq!(one, [other]);
    assert_eq!(
        fixture.frontier.reports().unfinished_crawls(10).unwrap(),
        [other, fixture.crawl]
    );
}

#[test]
fn a_url_that_nobody_knows_is_judged_as_if_it_was_fed() {
    let mut fixture = fixture_with_spec(|spec| spec.allowed_domains = vec!["a.org".into()]);
    let mut judge = |text: &str| {
        let judged = fixture
            .frontier
            .reports()
            .check_as_seed(fixture.crawl, text)
            .unwrap();
        judged.map_err(|refusal| refusal.reason())
    };
    assert_eq!(judge("http://a.org/x").unwrap().as_str(), "http://a.org/x");
    assert_eq!(judge("http://b.org/x"), Err(Reason::OutOfDomain));
    assert_eq!(judge("http://a.org/x.jpg"), Err(Reason::DeniedExtension));
}

#[test]
fn the_sites_of_a_crawl_are_reported_with_the_reasons_for_their_waits_up_to_a_limit() {
    let mut fixture = fixture();
    fixture.feed(&[
        "http://a.org/1",
        "http://a.org/2",
        "http://b.org/",
        "http://c.org/",
    ]);
    let rule = SiteRule {
        delay_ms: Some(7_000),
        pages_left: Some(0),
        ..SiteRule::default()
    };
    fixture.frontier.sites().set_rule("b.org", &rule).unwrap();
    let sites = fixture
        .frontier
        .reports()
        .queued_sites(fixture.crawl, 10)
        .unwrap();
    let reported: Vec<(&str, u64, Option<u64>, Option<u32>)> = sites
        .iter()
        .map(|site| {
            (
                site.name.as_str(),
                site.queued,
                site.pages_left,
                site.rule_delay_ms,
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            ("a.org", 2, None, None),
            ("b.org", 1, Some(0), Some(7_000)),
            ("c.org", 1, None, None),
        ]
    );
    assert_eq!(
        fixture
            .frontier
            .reports()
            .queued_sites(fixture.crawl, 2)
            .unwrap()
            .len(),
        2
    );
    let one = fixture
        .frontier
        .reports()
        .queued_site(fixture.crawl, sites[1].id)
        .unwrap();
    assert_eq!(one.as_ref(), Some(&sites[1]));
    let leased = fixture.lease_all();
    for task in &leased {
        fixture.complete_with_links(task, &[]);
    }
    // The page limit of b.org keeps its only task in the queue.
    let left = fixture
        .frontier
        .reports()
        .queued_sites(fixture.crawl, 10)
        .unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn waiting_sites_are_counted_up_to_a_limit() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://b.org/1"]);
    assert_eq!(
        fixture.frontier.counts().count_all().unwrap().sites_waiting,
        2
    );
    let more = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT ?1)
                INSERT INTO sites (name, queued, top_priority) SELECT n || '.example', 1, 1 FROM n";
    let made = fixture
        .frontier
        .run_in_transaction(|db| db.execute(more, [MOST_WAITING_COUNTED as i64]));
    assert_eq!(made.unwrap() as u64, MOST_WAITING_COUNTED);
    let tally = fixture.frontier.counts().count_all().unwrap();
    assert_eq!(tally.sites_waiting, MOST_WAITING_COUNTED);
}
