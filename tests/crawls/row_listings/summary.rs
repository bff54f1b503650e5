//! Tests the counts of rows in the summary.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::site::{Web, status};
use webfill_tests::workplace::Workplace;

use super::{
    HOST, crawl_command, list_page, mapping_with_rule, rows_rule, sqlite_uri, stored_rows,
};

/// The length in bytes of a row that is just too long.
const TOO_LONG: usize = (1 << 20) + 1;

/// The counts of the dataset `items` in the summary.
fn item_counts(summary: &Value) -> &Value {
    &summary["found"]["mappings"]["shop"]["rows"]["items"]
}

fn row_results_are_counted(work: &Workplace, store: &str) {
    let web = Web::start();
    let site = web.site(HOST);
    let mut of_rows = rows_rule(&["id", "price", "note"], &["id"]);
    let price = of_rows["fields"][1]["processors"].as_array_mut().unwrap();
    price.push(json!({"type": "number"}));
    work.write_json("mappings/profile.json", &mapping_with_rule(&of_rows));
    let row = |id: &str, price: &str| json!({"id": id, "price": price});
    let first = [
        row("a", "4"),
        row("b", "1,234"),
        json!({"price": "2"}),
        row("a", "7"),
        row("a", "4"),
        json!({"id": "c", "note": "x".repeat(TOO_LONG)}),
    ];
    site.serve("/first", list_page(&first, None));
    site.serve("/second", list_page(&[row("d", "1")], None));
    site.serve("/none", list_page(&[], None));
    let paths = ["/first", "/second", "/none"];
    let reported = crawl_command(work, &web, store, &paths)
        .finish()
        .expect_code(0);
    let expected = json!({
        "pages": 3, "pages_without": 1, "pages_cut": 1,
        "rows": 6, "stored": 4, "without_key": 1, "same_key": 1,
        "fields": {
            "id": {"filled": 5, "empty": 1, "undecided": 0, "share": 0.8333, "share_before": null},
            "note": {"filled": 0, "empty": 6, "undecided": 0, "share": 0.0, "share_before": null},
            "price": {"filled": 5, "empty": 1, "undecided": 1, "share": 0.8333, "share_before": null},
        },
    });
    assert_eq!(item_counts(&reported.summary().json), &expected);
    assert_eq!(stored_rows(store, &[]).len(), 3);
    let again = crawl_command(work, &web, store, &["/second"])
        .replace_flag("--crawl", "again")
        .replace_flag("--summary", "human")
        .finish()
        .expect_code(0);
    let text = again.stdout;
    for line in [
        "  rows      1 of dataset items, from 1 page: 1 stored\n",
        "            always filled: id, price\n",
        "            note: 0 filled, 1 empty, 0.0 %; 0.0 % in the crawl before\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn rows_are_counted_by_result_in_the_summary() {
    let work = Workplace::new();
    row_results_are_counted(&work, &sqlite_uri(&work));
}

#[needs(mongod)]
#[test]
fn rows_are_counted_by_result_in_the_summary_in_mongodb() {
    let (work, database) = (Workplace::new(), fresh_database());
    row_results_are_counted(&work, database.uri());
}

/// The rows of a page are counted even if the page is unchanged and is therefore not read again.
#[test]
fn rows_of_pages_that_have_not_changed_stay_counted() {
    let work = Workplace::new();
    let web = Web::start();
    work.write_json(
        "mappings/profile.json",
        &mapping_with_rule(&rows_rule(&["id"], &["id"])),
    );
    let rows = [json!({"id": "a"}), json!({"id": "b"})];
    let page = list_page(&rows, None).header("ETag", "\"1\"");
    web.site(HOST).serve_with("/list", move |request| {
        match request.header("If-None-Match") {
            Some(_) => status(304).into(),
            None => page.clone().into(),
        }
    });
    let store = sqlite_uri(&work);
    let refreshed = |more: &[&str]| {
        let run = crawl_command(&work, &web, &store, &["/list"]).args(more);
        run.finish().expect_code(0).summary().json
    };
    let first = refreshed(&[]);
    assert_eq!(item_counts(&first)["stored"], 2);
    let second = refreshed(&["--refresh-after", "0s"]);
    assert_eq!(second["outcomes"]["not_modified"], 1, "{second}");
    assert_eq!(item_counts(&second)["stored"], 2, "{second}");
}
