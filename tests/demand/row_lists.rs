//! Tests that a fleet, too, finds out which rows have disappeared from a list that was read to its end.

use rusqlite::Connection;
use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::{Site, page};

use crate::fleet::{Fleet, request_with, wait_for};

const HOST: &str = "shop.example";

/// Serves a list of two pages, each with the rows of these ids.
fn serve_list(site: &Site, first: &[&str], second: &[&str]) {
    let html = |ids: &[&str], next: &str| {
        let rows: String = ids.iter().map(|id| format!("<li><b>{id}</b>")).collect();
        page("Items").html(format!("<h1>Items</h1><ul>{rows}</ul>{next}"))
    };
    site.serve("/list", html(first, "<a href=\"?page=2\">next</a>"));
    site.serve("/list?page=2", html(second, ""));
}

/// The ids of the stored rows that are still in their list.
fn row_ids(fleet: &Fleet) -> Vec<String> {
    let store = fleet.store_uri();
    let export = Run::new(["export", "records", "--store", &store, "--dataset", "items"]);
    let text = export.finish().expect_code(0).stdout;
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let id = |row: Value| row["record_id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = lines.map(id).collect();
    ids.sort();
    ids
}

/// A fleet after the first crawl of a site with a list, and the site.
fn fleet_with_list() -> (Fleet, Site) {
    let mut fleet = Fleet::unstarted_fleet(&[]);
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
    serve_list(&site, &["a", "b"], &["c", "d"]);
    feed_list_page(&fleet, "first");
    fleet.wait_until_done("first");
    assert_eq!(row_ids(&fleet), ["a", "b", "c", "d"]);
    (fleet, site)
}

fn feed_list_page(fleet: &Fleet, crawl: &str) {
    let url = format!("http://{HOST}/list");
    fleet.feed(&[request_with(&url, crawl, json!({"maxdepth": 3}))]);
}

fn wait_until_gone(fleet: &Fleet) {
    wait_for("the row is gone", || {
        (row_ids(fleet) == ["a", "b", "d"]).then_some(())
    });
}

#[test]
fn a_dispatcher_marks_rows_that_a_finished_crawl_no_longer_finds() {
    let (fleet, site) = fleet_with_list();
    serve_list(&site, &["a", "b"], &["d"]);
    feed_list_page(&fleet, "second");
    fleet.wait_until_done("second");
    wait_until_gone(&fleet);
}

/// Waits until the store has the last page of the second crawl. Then blocks all further writes to it until the returned
/// connection is dropped.
fn lock_store(fleet: &Fleet) -> Connection {
    let uri = fleet.store_uri();
    let file = uri.strip_prefix("sqlite:").expect("a file");
    let store = Connection::open(file).unwrap();
    let sql = "SELECT 1 FROM pages WHERE crawl_id = 'second' AND url LIKE '%page=2'";
    let stored = || store.query_row(sql, [], |_| Ok(())).ok();
    wait_for("the last page is stored", stored);
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    store
}

#[test]
fn a_dispatcher_that_is_killed_before_it_marks_rows_marks_them_after_its_start() {
    let (mut fleet, site) = fleet_with_list();
    serve_list(&site, &["a", "b"], &["d"]);
    feed_list_page(&fleet, "second");
    let lock = lock_store(&fleet);
    fleet.wait_until_done("second");
    fleet.kill_dispatcher();
    drop(lock);
    fleet.start_dispatcher();
    wait_until_gone(&fleet);
    let crawl = "SELECT state FROM crawls WHERE crawl_id = 'second'";
    let uri = fleet.store_uri();
    let store = Connection::open(uri.strip_prefix("sqlite:").unwrap()).unwrap();
    let state: String = store.query_row(crawl, [], |row| row.get(0)).unwrap();
    assert_eq!(state, "finished");
}
