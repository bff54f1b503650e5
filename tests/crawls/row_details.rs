//! Tests rows with detail pages: the values on these pages are stored in the records of the rows.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::shelves::{self, SHELVES, requested_pages, shelf_url, stored_records};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

/// A workplace whose input lists the shelves, without a value for `publisher`.
fn create_workplace() -> Workplace {
    let work = Workplace::new();
    for (name, mapping) in shelves::mappings() {
        work.write_json(&format!("mappings/{name}.json"), &mapping);
    }
    let shelf = |number: usize| json!({"id": number.to_string(), "urls": [shelf_url(number)], "fields": {"publisher": null}});
    let shelves: Vec<Value> = (0..SHELVES).map(shelf).collect();
    work.write_lines("shelves.jsonl", &shelves);
    work
}

fn crawl_command(work: &Workplace, web: &Web, store: &str) -> Run {
    let crawl = work.crawl_without_delay(web).args(["--delay", "0"]);
    let seeds = work.path("shelves.jsonl");
    crawl
        .replace_flag("--store", store)
        .args(["--dataset", "shelves", "--depth", "1", "--seeds"])
        .arg(seeds)
}

fn sqlite_uri(work: &Workplace) -> String {
    format!("sqlite:{}", work.path("store.db").display())
}

fn pages_of_rows_complete_their_records(store: &str, work: &Workplace) {
    let web = Web::start();
    shelves::serve(&web);
    let run = crawl_command(work, &web, store).finish().expect_code(0);
    assert_eq!(stored_records(store), shelves::expected_values());
    assert_eq!(requested_pages(&web), shelves::needed_pages());
    let records = &run.summary().json["records"];
    assert_eq!(
        records["total"],
        SHELVES + shelves::copy_count(),
        "{records}"
    );
    assert_eq!(records["resolved"], shelves::resolved_count(), "{records}");
    // The dataset of shelves must have no values from the detail pages of books.
    let args = [
        "export",
        "records",
        "--dataset",
        "shelves",
        "--store",
        store,
    ];
    for line in Run::new(args).finish().expect_code(0).stdout.lines() {
        let shelf: Value = serde_json::from_str(line).unwrap();
        assert_eq!(shelf["fields"]["publisher"], Value::Null, "{shelf}");
        assert_eq!(shelf["missing"], json!(["publisher"]), "{shelf}");
    }
    // A second crawl fetches only those detail pages whose rows are incomplete.
    let again = Web::start();
    shelves::serve(&again);
    crawl_command(work, &again, store)
        .replace_flag("--crawl", "again")
        .replace_flag("--state", work.path("again").display().to_string())
        .finish()
        .expect_code(0);
    assert_eq!(requested_pages(&again), shelves::pages_needed_again());
    assert_eq!(stored_records(store), shelves::expected_values());
}

#[test]
fn pages_to_which_rows_lead_complete_their_records() {
    let work = create_workplace();
    pages_of_rows_complete_their_records(&sqlite_uri(&work), &work);
}

#[needs(mongod)]
#[test]
fn pages_to_which_rows_lead_complete_their_records_in_mongodb() {
    let database = fresh_database();
    pages_of_rows_complete_their_records(database.uri(), &create_workplace());
}

fn kills_lose_no_link_of_a_row(store: &str, work: &Workplace) {
    let web = Web::start();
    shelves::serve(&web);
    for kill_after in [2, 5, 8] {
        let running = crawl_command(work, &web, store).start();
        web.log().wait_until("some pages are asked for", |visits| {
            visits.pages().len() >= kill_after
        });
        for process in running.processes() {
            process.signal(Signal::KILL);
        }
        running.finish();
    }
    crawl_command(work, &web, store).finish().expect_code(0);
    assert_eq!(stored_records(store), shelves::expected_values());
    let paths = web.visits().pages().paths();
    let books = paths.into_iter().filter(|path| path.contains("/books/"));
    assert_eq!(books.collect::<BTreeSet<_>>(), shelves::needed_pages());
}

#[test]
fn kills_lose_no_link_of_a_row_of_a_listing() {
    let work = create_workplace();
    kills_lose_no_link_of_a_row(&sqlite_uri(&work), &work);
}

#[needs(mongod)]
#[test]
fn kills_lose_no_link_of_a_row_of_a_listing_in_mongodb() {
    let database = fresh_database();
    kills_lose_no_link_of_a_row(database.uri(), &create_workplace());
}

/// The crawl follows all links of pages, but a link in a row serves only the record of this row.
#[test]
fn detail_pages_serve_only_their_rows_though_all_links_are_followed() {
    let work = create_workplace();
    let store = sqlite_uri(&work);
    let web = Web::start();
    shelves::serve(&web);
    crawl_command(&work, &web, &store)
        .args(["--follow", "all"])
        .finish()
        .expect_code(0);
    assert_eq!(stored_records(&store), shelves::expected_values());
    assert_eq!(requested_pages(&web), shelves::linked_pages());
    for shelf in work.stored().records_of("shelves").values() {
        assert_eq!(shelf.missing, ["publisher"], "{shelf:?}");
    }
}
