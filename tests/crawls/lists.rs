//! Tests values that are lists: over several pages, and in the cells of tables.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page, status};
use webfill_tests::workplace::{Workplace, profile_mapping};

const SITE: &str = "authors.example";

/// Serves a list of several pages, each linking to the next one.
fn serve_work_lists(web: &Web) {
    let site = web.site(SITE);
    for (number, works) in [
        (1, ["Notes", "Poems"]),
        (2, ["Letters", "x;y"]),
        (3, ["Plays", "Notes"]),
    ] {
        let mut list = page("Works");
        for work in works {
            list = list.html(format!("<li class=\"work\">{work}</li>"));
        }
        if number < 3 {
            list = list.mapped_link(&format!("/works/{}", number + 1));
        }
        site.serve(&format!("/works/{number}"), list);
    }
}

fn expected_works() -> Value {
    json!(["Notes", "Poems", "Letters", "x;y", "Plays"])
}

fn mapping_with_works() -> Value {
    let mut mapping = profile_mapping();
    let css = json!({"type": "css", "parameters": {"selector": "li.work"}});
    let works = json!({"name": "works", "multiple": true, "continues": true, "processors": [css, {"type": "trim"}]});
    mapping["fields"].as_array_mut().unwrap().push(works);
    mapping
}

fn create_workplace() -> Workplace {
    let work = Workplace::new();
    work.write_json("mappings/profile.json", &mapping_with_works());
    let url = format!("http://{SITE}/works/1");
    let record = json!({"id": "1", "urls": [url], "fields": {"works": null}});
    work.write_lines("authors.jsonl", &[record]);
    work
}

fn crawl_command(work: &Workplace, web: &Web, store: &str) -> Run {
    let seeds = work.path("authors.jsonl");
    let crawl = work.crawl(web).replace_flag("--store", store);
    crawl.args(["--depth", "2", "--seeds"]).arg(seeds)
}

fn only_record(store: &str) -> Value {
    let export = Run::new(["export", "records", "--store", store]).finish();
    let text = export.expect_code(0).stdout;
    serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"))
}

/// Checks that a failed page of a list leaves a gap in the list of values, and that a retry of the page closes the gap.
fn assert_gap_is_closed(store: &str) {
    let web = Web::start();
    serve_work_lists(&web);
    let site = web.site(SITE);
    let work = create_workplace();
    site.serve("/works/2", status(404));
    let summary = crawl_command(&work, &web, store)
        .finish()
        .expect_code(0)
        .summary()
        .json
        .clone();
    assert_eq!(summary["records"]["resolved"], 0);
    assert_eq!(summary["found"]["doubts"]["gap"]["profile"], 1);
    let record = only_record(store);
    assert_eq!(record["fields"]["works"], Value::Null, "{record}");
    assert_eq!(record["missing"], json!(["works"]));
    serve_work_lists(&web);
    let again = crawl_command(&work, &web, store).args(["--retry", "http_error"]);
    let summary = again.finish().expect_code(0).summary().json.clone();
    assert_eq!(summary["records"]["resolved"], 1, "{summary}");
    assert_eq!(only_record(store)["fields"]["works"], expected_works());
}

#[test]
fn a_list_with_a_hole_is_filled_once_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    assert_gap_is_closed(&format!(
        "sqlite:{}",
        folder.path().join("store.db").display()
    ));
}

#[needs(mongod)]
#[test]
fn a_list_with_a_hole_is_filled_once_it_is_closed_in_mongodb() {
    let database = fresh_database();
    assert_gap_is_closed(database.uri());
}

#[test]
fn a_list_is_whole_after_a_kill_in_the_middle() {
    let web = Web::start();
    serve_work_lists(&web);
    let work = create_workplace();
    let store = format!("sqlite:{}", work.path("store.db").display());
    let running = crawl_command(&work, &web, &store).start();
    web.log().wait_until("two pages are asked for", |visits| {
        visits.pages().len() == 2
    });
    for process in running.processes() {
        process.signal(Signal::KILL);
    }
    running.finish();
    assert_eq!(only_record(&store)["fields"]["works"], Value::Null);
    crawl_command(&work, &web, &store).finish().expect_code(0);
    assert_eq!(only_record(&store)["fields"]["works"], expected_works());
}

/// A record that is fed late is also filled from pages that were fetched before, by the same rules.
#[test]
fn mappings_also_apply_to_records_that_come_later() {
    let web = Web::start();
    serve_work_lists(&web);
    let work = create_workplace();
    let mut strict = mapping_with_works();
    strict["match"] = json!(["email"]);
    work.write_json("mappings/profile.json", &strict);
    let site = web.site(SITE);
    let ada = page("Ada")
        .field("email", "ada@a.example")
        .field("location", "Ockham");
    site.serve("/ada", ada);
    let store = format!("sqlite:{}", work.path("store.db").display());
    crawl_command(&work, &web, &store)
        .arg(site.url("/ada"))
        .finish()
        .expect_code(0);
    let record = |id: &str, path: &str, fields: Value| json!({"id": id, "urls": [site.url(path)], "fields": fields});
    let known = |email: &str| json!({"email": email, "title": "Ada", "location": null});
    work.write_lines(
        "authors.jsonl",
        &[
            record("1", "/works/1", json!({"works": null})),
            record("2", "/works/1", json!({"works": null})),
            record("ada", "/ada", known("ADA@a.example ")),
            record("other", "/ada", known("bob@a.example")),
        ],
    );
    crawl_command(&work, &web, &store).finish().expect_code(0);
    assert_eq!(web.visits().pages().len(), 4, "nothing is fetched again");
    let records = work.stored().records();
    assert_eq!(records["2"].fields["works"], expected_works());
    assert_eq!(records["ada"].fields["location"], "Ockham");
    assert_eq!(records["other"].fields["location"], Value::Null);
}

#[test]
fn lists_in_cells_come_back_as_they_were() {
    let web = Web::start();
    serve_work_lists(&web);
    let site = web.site(SITE);
    let work = create_workplace();
    let table = format!(
        "id,url,works,note\n1,{},,a;b\n2,{},Dramas;x\\;y,\n",
        site.url("/works/1"),
        site.url("/works/9"),
    );
    let seeds = work.write("authors.csv", table);
    let crawl = |seeds: &std::path::Path, id: &str| {
        let crawl = work
            .crawl(&web)
            .replace_flag("--crawl", id)
            .args(["--depth", "2"]);
        crawl
            .args(["--list-separator", "; ", "--seeds"])
            .arg(seeds)
            .finish()
            .expect_code(0)
    };
    crawl(&seeds, "first");
    let check = || {
        let records = work.stored().records();
        assert_eq!(records["1"].fields["works"], expected_works());
        assert_eq!(records["1"].fields["note"], "a;b");
        assert_eq!(records["2"].fields["works"], json!(["Dramas", "x;y"]));
    };
    check();
    let store = format!("sqlite:{}", work.path("store.db").display());
    let args = [
        "export",
        "records",
        "--format",
        "csv",
        "--sources",
        "--list-separator",
        "; ",
    ];
    let export = Run::new(args)
        .args(["--store", &store])
        .finish()
        .expect_code(0)
        .stdout;
    assert!(
        export.contains(",Notes; Poems; Letters; x\\;y; Plays,"),
        "{export}"
    );
    assert!(export.contains(",Dramas; x\\;y,"), "{export}");
    let again = work.write("authors.csv", &export);
    crawl(&again, "second");
    check();
    let text = Run::new([
        "export",
        "records",
        "--list-separator",
        ";",
        "--store",
        &store,
    ]);
    assert!(
        text.finish()
            .expect_code(2)
            .one_sentence()
            .contains("--format csv")
    );
}
