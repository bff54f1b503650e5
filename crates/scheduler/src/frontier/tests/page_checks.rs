use super::*;
use webfill_changes::{PageCheck, Verdict};

const DAY_MS: i64 = 86_400_000;
const LIST: &str = "http://a.org/list";

/// A watch whose run has time for this many pages of a site with the usual delay of 15 s.
fn watch_fixture(pages: Option<i64>) -> Fixture {
    fixture_with_spec(|spec| {
        spec.run_began_ms = Some(DAY_MS);
        spec.run_window_ms = pages.map(|pages| pages * 15_000);
    })
}

fn begin_run(fixture: &mut Fixture, day: i64) {
    fixture.spec.run_began_ms = Some(day * DAY_MS);
    fixture.frontier.crawls().open(&fixture.spec).unwrap();
}

/// Checks up to `most` pages, one after another. The list page links to all others.
fn check_pages(fixture: &mut Fixture, most: usize, day: i64) -> Vec<String> {
    let now_ms = day * DAY_MS + 1_000;
    let links: Vec<String> = (0..20).map(|nth| format!("/{nth}")).collect();
    let mut checked = Vec::new();
    while checked.len() < most {
        let Some(site) = fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 1)
            .unwrap()
            .pop()
        else {
            break;
        };
        let batch = fixture
            .frontier
            .tasks()
            .lease(site.id, 1, Lane::Http, now_ms);
        for task in batch.unwrap().tasks {
            let is_list = task.url == LIST;
            let found = TaskDone {
                links: if is_list { links.clone() } else { Vec::new() },
                ..successful_report(&task)
            };
            fixture.complete_task_at(&found, now_ms);
            checked.push(task.url);
        }
        fixture
            .frontier
            .sites()
            .evict(site.id, &site.clock)
            .unwrap();
    }
    checked
}

fn page_check(url: &str, day: i64, verdict: Verdict) -> PageCheck {
    PageCheck {
        app_id: "app".into(),
        crawl_id: "crawl".into(),
        url: url.into(),
        at_ms: day * DAY_MS,
        verdict,
    }
}

fn query_numbers(fixture: &mut Fixture, sql: &str) -> Vec<i64> {
    fixture.frontier.commit().unwrap();
    let db = Connection::open(fixture.dir.path().join(FILE_NAME)).unwrap();
    let mut select = db.prepare(sql).unwrap();
    let numbers = select.query_map([], |row| row.get(0)).unwrap();
    numbers.map(Result::unwrap).collect()
}

#[test]
fn a_list_goes_first_in_each_run_and_no_page_starves_in_a_short_window() {
    let mut fixture = watch_fixture(Some(5));
    fixture.feed_for_records(&[LIST], &[], DAY_MS + 1);
    assert_eq!(check_pages(&mut fixture, 100, 1).len(), 21);
    let mut seen = BTreeMap::new();
    for day in 2..=14 {
        begin_run(&mut fixture, day);
        fixture.feed_for_records(&[LIST], &[], day * DAY_MS + 1);
        let checked = check_pages(&mut fixture, 5, day);
        assert_eq!((checked.len(), &*checked[0]), (5, LIST), "day {day}");
        for url in checked {
            *seen.entry(url).or_insert(0) += 1;
        }
        fixture.assert_counts_consistent();
    }
    assert_eq!(seen.len(), 21, "{seen:?}");
}

#[test]
fn no_page_starves_if_each_run_checks_a_limited_number_of_pages() {
    let mut fixture = fixture_with_spec(|spec| {
        spec.run_began_ms = Some(DAY_MS);
        spec.domain_max_pages = Some(5);
    });
    let mut seen = BTreeMap::new();
    for day in 1..=14 {
        begin_run(&mut fixture, day);
        fixture.feed_for_records(&[LIST], &[], day * DAY_MS + 1);
        let checked = check_pages(&mut fixture, 100, day);
        assert_eq!((checked.len(), &*checked[0]), (5, LIST), "day {day}");
        for url in checked {
            *seen.entry(url).or_insert(0) += 1;
        }
        fixture.assert_counts_consistent();
    }
    assert_eq!(seen.len(), 21, "{seen:?}");
}

#[test]
fn a_run_is_served_by_the_priority_of_the_task_that_it_hands_out() {
    let mut fixture = watch_fixture(None);
    fixture.feed_for_records(&[LIST], &[], DAY_MS + 1);
    check_pages(&mut fixture, 1, 1);
    let other = CrawlSpec {
        priority: 45,
        ..CrawlSpec::new("app", "other")
    };
    let watch = fixture.crawl;
    fixture.crawl = fixture.frontier.crawls().open(&other).unwrap();
    fixture.feed(&["http://a.org/other"]);
    fixture.crawl = watch;
    // The links of the list page have a lower priority than the other crawl. The seed comes last of all.
    fixture.feed_for_records(&["http://a.org/seed"], &[], DAY_MS + 1);
    let seed = query_numbers(&mut fixture, "SELECT max(id) FROM task_rows")[0];
    let sql = format!("UPDATE task_rows SET rank = 9000000000000000 WHERE id = {seed}");
    fixture
        .frontier
        .run_in_transaction(|db| db.execute_batch(&sql))
        .unwrap();
    let first = check_pages(&mut fixture, 2, 1);
    assert_eq!(first[1], "http://a.org/other", "{first:?}");
}

#[test]
fn new_pages_come_before_known_pages_that_seldom_change() {
    let mut fixture = watch_fixture(Some(4));
    let urls = ["/1", "/2", "/3", "/4", "/5", "/6"].map(|path| format!("http://a.org{path}"));
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    fixture.feed_for_records(&urls[..5], &[], DAY_MS + 1);
    check_pages(&mut fixture, 100, 1);
    for url in &urls[..5] {
        let checks = [
            page_check(url, 1, Verdict::New),
            page_check(url, 60, Verdict::Unchanged),
        ];
        fixture
            .frontier
            .runs()
            .count_checks(&checks, i64::MAX)
            .unwrap();
    }
    begin_run(&mut fixture, 2);
    fixture.feed_for_records(&urls, &[], 2 * DAY_MS + 1);
    assert_eq!(check_pages(&mut fixture, 1, 2), [urls[5]]);
}

#[test]
fn pages_that_change_often_come_first_and_each_check_counts_once() {
    let mut fixture = watch_fixture(Some(2));
    let urls = [
        "http://a.org/1",
        "http://a.org/2",
        "http://a.org/3",
        "http://a.org/4",
    ];
    fixture.feed_for_records(&urls, &[], DAY_MS + 1);
    check_pages(&mut fixture, 100, 1);
    let found = |url: &str, day| match (day, url) {
        (1, _) => Verdict::New,
        (_, "http://a.org/3") => Verdict::Changed,
        _ => Verdict::Unchanged,
    };
    for _ in 0..2 {
        for day in 1..=9 {
            let checks = urls.map(|url| page_check(url, day, found(url, day)));
            fixture
                .frontier
                .runs()
                .count_checks(&checks, i64::MAX)
                .unwrap();
        }
    }
    let checks = query_numbers(&mut fixture, "SELECT checks FROM page_checks ORDER BY task");
    assert_eq!(checks, [9, 9, 9, 9]);
    let changes = query_numbers(
        &mut fixture,
        "SELECT changes FROM page_checks ORDER BY task",
    );
    assert_eq!(changes, [0, 0, 8, 0]);
    let pages = query_numbers(
        &mut fixture,
        "SELECT pages FROM check_rates WHERE pages > 0 ORDER BY slot",
    );
    assert_eq!(pages, [3, 1]);
    begin_run(&mut fixture, 10);
    fixture.feed_for_records(&urls, &[], 10 * DAY_MS + 1);
    assert_eq!(check_pages(&mut fixture, 1, 10), ["http://a.org/3"]);
}

/// A run that checks one page.
fn check_once(fixture: &mut Fixture, day: i64, outcome: Outcome) {
    begin_run(fixture, day);
    fixture.feed_for_records(&["http://a.org/1"], &[], day * DAY_MS + 1);
    let task = fixture.lease_all_at(day * DAY_MS + 1).remove(0);
    let found = TaskDone {
        outcome,
        ..successful_report(&task)
    };
    fixture.complete_task_at(&found, day * DAY_MS + 2);
}

#[test]
fn a_page_that_its_server_calls_unchanged_was_checked() {
    let mut fixture = watch_fixture(None);
    for day in 1..=3 {
        check_once(&mut fixture, day, Outcome::NotModified);
    }
    assert_eq!(
        query_numbers(&mut fixture, "SELECT checks FROM page_checks"),
        [3]
    );
    assert_eq!(
        query_numbers(&mut fixture, "SELECT changes FROM page_checks"),
        [0]
    );
    let rates = "SELECT CAST(1000 * shape / exposure AS INTEGER) FROM page_checks";
    let unchanged = query_numbers(&mut fixture, rates);
    check_once(&mut fixture, 4, Outcome::Ok);
    assert_eq!(
        query_numbers(&mut fixture, "SELECT changes FROM page_checks"),
        [1]
    );
    assert!(query_numbers(&mut fixture, rates) > unchanged);
    check_once(&mut fixture, 5, Outcome::NotModified);
    check_once(&mut fixture, 35, Outcome::Ok);
    let changes = query_numbers(&mut fixture, "SELECT changes FROM page_checks");
    assert_eq!(changes, [1], "it was due without conditions");
}

#[test]
fn the_servers_verdict_does_not_count_if_pages_are_compared() {
    let mut fixture = fixture_with_spec(|spec| {
        spec.run_began_ms = Some(DAY_MS);
        spec.changes = true;
    });
    check_once(&mut fixture, 1, Outcome::NotModified);
    check_once(&mut fixture, 2, Outcome::Ok);
    assert_eq!(
        query_numbers(&mut fixture, "SELECT checks FROM page_checks"),
        [0]
    );
    let checks = [page_check("http://a.org/1", 999, Verdict::New)];
    fixture
        .frontier
        .runs()
        .count_checks(&checks, 3 * DAY_MS)
        .unwrap();
    let checks = [page_check("http://a.org/1", 4, Verdict::Changed)];
    fixture
        .frontier
        .runs()
        .count_checks(&checks, 4 * DAY_MS)
        .unwrap();
    let changes = query_numbers(&mut fixture, "SELECT changes FROM page_checks");
    assert_eq!(changes, [1], "a clock was ahead once");
}

#[test]
fn checks_of_unwatched_or_unknown_pages_change_nothing() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    let task = fixture.lease_one();
    fixture.complete_with_links(&task, &["/2"]);
    let mut of_nobody = page_check("http://a.org/1", 1, Verdict::Changed);
    of_nobody.crawl_id = "other".into();
    let checks = [page_check("http://a.org/1", 1, Verdict::Changed), of_nobody];
    fixture
        .frontier
        .runs()
        .count_checks(&checks, i64::MAX)
        .unwrap();
    assert_eq!(
        query_numbers(&mut fixture, "SELECT count(*) FROM page_checks"),
        [0]
    );
    let ranks = query_numbers(&mut fixture, "SELECT DISTINCT rank FROM task_rows");
    assert_eq!(ranks, [0], "its rows take no byte more");
}

#[test]
fn check_histories_are_deleted_with_their_crawl() {
    let mut fixture = watch_fixture(None);
    fixture.feed_for_records(&["http://a.org/1", "http://b.org/1"], &[], DAY_MS + 1);
    check_pages(&mut fixture, 100, 1);
    assert_eq!(
        query_numbers(&mut fixture, "SELECT count(*) FROM page_checks"),
        [2]
    );
    fixture
        .frontier
        .pruning()
        .detach_crawls("app", None, i64::MAX, &BTreeSet::new())
        .unwrap();
    let mut walk = fixture.frontier.pruning().begin_walk().unwrap().unwrap();
    while !walk.is_over() {
        fixture.frontier.pruning().delete_slice(&mut walk).unwrap();
    }
    assert_eq!(
        query_numbers(&mut fixture, "SELECT count(*) FROM page_checks"),
        [0]
    );
    assert_eq!(
        query_numbers(&mut fixture, "SELECT count(*) FROM check_rates"),
        [0]
    );
}

/// The test prints how long this takes, because the dispatcher does nothing else meanwhile.
#[test]
fn a_run_at_ten_thousand_sites_begins() {
    let mut fixture = watch_fixture(None);
    fixture.frontier.commit().unwrap();
    let fill = format!(
        "WITH RECURSIVE nth(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM nth WHERE n < 10000)
         INSERT INTO crawl_sites (crawl, site, accepted) SELECT {}, n, 100 FROM nth",
        fixture.crawl
    );
    fixture
        .frontier
        .run_in_transaction(|db| db.execute_batch(&fill))
        .unwrap();
    fixture.frontier.commit().unwrap();
    let began = std::time::Instant::now();
    begin_run(&mut fixture, 2);
    fixture.frontier.commit().unwrap();
    println!("10,000 sites: {:?}", began.elapsed());
    assert_eq!(
        query_numbers(&mut fixture, "SELECT sum(accepted) FROM crawl_sites"),
        [0]
    );
}
