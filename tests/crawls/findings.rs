//! Tests the findings of a crawl: by mapping and field in its summary, in comparison with the previous crawl, and as an
//! exit code for unattended crawls.

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page, status};
use webfill_tests::workplace::Workplace;

/// The first crawl finds a name and a location. Before the second crawl, the page loses its location.
#[test]
fn the_summary_compares_each_field_with_the_previous_crawl() {
    let web = Web::start();
    let site = web.site("people.example");
    let (ada, bob) = (page("Ada").field("name", "Ada"), page("Bob"));
    site.serve("/ada", ada.clone().field("location", "London"));
    site.serve("/bob", bob.clone());
    let work = Workplace::new();
    let urls = ["http://people.example/ada", "http://people.example/bob"];
    let crawl = |id: &str| work.crawl(&web).replace_flag("--crawl", id).args(urls);
    let first = crawl("first").finish().expect_code(0).summary().json;
    assert_eq!(first["found"]["before"], Value::Null);
    site.serve("/ada", ada);
    let second = crawl("second").finish().expect_code(0).summary().json;
    let found = &second["found"];
    assert_eq!(found["before"], "first");
    let profile = &found["mappings"]["profile"];
    assert_eq!(profile["pages"], 2);
    let field = |filled, empty, share, before| json!({"filled": filled, "empty": empty, "undecided": 0, "share": share, "share_before": before});
    assert_eq!(profile["fields"]["title"], field(2, 0, 1.0, 1.0));
    assert_eq!(profile["fields"]["name"], field(1, 1, 0.5, 0.5));
    assert_eq!(profile["fields"]["location"], field(0, 2, 0.0, 0.5));
    let reported = crawl("third").replace_flag("--summary", "human").finish();
    let reported = reported.expect_code(0).stdout;
    let line = "location: 0 filled, 2 empty, 0.0 %; 0.0 % in the crawl before";
    assert!(reported.contains(line), "{reported}");
}

#[test]
fn values_that_can_be_read_in_two_ways_are_counted_and_left_out() {
    let web = Web::start();
    let site = web.site("shop.example");
    for (path, price) in [
        ("/a", "1,234"),
        ("/b", "12,50"),
        ("/c", "2.500"),
        ("/d", "none"),
    ] {
        site.serve(path, page("Item").field("price", price));
    }
    let work = Workplace::new();
    let price = json!({"name": "price", "processors": [
        {"type": "xpath", "parameters": {"expression": "//*[@class='price']/text()"}}, {"type": "number"},
    ]});
    let mapping = json!({"name": "shop", "url_patterns": [{"type": "host", "pattern": "shop.example"}], "fields": [price]});
    work.write_json("mappings/a_shop.json", &mapping);
    let urls = ["/a", "/b", "/c", "/d"].map(|path| site.url(path));
    let run = work.crawl(&web).args(urls.clone()).finish().expect_code(0);
    let price = &run.summary().json["found"]["mappings"]["shop"]["fields"]["price"];
    assert_eq!(
        (&price["filled"], &price["empty"], &price["undecided"]),
        (&json!(1), &json!(3), &json!(2))
    );
    let again = work
        .crawl(&web)
        .replace_flag("--crawl", "again")
        .replace_flag("--summary", "human")
        .args(urls);
    let output = again.finish().expect_code(0).stdout;
    assert!(output.contains("undecided 2 values left out"), "{output}");
    assert!(
        output.contains("price: 1 filled, 3 empty, 25.0 %; 2 can be read in two ways"),
        "{output}"
    );
}

#[test]
fn missing_fields_and_fields_without_a_mapping_are_reported() {
    let web = Web::start();
    web.site("people.example")
        .serve("/ada", page("Ada").field("name", "Ada"));
    web.site("other.test").serve("/", page("Other"));
    let work = Workplace::new();
    let fields = json!({"name": null, "location": null});
    let record = |id: &str, url: &str| json!({"id": id, "urls": [url], "fields": fields});
    let records = [
        record("a", "http://people.example/ada"),
        record("b", "http://other.test/"),
    ];
    let seeds = work.write_lines("seeds.jsonl", &records);
    let run = work.crawl(&web).arg("--seeds").arg(seeds).finish();
    let found = run.expect_code(0).summary().json["found"].clone();
    assert_eq!(found["unmatched"], 1);
    assert_eq!(found["resolved"], json!({"name": 1}));
    assert_eq!(found["missing"], json!({"location": 2, "name": 1}));
}

#[test]
fn a_crawl_fails_on_the_conditions_of_fail_on() {
    let web = Web::start();
    web.site("people.example")
        .serve("/ada", page("Ada").field("name", "Ada"));
    web.site("other.test").serve("/", page("Other"));
    let work = Workplace::new();
    let urls = ["http://people.example/ada", "http://other.test/"];
    let crawl = |list: &str| {
        let run = work
            .crawl(&web)
            .replace_flag("--crawl", list.replace(',', "-"));
        run.replace_flag("--fail-on", list).args(urls).finish()
    };
    let empty = crawl("empty-field").expect_code(1);
    assert!(
        empty.one_sentence().contains("profile has found `email`"),
        "{}",
        empty.stderr
    );
    let unmatched = crawl("all-broken,no-mapping").expect_code(1);
    assert!(
        unmatched
            .one_sentence()
            .contains("1 fetched pages match no mapping")
    );
    crawl("nothing-fetched,all-broken").expect_code(0);
}

/// A run without `--fail-on`, as a scheduled job would start it.
fn unattended_run(work: &Workplace, web: &Web) -> Run {
    let store = format!("sqlite:{}", work.path("store.db").display());
    Run::new(["crawl", "--store", &store, "--allow-private-networks"])
        .arg("--state")
        .arg(work.path("state"))
        .args(["--workers", "1", "--delay", "0.2", "--progress", "none"])
        .args(web.resolve_args())
        .in_folder(work.path("."))
}

#[test]
fn a_crawl_that_fetches_nothing_ends_with_exit_code_1() {
    let web = Web::start();
    web.site("gone.example").serve("/", status(410));
    let work = Workplace::new();
    let run = unattended_run(&work, &web)
        .arg("http://gone.example/")
        .finish();
    let reported = run.expect_code(1);
    let reason = "nothing fetched of 1 URL: 1 http_error (--fail-on)";
    assert!(reported.stderr.contains(reason), "{}", reported.stderr);
    let run = unattended_run(&work, &web).arg("http://gone.example/");
    run.args(["--fail-on", "never"]).finish().expect_code(0);
}

#[test]
fn a_crawl_with_broken_seeds_only_ends_with_exit_code_1() {
    let web = Web::start();
    let work = Workplace::new();
    let seeds = work.write("seeds.jsonl", "{\"id\": 1}\n{\"urls\": 3}\n");
    let run = unattended_run(&work, &web)
        .arg("--seeds")
        .arg(seeds)
        .finish();
    let reported = run.expect_code(1);
    assert!(
        reported.stderr.contains("all 2 seeds are broken"),
        "{}",
        reported.stderr
    );
}

/// All records of the dataset are complete, so nothing is fetched, as in a nightly run. One line is broken, which must
/// not fail the run.
#[test]
fn a_broken_line_among_complete_records_does_not_fail_the_crawl() {
    let web = Web::start();
    let work = Workplace::new();
    let lines = "{\"id\": 1, \"urls\": [\"http://full.example/\"], \"fields\": {\"name\": \"Ada\"}}\n{\"urls\": 3}\n";
    let seeds = work.write("seeds.jsonl", lines);
    let run = unattended_run(&work, &web)
        .arg("--seeds")
        .arg(seeds)
        .finish();
    let reported = run.expect_code(0);
    assert!(reported.stdout.contains("1 broken"), "{}", reported.stdout);
    assert_eq!(web.visits().len(), 0);
}
