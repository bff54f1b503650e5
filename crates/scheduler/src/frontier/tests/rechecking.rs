use super::*;

const FIRST_MS: i64 = 1_000;
const SECOND_MS: i64 = 5_000;

fn watch_fixture(max_per_site: Option<u64>) -> Fixture {
    fixture_with_spec(|spec| {
        spec.run_began_ms = Some(FIRST_MS);
        spec.domain_max_pages = max_per_site;
    })
}

fn begin_run(fixture: &mut Fixture, began_ms: i64) {
    fixture.spec.run_began_ms = Some(began_ms);
    fixture.frontier.crawls().open(&fixture.spec).unwrap();
}

fn check_all(fixture: &mut Fixture, links: &[&str], now_ms: i64) -> usize {
    let mut checked = 0;
    loop {
        let tasks = fixture.lease_all_at(now_ms);
        if tasks.is_empty() {
            return checked;
        }
        for task in tasks {
            let found = TaskDone {
                links: to_strings(links),
                ..successful_report(&task)
            };
            fixture.complete_task_at(&found, now_ms);
            checked += 1;
        }
    }
}

fn count_rows(fixture: &mut Fixture) -> i64 {
    fixture.frontier.commit().unwrap();
    let db = Connection::open(fixture.dir.path().join(FILE_NAME)).unwrap();
    db.query_row("SELECT count(*) FROM task_rows", [], |row| row.get(0))
        .unwrap()
}

#[test]
fn each_run_checks_each_page_once_and_the_file_does_not_grow() {
    let mut fixture = watch_fixture(None);
    for run in 0..4 {
        let began_ms = FIRST_MS + run * 4_000;
        begin_run(&mut fixture, began_ms);
        // The duration of the run does not matter.
        for now_ms in [began_ms + 10, began_ms + 2_000] {
            fixture.feed_for_records(&["http://a.org/", "http://a.org/list"], &[], now_ms);
            check_all(&mut fixture, &["/", "/list", "/page"], now_ms);
        }
        let status = fixture.status();
        assert_eq!(
            (status.done, status.pages, status.sites),
            (3, 3, 1),
            "run {run}"
        );
        assert_eq!(fixture.outcomes(), [(Outcome::Ok, 3)]);
        assert_eq!(count_rows(&mut fixture), 3);
        fixture.assert_counts_consistent();
    }
}

#[test]
fn pages_that_a_run_left_are_checked_once_in_the_next_run() {
    let mut fixture = watch_fixture(None);
    fixture.feed(&["http://a.org/1", "http://b.org/2"]);
    let one = fixture.lease_all().remove(0);
    fixture.complete_task_at(&successful_report(&one), 2_000);
    let other = fixture.lease_all_at(2_000);
    assert!(other.is_empty(), "it is leased");
    begin_run(&mut fixture, SECOND_MS);
    let status = fixture.status();
    assert_eq!((status.discovered, status.leased, status.done), (1, 1, 0));
    fixture.feed_for_records(&["http://a.org/1", "http://b.org/2"], &[], SECOND_MS + 1);
    let status = fixture.status();
    assert_eq!(
        (status.queued, status.leased),
        (1, 1),
        "one is under way already"
    );
}

#[test]
fn budgets_of_sites_start_over_with_each_run() {
    let mut fixture = watch_fixture(Some(2));
    for run in 0..3 {
        let began_ms = FIRST_MS + run * 4_000;
        begin_run(&mut fixture, began_ms);
        let urls = ["http://a.org/1", "http://a.org/2", "http://a.org/3"];
        fixture.feed_for_records(&urls, &[], began_ms + 1);
        assert!(
            !fixture
                .frontier
                .runs()
                .is_beyond_budget(fixture.crawl)
                .unwrap()
        );
        let checked = check_all(&mut fixture, &[], began_ms + 2);
        assert_eq!((checked, fixture.status().queued), (2, 1), "run {run}");
        assert!(
            fixture
                .frontier
                .runs()
                .is_beyond_budget(fixture.crawl)
                .unwrap()
        );
        fixture.assert_counts_consistent();
    }
}

#[test]
fn a_task_that_comes_back_unfetched_does_not_count_for_its_sites_budget() {
    let mut fixture = watch_fixture(Some(1));
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    for _ in 0..3 {
        let task = fixture.lease_one();
        assert!(fixture.lease_all().is_empty(), "one at a time");
        let (frontier, delivery) = (&mut fixture.frontier, task.delivery);
        frontier
            .tasks()
            .return_task(task.task, delivery, false, 0)
            .unwrap();
    }
    assert_eq!(check_all(&mut fixture, &[], 2_000), 1);
}

#[test]
fn a_clock_that_is_set_back_does_not_have_a_page_checked_twice() {
    let mut fixture = watch_fixture(None);
    begin_run(&mut fixture, SECOND_MS);
    let mut checked = 0;
    for now_ms in [SECOND_MS - 4_000, SECOND_MS - 3_000] {
        fixture.feed_for_records(&["http://a.org/"], &[], now_ms);
        checked += check_all(&mut fixture, &["/", "/page"], now_ms);
    }
    assert_eq!(checked, 2);
    assert_eq!(fixture.status().done, 2);
}

#[test]
fn a_run_that_is_opened_again_continues() {
    let mut fixture = watch_fixture(None);
    begin_run(&mut fixture, SECOND_MS);
    fixture.feed_for_records(&["http://a.org/"], &[], SECOND_MS + 1);
    check_all(&mut fixture, &[], SECOND_MS + 2);
    fixture
        .frontier
        .crawls()
        .set_fed_lines(fixture.crawl, 7)
        .unwrap();
    begin_run(&mut fixture, SECOND_MS);
    let status = fixture.status();
    assert_eq!((status.fed_lines, status.done), (7, 1));
    begin_run(&mut fixture, SECOND_MS + 4_000);
    assert_eq!(fixture.status().fed_lines, 0);
}

#[test]
fn a_task_of_an_earlier_run_that_is_retried_was_not_counted() {
    let mut fixture = watch_fixture(None);
    fixture.feed(&["http://a.org/"]);
    check_all(&mut fixture, &[], 2_000);
    begin_run(&mut fixture, SECOND_MS);
    let wanted = EndedTasks {
        crawl: fixture.crawl,
        outcomes: vec![Outcome::Ok],
        status_codes: None,
        site: None,
    };
    let mut walk = fixture.frontier.reopening().begin_walk(wanted).unwrap();
    fixture
        .frontier
        .reopening()
        .requeue_slice(&mut walk, SECOND_MS + 1)
        .unwrap();
    check_all(&mut fixture, &[], SECOND_MS + 2);
    let status = fixture.status();
    assert_eq!((status.discovered, status.done), (1, 1));
    fixture.assert_counts_consistent();
}

#[test]
fn records_of_another_run_do_not_keep_a_page_from_being_checked() {
    let mut fixture = watch_fixture(None);
    fixture.feed_for_records(&["http://a.org/"], &["people/1"], 0);
    let task = fixture.lease_one();
    let resolving = TaskDone {
        resolved: vec!["people/1".into()],
        ..successful_report(&task)
    };
    fixture.complete_task_at(&resolving, 2_000);
    begin_run(&mut fixture, SECOND_MS);
    fixture.feed_for_records(&["http://a.org/"], &[], SECOND_MS + 1);
    let again = fixture.lease_all_at(SECOND_MS + 2);
    assert_eq!(again.len(), 1);
    assert!(again[0].records.is_empty(), "{again:?}");
    assert_ne!(again[0].delivery, task.delivery, "late outcomes stay stale");
}
