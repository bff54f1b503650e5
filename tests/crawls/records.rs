//! Tests records: missing fields are filled from the pages that a record links to, and from the pages that these link
//! to.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, profile_mapping};

fn record(id: &str, urls: &[&str], fields: Value) -> Value {
    json!({"id": id, "urls": urls, "fields": fields})
}

#[test]
fn a_record_is_filled_by_its_links_and_their_children_until_it_is_complete() {
    let web = Web::start();
    let site = web.site("people.example");
    site.serve(
        "/ada",
        page("Ada")
            .field("name", "Ada Lovelace")
            .mapped_link("/ada/contact"),
    );
    site.serve(
        "/ada/contact",
        page("Contact")
            .field("name", "Somebody")
            .field("location", "London")
            .mapped_link("/ada/more"),
    );
    site.serve("/ada/more", page("More").field("location", "Elsewhere"));
    let work = Workplace::new();
    let fields = json!({"name": null, "location": null, "email": "ada@people.example"});
    let seeds = work.write_lines(
        "seeds.jsonl",
        &[record("42", &["http://people.example/ada"], fields)],
    );
    let run = work
        .crawl(&web)
        .args(["--depth", "5"])
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);

    let stored = work.stored().record("42");
    let expected =
        json!({"name": "Ada Lovelace", "location": "London", "email": "ada@people.example"});
    assert_eq!(json!(stored.fields), expected);
    assert!(stored.resolved && stored.missing.is_empty(), "{stored:?}");
    assert_eq!(stored.sources["name"]["url"], "http://people.example/ada");
    assert_eq!(
        stored.sources["location"]["url"],
        "http://people.example/ada/contact"
    );
    assert_eq!(stored.sources["location"]["mapping"], "profile");
    assert!(stored.sources["name"]["at"].is_string() || stored.sources["name"]["at"].is_number());
    assert!(
        !stored.sources.contains_key("email"),
        "what was known came from no page"
    );
    assert_eq!(run.summary().records(), (1, 1));
    assert_eq!(
        web.visits().pages().paths(),
        ["people.example/ada", "people.example/ada/contact"],
        "a complete record is followed no further"
    );
}

#[test]
fn a_record_that_stays_incomplete_keeps_its_findings() {
    let web = Web::start();
    let site = web.site("people.example");
    site.serve("/bob", page("Bob").field("name", "Bob"));
    let work = Workplace::new();
    let fields = json!({"name": null, "location": null});
    let seeds = work.write_lines(
        "seeds.jsonl",
        &[record("b", &["http://people.example/bob"], fields)],
    );
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let stored = work.stored().record("b");
    assert_eq!(stored.fields["name"], "Bob");
    assert_eq!(stored.missing, ["location"]);
    assert!(!stored.resolved);
    assert_eq!(run.summary().records(), (1, 0));
}

#[test]
fn want_names_the_fields_that_matter() {
    let web = Web::start();
    let site = web.site("people.example");
    site.serve("/c", page("Carl").field("name", "Carl").mapped_link("/c/2"));
    site.serve("/c/2", page("2").field("location", "Bonn"));
    let work = Workplace::new();
    let wanted = json!({"id": "c", "urls": ["http://people.example/c"], "want": ["name"],
        "fields": {"name": null, "location": null}});
    let seeds = work.write_lines("seeds.jsonl", &[wanted]);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert!(work.stored().record("c").resolved);
    assert_eq!(web.visits().pages().paths(), ["people.example/c"]);
}

#[test]
fn fields_that_no_mapping_extracts_are_reported() {
    let web = Web::start();
    web.site("people.example")
        .serve("/d", page("Dora").field("name", "Dora"));
    let work = Workplace::new();
    let csv = "id,url,name,Location\nd,http://people.example/d,,\n";
    let seeds = work.write("seeds.csv", csv);
    let run = work.crawl(&web).arg("--seeds").arg(seeds).finish();
    let run = run.expect_code(0);
    assert_eq!(run.summary().json["unfillable"], json!(["Location"]));
    assert_eq!(run.summary().records(), (1, 0));
}

#[test]
fn two_records_share_a_page_that_is_fetched_once() {
    let web = Web::start();
    let site = web.site("team.example");
    site.serve("/team", page("Team").field("location", "Paris"));
    site.serve("/x", page("X").field("name", "X").mapped_link("/team"));
    site.serve("/y", page("Y").field("name", "Y").mapped_link("/team"));
    let other = web.site("late.example");
    other.serve(
        "/z",
        page("Z")
            .field("name", "Z")
            .mapped_link("http://team.example/team"),
    );
    // Because of this latency, the crawl finds the last page's link to the shared page long after it has fetched the
    // shared page.
    other.set_latency(std::time::Duration::from_secs(2));
    let work = Workplace::new();
    let missing = || json!({"name": null, "location": null});
    let records = [
        record("x", &["http://team.example/x"], missing()),
        record("y", &["http://team.example/y"], missing()),
        record("z", &["http://late.example/z"], missing()),
    ];
    let seeds = work.write_lines("seeds.jsonl", &records);
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let stored = work.stored().records();
    for (id, name) in [("x", "X"), ("y", "Y"), ("z", "Z")] {
        assert_eq!(
            json!(stored[id].fields),
            json!({"name": name, "location": "Paris"}),
            "record {id}"
        );
        assert!(stored[id].resolved, "record {id}");
        assert_eq!(
            stored[id].sources["location"]["url"], "http://team.example/team",
            "record {id}"
        );
    }
    assert_eq!(web.visits().counts()["team.example/team"], 1);
    assert_eq!(run.summary().records(), (3, 3));
}

#[test]
fn a_page_that_was_stopped_is_fetched_for_a_further_record() {
    let web = Web::start();
    let team = web.site("team.example");
    team.serve("/a", page("A").field("name", "A"));
    team.serve("/shared", page("Team").field("location", "Paris"));
    let late = web.site("late.example");
    late.serve("/b", page("B").field("name", "B").mapped_link("/b/more"));
    // This page has a lower priority than the seeds, so record a is complete before the crawl fetches this page.
    late.serve(
        "/b/more",
        page("More").mapped_link("http://team.example/shared"),
    );
    let work = Workplace::new();
    // With a queue of one task, the shared page is not handed out together with `/a`.
    let settings = work.write("webfill.toml", "[supervisor]\nqueue = 1\n");
    let a = ["http://team.example/a", "http://team.example/shared"];
    let b = ["http://late.example/b"];
    let records = [
        record("a", &a, json!({"name": null})),
        record("b", &b, json!({"name": null, "location": null})),
    ];
    let run = work
        .crawl(&web)
        .arg("--config")
        .arg(settings)
        .args(["--depth", "5", "--seeds"])
        .arg(work.write_lines("seeds.jsonl", &records))
        .finish()
        .expect_code(0);
    // The shared page is one of record a's own URLs, so it does not describe record b.
    assert_eq!(work.stored().record("b").fields["location"], Value::Null);
    assert_eq!(
        web.visits().pages().paths(),
        [
            "team.example/a",
            "late.example/b",
            "late.example/b/more",
            "team.example/shared"
        ]
    );
    assert_eq!(run.summary().records(), (2, 1));
}

#[test]
fn two_records_may_name_the_same_link() {
    let web = Web::start();
    web.site("same.example")
        .serve("/", page("T").field("name", "Shared"));
    let work = Workplace::new();
    let records: Vec<Value> = ["one", "two"]
        .map(|id| record(id, &["http://same.example/"], json!({"name": null})))
        .into();
    let seeds = work.write_lines("seeds.jsonl", &records);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let stored = work.stored().records();
    assert!(
        stored["one"].resolved && stored["two"].resolved,
        "{stored:?}"
    );
    assert_eq!(web.visits().pages().len(), 1);
}

#[test]
fn a_complete_record_asks_for_nothing() {
    let web = Web::start();
    let site = web.site("done.example");
    site.serve_otherwise(|_| page("T").field("name", "New").into());
    let work = Workplace::new();
    let records = [
        record("done", &["http://done.example/1"], json!({"name": "Old"})),
        record("open", &["http://done.example/2"], json!({"name": null})),
    ];
    let seeds = work.write_lines("seeds.jsonl", &records);
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(work.stored().record("done").fields["name"], "Old");
    assert_eq!(work.stored().record("open").fields["name"], "New");
    assert_eq!(run.summary().records(), (2, 2));
    assert_eq!(web.visits().pages().paths(), ["done.example/2"]);
}

#[test]
fn of_two_pages_that_disagree_the_first_mapping_wins_and_the_other_value_is_kept() {
    let web = Web::start();
    let directory = web.site("directory.example");
    directory.serve("/ada", page("Ada").field("name", "A. Lovelace"));
    let official = web.site("official.example");
    official.serve("/ada", page("Ada").field("name", "Ada Lovelace"));
    official.set_latency(Duration::from_millis(500));
    let work = Workplace::new();
    let mut mapping = profile_mapping();
    mapping["name"] = json!("official");
    mapping["url_patterns"] = json!([{"type": "host", "pattern": "official.example"}]);
    work.write_json("mappings/1-official.json", &mapping);
    let urls = [
        "http://directory.example/ada",
        "http://official.example/ada",
    ];
    let ada = record("ada", &urls, json!({"name": null, "location": null}));
    let seeds = work.write_lines("seeds.jsonl", &[ada]);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let stored = work.stored();
    let ada = stored.record("ada");
    assert_eq!(ada.fields["name"], "Ada Lovelace");
    assert_eq!(ada.sources["name"]["mapping"], "official");
    let kept = "SELECT candidates ->> '$.name[0].value' = 'A. Lovelace'
        AND candidates ->> '$.name[0].url' = 'http://directory.example/ada' FROM records";
    assert_eq!(stored.query_number(kept), 1);
}
