//! Tests the records of a store as a grid, in a real Chromium and by plain requests. The results are checked in the
//! store, in the audit log, and by the effects on the next crawl.

use std::fs;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use webfill_test_browser::Browser;
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{page, status};

use crate::fleet::Fleet;
use crate::http::{Visitor, percent_encode};
use crate::looks::check_on_all_screens;
use crate::scene::HOSTILE;

const GRID: &str = "/dashboard/records?dataset=people";

/// A store with records in many states, and its dashboard.
struct Records {
    fleet: Fleet,
    dashboard: Running,
    visitor: Visitor,
}

impl Records {
    fn new(store: Option<&str>) -> Records {
        let mut fleet = Fleet::unstarted();
        if let Some(store) = store {
            fleet.set_store(store);
        }
        serve_people(&fleet);
        crawl_people(&fleet, "first");
        let (dashboard, visitor) = start_dashboard(&fleet);
        Records {
            fleet,
            dashboard,
            visitor,
        }
    }

    fn get(&self, path: &str) -> String {
        let answer = self.visitor.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body.replace("&#x2f;", "/")
    }

    /// The ids of all records in a list, from the first to the last page of the list.
    fn listed_ids(&self, query: &str) -> Vec<String> {
        let (mut all, mut path) = (Vec::new(), format!("{GRID}{query}"));
        for _ in 0..60 {
            let body = self.get(&path);
            let heads = body.split("role=\"rowheader\"").skip(1);
            all.extend(heads.map(|head| {
                let (_, title) = head.split_once("title=\"").expect("an id");
                title.split('"').next().unwrap().to_owned()
            }));
            let Some((before, _)) = body.split_once("rel=\"next\"") else {
                return all;
            };
            let (_, href) = before.rsplit_once("href=\"").expect("a link");
            path = href.split('"').next().unwrap().replace("&amp;", "&");
        }
        panic!("{query} continues for ever");
    }

    fn audit_log(&self) -> Vec<Value> {
        let log = self.fleet.work.path("state/alone/logs/dashboard-audit.log");
        let text = fs::read_to_string(log).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// A record as `webfill export records` prints it.
    fn exported_record(&self, id: &str) -> Value {
        let export = Run::new(["export", "records", "--store", &self.fleet.store_uri()]);
        let lines = export.finish().expect_code(0).stdout;
        let mut records = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = records.find(|record| record["record_id"] == id);
        found.unwrap_or_else(|| panic!("no record {id}"))
    }

    fn finish(self) {
        drop(self.dashboard);
    }
}

pub(crate) fn start_dashboard(fleet: &Fleet) -> (Running, Visitor) {
    let place = format!("{}:8097", fleet.host());
    let mut dashboard = Run::new(["dashboard", "--store", &fleet.store_uri()])
        .args(["--listen", &place, "--state"])
        .arg(fleet.work.path("state/alone"))
        .start();
    dashboard.wait_for_stderr("ready");
    (dashboard, Visitor::of(&place))
}

fn serve_people(fleet: &Fleet) {
    let site = fleet.web.site("people.example");
    let person =
        |name: &str, location: &str| page(name).field("name", name).field("location", location);
    site.serve("/ada", person("Ada Lovelace", "London"));
    site.serve("/grace", person("Grace Hopper", "New York"));
    site.serve("/leer", page("Leer"));
    site.serve("/fort", status(404));
    let hostile = HOSTILE.replace('<', "&lt;").replace('\0', "");
    site.serve("/feind", page("F").field("name", &hostile));
    let closed = fleet.web.site("closed.example");
    closed.serve_robots("User-agent: *\nDisallow: /\n");
}

fn crawl_people(fleet: &Fleet, crawl: &str) {
    let record = |id: &str, urls: &[&str], fields: Value| {
        let url = |path: &&str| match path.strip_prefix('/') {
            Some(path) => format!("http://people.example/{path}"),
            None => (*path).to_owned(),
        };
        let urls: Vec<String> = urls.iter().map(url).collect();
        json!({"id": id, "urls": urls, "fields": fields})
    };
    let gap = json!({"name": null, "location": null});
    let mut records = vec![
        record("a-filled", &["/ada"], gap.clone()),
        // This record lacks a field that neither page has, so both pages are fetched.
        record(
            "b-other",
            &["/ada", "/grace"],
            json!({"name": null, "location": null, "email": null}),
        ),
        record("c-lost", &["/fort"], gap.clone()),
        record("d-nothing", &["/leer"], gap.clone()),
        record("e-robots", &["http://closed.example/1"], gap.clone()),
        record(
            "f-same",
            &["/ada"],
            json!({"name": "ada lovelace", "location": null}),
        ),
        record(
            "g-wrong",
            &["/ada"],
            json!({"name": "Ada Byron", "location": null}),
        ),
        record(
            "h-\"<b>feindlich",
            &["/feind"],
            json!({"name": null, "<img src=x onerror='window.wasRun = 1'>": HOSTILE}),
        ),
        record(
            "i-without",
            &["/leer"],
            json!({"age": 36, "tags": ["x", "y"]}),
        ),
    ];
    records.extend((0..60).map(|n| {
        let fields = json!({"age": (n * 37) % 60, "name": format!("Nr. {n:02}")});
        record(&format!("z{n:02}"), &["/leer"], fields)
    }));
    fleet.crawl_records(crawl, "people", &records);
}

/// The CSS class of a cell in the HTML of a page.
fn cell_class(body: &str, id: &str, column: &str) -> String {
    let heads = body.split("role=\"columnheader\"").skip(2);
    let at = heads
        .map(|head| {
            head.split("<bdi>")
                .nth(1)
                .unwrap()
                .split('<')
                .next()
                .unwrap()
        })
        .position(|name| name == column)
        .unwrap_or_else(|| panic!("no column {column}"));
    let (_, row) = body
        .split_once(&format!("title=\"{id}\""))
        .unwrap_or_else(|| panic!("no row {id}"));
    let cell = row.split("role=\"gridcell\"").nth(at + 1).unwrap();
    let (_, class) = cell.split_once("class=\"c-").unwrap();
    class.split(['"', ' ']).next().unwrap().to_owned()
}

fn check_grid(records: &Records) {
    let body = records.get(GRID);
    for (id, column, state) in [
        ("a-filled", "name", "filled"),
        ("b-other", "name", "contradicted"),
        ("c-lost", "name", "page-unreachable"),
        ("d-nothing", "location", "not-on-the-page"),
        ("e-robots", "name", "refused-by-robots"),
        ("f-same", "name", "known"),
        ("f-same", "location", "filled"),
        ("i-without", "age", "given"),
        ("i-without", "name", "kept"),
        ("z00", "age", "given"),
    ] {
        assert_eq!(cell_class(&body, id, column), state, "{column} of {id}");
    }
    assert!(
        !body.contains("<b>feindlich") && !body.contains("<img src=x"),
        "{body}"
    );
    // Together, the pages of the list show each record once, in the order of ids.
    let all = records.listed_ids("");
    assert_eq!(all.len(), 69);
    assert!(all.is_sorted());
    assert_eq!(records.listed_ids("&from=z50"), all[59..]);
    assert_eq!(records.listed_ids("&id=z1").len(), 10);
    assert_eq!(records.listed_ids("&state=page%20unreachable"), ["c-lost"]);
    assert_eq!(
        records.listed_ids("&state=not%20on%20the%20page&column=location"),
        ["d-nothing"]
    );
    assert_eq!(records.listed_ids("&state=known"), ["f-same"]);
    assert_eq!(records.listed_ids("&site=closed.example"), ["e-robots"]);
    assert_eq!(
        records
            .listed_ids("&records=open&site=people.example")
            .len(),
        3
    );
    assert_eq!(
        records.listed_ids("&state=open").len(),
        4,
        "as links name it"
    );
    assert_eq!(records.listed_ids("&state=filled&column=age"), [""; 0]);
    // Ages are sorted as numbers, and not as texts. Records without a number come last.
    let by_age = records.listed_ids("&sort=age");
    assert_eq!((by_age.len(), &*by_age[0]), (69, "z00"));
    assert!(
        by_age[61..].iter().all(|id| !id.starts_with('z')),
        "{by_age:?}"
    );
    let last = records.listed_ids("&sort=age&order=desc&id=z");
    assert_eq!(
        last.iter().rev().collect::<Vec<_>>(),
        records
            .listed_ids("&sort=age&id=z")
            .iter()
            .collect::<Vec<_>>()
    );
}

fn check_downloads(records: &Records) {
    let file = |ending: &str, query: &str| {
        let path = format!("/dashboard/records.{ending}?dataset=people{query}");
        let answer = records.visitor.get(&path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(
            answer.head.contains(&format!("people.{ending}")),
            "{}",
            answer.head
        );
        answer.body
    };
    // The answer comes in chunks. Lines that are not JSON are heads of chunks, and are skipped.
    let lines = file("jsonl", "&id=z");
    let listed: Vec<Value> = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(Value::is_object)
        .collect();
    assert_eq!(listed.len(), 60);
    assert_eq!(listed[1], json!({"id": "z01", "age": 37, "name": "Nr. 01"}));
    let csv = file("csv", "&state=page%20unreachable");
    assert!(csv.contains("c-lost") && !csv.contains("a-filled"), "{csv}");
    assert!(file("csv", "").contains("Ada Lovelace"));
    assert!(file("parquet", "").contains("PAR1"));
    for (path, status) in [
        ("/dashboard/records.exe?dataset=people", 404),
        ("/dashboard/records.csv", 400),
        (&*format!("{GRID}&state=nothing"), 400),
        (&*format!("{GRID}&records=nothing"), 400),
        (&*format!("{GRID}&after=x"), 400),
        ("/dashboard/record/people/a-filled/cell", 400),
        ("/dashboard/record/people/a-filled/cell?field=none", 404),
        ("/dashboard/record/people/nobody/cell?field=name", 404),
    ] {
        assert_eq!(records.visitor.get(path).status, status, "{path}");
    }
}

#[test]
fn records_are_a_grid_with_states_filters_orders_and_files() {
    let records = Records::new(None);
    check_grid(&records);
    check_downloads(&records);
    records.finish();
}

#[needs(mongod)]
#[test]
fn records_in_mongodb_are_the_same_grid() {
    let database = fresh_database();
    let records = Records::new(Some(database.uri()));
    check_grid(&records);
    check_downloads(&records);
    check_decisions(&records);
    records.finish();
}

/// Answers the doubt about a cell by its form. Returns the page of the cell with its new state.
fn submit_decision(records: &Records, id: &str, field: &str, answer: &[(&str, &str)]) -> String {
    let path = format!(
        "/dashboard/record/people/{}/cell?field={}",
        percent_encode(id),
        percent_encode(field)
    );
    let shown = records.visitor.get(&path);
    let (_, version) = shown.body.split_once("name=\"version\" value=\"").unwrap();
    let version = version.split('"').next().unwrap();
    let token = shown.form_token();
    let own = [("token", &*token), ("field", field), ("version", version)];
    let posted = records.visitor.post(&path, &[&own[..], answer].concat());
    assert_eq!(posted.status, 303, "{}", posted.body);
    records.get(&path)
}

fn check_decisions(records: &Records) {
    // Answers that accept, replace or reject a value are kept when the same input is crawled again.
    let other = submit_decision(
        records,
        "b-other",
        "name",
        &[("answer", "accept"), ("candidate", "0")],
    );
    assert!(other.contains("data-answer=\"accepted\""), "{other}");
    assert!(other.contains("data-current=\"Grace Hopper\""), "{other}");
    submit_decision(
        records,
        "c-lost",
        "name",
        &[("answer", "edit"), ("value", "By hand")],
    );
    submit_decision(records, "a-filled", "location", &[("answer", "reject")]);
    submit_decision(records, "g-wrong", "name", &[("answer", "accept")]);
    submit_decision(records, "a-filled", "name", &[("answer", "reject")]);
    let undone = submit_decision(records, "a-filled", "name", &[("answer", "undo")]);
    assert!(undone.contains("data-current=\"Ada Lovelace\""), "{undone}");
    let audit = records.audit_log();
    let answers: Vec<&str> = audit
        .iter()
        .filter_map(|line| line["answer"].as_str())
        .collect();
    assert_eq!(
        answers,
        ["accept", "edit", "reject", "accept", "reject", "undo"]
    );
    assert!(
        audit
            .iter()
            .all(|line| line["action"] == "record_review" && line["result"] == "done")
    );
    assert_eq!(audit[1]["value"], "By hand");
    crawl_people(&records.fleet, "second");
    let stored = |id: &str| records.exported_record(id);
    assert_eq!(stored("b-other")["fields"]["name"], "Grace Hopper");
    assert_eq!(
        stored("b-other")["sources"]["name"]["url"],
        "http://people.example/grace"
    );
    assert_eq!(stored("c-lost")["fields"]["name"], "By hand");
    assert_eq!(
        stored("a-filled")["fields"],
        json!({"name": "Ada Lovelace", "location": null})
    );
    assert_eq!(stored("a-filled")["missing"], json!(["location"]));
    assert_eq!(stored("g-wrong")["fields"]["name"], "Ada Lovelace");
    let body = records.get(GRID);
    assert_eq!(cell_class(&body, "a-filled", "location"), "refused");
    assert_eq!(cell_class(&body, "b-other", "name"), "filled");
}

#[test]
fn decisions_about_records_are_kept_audited_and_outlive_the_next_crawl() {
    let records = Records::new(None);
    check_decisions(&records);
    // An answer to a form that shows an outdated record has no effect.
    let path = "/dashboard/record/people/b-other/cell?field=name";
    let token = records.visitor.get(path).form_token();
    let stale = [
        ("token", &*token),
        ("field", "name"),
        ("version", "0"),
        ("answer", "reject"),
    ];
    let before = records.exported_record("b-other");
    assert_eq!(records.visitor.post(path, &stale).status, 303);
    let forged = [("field", "name"), ("version", "0"), ("answer", "reject")];
    assert_eq!(records.visitor.post(path, &forged).status, 403);
    assert_eq!(records.exported_record("b-other"), before);
    records.finish();
}

#[needs(chromedriver, axe)]
#[test]
fn cells_of_records_show_their_evidence_and_are_decided_by_keys_alone() {
    let [down, right, enter, escape] = ['\u{e015}', '\u{e014}', '\u{e007}', '\u{e00c}'];
    let records = Records::new(None);
    let url = |path: &str| format!("http://{}{path}", records.visitor.place);
    let browser = Browser::start();
    browser.set_time_zone("Europe/Berlin");
    browser.set_size(1440, 900);
    browser.open(&url(GRID));
    browser.wait_for("td[tabindex='0']");
    let was_run = browser.run_script("return window.wasRun === undefined", json!([]));
    assert_eq!(was_run, true, "what a record says was taken for markup");
    let focused = || browser.run_script("return document.activeElement.id", json!([]));
    let text = |selector: &str| browser.text_at(selector).unwrap_or_default();
    let place_of = |id: &str, column: &str| -> String {
        let script = "const heads = [...document.querySelectorAll('[role=columnheader]')].map(one => one.innerText.trim());
            const row = [...document.querySelectorAll('[role=grid] tbody tr')].find(row => row.cells[0].title === arguments[0]);
            return row.cells[heads.indexOf(arguments[1])].id";
        let id = browser.run_script(script, json!([id, column]));
        id.as_str().unwrap().to_owned()
    };
    // Arrow keys move the focus, and Enter opens a cell. The opened page marks the evidence in the stored copy of the
    // page.
    browser.run_script(
        "document.querySelector(\"td[tabindex='0']\").focus()",
        json!([]),
    );
    let first = focused();
    browser.press(&[right, down]);
    assert_ne!(focused(), first);
    let goto = |id: &str, column: &str| {
        let cell = place_of(id, column);
        browser.run_script(
            "document.getElementById(arguments[0]).focus()",
            json!([cell]),
        );
        browser.press(&[enter]);
        browser.wait_for("#pane:not([aria-busy]) #evidence");
        cell
    };
    let filled = goto("a-filled", "name");
    assert_eq!(text("#pane mark"), "Ada Lovelace");
    assert!(text("#pane").contains("http://people.example/ada"));
    check_on_all_screens(&browser, "records-evidence");
    browser.set_size(1440, 900);
    browser.press(&['a']);
    browser.wait_for(&format!("#{filled}.a-accepted"));
    assert_eq!(
        records.exported_record("a-filled")["decisions"]["name"]["answer"],
        "accepted"
    );
    browser.press(&['u']);
    browser.wait_for(&format!("#{filled}:not(.a-accepted)"));
    // The key `n` moves to the next doubt, which is then decided.
    browser.press(&['n']);
    let other = place_of("b-other", "name");
    assert_eq!(focused(), json!(other));
    browser.wait_until("the pane follows", || {
        text("#pane").contains("Grace Hopper").then_some(())
    });
    browser.press(&['r']);
    browser.wait_for(&format!("#{other}.a-rejected.c-conflicting"));
    assert_eq!(focused(), json!(other));
    let typed = goto("c-lost", "location");
    browser.press(&['e']);
    browser.press(&"Typed <b>".chars().collect::<Vec<_>>());
    browser.press(&[enter]);
    browser.wait_for(&format!("#{typed}.a-edited.c-filled"));
    assert!(text(&format!("#{typed}")).contains("Typed <b>"));
    browser.press(&[escape]);
    assert!(browser.find("#pane[hidden]").is_some());
    assert_eq!(
        records.exported_record("c-lost")["fields"]["location"],
        "Typed <b>"
    );
    assert!(
        browser.take_console().is_empty(),
        "{:?}",
        browser.take_console()
    );
    check_on_all_screens(&browser, "records-grid");
    // Each cell also has its own page, which works without the grid.
    browser.open(&url("/dashboard/record/people/b-other/cell?field=name"));
    check_on_all_screens(&browser, "record-cell");
    records.finish();
}

/// Adds a dataset of `count` records, each with the URL of a page.
fn add_dataset(conn: &Connection, name: &str, count: u64) {
    let numbers = format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers LIMIT {count})"
    );
    let fields = "json_object('name', CASE WHEN n % 3 THEN 'Name ' || n END, 'age', n % 90, 'note', hex(randomblob(150)))";
    let source = "json_object('name', json_object('url', 'http://s' || (n % 7) || '.example/' || n, 'mapping', 'm', 'at', '2026-01-01T12:00:00.000Z'))";
    conn.execute_batch(&format!(
        "BEGIN;
        INSERT INTO records (_id, dataset, record_id, resolved_at, missing, fields, sources, urls)
        {numbers} SELECT printf('{name}/r%08d', n), '{name}', printf('r%08d', n),
            CASE WHEN n % 3 THEN '2026-01-01T12:00:00.000Z' END, iif(n % 3, '[]', '[\"name\"]'), {fields},
            iif(n % 3, {source}, '{{}}'), json_array('http://s' || (n % 7) || '.example/' || n) FROM numbers;
        INSERT INTO crawl_records (record, crawl)
        {numbers} SELECT printf('{name}/r%08d', n), (SELECT min(key) FROM crawls) FROM numbers;
        COMMIT"
    ))
    .expect("the store takes them");
}

/// The shortest time that the dashboard takes to answer several requests for a page.
fn measure_shortest_time(records: &Visitor, path: &str) -> Duration {
    let attempt = |_| {
        let began = Instant::now();
        let answer = records.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        began.elapsed()
    };
    (0..7).map(attempt).min().expect("there are some")
}

/// Compares a small dataset with a large one. The environment variable `RECORDS` sets the size of the large one.
#[test]
fn a_screen_of_many_records_takes_as_long_as_one_of_few() {
    let many = std::env::var("RECORDS").ok();
    let many: u64 = many.map_or(200_000, |many| many.parse().expect("a number"));
    let fleet = Fleet::unstarted();
    serve_people(&fleet);
    crawl_people(&fleet, "first");
    let conn = Connection::open(fleet.work.path("store.db")).expect("a store");
    for (name, count) in [("few", 300), ("many", many)] {
        add_dataset(&conn, name, count);
    }
    drop(conn);
    let (dashboard, visitor) = start_dashboard(&fleet);
    let body = visitor.get("/dashboard/records").body;
    assert!(body.contains("many"), "{body}");
    let late = format!("&from=r{:08}", many - 60);
    for query in [
        "",
        "&records=open",
        "&records=resolved",
        "&state=filled",
        "&state=empty",
        "&site=s3.example",
        &late,
    ] {
        let of = |name: &str| {
            let few = query.replace(&late, "&from=r00000240");
            let query = if name == "few" { &few } else { query };
            measure_shortest_time(
                &visitor,
                &format!("/dashboard/records?dataset={name}{query}"),
            )
        };
        // A busy machine may slow down one of the two, so a comparison that fails is repeated.
        let takes_as_long = (0..5).any(|_| {
            let (few, many) = (of("few"), of("many"));
            println!("`{query}`: {few:?} of few, {many:?} of many");
            many <= 3 * few + Duration::from_millis(20)
        });
        assert!(takes_as_long, "`{query}`: see the times above");
    }
    // If a dataset has too many records to be sorted, the page says that it cannot be sorted.
    let few = visitor.get("/dashboard/records?dataset=few").body;
    let many = visitor.get("/dashboard/records?dataset=many").body;
    assert!(few.contains("sort=age") && !few.contains("cannot be sorted"));
    assert!(
        !many.contains("sort=age") && many.contains("cannot be sorted"),
        "{many}"
    );
    // A search without results stops after a while, and reports how far it has searched.
    let nowhere = visitor
        .get("/dashboard/records?dataset=many&site=nowhere.example")
        .body;
    assert!(
        nowhere.contains("searched here; the list continues"),
        "{nowhere}"
    );
    drop(dashboard);
}
