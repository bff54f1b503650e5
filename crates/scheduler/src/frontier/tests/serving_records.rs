use super::*;

fn resolve(fixture: &mut Fixture, record: &str) {
    fixture.frontier.records().mark_resolved(record, 0).unwrap();
}

#[test]
fn links_inherit_the_records_of_their_page() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada", "bob"], 0);
    let page = fixture.lease_one();
    assert_eq!(page.records, ["ada", "bob"]);
    fixture.complete_with_links(&page, &["/more"]);
    assert_eq!(fixture.lease_one().records, ["ada", "bob"]);
}

#[test]
fn records_of_one_id_in_two_datasets_are_resolved_apart() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["people/1"], 0);
    fixture.feed_for_records(&["http://b.org/"], &["places/1"], 0);
    resolve(&mut fixture, "people/1");
    let places = fixture.lease_one();
    assert_eq!(
        (&*places.url, &*places.records),
        ("http://b.org/", &["places/1".to_owned()][..])
    );
    fixture.assert_counts_consistent();
}

#[test]
fn a_record_that_comes_while_the_url_is_queued_shares_its_fetch() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    let tally = fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    assert_eq!(tally.skipped, skipped_counts(&[(Reason::Duplicate, 1)]));
    assert!(tally.backfills.is_empty());
    assert_eq!(fixture.lease_one().records, ["ada", "bob"]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_record_that_comes_while_the_url_is_leased_is_not_lost() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    let page = fixture.lease_one();
    fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    let tally = fixture.complete_with_links(&page, &["/more"]);
    assert_eq!(tally.backfill_records, ["bob"]);
    assert_eq!(
        fixture.lease_one().records,
        ["ada", "bob"],
        "the link serves both"
    );
}

#[test]
fn a_record_that_came_late_travels_with_the_next_delivery() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    let first = fixture.lease_one();
    fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    fixture
        .frontier
        .tasks()
        .return_task(first.task, first.delivery, false, 0)
        .unwrap();
    let second = fixture.lease_one();
    assert_eq!(second.records, ["ada", "bob"]);
    assert!(
        fixture
            .complete_with_links(&second, &[])
            .backfill_records
            .is_empty()
    );
}

#[test]
fn a_backfill_is_not_lost_when_its_task_is_leased_through_a_restart() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    let page = fixture.lease_one();
    fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    fixture.feed_for_records(&["http://a.org/"], &["eve"], 0);
    assert_eq!(
        fixture.complete_with_links(&page, &[]).backfill_records,
        ["bob", "eve"]
    );
    fixture.assert_counts_consistent();
}

#[test]
fn a_backfill_is_pending_until_it_was_applied() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    let page = fixture.lease_one();
    fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    fixture.complete_with_links(&page, &[]);
    fixture.feed_for_records(&["http://a.org/"], &["eve"], 0);
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    let waiting = |fixture: &mut Fixture| -> Vec<String> {
        let waiting = fixture
            .frontier
            .records()
            .pending_backfills(fixture.crawl)
            .unwrap();
        waiting.into_iter().map(|page| page.record).collect()
    };
    assert_eq!(waiting(&mut fixture), ["bob", "eve"]);
    fixture
        .frontier
        .records()
        .note_backfill_applied(page.task, "bob")
        .unwrap();
    assert_eq!(waiting(&mut fixture), ["eve"]);
    resolve(&mut fixture, "eve");
    assert!(waiting(&mut fixture).is_empty());
}

#[test]
fn a_record_that_comes_when_the_page_is_done_is_reported_once() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    let page = fixture.lease_one();
    fixture.complete_with_links(&page, &[]);
    let tally = fixture.feed_for_records(&["http://a.org/", "http://a.org/"], &["bob"], 0);
    let expected = Backfill {
        task: page.task,
        url: "http://a.org/".into(),
        depth: 0,
        record: "bob".into(),
    };
    assert_eq!(tally.backfills, [expected]);
    assert!(
        fixture
            .feed_for_records(&["http://a.org/"], &["ada"], 0)
            .backfills
            .is_empty()
    );
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    assert!(
        fixture
            .feed_for_records(&["http://a.org/"], &["bob"], 0)
            .backfills
            .is_empty()
    );
}

#[test]
fn pages_that_only_a_resolved_record_wants_are_not_fetched() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/ada", "http://b.org/both"], &["ada"], 0);
    fixture.feed_for_records(&["http://b.org/both"], &["bob"], 0);
    fixture.feed(&["http://c.org/for-nobody"]);
    resolve(&mut fixture, "ada");
    resolve(&mut fixture, "ada");
    assert_eq!(fixture.outcomes(), [(Outcome::Stopped, 1)]);
    fixture.assert_counts_consistent();
    let tasks = fixture.lease_all();
    assert_eq!(
        urls(&tasks),
        ["http://b.org/both", "http://c.org/for-nobody"]
    );
    assert_eq!(
        fixture
            .feed_for_records(&["http://d.org/"], &["ada"], 0)
            .unwanted,
        1
    );
    fixture.assert_counts_consistent();
}

#[test]
fn links_are_followed_for_unresolved_records_only() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada", "bob"], 0);
    let page = fixture.lease_one();
    let resolved = to_strings(&["ada"]);
    let both = TaskDone {
        links: to_strings(&["/more"]),
        resolved,
        ..successful_report(&page)
    };
    assert_eq!(fixture.complete_task(&both).links.accepted, 1);
    let more = fixture.lease_one();
    assert_eq!(more.records, ["bob"]);
    let resolved = to_strings(&["bob"]);
    let last = TaskDone {
        links: to_strings(&["/even-more"]),
        resolved,
        ..successful_report(&more)
    };
    let tally = fixture.complete_task(&last);
    assert_eq!((tally.links.accepted, tally.links.unwanted), (0, 1));
    fixture.assert_counts_consistent();
}

#[test]
fn a_refreshed_page_serves_the_record_that_asks_again() {
    let mut fixture = fixture_with_spec(|spec| spec.refresh_after_ms = Some(1_000));
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    let first = fixture.lease_one();
    fixture.complete_with_links(&first, &[]);
    assert_eq!(
        fixture
            .feed_for_records(&["http://a.org/"], &["ada"], 2_000)
            .accepted,
        1
    );
    fixture.feed_for_records(&["http://a.org/"], &["bob"], 2_000);
    let again = fixture.lease_one();
    assert_ne!(again.task, first.task);
    assert_eq!(again.records, ["ada", "bob"]);
}

#[test]
fn a_reopened_record_gets_its_links_fetched() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    resolve(&mut fixture, "ada");
    let tally = fixture.feed_for_records(&["http://a.org/more"], &["ada"], 0);
    assert_eq!(tally.unwanted, 1, "nobody said that something is missing");
    fixture
        .frontier
        .records()
        .mark_unresolved(["ada"].into_iter())
        .unwrap();
    fixture.feed_for_records(&["http://a.org/more"], &["ada"], 0);
    assert_eq!(fixture.lease_one().records, ["ada"]);
}

/// A fixture with a page that was stopped because `ada`, the only record that wanted it, was complete.
fn fixture_with_a_stopped_page() -> Fixture {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    resolve(&mut fixture, "ada");
    assert_eq!(fixture.outcomes(), [(Outcome::Stopped, 1)]);
    fixture.frontier.commit().unwrap();
    fixture
}

#[test]
fn a_stopped_page_is_fetched_for_a_further_record_that_wants_it() {
    let mut fixture = fixture_with_a_stopped_page();
    let tally = fixture.feed_for_records(&["http://a.org/"], &["bob", "eve"], 0);
    assert!(tally.backfills.is_empty(), "no page is stored: {tally:?}");
    assert_eq!((tally.accepted, tally.requeued), (0, 1));
    assert_eq!(tally.skipped, skipped_counts(&[(Reason::Duplicate, 1)]));
    assert_eq!((fixture.status().queued, fixture.status().done), (1, 0));
    assert_eq!(fixture.outcomes(), []);
    fixture.assert_counts_consistent();
    let page = fixture.lease_one();
    assert_eq!((page.task, page.delivery.number), (1, 1));
    assert_eq!(page.records, ["ada", "bob", "eve"]);
    assert!(
        fixture
            .complete_with_links(&page, &[])
            .backfill_records
            .is_empty()
    );
    assert_eq!(fixture.outcomes(), [(Outcome::Ok, 1)]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_stopped_page_is_fetched_for_a_further_record_after_a_restart() {
    let mut fixture = fixture_with_a_stopped_page().reopen(0);
    fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    fixture.assert_counts_consistent();
    let mut fixture = fixture.reopen(0);
    assert_eq!(fixture.outcomes(), []);
    assert!(
        fixture
            .frontier
            .records()
            .pending_backfills(fixture.crawl)
            .unwrap()
            .is_empty()
    );
    let page = fixture.lease_one();
    assert_eq!(page.records, ["ada", "bob"]);
    fixture.complete_with_links(&page, &[]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_stopped_page_may_be_stopped_again() {
    let mut fixture = fixture_with_a_stopped_page();
    fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    resolve(&mut fixture, "bob");
    assert_eq!(fixture.outcomes(), [(Outcome::Stopped, 1)]);
    fixture.assert_counts_consistent();
    assert_eq!(
        fixture
            .feed_for_records(&["http://a.org/"], &["eve"], 0)
            .requeued,
        1
    );
    fixture.assert_counts_consistent();
}

#[test]
fn a_page_that_was_stopped_with_its_crawl_is_not_fetched_for_a_further_record() {
    let mut fixture = fixture();
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    fixture.frontier.crawls().stop(fixture.crawl).unwrap();
    fixture
        .frontier
        .crawls()
        .end_queued_tasks(fixture.crawl, 0)
        .unwrap();
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    let tally = fixture.feed_for_records(&["http://a.org/"], &["bob"], 0);
    assert_eq!((tally.accepted, tally.requeued), (0, 0));
    assert_eq!(fixture.outcomes(), [(Outcome::Stopped, 1)]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_page_that_is_queued_again_counts_once_for_its_site() {
    let mut fixture = fixture_with_spec(|spec| spec.domain_max_pages = Some(2));
    fixture.feed_for_records(&["http://a.org/"], &["ada"], 0);
    resolve(&mut fixture, "ada");
    let urls = ["http://a.org/", "http://a.org/2", "http://a.org/3"];
    let tally = fixture.feed_for_records(&urls, &["bob"], 0);
    assert_eq!((tally.accepted, tally.requeued), (1, 1));
    assert_eq!(
        tally.skipped,
        skipped_counts(&[(Reason::Duplicate, 1), (Reason::Budget, 1)])
    );
    assert_eq!(fixture.status().sites, 1);
    fixture.assert_counts_consistent();
    assert_eq!(fixture.lease_all().len(), 2);
}
