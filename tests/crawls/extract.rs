//! Tests `--keep-bodies` and `webfill extract`: stored pages are read again with other mappings, without requests.

mod archive;
mod bounds;
mod dry_runs;
mod many;
mod rows;

use std::time::Duration;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Page, Web, page, status};
use webfill_tests::workplace::{Workplace, profile_mapping};

const HOST: &str = "people.example";

/// The tests' mapping with three changes: one field is read from another place, one is new, and one is removed.
fn other_mapping() -> Value {
    let mut mapping = profile_mapping();
    let xpath = |expression: &str| {
        json!([
            {"type": "xpath", "parameters": {"expression": expression}},
            {"type": "trim", "parameters": {}},
        ])
    };
    let fields = mapping["fields"].as_array_mut().unwrap();
    fields.retain(|field| field["name"] != "title");
    for field in fields.iter_mut() {
        if field["name"] == "location" {
            field["processors"] = xpath("//p[@class='town']/text()");
        }
    }
    fields.push(json!({"name": "heading", "processors": xpath("//h1/text()")}));
    mapping
}

fn change_mapping(work: &Workplace) {
    work.write_json("mappings/profile.json", &other_mapping());
}

/// A web, and a workplace where it is crawled. The crawl keeps the bodies of pages.
struct Kept {
    web: Web,
    work: Workplace,
    store: String,
}

impl Kept {
    fn new() -> Kept {
        let work = Workplace::new();
        let store = format!("sqlite:{}", work.path("store.db").display());
        Kept::with_store(work, &store)
    }

    fn with_store(work: Workplace, store: &str) -> Kept {
        Kept {
            web: Web::start(),
            work,
            store: store.to_owned(),
        }
    }

    fn crawl(&self) -> Run {
        self.work
            .crawl(&self.web)
            .replace_flag("--store", &self.store)
    }

    fn extract(&self) -> Run {
        let mappings = self.work.path("mappings");
        Run::new([
            "extract",
            "--crawl",
            "test",
            "--store",
            &self.store,
            "--mappings",
        ])
        .arg(mappings)
    }

    /// The report of `webfill extract`.
    fn run_extract(&self, args: &[&str]) -> Value {
        parse_report(self.extract().args(args).arg("--json").finish())
    }

    fn export(&self, what: &str) -> String {
        let export = Run::new(["export", what, "--store", &self.store]).finish();
        export.expect_code(0).stdout
    }

    fn exported_lines(&self, what: &str) -> Vec<Value> {
        let text = self.export(what);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn page(&self, path: &str) -> Value {
        let url = self.web.site(HOST).url(path);
        let mut pages = self.exported_lines("pages").into_iter();
        pages.find(|page| page["url"] == url.as_str()).unwrap()
    }
}

fn parse_report(run: Finished) -> Value {
    let text = run.expect_code(0).stdout;
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

fn ada_page(town: &str) -> Page {
    page("Ada")
        .field("name", "Ada Byron")
        .field("location", "London")
        .field("town", town)
}

/// Crawls two people and changes the mapping. Then reads the stored bodies with the changed mapping, first in a dry
/// run.
fn try_and_apply_changed_mapping(kept: &Kept, flags: &[&str], extract: &[&str]) {
    let site = kept.web.site(HOST);
    site.serve("/ada", ada_page("Ockham"));
    site.serve(
        "/bob",
        page("Bob").field("name", "Bob").field("location", "Rome"),
    );
    site.serve("/gone", page("Gone").status(404));
    let urls = json!([site.url("/ada"), site.url("/bob"), site.url("/gone")]);
    let one = json!({"id": "1", "urls": [site.url("/ada")], "fields": {"name": null, "location": null, "heading": null}});
    let all = json!({"id": "2", "urls": urls, "fields": {"email": null}});
    let seeds = kept.work.write_lines("seeds.jsonl", &[one, all]);
    kept.crawl()
        .args(flags)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let visits = kept.web.visits().0.len();
    let before = (kept.export("pages"), kept.export("records"));
    change_mapping(&kept.work);

    let tried = kept.run_extract(&[extract, &["--dry-run"]].concat());
    assert_eq!((kept.export("pages"), kept.export("records")), before);
    let count = |report: &Value, field: &str, what: &str| {
        report["mappings"]["profile"]["fields"][field][what]
            .as_u64()
            .unwrap()
    };
    for report in [&tried, &kept.run_extract(extract)] {
        assert_eq!(report["pages"]["read"], 2, "{report:#}");
        assert_eq!(report["pages"]["written"], 2, "{report:#}");
        assert_eq!(report["record_values"], 2, "{report:#}");
        let counts = |field| {
            ["new", "changed", "same", "lost", "empty", "filled"]
                .map(|what| count(report, field, what))
        };
        assert_eq!(counts("heading"), [2, 0, 0, 0, 0, 2]);
        assert_eq!(counts("location"), [0, 1, 0, 1, 1, 1]);
        assert_eq!(counts("name"), [0, 0, 2, 0, 0, 2]);
        assert_eq!(counts("title"), [0, 0, 0, 2, 2, 0]);
        assert_eq!(counts("email"), [0, 0, 0, 0, 2, 0]);
        let examples = report["examples"].as_array().unwrap();
        let of_location =
            |example: &&Value| example["field"] == "location" && example["change"] == "changed";
        let example = examples.iter().find(of_location).unwrap();
        assert_eq!(
            (&example["old"], &example["new"]),
            (&json!("London"), &json!("Ockham"))
        );
        assert_eq!(example["url"], site.url("/ada"));
    }

    let page = kept.page("/ada");
    assert_eq!(
        page["fields"],
        json!({"name": "Ada Byron", "location": "Ockham", "heading": "Ada"})
    );
    assert_eq!(page["outcome"], "ok");
    assert_ne!(
        Some(page["mapping_version"].clone()),
        mapping_version_of(&before.0, &page["url"])
    );
    let records = kept.exported_lines("records");
    let record = records
        .iter()
        .find(|record| record["record_id"] == "1")
        .unwrap();
    assert_eq!(record["fields"]["location"], "Ockham");
    assert_eq!(record["fields"]["heading"], "Ada");
    assert_eq!(record["history"]["location"][0]["value"], "London");
    assert_eq!(record["sources"]["location"]["at"], page["started_at"]);
    assert_eq!(record["missing"], json!([]));

    let again = kept.run_extract(extract);
    assert_eq!(again["pages"]["written"], 0, "{again:#}");
    assert_eq!(again["pages"]["unchanged"], 2, "{again:#}");
    assert_eq!(again["record_values"], 0, "{again:#}");
    assert_eq!(kept.web.visits().0.len(), visits, "nothing was requested");
}

fn mapping_version_of(pages: &str, url: &Value) -> Option<Value> {
    let mut pages = pages
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    pages
        .find(|page| page["url"] == *url)
        .map(|page| page["mapping_version"].clone())
}

#[test]
fn kept_bodies_are_read_again_without_a_request() {
    try_and_apply_changed_mapping(&Kept::new(), &["--keep-bodies"], &[]);
}

#[needs(mongod)]
#[test]
fn kept_bodies_are_read_again_out_of_mongodb() {
    let database = fresh_database();
    let kept = Kept::with_store(Workplace::new(), database.uri());
    try_and_apply_changed_mapping(&kept, &["--keep-bodies"], &[]);
}

#[test]
fn changes_are_visible_to_readers_of_the_store() {
    let kept = Kept::new();
    kept.web.site(HOST).serve("/ada", ada_page("Ockham"));
    let url = kept.web.site(HOST).url("/ada");
    kept.crawl()
        .args(["--keep-bodies", &url])
        .finish()
        .expect_code(0);
    let since = |cursor: &str| {
        let export = ["export", "pages", "--store", &kept.store, "--since", cursor];
        let text = Run::new(export).finish().expect_code(0).stdout;
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let read_to = since("0")[0]["cursor"].as_str().unwrap().to_owned();
    assert_eq!(since(&read_to).len(), 0);
    change_mapping(&kept.work);
    kept.run_extract(&[]);
    assert_eq!(since(&read_to)[0]["fields"]["location"], "Ockham");
    kept.run_extract(&[]);
    assert_eq!(since(&read_to).len(), 1);
}

/// Sleeps until earlier fetches are too old for `--refresh-after 1s`.
fn wait_until_older_than_a_second() {
    std::thread::sleep(Duration::from_millis(1_100));
}

#[test]
fn a_page_has_the_body_of_its_last_fetch() {
    let kept = Kept::new();
    let site = kept.web.site(HOST);
    site.serve("/changes", page("One").field("town", "Rome"));
    site.serve(
        "/stays",
        page("Stays")
            .field("town", "Ockham")
            .header("etag", "\"1\""),
    );
    site.serve("/goes", page("Goes").field("town", "Paris"));
    let urls = ["/changes", "/stays", "/goes"].map(|path| site.url(path));
    let crawl = || kept.crawl().args(["--refresh-after", "1s"]).args(&urls);
    crawl().arg("--keep-bodies").finish().expect_code(0);
    wait_until_older_than_a_second();
    site.serve("/changes", page("Two").field("town", "Berlin"));
    site.serve_with("/stays", |request| {
        assert_eq!(request.header("if-none-match"), Some("\"1\""));
        status(304).into()
    });
    site.serve("/goes", status(404));
    crawl().arg("--keep-bodies").finish().expect_code(0);
    assert_eq!(kept.page("/stays")["outcome"], "not_modified");
    change_mapping(&kept.work);
    let read = kept.run_extract(&[]);
    assert_eq!(read["pages"]["read"], 2, "{read:#}");
    assert_eq!(kept.page("/changes")["fields"]["location"], "Berlin");
    assert_eq!(kept.page("/stays")["fields"]["location"], "Ockham");
    assert_eq!(kept.page("/stays")["outcome"], "not_modified");
    assert_eq!(kept.page("/goes")["fields"], json!({}));

    // A later fetch that keeps no body leaves the earlier body in place.
    wait_until_older_than_a_second();
    site.serve("/changes", page("Three").field("town", "Oslo"));
    // The request must have no `If-None-Match`: the stored links of the page were read by the previous mapping, so the
    // whole body is needed.
    site.serve_with("/stays", |request| {
        assert_eq!(request.header("if-none-match"), None);
        page("Stays").field("town", "Ockham").into()
    });
    crawl().finish().expect_code(0);
    let newest = kept.page("/changes");
    let read = kept.run_extract(&[]);
    assert_eq!(read["pages"]["of_another_fetch"], 1, "{read:#}");
    assert_eq!(kept.page("/changes"), newest);
}

#[test]
fn a_mapping_reads_only_pages_that_it_matches() {
    let kept = Kept::new();
    let site = kept.web.site(HOST);
    site.serve("/ada", ada_page("Ockham"));
    site.serve("/other/1", page("Other").field("town", "Rome"));
    let mut other = profile_mapping();
    other["name"] = json!("other");
    other["url_patterns"] = json!([{"type": "prefix", "pattern": site.url("/other/")}]);
    kept.work.write_json("mappings/a-other.json", &other);
    let urls = ["/ada", "/other/1"].map(|path| site.url(path));
    kept.crawl()
        .arg("--keep-bodies")
        .args(urls)
        .finish()
        .expect_code(0);
    change_mapping(&kept.work);
    let read = kept.run_extract(&["--mapping", "other"]);
    assert_eq!(
        read["pages"],
        json!({"read": 1, "written": 0, "unchanged": 1, "overtaken": 0, "failed": 0, "of_another_fetch": 0, "not_stored": 0, "left_out": 0})
    );
    let read = kept.run_extract(&["--mapping", "profile"]);
    assert_eq!(read["pages"]["written"], 1, "{read:#}");
    let reported = kept
        .extract()
        .args(["--mapping", "nobody"])
        .finish()
        .expect_code(2);
    assert!(reported.one_sentence().contains("no mapping of this name"));
    let reported = kept
        .extract()
        .replace_flag("--crawl", "unknown")
        .finish()
        .expect_code(1);
    assert!(reported.one_sentence().contains("no crawl local/unknown"));
}

#[test]
fn a_crawl_without_bodies_is_reported() {
    let kept = Kept::new();
    kept.web.site(HOST).serve("/ada", ada_page("Ockham"));
    let url = kept.web.site(HOST).url("/ada");
    kept.crawl().arg(url).finish().expect_code(0);
    let reported = kept.extract().finish().expect_code(1);
    assert!(reported.one_sentence().contains("crawl with --keep-bodies"));
    assert!(!kept.work.path("store.db.bodies").exists());
}
