//! The tasks of an unreachable site are handed out, whatever else is queued there.

use super::backing_off::{complete_and_check_backoff, fixture_with_backoffs, unreachable_task};
use super::*;
use crate::backoff_table::BackoffTable;

/// A site is unreachable after one backoff of a second. It is the last backoff as well.
fn backoff_table() -> BackoffTable {
    BackoffTable {
        robots: vec![1.0],
        ..BackoffTable::default()
    }
}

/// When `a.org` becomes unreachable in these tests.
const UNREACHABLE_MS: i64 = 1_000;

/// Makes the site `a.org` unreachable by two failures, of its first page and of one that was not requested before.
/// The other tasks are handed out and called back.
fn make_unreachable(fixture: &mut Fixture) {
    for (now_ms, backoffs_after) in [(0, true), (UNREACHABLE_MS, false)] {
        let mut tasks = lease(fixture, now_ms).tasks;
        let task = tasks.remove(0);
        assert_eq!(
            complete_and_check_backoff(fixture, &unreachable_task(&task), now_ms),
            backoffs_after
        );
        for left in tasks {
            let back = (left.task, left.delivery);
            let given_back = fixture
                .frontier
                .tasks()
                .return_task(back.0, back.1, false, now_ms);
            assert!(matches!(given_back.unwrap(), ReturnResult::Requeued(_)));
        }
    }
}

fn site_id(fixture: &mut Fixture) -> SiteId {
    let report = fixture.frontier.site_states().find_report("a.org").unwrap();
    report.expect("it is known").id
}

/// Leases the tasks of the site to a supervisor that takes them all.
fn lease(fixture: &mut Fixture, now_ms: i64) -> LeaseBatch {
    lease_up_to(fixture, 1_000, now_ms)
}

fn lease_up_to(fixture: &mut Fixture, limit: usize, now_ms: i64) -> LeaseBatch {
    let site = site_id(fixture);
    let batch = fixture
        .frontier
        .tasks()
        .lease(site, limit, Lane::Http, now_ms);
    batch.unwrap()
}

/// Opens a crawl, if it is not open yet, and feeds it.
fn open_and_feed_crawl(
    fixture: &mut Fixture,
    name: &str,
    change: impl FnOnce(&mut CrawlSpec),
    pages: &[&str],
) -> CrawlKey {
    let mut spec = CrawlSpec::new("app", name);
    change(&mut spec);
    let crawl = fixture.frontier.crawls().open(&spec).unwrap();
    let before = std::mem::replace(&mut fixture.crawl, crawl);
    let urls: Vec<String> = pages
        .iter()
        .map(|page| format!("http://a.org/{page}"))
        .collect();
    fixture.feed(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    fixture.crawl = before;
    crawl
}

fn with_priority(priority: u8) -> impl FnOnce(&mut CrawlSpec) {
    move |spec| spec.priority = priority
}

fn paths(batch: &LeaseBatch) -> Vec<&str> {
    let paths = batch.tasks.iter().map(|task| &task.url[13..]);
    paths.collect()
}

fn assert_all_unreachable(batch: &LeaseBatch) {
    let outcomes = batch.tasks.iter().map(|task| task.unreachable);
    assert!(
        outcomes
            .into_iter()
            .all(|outcome| outcome == Some(Outcome::RobotsUnreachable))
    );
}

/// Leases until nothing more is handed out for now. Checks that the site is never ready with nothing to hand out.
fn lease_to_the_end(fixture: &mut Fixture, now_ms: i64) -> Vec<String> {
    let mut ended = Vec::new();
    for _ in 0..100 {
        let batch = lease_up_to(fixture, 7, now_ms);
        assert_all_unreachable(&batch);
        ended.extend(batch.tasks.iter().map(|task| task.url[13..].to_owned()));
        match batch.nothing {
            Some(NothingHandedOut::BackoffBegins | NothingHandedOut::BackingOff) => return ended,
            None if batch.next.is_none() => return ended,
            Some(why) => assert!(why.is_progress(), "{why:?}"),
            None => {}
        }
    }
    panic!("it continues for ever: {ended:?}");
}

#[test]
fn older_tasks_end_behind_newer_ones_of_any_priority() {
    for newer in [10, 50, 90] {
        let mut fixture = fixture_with_backoffs(backoff_table());
        fixture.feed(&["http://a.org/a", "http://a.org/b", "http://a.org/c"]);
        fixture.frontier.sites().admit_due(i64::MAX, 9).unwrap();
        make_unreachable(&mut fixture);
        open_and_feed_crawl(&mut fixture, "newer", with_priority(newer), &["x", "y"]);
        let batch = lease(&mut fixture, UNREACHABLE_MS);
        assert_eq!(paths(&batch), ["a", "c"], "newer ones of {newer}");
        assert_all_unreachable(&batch);
        for task in &batch.tasks {
            // These outcomes say nothing about the site, which backs off by now.
            let done = TaskDone {
                evidence: None,
                ..unreachable_task(task)
            };
            fixture.complete_task_at(&done, UNREACHABLE_MS);
        }
        assert_eq!(fixture.outcomes(), [(Outcome::RobotsUnreachable, 3)]);
        let batch = lease(&mut fixture, UNREACHABLE_MS);
        assert_eq!(batch.nothing, Some(NothingHandedOut::BackingOff));
        assert_eq!(lease(&mut fixture, 2_000).tasks.len(), 1, "the probe");
        fixture.assert_counts_consistent();
    }
}

#[test]
fn older_tasks_of_one_crawl_end_behind_its_own_newer_ones() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/a", "http://a.org/b", "http://a.org/c"]);
    fixture.frontier.sites().admit_due(i64::MAX, 9).unwrap();
    make_unreachable(&mut fixture);
    let none: [String; 0] = [];
    let urls = ["http://a.org/x", "http://a.org/y"];
    let candidates = [60, 70]
        .into_iter()
        .zip(urls)
        .map(|(priority, url)| Candidate {
            url,
            depth: 0,
            priority: Some(priority),
            parent: None,
            records: &none,
            attrs: None,
        });
    let candidates: Vec<_> = candidates.collect();
    fixture
        .frontier
        .tasks()
        .feed(fixture.crawl, &candidates, 0)
        .unwrap();
    assert_eq!(paths(&lease_up_to(&mut fixture, 1, UNREACHABLE_MS)), ["a"]);
    assert_eq!(lease_to_the_end(&mut fixture, UNREACHABLE_MS), ["c"]);
    fixture.assert_counts_consistent();
}

/// The test covers all reasons why a crawl with older tasks at the site may hand nothing out.
#[test]
fn older_tasks_that_are_held_back_leave_the_site_to_newer_ones() {
    for kind in ["paused", "at its limit", "without a browser", "stopped"] {
        let mut fixture = fixture_with_backoffs(backoff_table());
        let spec = |spec: &mut CrawlSpec| {
            spec.priority = 30;
            match kind {
                "at its limit" => spec.max_pages = Some(0),
                "without a browser" => spec.lane = Lane::Browser,
                _ => {}
            }
        };
        fixture.feed(&["http://a.org/a", "http://a.org/b"]);
        let held = open_and_feed_crawl(&mut fixture, "held", spec, &["held"]);
        fixture.frontier.sites().admit_due(i64::MAX, 9).unwrap();
        match kind {
            "paused" => fixture.frontier.crawls().pause(held).unwrap(),
            "stopped" => fixture.frontier.crawls().stop(held).unwrap(),
            _ => {}
        }
        make_unreachable(&mut fixture);
        open_and_feed_crawl(&mut fixture, "newer", with_priority(90), &["x"]);
        assert_eq!(
            lease_to_the_end(&mut fixture, UNREACHABLE_MS),
            ["a"],
            "{kind}"
        );
        let batch = lease(&mut fixture, UNREACHABLE_MS);
        assert_eq!(batch.nothing, Some(NothingHandedOut::BackingOff), "{kind}");
        fixture.assert_counts_consistent();
    }
}

/// Without newer tasks the site does not back off, so a crawl that is resumed ends at once.
#[test]
fn a_paused_crawl_alone_ends_when_it_is_resumed() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/a"]);
    let held = open_and_feed_crawl(&mut fixture, "held", with_priority(30), &["held"]);
    fixture.frontier.sites().admit_due(i64::MAX, 9).unwrap();
    fixture.frontier.crawls().pause(held).unwrap();
    make_unreachable(&mut fixture);
    let batch = lease(&mut fixture, UNREACHABLE_MS);
    assert_eq!((batch.next, batch.nothing), (None, None));
    fixture.frontier.crawls().resume(held).unwrap();
    while fixture.frontier.has_crawls_to_release() {
        fixture
            .frontier
            .releases()
            .release_next(UNREACHABLE_MS)
            .unwrap();
    }
    assert_eq!(lease_to_the_end(&mut fixture, UNREACHABLE_MS), ["held"]);
    fixture.assert_counts_consistent();
}

/// There are more crawls with newer tasks of a higher priority than one call skips.
#[test]
fn older_tasks_are_found_behind_many_crawls() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/a"]);
    for number in 0..1_500 {
        open_and_feed_crawl(&mut fixture, &format!("c{number}"), with_priority(60), &[]);
    }
    let last = open_and_feed_crawl(&mut fixture, "last", with_priority(30), &["last"]);
    fixture.frontier.sites().admit_due(i64::MAX, 9).unwrap();
    fixture.frontier.crawls().pause(last).unwrap();
    make_unreachable(&mut fixture);
    for number in 0..1_500 {
        let page = format!("new{number}");
        open_and_feed_crawl(
            &mut fixture,
            &format!("c{number}"),
            with_priority(60),
            &[&page],
        );
    }
    fixture.frontier.crawls().resume(last).unwrap();
    let batch = lease(&mut fixture, UNREACHABLE_MS);
    assert_eq!(batch.nothing, Some(NothingHandedOut::CrawlsHeld), "so far");
    assert_eq!(lease_to_the_end(&mut fixture, UNREACHABLE_MS), ["last"]);
    fixture.assert_counts_consistent();
}

#[test]
fn a_task_that_ends_without_a_request_ends_whatever_has_become_of_its_site() {
    let mut fixture = fixture_with_backoffs(backoff_table());
    fixture.feed(&["http://a.org/a", "http://a.org/b", "http://a.org/c"]);
    fixture.frontier.sites().admit_due(i64::MAX, 9).unwrap();
    make_unreachable(&mut fixture);
    let batch = lease(&mut fixture, UNREACHABLE_MS);
    assert_eq!(paths(&batch), ["a", "c"]);
    fixture
        .frontier
        .site_states()
        .end_backoff("a.org", UNREACHABLE_MS)
        .unwrap();
    let done = TaskDone {
        evidence: None,
        ..unreachable_task(&batch.tasks[0])
    };
    fixture.complete_task_at(&done, UNREACHABLE_MS);
    // A task that was given back before it ended is queued, and is requested now.
    let left = &batch.tasks[1];
    let back =
        fixture
            .frontier
            .tasks()
            .return_task(left.task, left.delivery, false, UNREACHABLE_MS);
    assert!(matches!(back.unwrap(), ReturnResult::Requeued(_)));
    let batch = lease(&mut fixture, UNREACHABLE_MS);
    assert_eq!(
        (paths(&batch), batch.tasks[0].unreachable),
        (vec!["c"], None)
    );
    assert!(complete_and_check_backoff(
        &mut fixture,
        &unreachable_task(&batch.tasks[0]),
        UNREACHABLE_MS
    ));
    fixture.assert_counts_consistent();
}

/// Lets four consecutive tests after backoffs fail. Returns the crawls of their pages.
fn fail_four_probes(fixture: &mut Fixture) -> Vec<CrawlKey> {
    let mut crawls = Vec::new();
    let mut now_ms = 0;
    for _ in 0..4 {
        let site = site_id(fixture);
        let mut lease = |lane| {
            fixture
                .frontier
                .tasks()
                .lease(site, 1, lane, now_ms)
                .unwrap()
        };
        let batch = lease(Lane::Http);
        let batch = match batch.tasks.is_empty() {
            true => lease(batch.next.expect("a probe").lane),
            false => batch,
        };
        let probe = batch.tasks.first().expect("a probe");
        crawls.push(probe.crawl);
        assert!(complete_and_check_backoff(
            fixture,
            &unreachable_task(probe),
            now_ms
        ));
        now_ms += 1_000;
    }
    crawls
}

#[test]
fn the_crawls_of_a_site_take_turns_in_probing_it_whatever_their_priorities_and_lanes() {
    let pages = ["1", "2", "3", "4"];
    let browser = |spec: &mut CrawlSpec| spec.lane = Lane::Browser;
    let urgent = |spec: &mut CrawlSpec| spec.priority = 90;
    for (change, name) in [
        (
            Box::new(|_: &mut CrawlSpec| ()) as Box<dyn FnOnce(&mut CrawlSpec)>,
            "equal",
        ),
        (Box::new(urgent), "urgent"),
        (Box::new(browser), "browser"),
    ] {
        let backoff = BackoffTable {
            robots: vec![1.0; 5],
            ..BackoffTable::default()
        };
        let mut fixture = fixture_with_backoffs(backoff);
        fixture.frontier.releases().set_has_browsers(true);
        let one = open_and_feed_crawl(&mut fixture, "one", with_priority(50), &pages);
        let other = open_and_feed_crawl(&mut fixture, "other", change, &pages);
        let crawls = fail_four_probes(&mut fixture);
        for crawl in [one, other] {
            let count = crawls.iter().filter(|probed| **probed == crawl).count();
            assert_eq!(count, 2, "{name}: {crawls:?}");
        }
        fixture.assert_counts_consistent();
    }
}
