//! Tests rows that have disappeared from their list. Only a list that was read to its end shows that a row is gone.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Site, Web, status};
use webfill_tests::workplace::Workplace;

use super::{
    HOST, crawl_command, export_items, list_page, mapping_with_rule, rows_rule, sqlite_uri,
};

const PAGES: [&str; 3] = ["/list", "/list?page=2", "/list?page=3"];

fn workplace_with_complete_lists() -> Workplace {
    let work = Workplace::new();
    let mut rule = rows_rule(&["id", "price"], &["id"]);
    rule["complete"] = true.into();
    work.write_json("mappings/profile.json", &mapping_with_rule(&rule));
    work
}

/// Serves a list of several pages with these rows. Each page links to the next one.
fn serve_list_pages(site: &Site, pages: &[&[&str]]) {
    for (number, ids) in pages.iter().enumerate() {
        let rows: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "price": "1"}))
            .collect();
        let next = PAGES.get(number + 1).filter(|_| number + 1 < pages.len());
        site.serve(PAGES[number], list_page(&rows, next.copied()));
    }
}

fn refresh_command(work: &Workplace, web: &Web, store: &str) -> Run {
    crawl_command(work, web, store, &["/list"]).args(["--refresh-after", "0s"])
}

/// The ids of the rows in an export with these arguments, sorted.
fn row_ids(store: &str, args: &[&str]) -> Vec<String> {
    let text = export_items(store, args);
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let id = |row: Value| row["record_id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = lines.map(id).collect();
    ids.sort();
    ids
}

fn list_counts(run: &Finished) -> Value {
    run.summary().json["found"]["lists"].clone()
}

/// The output of `webfill lists` about the only list in the store.
fn only_list(store: &str, args: &[&str]) -> Value {
    only_list_of("test", store, args)
}

fn only_list_of(crawl: &str, store: &str, args: &[&str]) -> Value {
    let lists = Run::new(["lists", "--store", store, "--crawl", crawl, "--json"]).args(args);
    let output = lists.finish().expect_code(0).stdout;
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 1, "{output}");
    serde_json::from_str(lines[0]).unwrap()
}

fn rows_go_and_come_back(work: &Workplace, store: &str) {
    let web = Web::start();
    let site = web.site(HOST);
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"], &["e"]]);
    let first = crawl_command(work, &web, store, &["/list"])
        .finish()
        .expect_code(0);
    assert_eq!(list_counts(&first)["complete"], 1);
    assert_eq!(row_ids(store, &[]), ["a", "b", "c", "d", "e"]);
    let reported = only_list(store, &[]);
    assert_eq!(reported["list"], format!("http://{HOST}/list"));
    assert_eq!(reported["state"], "complete");
    assert_eq!(
        (&reported["pages_done"], &reported["pages_known"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(
        (&reported["rows"], &reported["is_end_known"]),
        (&json!(5), &json!(true))
    );
    // The list loses its last page, and with it a row. It also loses a row in the middle.
    serve_list_pages(&site, &[&["a", "b"], &["d"]]);
    let second = refresh_command(work, &web, store).finish().expect_code(0);
    assert_eq!(
        list_counts(&second)["rows_newly_gone"],
        2,
        "{}",
        list_counts(&second)
    );
    assert_eq!(row_ids(store, &[]), ["a", "b", "d"]);
    assert_eq!(row_ids(store, &["--with-gone"]), ["a", "b", "c", "d", "e"]);
    let csv = export_items(store, &["--format", "csv", "--with-gone"]);
    let gone: Vec<&str> = csv.lines().filter(|line| line.ends_with('Z')).collect();
    assert_eq!(gone.len(), 2, "{csv}");
    let left_out = Run::new(["export", "records", "--store", store, "--dataset", "items"]);
    assert!(left_out.finish().expect_code(0).stderr.contains("2 rows"));
    // First, the list is unchanged. Then a row that was gone appears again.
    let third = refresh_command(work, &web, store).finish().expect_code(0);
    assert_eq!(list_counts(&third)["rows_newly_gone"], 0);
    assert_eq!(list_counts(&third)["rows_gone"], 2);
    serve_list_pages(&site, &[&["e", "a"], &["b", "d"]]);
    refresh_command(work, &web, store).finish().expect_code(0);
    assert_eq!(row_ids(store, &[]), ["a", "b", "d", "e"]);
    let table = Run::new(["lists", "--store", store, "--crawl", "test"]);
    let table = table.finish().expect_code(0).stdout;
    assert!(
        table.contains("2 of 2") && table.contains("complete"),
        "{table}"
    );
}

#[test]
fn rows_of_a_list_that_was_read_to_its_end_go_and_come_back() {
    let work = workplace_with_complete_lists();
    rows_go_and_come_back(&work, &sqlite_uri(&work));
}

#[needs(mongod)]
#[test]
fn rows_of_a_list_that_was_read_to_its_end_go_and_come_back_in_mongodb() {
    let (work, database) = (workplace_with_complete_lists(), fresh_database());
    rows_go_and_come_back(&work, database.uri());
}

#[test]
fn a_list_with_a_failed_page_marks_no_row_gone_until_the_page_is_fetched_again() {
    let (work, web) = (workplace_with_complete_lists(), Web::start());
    let (site, store) = (web.site(HOST), sqlite_uri(&work));
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"], &["e"]]);
    crawl_command(&work, &web, &store, &["/list"])
        .finish()
        .expect_code(0);
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"]]);
    site.serve(PAGES[1], status(404));
    let run = refresh_command(&work, &web, &store).finish().expect_code(0);
    assert_eq!(list_counts(&run)["broken_off"], 1);
    assert_eq!(row_ids(&store, &[]), ["a", "b", "c", "d", "e"]);
    let reported = only_list(&store, &["--unfinished"]);
    assert_eq!(reported["breaches"][0]["why"], "http_error");
    let text = Run::new(["lists", "--store", &store, "--crawl", "test"]);
    let text = text.finish().expect_code(0).stdout;
    assert!(text.contains("--retry http_error"), "{text}");
    assert!(text.contains("1 of 2+"), "{text}");
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"]]);
    crawl_command(&work, &web, &store, &["/list"])
        .args(["--retry", "http_error"])
        .finish()
        .expect_code(0);
    assert_eq!(only_list(&store, &[])["state"], "complete");
    assert_eq!(row_ids(&store, &[]), ["a", "b", "c", "d"]);
}

#[test]
fn a_list_that_a_limit_has_cut_marks_no_row_gone() {
    let (work, web) = (workplace_with_complete_lists(), Web::start());
    let (site, store) = (web.site(HOST), sqlite_uri(&work));
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"], &["e"]]);
    crawl_command(&work, &web, &store, &["/list"])
        .finish()
        .expect_code(0);
    serve_list_pages(&site, &[&["a", "b"], &["c"], &["d"]]);
    let shallow = crawl_command(&work, &web, &store, &["/list"]).replace_flag("--crawl", "shallow");
    let run = shallow.replace_flag("--depth", "1").finish().expect_code(0);
    assert_eq!(list_counts(&run)["broken_off"], 1);
    let reported = only_list_of("shallow", &store, &[]);
    assert_eq!(reported["breaches"][0]["why"], "not_followed");
    assert_eq!(row_ids(&store, &[]), ["a", "b", "c", "d", "e"]);
    let stopped = refresh_command(&work, &web, &store).args(["--max-pages", "1"]);
    stopped.finish();
    assert_eq!(row_ids(&store, &[]), ["a", "b", "c", "d", "e"]);
}

#[test]
fn a_list_that_is_suddenly_empty_is_in_doubt() {
    let (work, web) = (workplace_with_complete_lists(), Web::start());
    let (site, store) = (web.site(HOST), sqlite_uri(&work));
    let mut with_field = mapping_with_rule(&rows_rule(&["id", "price"], &["id"]));
    with_field["rows"]["complete"] = true.into();
    with_field["fields"] = json!([
        {"name": "title", "processors": [{"type": "css", "parameters": {"selector": "h1"}}]},
    ]);
    work.write_json("mappings/profile.json", &with_field);
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"], &["e"]]);
    crawl_command(&work, &web, &store, &["/list"])
        .finish()
        .expect_code(0);
    for pages in [&[&[][..]][..], &[&["a"][..], &["b"][..]][..]] {
        serve_list_pages(&site, pages);
        let run = refresh_command(&work, &web, &store).finish().expect_code(0);
        assert_eq!(list_counts(&run)["doubted"], 1, "{}", list_counts(&run));
        assert_eq!(list_counts(&run)["complete"], 1);
        assert_eq!(row_ids(&store, &[]), ["a", "b", "c", "d", "e"]);
    }
    assert!(work.has_logged("list_doubted"));
}

fn confirm_command(store: &str, url: &str) -> Run {
    let list = ["lists", "--store", store, "--crawl", "test"];
    Run::new(list).args(["--confirm", url])
}

fn a_doubted_list_is_confirmed(work: &Workplace, store: &str) {
    let web = Web::start();
    let (site, url) = (web.site(HOST), format!("http://{HOST}/list"));
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"], &["e"]]);
    crawl_command(work, &web, store, &["/list"])
        .finish()
        .expect_code(0);
    serve_list_pages(&site, &[&["a"], &["b"]]);
    refresh_command(work, &web, store).finish().expect_code(0);
    let lists = Run::new(["lists", "--store", store, "--crawl", "test"]);
    let hint = lists.finish().expect_code(0).stdout;
    assert!(hint.contains("--confirm"), "{hint}");
    let elsewhere = confirm_command(store, &format!("{url}?page=2"))
        .finish()
        .expect_code(2);
    assert!(
        elsewhere.stderr.contains("starts there"),
        "{}",
        elsewhere.stderr
    );
    assert_eq!(row_ids(store, &[]), ["a", "b", "c", "d", "e"]);
    let output = confirm_command(store, &url).finish().expect_code(0).stdout;
    assert!(output.contains("3 rows gone"), "{output}");
    assert_eq!(row_ids(store, &[]), ["a", "b"]);
    assert_eq!(row_ids(store, &["--with-gone"]), ["a", "b", "c", "d", "e"]);
    // No list is in doubt any more. A row that the list shows again is no longer gone.
    serve_list_pages(&site, &[&["a"], &["e"]]);
    let run = refresh_command(work, &web, store).finish().expect_code(0);
    assert_eq!(list_counts(&run)["doubted"], 0, "{}", list_counts(&run));
    assert_eq!(row_ids(store, &[]), ["a", "e"]);
    site.serve(PAGES[1], status(404));
    refresh_command(work, &web, store).finish().expect_code(0);
    let broken_off = confirm_command(store, &url).finish().expect_code(2).stderr;
    assert!(
        broken_off.contains("broken off: http_error"),
        "{broken_off}"
    );
}

#[test]
fn a_person_confirms_that_most_rows_of_a_list_are_gone() {
    let work = workplace_with_complete_lists();
    a_doubted_list_is_confirmed(&work, &sqlite_uri(&work));
}

#[needs(mongod)]
#[test]
fn a_person_confirms_that_most_rows_of_a_list_are_gone_in_mongodb() {
    let (work, database) = (workplace_with_complete_lists(), fresh_database());
    a_doubted_list_is_confirmed(&work, database.uri());
}

#[test]
fn kills_mark_no_row_gone_that_is_in_its_list() {
    let (work, web) = (workplace_with_complete_lists(), Web::start());
    let (site, store) = (web.site(HOST), sqlite_uri(&work));
    serve_list_pages(&site, &[&["a", "b"], &["c", "d"], &["e"]]);
    crawl_command(&work, &web, &store, &["/list"])
        .finish()
        .expect_code(0);
    // The row `a` has moved to a page that is read later. Crawls that are killed before must not mark it as gone.
    serve_list_pages(&site, &[&["b"], &["c"], &["a", "e"]]);
    for asked in [4, 5] {
        let running = refresh_command(&work, &web, &store).start();
        web.log().wait_until("some pages are asked for", |visits| {
            visits.pages().len() >= asked
        });
        for process in running.processes() {
            process.signal(Signal::KILL);
        }
        running.finish();
        let stays = row_ids(&store, &[]);
        for id in ["a", "b", "c", "e"] {
            assert!(stays.iter().any(|stays| stays == id), "{id}");
        }
    }
    refresh_command(&work, &web, &store).finish().expect_code(0);
    assert_eq!(only_list(&store, &[])["state"], "complete");
    assert_eq!(row_ids(&store, &[]), ["a", "b", "c", "e"]);
}
