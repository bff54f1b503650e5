//! Tests the dashboard over a store in MongoDB: the overview, lists and single items. They come from a fleet's crawl
//! and from a separate crawl into the same database.

use serde_json::json;
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::site::{page, status};

use crate::fleet::{APP, Fleet, wait_for};
use crate::http::Visitor;

fn get_decoded_page(visitor: &Visitor, path: &str) -> String {
    let answer = visitor.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    // Browsers decode this character reference, so it is decoded here as well.
    answer.body.replace("&#x2f;", "/")
}

/// Checks that the page at a path contains all of these texts.
fn assert_says(visitor: &Visitor, path: &str, texts: &[&str]) {
    let body = get_decoded_page(visitor, path);
    for text in texts {
        assert!(body.contains(text), "{path} does not say {text}: {body}");
    }
}

/// The first path in a page that begins with `begin`.
fn find_path_on_page(body: &str, begin: &str) -> String {
    let (_, rest) = body
        .split_once(&format!("href=\"{begin}"))
        .unwrap_or_else(|| panic!("no link to {begin}: {body}"));
    format!("{begin}{}", rest.split('"').next().expect("an end"))
}

#[needs(mongod)]
#[test]
fn data_in_mongodb_are_shown_from_the_overview_to_a_record() {
    let database = fresh_database();
    let mut fleet = Fleet::unstarted();
    fleet.set_store(database.uri());
    let members = fleet.web.site("members.example");
    members.serve(
        "/ada",
        page("Ada")
            .field("name", "Ada Lovelace")
            .field("location", "London"),
    );
    members.serve("/gone", status(404));
    fleet.start_dispatcher();
    fleet.start_supervisor();
    fleet.feed_pages("a.example", "monday", 60);
    let record = |id: &str, path: &str| json!({"id": id, "urls": [members.url(path)], "fields": {"name": null, "location": null}});
    let records = [record("1815", "/ada"), record("none", "/gone")];
    fleet.crawl_records("members", "people", &records);
    let visitor = fleet.visitor();
    wait_for("all pages are stored", || {
        let crawl = get_decoded_page(&visitor, &format!("/dashboard/crawl/{APP}/monday"));
        (crawl.contains("finished") && crawl.contains(">60 ended</a>")).then_some(())
    });
    wait_for("the overview counts the records", || {
        let snapshot = get_decoded_page(&visitor, "/dashboard/");
        let resolved = "<dd id=\"resolved\">1</dd>";
        (snapshot.contains(resolved) && snapshot.contains("Exhausted</a></dt><dd>1</dd>"))
            .then_some(())
    });
    assert_says(
        &visitor,
        "/dashboard/crawls",
        &["testapp / monday", "testapp / members"],
    );

    let failed = format!("/dashboard/crawl/{APP}/members/pages?outcome=http_error");
    assert_says(&visitor, &failed, &["members.example/gone"]);
    assert_says(&visitor, "/dashboard/site/a.example/pages", &["a.example/"]);
    let pages = get_decoded_page(&visitor, &format!("/dashboard/crawl/{APP}/monday/pages"));
    assert!(
        pages.contains("Next page"),
        "50 of 60 are on the first page"
    );
    assert_says(
        &visitor,
        &find_path_on_page(&pages, "/dashboard/page/"),
        &["a.example", "ok"],
    );
    let page_of_ada =
        get_decoded_page(&visitor, "/dashboard/site/members.example/pages?outcome=ok");
    let page_of_ada = find_path_on_page(&page_of_ada, "/dashboard/page/");
    assert_says(&visitor, &page_of_ada, &["Ada Lovelace"]);
    assert_says(&visitor, &format!("{page_of_ada}/body"), &["Ada Lovelace"]);

    assert_says(&visitor, "/dashboard/records", &["people"]);
    assert_says(
        &visitor,
        "/dashboard/records?dataset=people&state=open",
        &["none"],
    );
    let complete = ["Ada Lovelace", "London", "members.example/ada"];
    assert_says(&visitor, "/dashboard/record/people/1815", &complete);
    let open = ["one of its pages ended in http_error"];
    assert_says(&visitor, "/dashboard/record/people/none", &open);
    let found = format!(
        "/dashboard/find?url={}",
        crate::http::percent_encode(&members.url("/ada"))
    );
    assert_says(&visitor, &found, &["members"]);
    assert_says(&visitor, "/dashboard/mappings", &["profile"]);
}
