use super::*;

fn resolve(bench: &mut Bench, record: &str) {
    bench.frontier.record_resolved(record, 0).unwrap();
}

#[test]
fn links_inherit_the_records_of_their_page() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada", "bob"], 0);
    let page = bench.lease_one();
    assert_eq!(page.records, ["ada", "bob"]);
    bench.done(&page, &["/more"]);
    assert_eq!(bench.lease_one().records, ["ada", "bob"]);
}

#[test]
fn a_record_that_comes_while_the_url_is_queued_shares_its_fetch() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    let tally = bench.feed_for(&["http://a.org/"], &["bob"], 0);
    assert_eq!(tally.skipped, skipped(&[(Reason::Duplicate, 1)]));
    assert!(tally.already_done.is_empty());
    assert_eq!(bench.lease_one().records, ["ada", "bob"]);
    bench.assert_conserved();
}

#[test]
fn a_record_that_comes_while_the_url_is_leased_is_not_lost() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    let page = bench.lease_one();
    bench.feed_for(&["http://a.org/"], &["bob"], 0);
    let tally = bench.done(&page, &["/more"]);
    assert_eq!(tally.late_records, ["bob"]);
    assert_eq!(
        bench.lease_one().records,
        ["ada", "bob"],
        "the link serves both"
    );
}

#[test]
fn a_late_record_goes_along_when_its_task_is_handed_out_again() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    let first = bench.lease_one();
    bench.feed_for(&["http://a.org/"], &["bob"], 0);
    bench
        .frontier
        .give_back(first.task, first.attempt, false, 0)
        .unwrap();
    let second = bench.lease_one();
    assert_eq!(second.records, ["ada", "bob"]);
    assert!(bench.done(&second, &[]).late_records.is_empty());
}

#[test]
fn a_late_record_is_not_lost_when_its_task_is_held_through_a_restart() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    let page = bench.lease_one();
    bench.feed_for(&["http://a.org/"], &["bob"], 0);
    bench.frontier.commit().unwrap();
    let mut bench = bench.reopen(0);
    bench.feed_for(&["http://a.org/"], &["eve"], 0);
    assert_eq!(bench.done(&page, &[]).late_records, ["bob", "eve"]);
    bench.assert_conserved();
}

#[test]
fn what_is_to_be_applied_is_known_until_it_was() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    let page = bench.lease_one();
    bench.feed_for(&["http://a.org/"], &["bob"], 0);
    bench.done(&page, &[]);
    bench.feed_for(&["http://a.org/"], &["eve"], 0);
    bench.frontier.commit().unwrap();
    let mut bench = bench.reopen(0);
    let waiting = |bench: &mut Bench| -> Vec<String> {
        let waiting = bench.frontier.unapplied(bench.crawl).unwrap();
        waiting.into_iter().map(|page| page.record).collect()
    };
    assert_eq!(waiting(&mut bench), ["bob", "eve"]);
    bench.frontier.applied(page.task, "bob").unwrap();
    assert_eq!(waiting(&mut bench), ["eve"]);
    resolve(&mut bench, "eve");
    assert!(waiting(&mut bench).is_empty());
}

#[test]
fn a_record_that_comes_when_the_page_is_done_is_reported_once() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    let page = bench.lease_one();
    bench.done(&page, &[]);
    let tally = bench.feed_for(&["http://a.org/", "http://a.org/"], &["bob"], 0);
    let expected = AlreadyDone {
        task: page.task,
        url: "http://a.org/".into(),
        depth: 0,
        record: "bob".into(),
    };
    assert_eq!(tally.already_done, [expected]);
    assert!(
        bench
            .feed_for(&["http://a.org/"], &["ada"], 0)
            .already_done
            .is_empty()
    );
    bench.frontier.commit().unwrap();
    let mut bench = bench.reopen(0);
    assert!(
        bench
            .feed_for(&["http://a.org/"], &["bob"], 0)
            .already_done
            .is_empty()
    );
}

#[test]
fn what_only_a_complete_record_wants_is_not_fetched() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/ada", "http://b.org/both"], &["ada"], 0);
    bench.feed_for(&["http://b.org/both"], &["bob"], 0);
    bench.feed(&["http://c.org/for-nobody"]);
    resolve(&mut bench, "ada");
    resolve(&mut bench, "ada");
    assert_eq!(bench.outcomes(), [(Outcome::Stopped, 1)]);
    bench.assert_conserved();
    let tasks = bench.lease_all();
    assert_eq!(
        urls(&tasks),
        ["http://b.org/both", "http://c.org/for-nobody"]
    );
    assert_eq!(bench.feed_for(&["http://d.org/"], &["ada"], 0).unwanted, 1);
    bench.assert_conserved();
}

#[test]
fn links_are_followed_for_unresolved_records_only() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada", "bob"], 0);
    let page = bench.lease_one();
    let resolved = owned(&["ada"]);
    let both = TaskDone {
        links: owned(&["/more"]),
        resolved,
        ..report(&page)
    };
    assert_eq!(bench.report(&both).links.accepted, 1);
    let more = bench.lease_one();
    assert_eq!(more.records, ["bob"]);
    let resolved = owned(&["bob"]);
    let last = TaskDone {
        links: owned(&["/even-more"]),
        resolved,
        ..report(&more)
    };
    let tally = bench.report(&last);
    assert_eq!((tally.links.accepted, tally.links.unwanted), (0, 1));
    bench.assert_conserved();
}

#[test]
fn a_refreshed_page_serves_the_record_that_asks_again() {
    let mut bench = bench_with(|spec| spec.refresh_after_ms = Some(1_000));
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    let first = bench.lease_one();
    bench.done(&first, &[]);
    assert_eq!(
        bench.feed_for(&["http://a.org/"], &["ada"], 2_000).accepted,
        1
    );
    bench.feed_for(&["http://a.org/"], &["bob"], 2_000);
    let again = bench.lease_one();
    assert_ne!(again.task, first.task);
    assert_eq!(again.records, ["ada", "bob"]);
}

#[test]
fn a_complete_record_that_is_taken_up_again_gets_its_links_fetched() {
    let mut bench = bench();
    bench.feed_for(&["http://a.org/"], &["ada"], 0);
    resolve(&mut bench, "ada");
    let tally = bench.feed_for(&["http://a.org/more"], &["ada"], 0);
    assert_eq!(tally.unwanted, 1, "nobody said that something is missing");
    bench.frontier.reopen_records(["ada"].into_iter()).unwrap();
    bench.feed_for(&["http://a.org/more"], &["ada"], 0);
    assert_eq!(bench.lease_one().records, ["ada"]);
}
