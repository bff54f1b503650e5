//! In a fleet, too, a list that was read to its end says which rows are gone.

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::{Site, page};

use crate::fleet::{Fleet, request_with, wait_for};

const HOST: &str = "shop.example";

/// Serves a list of two pages.
fn serve(site: &Site, first: &[&str], second: &[&str]) {
    let html = |ids: &[&str], next: &str| {
        let rows: String = ids.iter().map(|id| format!("<li><b>{id}</b>")).collect();
        page("Items").html(format!("<h1>Items</h1><ul>{rows}</ul>{next}"))
    };
    site.serve("/list", html(first, "<a href=\"?page=2\">next</a>"));
    site.serve("/list?page=2", html(second, ""));
}

/// The ids of the rows that are not gone.
fn rows(fleet: &Fleet) -> Vec<String> {
    let store = fleet.store_uri();
    let export = Run::new(["export", "records", "--store", &store, "--dataset", "items"]);
    let text = export.finish().expect(0).stdout;
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let id = |row: Value| row["record_id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = lines.map(id).collect();
    ids.sort();
    ids
}

#[test]
fn a_dispatcher_marks_rows_that_a_finished_crawl_no_longer_finds() {
    let mut fleet = Fleet::unstarted(&[]);
    let css = |selector: &str| json!([{"type": "css", "parameters": {"selector": selector}}]);
    let mapping = json!({
        "name": "shop",
        "url_patterns": [{"type": "host", "pattern": HOST}],
        "rows": {
            "dataset": "items",
            "select": css("li"),
            "fields": [{"name": "id", "processors": css("b")}],
            "key": ["id"],
            "complete": true,
        },
        "url_parsers": [{"processors": css("a::attr(href)")}],
    });
    fleet.work.write_json("mappings/profile.json", &mapping);
    let site = fleet.web.site(HOST);
    fleet.start_dispatcher();
    fleet.add_supervisor("one");
    let url = format!("http://{HOST}/list");
    let crawl = |fleet: &Fleet, id: &str| {
        fleet.feed(&[request_with(&url, id, json!({"maxdepth": 3}))]);
        fleet.wait_until_done(id);
    };
    serve(&site, &["a", "b"], &["c", "d"]);
    crawl(&fleet, "first");
    assert_eq!(rows(&fleet), ["a", "b", "c", "d"]);
    serve(&site, &["a", "b"], &["d"]);
    crawl(&fleet, "second");
    wait_for("the row is gone", || {
        (rows(&fleet) == ["a", "b", "d"]).then_some(())
    });
}
