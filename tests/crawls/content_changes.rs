//! Tests changes of content: a small site is watched over several runs, and the reports must show the changes of its
//! pages.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::{Finished, Run, Running};
use webfill_tests::site::{Site, Web, page, status};
use webfill_tests::workplace::Workplace;

mod rows;
mod second_fetch;

/// A site without a mapping, and a site with one.
const UNMAPPED: &str = "shop.test";
const MAPPED: &str = "shop.example";

/// A watch of a test web, with its own workplace.
struct Watched {
    web: Web,
    work: Workplace,
    store: String,
    host: &'static str,
}

impl Watched {
    fn new(host: &'static str, store: Option<&str>) -> Watched {
        let (web, work) = (Web::start(), Workplace::new());
        let in_file = format!("sqlite:{}", work.path("store.db").display());
        let store = store.map_or(in_file, str::to_owned);
        Watched {
            web,
            work,
            store,
            host,
        }
    }

    fn site(&self) -> Site {
        self.web.site(self.host)
    }

    /// Runs the watch once, with these paths as seeds.
    fn run(&self, paths: &[&str], crawl: &Value) -> Finished {
        self.watch_run(paths, crawl).finish().expect_code(0)
    }

    fn start(&self, paths: &[&str], crawl: &Value) -> Running {
        self.watch_run(paths, crawl).start()
    }

    fn watch_run(&self, paths: &[&str], crawl: &Value) -> Run {
        let resolve: Vec<String> = self.web.resolve_args();
        let resolve: Vec<&String> = resolve.iter().filter(|one| *one != "--resolve").collect();
        let mut settings = json!({
            "store": self.store, "state": "state", "mappings": "mappings", "delay": 0.1,
            "workers": 1, "allow_private_networks": true, "resolve": resolve, "follow": "none",
        });
        for (key, value) in crawl.as_object().into_iter().flatten() {
            settings[key] = value.clone();
        }
        let urls: Vec<String> = paths
            .iter()
            .map(|path| format!("http://{}{path}", self.host))
            .collect();
        let watch = json!({
            "name": "shop", "urls": urls, "schedule": "0 2 * * *", "crawl": settings,
        });
        let file = self.work.write_json("watch.json", &watch);
        let run = Run::new(["watch", "run"]).arg(file).arg("--once");
        run.args(["--progress", "none", "--summary", "json"])
    }

    fn changes(&self, more: &[&str]) -> Vec<Value> {
        let run = Run::new(["changes", "--store", &self.store, "--json"]).args(more);
        let output = run.finish().expect_code(0).stdout;
        output
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect()
    }
}

/// The counts of new, changed and gone pages in the summary of a run.
fn found_changes(run: &Finished) -> Value {
    let summary: Value = serde_json::from_str(&run.stdout).expect("a summary");
    summary["found"].clone()
}

fn text_page(words: &str) -> webfill_tests::site::Page {
    page("Shop").html(format!(
        "<nav>Menu</nav><p>{words}</p><p>Posted 3 hours ago</p><script>var a = 1</script>"
    ))
}

/// Runs a watch four times. Before the second run, a word changes, one page disappears, one appears, and one becomes
/// unavailable.
fn run_four_nights(watched: &Watched) {
    let site = watched.site();
    site.serve("/lamp", text_page("The lamp costs 10 euro"));
    site.serve("/chair", text_page("A chair"));
    site.serve("/table", text_page("A table"));
    let paths = ["/lamp", "/chair", "/table"];
    let first = found_changes(&watched.run(&paths, &json!({})));
    assert_eq!(
        first["changes"],
        json!({}),
        "in the first run all pages are new"
    );
    site.serve("/lamp", text_page("The lamp costs 12 euro"));
    site.serve("/chair", status(404));
    site.serve("/table", status(403));
    site.serve("/bench", text_page("A bench"));
    let paths = ["/lamp", "/chair", "/table", "/bench"];
    let second = found_changes(&watched.run(&paths, &json!({})));
    assert_eq!(second["changes"], json!({"changed": 1, "new": 1}));
    site.serve("/table", text_page("A table"));
    let third = found_changes(&watched.run(&paths, &json!({})));
    assert_eq!(third["changes"], json!({"gone": 1}));
    site.serve("/chair", text_page("A chair"));
    watched.run(&paths, &json!({}));
}

fn changes_are_listed(watched: &Watched) {
    let changes = watched.changes(&["--watch", "shop"]);
    let mut kinds: Vec<(&str, &str)> = changes
        .iter()
        .map(|change| {
            let url = change["url"].as_str().unwrap();
            let path = url.rsplit('/').next().unwrap();
            (change["kind"].as_str().unwrap(), path)
        })
        .collect();
    kinds[..2].sort_unstable();
    let expected = [
        ("changed", "lamp"),
        ("new", "bench"),
        ("gone", "chair"),
        ("back", "chair"),
    ];
    assert_eq!(kinds, expected);
    let lamp = changes.iter().find(|change| change["kind"] == "changed");
    let lamp = lamp.unwrap();
    assert_eq!(lamp["difference"], "~ The lamp costs [-10-]{+12+} euro");
    assert_eq!(lamp["old"], json!(["The lamp costs 10 euro"]));
    assert_eq!(lamp["new"], json!(["The lamp costs 12 euro"]));
    assert_eq!(watched.changes(&["--crawl", "other"]), [Value::Null; 0]);
    assert_eq!(
        watched.changes(&["--since", "2999-01-01"]),
        [Value::Null; 0]
    );
    assert_eq!(watched.changes(&["--since", "1h"]).len(), 4);
    let people = Run::new(["changes", "--store", &watched.store]);
    let people = people.finish().expect_code(0).stdout;
    assert!(
        people.contains("    ~ The lamp costs [-10-]{+12+} euro"),
        "{people}"
    );
}

#[test]
fn a_watch_reports_new_changed_gone_and_returned_pages() {
    let watched = Watched::new(UNMAPPED, None);
    run_four_nights(&watched);
    changes_are_listed(&watched);
}

#[test]
fn followers_get_each_change_once_it_is_known() {
    let watched = Watched::new(UNMAPPED, None);
    let site = watched.site();
    site.serve("/lamp", text_page("The lamp costs 10 euro"));
    watched.run(&["/lamp"], &json!({}));
    let follow = Run::new(["changes", "--watch", "shop", "--follow", "--json"]);
    let mut following = follow.args(["--store", &watched.store]).start();
    for (price, changes) in [("12 euro", 1), ("14 euro", 2)] {
        site.serve("/lamp", text_page(&format!("The lamp costs {price}")));
        watched.run(&["/lamp"], &json!({}));
        following.wait_until("the change is reported", |following| {
            following.stdout_so_far().matches('\n').count() >= changes
        });
    }
    following.signal(Signal::INT);
    let reported = following.finish().expect_code(0).stdout;
    let reported = reported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let reported: Vec<Value> = reported.collect();
    assert_eq!(reported, watched.changes(&["--watch", "shop"]));
    assert_eq!(
        reported[1]["difference"],
        "~ The lamp costs [-12-]{+14+} euro"
    );
}

#[needs(mongod)]
#[test]
fn a_watch_with_its_store_in_mongodb_reports_the_same() {
    let database = fresh_database();
    let watched = Watched::new(UNMAPPED, Some(database.uri()));
    run_four_nights(&watched);
    changes_are_listed(&watched);
}

#[test]
fn a_watch_need_not_report_changes() {
    let watched = Watched::new(UNMAPPED, None);
    for price in [10, 12] {
        watched
            .site()
            .serve("/lamp", text_page(&format!("{price} euro")));
        let found = found_changes(&watched.run(&["/lamp"], &json!({"changes": false})));
        assert_eq!(found["changes"], Value::Null);
    }
    assert_eq!(watched.changes(&[]), [Value::Null; 0]);
}

#[test]
fn fields_are_compared_where_a_mapping_reads_the_page() {
    let watched = Watched::new(MAPPED, None);
    for name in ["Ada Byron", "Ada King"] {
        let served = page("Ada")
            .field("name", name)
            .html(format!("<p>{name} {name}</p>"));
        watched.site().serve("/ada", served);
        watched.run(&["/ada"], &json!({}));
    }
    assert_eq!(watched.web.visits().pages().len(), 2, "each time once");
    let changes = watched.changes(&[]);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["old"], json!({"name": "Ada Byron"}));
    assert_eq!(changes[0]["new"], json!({"name": "Ada King"}));
}

/// The kinds of all reports about a page, with the oldest first.
fn reported_kinds(watched: &Watched, path: &str) -> Vec<String> {
    let url = format!("http://{}{path}", watched.host);
    let changes = watched.changes(&[]);
    let of_page = changes.iter().filter(|change| change["url"] == url);
    let kinds = of_page.map(|change| change["kind"].as_str().unwrap().to_owned());
    kinds.collect()
}

#[test]
fn an_unlinked_page_is_still_checked() {
    let watched = Watched::new(UNMAPPED, None);
    let (site, crawl) = (watched.site(), json!({"follow": "all", "depth": 1}));
    let list = || page("List").html("<p>All that we sell</p>").link("/lamp");
    let whole_list = || list().link("/chair").link("/table");
    site.serve("/list", whole_list());
    site.serve("/lamp", text_page("A lamp"));
    site.serve("/chair", text_page("A chair"));
    site.serve("/table", text_page("A table"));
    watched.run(&["/list"], &crawl);
    let visits = |path: &str| watched.web.visits().pages().for_path(path).len();
    let before = ["/lamp", "/chair", "/table"].map(visits);
    let since = || {
        let now = ["/lamp", "/chair", "/table"].map(visits);
        [now[0] - before[0], now[1] - before[1], now[2] - before[2]]
    };

    site.serve("/list", list());
    site.serve("/chair", status(404));
    site.serve("/table", text_page("A better table"));
    watched.run(&["/list"], &crawl);
    // The changed page was fetched twice, because each change is confirmed by a second fetch.
    assert_eq!(since(), [1, 1, 2]);
    assert_eq!(
        reported_kinds(&watched, "/table"),
        ["changed"],
        "on its night"
    );
    assert_eq!(reported_kinds(&watched, "/chair"), [""; 0]);
    watched.run(&["/list"], &crawl);
    assert_eq!(since(), [2, 2, 2], "what is still served has time");
    assert_eq!(reported_kinds(&watched, "/chair"), ["gone"]);
    for _ in 0..3 {
        watched.run(&["/list"], &crawl);
    }
    assert_eq!(since(), [5, 3, 2], "what is gone is left alone");

    site.serve("/list", whole_list());
    site.serve("/chair", text_page("A chair"));
    watched.run(&["/list"], &crawl);
    assert_eq!(since(), [6, 4, 3]);
    assert_eq!(reported_kinds(&watched, "/chair"), ["gone", "back"]);
    assert_eq!(reported_kinds(&watched, "/table"), ["changed"]);
}

#[test]
fn with_a_budget_unlinked_pages_are_checked_in_the_next_run() {
    let watched = Watched::new(UNMAPPED, None);
    let (site, crawl) = (watched.site(), json!({"follow": "all", "depth": 1}));
    site.serve("/list", page("List").html("<p>All</p>").link("/chair"));
    site.serve("/chair", text_page("A chair"));
    watched.run(&["/list"], &crawl);
    let visits = || watched.web.visits().pages().for_path("/chair").len();
    let before = visits();
    site.serve("/list", page("List").html("<p>All</p>"));
    site.serve("/chair", status(404));
    let scarce = json!({"follow": "all", "depth": 1, "domain_max_pages": 1});
    let run = watched.watch_run(&["/list"], &scarce).finish();
    assert_eq!(run.status.code(), Some(12), "{}", run.stderr);
    assert_eq!(visits(), before, "the list goes first");
    watched.run(&["/list"], &crawl);
    assert_eq!(visits(), before + 1);
    watched.run(&["/list"], &crawl);
    assert_eq!(reported_kinds(&watched, "/chair"), ["gone"]);
}

/// The time of the last completed check of a page.
fn last_check_time(watched: &Watched, path: &str) -> String {
    let sql = format!(
        "SELECT checked_at FROM versions WHERE _id = (SELECT _id FROM pages WHERE url LIKE '%{path}')"
    );
    watched.work.stored().query_texts(&sql).concat()
}

#[test]
fn a_task_repeated_after_a_crash_is_one_check() {
    let watched = Watched::new(UNMAPPED, None);
    // With this setting, a run that fetches nothing successfully does not fail.
    let settings = json!({"fail_on": ["never"]});
    watched.site().serve("/chair", text_page("A chair"));
    watched.run(&["/chair"], &settings);
    let missing = status(404).latency(Duration::from_millis(500));
    watched.site().serve("/chair", missing);
    let visits = || watched.web.visits().pages().for_path("/chair").len();
    let (before, judged_before) = (visits(), last_check_time(&watched, "/chair"));
    let mut running = watched.start(&["/chair"], &settings);
    running.wait_until("it asks for the page", |_| visits() > before);
    // The page is stored, but its outcome never reaches the dispatcher.
    let supervisor = running.wait_for_role("supervisor", 1).remove(0);
    supervisor.signal(Signal::STOP);
    running.wait_until("the check is judged", |_| {
        last_check_time(&watched, "/chair") != judged_before
    });
    supervisor.signal(Signal::KILL);
    // Either the run continues by itself, or another command resumes it.
    if running.finish().status.code() != Some(0) {
        watched.run(&["/chair"], &settings);
    }
    assert_eq!(visits(), before + 2, "the task was repeated");
    assert_eq!(watched.changes(&[]), [Value::Null; 0], "of one night");
    watched.run(&["/chair"], &settings);
    let changes = watched.changes(&[]);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["kind"], "gone");
}
