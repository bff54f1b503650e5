//! Tests the records of a store as a grid: its states, filters, orders and files.

mod deciding;
mod many;

use std::fs;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{page, status};

use crate::fleet::Fleet;
use crate::http::Visitor;
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
    deciding::check_decisions(&records);
    records.finish();
}
