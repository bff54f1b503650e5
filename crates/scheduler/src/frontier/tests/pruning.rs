use super::*;

fn query_number(fixture: &Fixture, sql: &str) -> i64 {
    let db = Connection::open(fixture.dir.path().join(FILE_NAME)).unwrap();
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Deletes all detached crawls. Returns how many calls that took.
fn prune(fixture: &mut Fixture) -> usize {
    let mut slices = 0;
    while let Some(mut walk) = fixture.frontier.pruning().begin_walk().unwrap() {
        while !walk.is_over() {
            fixture.frontier.pruning().delete_slice(&mut walk).unwrap();
            fixture.assert_counts_consistent();
            slices += 1;
        }
    }
    slices
}

fn detach(fixture: &mut Fixture, crawl_id: &str) -> Detached {
    let detached =
        fixture
            .frontier
            .pruning()
            .detach_crawls("app", Some(crawl_id), 0, &BTreeSet::new());
    detached.unwrap()
}

/// A crawl that is done, and another one with a queued task at the same site. Returns the key of the former.
fn fixture_with_done_crawl() -> (Fixture, CrawlKey) {
    let mut fixture = fixture();
    let done = fixture.crawl;
    let urls = ["http://a.org/1", "http://a.org/2", "http://b.org/1"];
    fixture.feed_for_records(&urls, &["record"], 0);
    for task in fixture.lease_all() {
        fixture.complete_with_links(&task, &[]);
    }
    fixture.crawl = fixture
        .frontier
        .crawls()
        .open(&CrawlSpec::new("app", "other"))
        .unwrap();
    fixture.feed_for_records(&["http://a.org/1"], &["record"], 0);
    (fixture, done)
}

#[test]
fn a_pruned_crawl_is_gone_and_others_go_on() {
    let (mut fixture, _) = fixture_with_done_crawl();
    let detached = detach(&mut fixture, "crawl");
    assert_eq!((detached.crawls.len(), detached.tasks), (1, 3));
    prune(&mut fixture);
    assert_eq!(query_number(&fixture, "SELECT count(*) FROM tasks"), 1);
    assert_eq!(query_number(&fixture, "SELECT count(*) FROM crawls"), 1);
    assert_eq!(
        query_number(&fixture, "SELECT count(*) FROM crawl_sites"),
        1
    );
    assert_eq!(
        query_number(&fixture, "SELECT count(*) FROM task_records"),
        1
    );
    let left = fixture.lease_one();
    fixture.complete_with_links(&left, &["/new"]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_crawl_that_has_something_queued_or_leased_is_not_pruned() {
    let (mut fixture, _) = fixture_with_done_crawl();
    assert_eq!(detach(&mut fixture, "other"), Detached::default());
    let leased = fixture.lease_one();
    assert_eq!(detach(&mut fixture, "other"), Detached::default());
    fixture.complete_with_links(&leased, &[]);
    assert_eq!(detach(&mut fixture, "other").crawls.len(), 1);
}

#[test]
fn a_crawl_with_the_id_of_a_pruned_one_is_new() {
    let (mut fixture, done) = fixture_with_done_crawl();
    detach(&mut fixture, "crawl");
    let spec = fixture.spec.clone();
    fixture.crawl = fixture.frontier.crawls().open(&spec).unwrap();
    assert!(fixture.crawl > done, "its number is another one");
    assert_eq!(fixture.feed(&["http://a.org/1"]).accepted, 1);
    prune(&mut fixture);
    assert_eq!(query_number(&fixture, "SELECT count(*) FROM tasks"), 2);
    assert_eq!(fixture.feed(&["http://a.org/1"]).accepted, 0);
}

#[test]
fn numbers_of_pruned_crawls_and_tasks_are_not_given_again() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let first = fixture.lease_one();
    fixture.complete_with_links(&first, &[]);
    let before = fixture.crawl;
    detach(&mut fixture, "crawl");
    prune(&mut fixture);
    let mut fixture = fixture.reopen(0);
    assert!(fixture.crawl > before);
    assert_eq!(fixture.feed(&["http://a.org/1"]).accepted, 1);
    assert!(fixture.lease_one().task > first.task);
    fixture.assert_counts_consistent();
}

#[test]
fn pruning_goes_on_after_a_crash() {
    let (mut fixture, _) = fixture_with_done_crawl();
    detach(&mut fixture, "crawl");
    fixture.frontier.commit().unwrap();
    let mut walk = fixture.frontier.pruning().begin_walk().unwrap().unwrap();
    fixture.frontier.pruning().delete_slice(&mut walk).unwrap();
    fixture.frontier.commit().unwrap();
    fixture.spec = CrawlSpec::new("app", "other");
    let mut fixture = fixture.reopen(0);
    assert!(prune(&mut fixture) > 0);
    assert_eq!(query_number(&fixture, "SELECT count(*) FROM crawls"), 1);
    assert_eq!(query_number(&fixture, "SELECT count(*) FROM tasks"), 1);
}

#[test]
fn only_crawls_without_a_change_since_then_are_pruned_by_age() {
    let (mut fixture, _) = fixture_with_done_crawl();
    fixture.frontier.commit().unwrap();
    fixture.frontier.set_now(5_000);
    let leased = fixture.lease_one();
    fixture.complete_with_links(&leased, &[]);
    fixture.frontier.commit().unwrap();
    let old = fixture
        .frontier
        .pruning()
        .detach_crawls("app", None, 4_999, &BTreeSet::new())
        .unwrap();
    assert_eq!(old.crawls.len(), 1, "the other one has changed since");
    let old = fixture
        .frontier
        .pruning()
        .detach_crawls("app", None, 5_000, &BTreeSet::new())
        .unwrap();
    assert_eq!(old.crawls.len(), 1);
}

#[test]
fn the_file_gives_the_space_of_pruned_crawls_back() {
    let mut fixture = fixture();
    let urls: Vec<String> = (0..5_000)
        .map(|nth| format!("http://site-{}.org/a/rather/long/path/{nth}", nth % 50))
        .collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    fixture.feed(&urls);
    for task in fixture.lease_all() {
        fixture.complete_with_links(&task, &[]);
    }
    fixture.frontier.commit().unwrap();
    let before = query_number(&fixture, "PRAGMA page_count");
    detach(&mut fixture, "crawl");
    let slices = prune(&mut fixture);
    assert!(slices >= 10, "no commit deletes much: {slices} slices");
    let after = query_number(&fixture, "PRAGMA page_count");
    // Each table and index takes up a page of the file, even if it is empty.
    assert!(after < before / 2, "{before} pages before, {after} after");
}

#[test]
fn nothing_is_queued_for_a_crawl_that_is_being_pruned() {
    let (mut fixture, done) = fixture_with_done_crawl();
    detach(&mut fixture, "crawl");
    fixture.frontier.reopening().requeue(&[1, 2, 3], 0).unwrap();
    let late = Candidate {
        url: "http://a.org/late",
        depth: 0,
        priority: None,
        parent: None,
        records: &[],
        attrs: None,
    };
    let fed = fixture.frontier.tasks().feed(done, &[late], 0);
    assert!(
        matches!(fed, Err(FrontierError::UnknownCrawl(_))),
        "{fed:?}"
    );
    prune(&mut fixture);
    assert_eq!(query_number(&fixture, "SELECT count(*) FROM tasks"), 1);
}
