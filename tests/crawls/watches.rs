//! Tests `webfill watch run FILE`: crawls that run again and again on one machine, without a fleet.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use mongodb::bson::doc;
use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::{Site, Web, document, page, status};
use webfill_tests::workplace::Workplace;

use crate::mongodb_records::People;

const NAME: &str = "people";

/// A watch (a crawl that runs again and again) over a test web, in a workplace.
struct Watched {
    web: Web,
    work: Workplace,
    watch: Value,
}

impl Watched {
    /// Creates a watch over a site with a list page, which links to another page.
    fn new() -> Watched {
        let web = Web::start();
        let watched = Watched::of(&web);
        let site = web.site("people.example");
        site.serve("/list", page("List").mapped_link("/ada"));
        site.serve("/ada", page("Ada").field("name", "Ada Byron"));
        Watched { web, ..watched }
    }

    /// Creates a watch over a list page. Its crawl resolves all host names to the given web.
    fn of(web: &Web) -> Watched {
        let resolve: Vec<String> = web.resolve_args();
        let resolve: Vec<&String> = resolve.iter().filter(|one| *one != "--resolve").collect();
        let watch = json!({
            "name": NAME,
            "urls": ["http://people.example/list"],
            "schedule": "0 2 * * *",
            "time_zone": "Europe/Berlin",
            "crawl": {
                "store": "sqlite:store.db", "state": "state", "mappings": "mappings", "delay": 0.2,
                "workers": 1, "allow_private_networks": true, "resolve": resolve,
            },
        });
        Watched {
            web: Web::start(),
            work: Workplace::new(),
            watch,
        }
    }

    fn site(&self) -> Site {
        self.web.site("people.example")
    }

    fn write_watch(&self) -> PathBuf {
        self.work.write_json("watch.json", &self.watch)
    }

    /// A run of `webfill watch run FILE`. It is not started in the folder of the file.
    fn run(&self) -> Run {
        let run = Run::new(["watch", "run"]).arg(self.write_watch());
        run.args(["--progress", "none", "--summary", "json"])
            .in_folder("/")
    }

    fn run_once(&self) -> Run {
        self.run().arg("--once")
    }

    fn runs_file(&self) -> PathBuf {
        self.work.path(&format!("state/runs-{NAME}.jsonl"))
    }

    /// The latest record of each run.
    fn runs(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.runs_file()).unwrap_or_default();
        let mut runs: Vec<Value> = Vec::new();
        for line in text.lines() {
            let run: Value = serde_json::from_str(line).unwrap();
            runs.retain(|known| known["number"] != run["number"]);
            runs.push(run);
        }
        runs
    }

    fn run_endings(&self) -> Vec<String> {
        let how = |run: &Value| run["how"].as_str().unwrap_or("under way").to_owned();
        self.runs().iter().map(how).collect()
    }

    /// The number of requests for the page at a path.
    fn count_visits(&self, path: &str) -> usize {
        self.web.visits().pages().for_path(path).len()
    }

    fn count_tasks(&self) -> i64 {
        let file = self.work.path("state/dispatcher.db");
        let db = rusqlite::Connection::open(file).unwrap();
        db.query_row("SELECT count(*) FROM task_rows", [], |row| row.get(0))
            .unwrap()
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_millis() as i64
}

#[test]
fn each_run_checks_each_page_again_once_and_is_recorded() {
    let watched = Watched::new();
    for run in 1..=3 {
        let finished = watched.run_once().finish().expect_code(0);
        assert_eq!(finished.summary().pages(), 2, "of this run alone");
        assert_eq!(watched.count_visits("/list"), run);
        assert_eq!(watched.count_visits("/ada"), run);
        assert_eq!(watched.count_tasks(), 2, "the frontier does not grow");
    }
    let runs = watched.runs();
    assert_eq!(watched.run_endings(), ["finished", "finished", "finished"]);
    let numbers: Vec<&Value> = runs.iter().map(|run| &run["number"]).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(runs[2]["counts"]["pages"], 2);
    assert_eq!(runs[2]["counts"]["outcomes"], json!({"ok": 2}));
    assert!(runs[2]["ended_ms"].as_i64() >= runs[2]["started_ms"].as_i64());
}

#[test]
fn each_run_reads_the_sitemaps_again() {
    let mut watched = Watched::new();
    watched.watch["crawl"]["sitemaps"] = true.into();
    watched.watch["crawl"]["follow"] = "none".into();
    for run in 1..=2 {
        let listed = format!("http://people.example/listed{run}\n");
        let sitemap = document("text/plain", listed);
        watched.site().serve("/sitemap.xml", sitemap);
        watched
            .site()
            .serve(&format!("/listed{run}"), page("listed"));
        watched.run_once().finish().expect_code(0);
        assert_eq!(watched.count_visits("/sitemap.xml"), run);
        assert_eq!(watched.count_visits(&format!("/listed{run}")), 1);
    }
}

#[test]
fn each_run_fetches_the_fields_of_its_records_again() {
    let mut watched = Watched::new();
    let record =
        json!({"id": "1", "urls": ["http://people.example/ada"], "fields": {"name": null}});
    watched.work.write_lines("people.jsonl", &[record]);
    watched.watch["seeds"] = json!("people.jsonl");
    watched.watch["urls"] = json!([]);
    for (run, name) in ["Ada Byron", "Ada King", "Ada Lovelace"].iter().enumerate() {
        watched
            .site()
            .serve("/ada", page("Ada").field("name", name));
        watched.run_once().finish().expect_code(0);
        let stored = watched
            .work
            .stored()
            .query_texts("SELECT fields FROM records");
        assert!(stored[0].contains(name), "run {}: {stored:?}", run + 1);
        assert_eq!(watched.count_visits("/ada"), run + 1);
    }
    let counts = &watched.runs()[2]["counts"];
    assert_eq!(counts["records"]["resolved"], 1, "{counts}");
}

#[needs(mongod)]
#[test]
fn each_run_reads_the_documents_of_a_collection_again() {
    let people = People::new();
    people.insert(vec![
        doc! {"_id": 1, "urls": ["http://people.example/1"], "name": null},
    ]);
    let mut watched = Watched::of(&people.web);
    watched.watch["urls"] = json!([]);
    watched.watch["records"] = json!({
        "uri": people.uri, "collection": "people", "write_back": "people",
        "query": {"_id": {"$lt": 9}}, "projection": {"urls": 1, "name": 1},
    });
    watched.run_once().finish().expect_code(0);
    people.insert(vec![
        doc! {"_id": 2, "urls": ["http://people.example/2"], "name": null},
    ]);
    people.insert(vec![
        doc! {"_id": 10, "urls": ["http://people.example/10"], "name": null},
    ]);
    watched.run_once().finish().expect_code(0);
    let visits = people.web.visits().pages();
    assert_eq!(visits.for_path("/1").len(), 2);
    assert_eq!(visits.for_path("/2").len(), 1);
    assert_eq!(
        visits.for_path("/10").len(),
        0,
        "the query does not find it"
    );
    assert_eq!(watched.runs()[1]["counts"]["records"]["resolved"], 2);
}

#[test]
fn the_command_keeps_running_and_starts_each_due_run() {
    let mut watched = Watched::new();
    watched.watch["schedule"] = json!("every 1s");
    let mut running = watched.run().start();
    running.wait_until("three runs have ended", |_| {
        watched
            .run_endings()
            .iter()
            .filter(|how| *how == "finished")
            .count()
            >= 3
    });
    let second = watched.run().finish().expect_code(1);
    assert!(second.stderr.contains("in use"), "{}", second.stderr);
    running.signal(Signal::TERM);
    let ended = running.finish();
    assert!(
        matches!(ended.status.code(), Some(0 | 11)),
        "{:?}",
        ended.status
    );
    let runs = watched.runs().len();
    assert_eq!(
        watched.count_visits("/ada").abs_diff(runs),
        usize::from(watched.count_visits("/ada") < runs)
    );
}

#[test]
fn several_missed_runs_are_made_up_for_by_one() {
    let watched = Watched::new();
    const DAY_MS: i64 = 86_400_000;
    let ended = json!({
        "number": 7, "due_ms": now_ms() - 5 * DAY_MS, "started_ms": now_ms() - 5 * DAY_MS,
        "ended_ms": now_ms() - 5 * DAY_MS + 1_000, "how": "finished",
    });
    watched.run_once().finish().expect_code(0);
    fs::write(watched.runs_file(), ended.to_string()).unwrap();
    let run = watched.run().replace_flag("--progress", "plain");
    let mut running = run.start();
    running.wait_until("a second run has ended", |_| {
        watched.run_endings() == ["finished", "finished"]
    });
    // The command prints this when it begins to wait for the next run.
    running.wait_for_stderr("next run at 20");
    running.signal(Signal::TERM);
    running.finish().expect_code(0);
    let runs = watched.runs();
    assert_eq!(runs.len(), 2, "once: {runs:?}");
    assert_eq!(runs[1]["number"], 8);
    assert!(runs[1]["missed"].as_i64() >= Some(3), "{}", runs[1]);
    assert_eq!(watched.count_visits("/ada"), 2);
}

#[test]
fn with_a_calendar_schedule_nothing_is_due_at_once() {
    let mut watched = Watched::new();
    // This schedule has no time that comes while the test runs.
    watched.watch["schedule"] = json!("0 0 29 2 *");
    let run = watched.run().replace_flag("--progress", "plain");
    let mut running = run.start();
    running.wait_for_stderr("next run at 20");
    assert_eq!(watched.count_visits("/list"), 0);
    running.signal(Signal::INT);
    running.finish().expect_code(0);
}

#[test]
fn a_killed_run_is_resumed() {
    let mut watched = Watched::new();
    let urls: Vec<String> = (0..24)
        .map(|n| format!("http://people.example/p{n}"))
        .collect();
    watched.site().serve_otherwise(|_| page("P").into());
    watched.watch["urls"] = json!(urls);
    watched.run_once().finish().expect_code(0);
    let running = watched.run_once().start();
    watched
        .web
        .log()
        .wait_until("the second run is under way", |visits| {
            visits.pages().len() > 40
        });
    running.signal(Signal::KILL);
    drop(running.finish());
    assert_eq!(watched.run_endings(), ["finished", "under way"]);
    watched.run_once().finish().expect_code(0);
    assert_eq!(
        watched.run_endings(),
        ["finished", "finished"],
        "the same run"
    );
    let visits = watched.web.visits().pages().len();
    // Both runs fetch all pages. Only pages that were not stored before the kill are fetched once more. If the second
    // run had started anew, there would be more than 64 visits.
    assert!(
        (48..=56).contains(&visits),
        "{visits}: only what was under way is repeated"
    );
}

#[test]
fn a_budget_ends_a_run_and_the_rest_stays_queued() {
    let mut watched = Watched::new();
    watched.site().serve_otherwise(|_| page("P").into());
    watched.watch["urls"] = json!([
        "http://people.example/1",
        "http://people.example/2",
        "http://people.example/3"
    ]);
    watched.watch["budget"] = json!({"pages": 2});
    watched.run_once().finish().expect_code(12);
    watched.run_once().finish().expect_code(12);
    assert_eq!(watched.run_endings(), ["budget", "budget"]);
    assert_eq!(watched.runs()[1]["counts"]["pages"], 2);
    assert_eq!(watched.runs()[0]["counts"]["queued"], 1, "it is left");
    assert_eq!(watched.web.visits().pages().len(), 4);
    watched.watch["budget"] = json!({"pages": 9});
    watched.run_once().finish().expect_code(0);
    assert_eq!(watched.runs()[2]["counts"]["pages"], 3);
}

#[test]
fn no_page_starves_if_a_run_checks_few_pages_of_a_site() {
    let mut watched = Watched::new();
    let links = (0..6).fold(page("List"), |list, n| list.mapped_link(&format!("/p{n}")));
    watched.site().serve("/list", links);
    watched.site().serve_otherwise(|_| page("P").into());
    watched.watch["crawl"]["domain_max_pages"] = json!(3);
    for run in 1..=4 {
        watched.run_once().finish().expect_code(12);
        assert_eq!(watched.web.visits().pages().len(), 3 * run);
        assert_eq!(watched.runs()[run - 1]["how"], "budget");
    }
    for n in 0..6 {
        assert!(watched.count_visits(&format!("/p{n}")) > 0, "page {n}");
    }
}

#[test]
fn links_of_a_list_that_has_not_changed_are_followed() {
    let watched = Watched::new();
    watched
        .site()
        .serve_with("/list", |request| match request.header("if-none-match") {
            Some("\"one\"") => status(304).into(),
            _ => page("List")
                .mapped_link("/ada")
                .header("ETag", "\"one\"")
                .into(),
        });
    for run in 1..=3 {
        watched.run_once().finish().expect_code(0);
        assert_eq!(watched.count_visits("/ada"), run);
        let outcomes = match run {
            1 => json!({"ok": 2}),
            _ => json!({"ok": 1, "not_modified": 1}),
        };
        assert_eq!(watched.runs()[run - 1]["counts"]["outcomes"], outcomes);
    }
}

#[test]
fn a_window_ends_a_run_politely() {
    let mut watched = Watched::new();
    let urls: Vec<String> = (0..50)
        .map(|n| format!("http://people.example/p{n}"))
        .collect();
    watched.site().serve_otherwise(|_| page("P").into());
    watched.watch["urls"] = json!(urls);
    watched.watch["window"] = json!("3s");
    watched.run_once().finish().expect_code(12);
    assert_eq!(watched.run_endings(), ["window"]);
    let visits = watched.web.visits().pages().len();
    assert!((1..50).contains(&visits), "{visits}");
}

/// A page that keeps failing is retried in the same run, and ends with its outcome within the patience of the run.
#[test]
fn failed_pages_are_retried_in_the_same_run() {
    let mut watched = Watched::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let site = watched.site();
    site.serve(
        "/list",
        page("List").mapped_link("/ada").mapped_link("/dead"),
    );
    site.serve_with("/ada", move |_| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => status(502).into(),
            _ => page("Ada").field("name", "Ada Byron").into(),
        }
    });
    site.serve("/dead", status(504));
    watched.watch["crawl"]["patience"] = json!("4s");
    let run = watched
        .run_once()
        .env("WEBFILL_RETRIES_HTTP_502", "60,600")
        .env("WEBFILL_RETRIES_HTTP_504", "60,600,3600");
    let summary = run.finish().expect_code(0).summary();
    let counts = ["ok", "http_error"].map(|outcome| summary.outcome_count(outcome));
    assert_eq!(counts, [2, 1], "{}", summary.json);
    assert_eq!(watched.run_endings(), ["finished"]);
    assert_eq!(watched.count_visits("/ada"), 2);
    assert!(watched.count_visits("/dead") > 1);
    assert_eq!(watched.runs()[0]["counts"]["outcomes"]["http_error"], 1);
}

#[test]
fn a_failed_run_is_recorded_with_the_reason() {
    let mut watched = Watched::new();
    watched.work.write("empty.txt", "");
    watched.watch["seeds"] = json!("nowhere.txt");
    let refused = watched.run_once().finish().expect_code(2);
    assert!(refused.stderr.contains("nowhere.txt"), "{}", refused.stderr);
    watched.watch["seeds"] = json!("empty.txt");
    watched.watch["urls"] = json!(["http://down.example/"]);
    watched.watch["crawl"]["fail_on"] = json!(["nothing-fetched"]);
    watched.watch["crawl"]["patience"] = json!("1s");
    let ended = watched.run_once().finish();
    assert!(
        matches!(ended.status.code(), Some(1 | 12)),
        "{}",
        ended.stderr
    );
    assert_eq!(watched.runs().len(), 1);
}

#[test]
fn faults_of_a_file_are_reported_with_their_path() {
    for (key, value, reported) in [
        (
            "schedule",
            json!("61 * * * *"),
            "$.schedule: minute `61`: allowed are 0 to 59",
        ),
        (
            "crawl",
            json!({"follow": "some"}),
            "$.crawl.follow: expected `mapped` or `all` or `none`",
        ),
        (
            "shedule",
            json!("x"),
            "$.shedule: unknown key, did you mean `schedule`?",
        ),
        (
            "time_zone",
            json!("Nowhere"),
            "$.time_zone: expected the name of an IANA time zone",
        ),
    ] {
        let mut watched = Watched::new();
        watched.watch[key] = value;
        let refused = watched.run_once().finish().expect_code(2);
        assert!(
            refused.one_sentence().contains(reported),
            "{}",
            refused.stderr
        );
        assert!(
            refused.one_sentence().contains("watch.json"),
            "{}",
            refused.stderr
        );
        assert!(watched.web.visits().is_empty());
    }
}
