//! Tests lists whose rows, or fields of rows, are lost in the middle of a crawl.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Web, page};
use webfill_tests::workplace::Workplace;

use super::{
    AFTER, BEFORE, HOST, alert_fields, health_report, parse_number, run_health, sqlite_uri,
};

const ROWS: usize = 10;

/// A list page with this many rows. Every row has an item, and the first `with_stars` rows have stars.
fn list_page(number: usize, rows: usize, with_stars: usize) -> Page {
    let row = |at: usize| {
        let stars = match at < with_stars {
            true => format!("<i class=\"stars\">{}</i>", 1 + at % 5),
            false => String::new(),
        };
        format!("<li class=\"row\"><b class=\"item\">{number}-{at}</b>{stars}</li>")
    };
    let rows: String = (0..rows).map(row).collect();
    page("Ratings").html(format!("<h1>Ratings</h1><ul>{rows}</ul>"))
}

fn mapping_with_rows() -> Value {
    let css = |selector: &str| json!([{"type": "css", "parameters": {"selector": selector}}]);
    let field = |name: &str| json!({"name": name, "processors": css(&format!(".{name}"))});
    json!({
        "name": "profile",
        "url_patterns": [{"type": "host", "pattern": HOST}],
        "fields": [{"name": "title", "processors": css("h1")}],
        "rows": {
            "dataset": "ratings",
            "select": css("li.row"),
            "fields": [field("item"), field("stars")],
            "key": ["item"],
        },
    })
}

/// Crawls list pages. Those with numbers after the change are made by `after`. Returns the summary.
fn crawl_and_read_summary(work: &Workplace, store: &str, after: fn(usize) -> Page) -> Value {
    let web = Web::start();
    web.site(HOST)
        .serve_otherwise(move |request| match parse_number(&request.path) {
            number if number < BEFORE => list_page(number, ROWS, ROWS - 1).into(),
            number => after(number).into(),
        });
    work.write_json("mappings/profile.json", &mapping_with_rows());
    let urls = (0..BEFORE + AFTER).map(|number| format!("http://{HOST}/{number}"));
    let seeds = work.write("seeds.txt", urls.collect::<Vec<_>>().join("\n"));
    let run = work.crawl_without_delay(&web).args(["--delay", "0"]);
    let run = run.replace_flag("--store", store).arg("--seeds").arg(seeds);
    run.finish().expect_code(0).summary().json
}

fn rows_that_are_lost_are_an_alert(work: &Workplace, store: &str) {
    let summary = crawl_and_read_summary(work, store, |number| list_page(number, 2, 1));
    let alerts = &summary["found"]["alerts"];
    assert_eq!(alerts.as_array().map(Vec::len), Some(1), "{alerts:#}");
    assert_eq!(alert_fields(&alerts[0]), ["ratings[]"]);
    let report = health_report(store);
    let mapping = &report["mappings"][0];
    let alert = &mapping["alert"];
    assert_eq!(alert_fields(alert), ["ratings[]"], "{report:#}");
    assert_eq!(alert["fields"][0]["least"], json!(5.0));
    for (when, had) in [("before", true), ("after", false)] {
        let pages = alert[when].as_array().expect("a list");
        assert_eq!(pages.len(), 20, "{when}");
        for page in pages {
            let url = page["url"].as_str().expect("a text");
            let path = url.rsplit('/').next().expect(url);
            assert_eq!(parse_number(path) < BEFORE, had, "{when}: {url}");
        }
    }
    let output = run_health(store, &["--fail-on-alert"])
        .expect_code(1)
        .stdout;
    for text in [
        "the layout of mapping profile changed: ratings[] (5 or more on ",
        "learn their rule anew",
    ] {
        assert!(output.contains(text), "{text} in {output}");
    }
    assert!(!output.contains("webfill mapping repair"), "{output}");
    let file = work.path("mappings/profile.json").display().to_string();
    let repair = Run::new(["mapping", "repair", &file, "--store", store]);
    let refused = repair.finish().expect_code(1);
    let said = refused.one_sentence();
    assert!(said.contains("about rows (ratings[])"), "{said}");
}

#[test]
fn rows_that_are_lost_are_an_alert_that_repair_leaves_alone() {
    let work = Workplace::new();
    rows_that_are_lost_are_an_alert(&work, &sqlite_uri(&work));
}

#[needs(mongod)]
#[test]
fn rows_that_are_lost_are_an_alert_that_repair_leaves_alone_in_mongodb() {
    let (work, database) = (Workplace::new(), fresh_database());
    rows_that_are_lost_are_an_alert(&work, database.uri());
}

#[test]
fn a_field_that_rows_have_lost_is_an_alert() {
    let work = Workplace::new();
    let store = sqlite_uri(&work);
    crawl_and_read_summary(&work, &store, |number| list_page(number, ROWS, 1));
    let report = health_report(&store);
    let alert = &report["mappings"][0]["alert"];
    assert_eq!(alert_fields(alert), ["ratings[].stars"], "{report:#}");
    assert_eq!(alert["fields"][0]["least"], json!(0.45));
    assert_eq!(alert["fields"][0]["sign"], "empty");
}
