use super::*;

const DAY_MS: i64 = 86_400_000;
const LIST: &str = "http://a.org/list";
const AT_ONCE: usize = 100;

fn watch_fixture() -> Fixture {
    fixture_with_spec(|spec| {
        spec.run_began_ms = Some(DAY_MS);
        spec.changes = true;
        spec.run_period_ms = Some(DAY_MS);
    })
}

/// The web during a nightly run.
struct Night<'n> {
    /// The URLs that the run finds.
    links: &'n [&'n str],
    /// The URLs whose pages are gone.
    missing: &'n [&'n str],
}

/// A night when these pages are linked and all pages are there.
fn night_with_all_pages<'n>(links: &'n [&'n str]) -> Night<'n> {
    Night {
        links,
        missing: &[],
    }
}

impl Night<'_> {
    fn answer(&self, task: &Leased) -> TaskDone {
        let path = task.url.trim_start_matches("http://a.org");
        let found = successful_report(task);
        match (task.url == LIST, self.missing.contains(&path)) {
            (true, _) => TaskDone {
                links: to_strings(self.links),
                ..found
            },
            (false, true) => TaskDone {
                outcome: Outcome::HttpError,
                status_code: Some(404),
                ..found
            },
            (false, false) => found,
        }
    }
}

/// Checks everything that is queued. Returns the paths of the checked pages.
fn check_queued(fixture: &mut Fixture, night: &Night<'_>, now_ms: i64) -> Vec<String> {
    let mut checked = Vec::new();
    loop {
        let tasks = fixture.lease_all_at(now_ms);
        if tasks.is_empty() {
            return checked;
        }
        for task in tasks {
            fixture.complete_task_at(&night.answer(&task), now_ms);
            checked.push(task.url.trim_start_matches("http://a.org").to_owned());
        }
    }
}

/// Queues unlinked pages until there are no more. Returns their number.
fn queue_unlinked_pages(fixture: &mut Fixture, most: usize, now_ms: i64) -> u64 {
    let mut queued = 0;
    loop {
        let (has_more, tally) = fixture
            .frontier
            .runs()
            .queue_unlinked_pages(fixture.crawl, most, now_ms)
            .unwrap();
        queued += tally.accepted;
        if !has_more {
            return queued;
        }
    }
}

/// Carries out a whole run. Returns the unlinked pages that it checks.
fn run_night(fixture: &mut Fixture, day: i64, night: &Night<'_>) -> Vec<String> {
    fixture.spec.run_began_ms = Some(day * DAY_MS);
    fixture.frontier.crawls().open(&fixture.spec).unwrap();
    let now_ms = day * DAY_MS + 1_000;
    fixture.feed_for_records(&[LIST], &[], now_ms);
    check_queued(fixture, night, now_ms);
    queue_unlinked_pages(fixture, AT_ONCE, now_ms);
    let unlinked = check_queued(fixture, night, now_ms);
    assert_eq!(
        queue_unlinked_pages(fixture, AT_ONCE, now_ms),
        0,
        "each once"
    );
    // A run counts only pages that it has checked.
    let status = fixture.status();
    let skipped: u64 = status.skipped.values().sum();
    let all = status.queued + status.leased + status.done + skipped;
    assert_eq!(status.discovered, all, "day {day}");
    unlinked
}

/// The days when one page is checked as an unlinked page.
fn days_of_unlinked(fixture: &mut Fixture, days: std::ops::RangeInclusive<i64>) -> Vec<i64> {
    let checked =
        |day: &i64| !run_night(fixture, *day, &night_with_all_pages(&["/there"])).is_empty();
    days.filter(checked).collect()
}

#[test]
fn an_unlinked_page_is_checked_ever_more_rarely_but_every_ninety_days() {
    let mut fixture = watch_fixture();
    run_night(&mut fixture, 1, &night_with_all_pages(&["/there", "/lost"]));
    let days = days_of_unlinked(&mut fixture, 2..=400);
    assert_eq!(days, [2, 3, 5, 9, 17, 33, 65, 129, 219, 309, 399]);
}

#[test]
fn runs_that_begin_a_little_early_or_late_keep_the_rhythm() {
    let mut fixture = watch_fixture();
    run_night(&mut fixture, 1, &night_with_all_pages(&["/there", "/lost"]));
    let mut days = Vec::new();
    for day in 2..=20_i64 {
        fixture.spec.run_began_ms = Some(day * DAY_MS - (day % 3) * 3_600_000);
        fixture.frontier.crawls().open(&fixture.spec).unwrap();
        let now_ms = day * DAY_MS;
        fixture.feed_for_records(&[LIST], &[], now_ms);
        let night = night_with_all_pages(&["/there"]);
        check_queued(&mut fixture, &night, now_ms);
        if queue_unlinked_pages(&mut fixture, AT_ONCE, now_ms) > 0 {
            days.push(day);
        }
        check_queued(&mut fixture, &night, now_ms);
    }
    assert_eq!(days, [2, 3, 5, 9, 17]);
}

#[test]
fn a_missing_page_is_checked_on_the_next_nights_until_it_is_known_to_be_gone() {
    let mut fixture = watch_fixture();
    run_night(&mut fixture, 1, &night_with_all_pages(&["/there", "/lost"]));
    let gone = Night {
        links: &["/there"],
        missing: &["/lost"],
    };
    let checked: Vec<bool> = (2..=10)
        .map(|day| !run_night(&mut fixture, day, &gone).is_empty())
        .collect();
    assert_eq!(checked[..3], [true; 3]);
    assert_eq!(checked[3..], [false; 6]);
    // Once it is found again, it is a page like any other.
    run_night(
        &mut fixture,
        11,
        &night_with_all_pages(&["/there", "/lost"]),
    );
    assert_eq!(run_night(&mut fixture, 12, &gone), ["/lost"]);
}

#[test]
fn a_page_served_for_long_is_checked_again_on_the_night_after_it_is_missing() {
    let mut fixture = watch_fixture();
    run_night(&mut fixture, 1, &night_with_all_pages(&["/there", "/lost"]));
    days_of_unlinked(&mut fixture, 2..=16);
    let gone = Night {
        links: &["/there"],
        missing: &["/lost"],
    };
    let days: Vec<i64> = (17..=30)
        .filter(|day| !run_night(&mut fixture, *day, &gone).is_empty())
        .collect();
    assert_eq!(days, [17, 18, 19]);
}

#[test]
fn a_page_that_was_found_again_is_checked_immediately_when_it_is_lost_again() {
    let mut fixture = watch_fixture();
    run_night(&mut fixture, 1, &night_with_all_pages(&["/there", "/lost"]));
    assert_eq!(days_of_unlinked(&mut fixture, 2..=8), [2, 3, 5]);
    let found = run_night(&mut fixture, 9, &night_with_all_pages(&["/there", "/lost"]));
    assert_eq!(found, [""; 0]);
    assert_eq!(days_of_unlinked(&mut fixture, 10..=13), [10, 11, 13]);
}

#[test]
fn pages_out_of_scope_or_at_abandoned_sites_are_not_checked() {
    let mut fixture = watch_fixture();
    let elsewhere = "http://b.org/page";
    run_night(
        &mut fixture,
        1,
        &night_with_all_pages(&["/there", "/lost", elsewhere]),
    );
    fixture.spec.deny_regex = vec!["/lost".into()];
    for day in 2..=9 {
        let unlinked = run_night(&mut fixture, day, &night_with_all_pages(&["/there"]));
        assert_eq!(unlinked, [""; 0], "day {day}");
    }
}

#[test]
fn a_watch_that_reports_no_changes_checks_no_unlinked_pages() {
    let mut fixture = watch_fixture();
    fixture.spec.changes = false;
    run_night(&mut fixture, 1, &night_with_all_pages(&["/there", "/lost"]));
    assert_eq!(days_of_unlinked(&mut fixture, 2..=5), [0; 0]);
}

#[test]
fn pages_that_waited_longest_are_queued_first_and_in_limited_numbers() {
    let mut fixture = watch_fixture();
    let names: Vec<String> = (0..10).map(|nth| format!("/lost{nth}")).collect();
    let mut links: Vec<&str> = names.iter().map(String::as_str).collect();
    for day in 1..=2 {
        run_night(&mut fixture, day, &night_with_all_pages(&links));
    }
    links.truncate(5);
    run_night(&mut fixture, 3, &night_with_all_pages(&links));
    fixture.spec.run_began_ms = Some(5 * DAY_MS);
    fixture.frontier.crawls().open(&fixture.spec).unwrap();
    let now_ms = 5 * DAY_MS + 1_000;
    fixture.feed_for_records(&[LIST], &[], now_ms);
    check_queued(&mut fixture, &night_with_all_pages(&[]), now_ms);
    let (has_more, tally) = fixture
        .frontier
        .runs()
        .queue_unlinked_pages(fixture.crawl, 5, now_ms)
        .unwrap();
    assert_eq!((has_more, tally.accepted), (true, 5));
    let mut first = check_queued(&mut fixture, &night_with_all_pages(&[]), now_ms);
    first.sort_unstable();
    assert_eq!(
        first,
        names[..5],
        "those of day 3; the others were checked then and wait since"
    );
}

#[test]
fn facts_about_unlinked_pages_are_deleted_with_their_crawl() {
    let mut fixture = watch_fixture();
    run_night(&mut fixture, 1, &night_with_all_pages(&["/there"]));
    let known = |fixture: &mut Fixture| -> i64 {
        fixture.frontier.commit().unwrap();
        let db = Connection::open(fixture.dir.path().join(FILE_NAME)).unwrap();
        db.query_row("SELECT count(*) FROM known_pages", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(known(&mut fixture), 2);
    fixture
        .frontier
        .pruning()
        .detach_crawls("app", Some("crawl"), i64::MAX, &BTreeSet::new())
        .unwrap();
    let mut walk = fixture.frontier.pruning().begin_walk().unwrap().unwrap();
    while !walk.is_over() {
        fixture.frontier.pruning().delete_slice(&mut walk).unwrap();
    }
    assert_eq!(known(&mut fixture), 0);
}
