//! Tests that a record is filled only from pages that describe the same person.

use serde_json::{Value, json};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, profile_mapping};

const SITE: &str = "members.example";

/// The number of members in the listing.
const MEMBERS: usize = 46;

fn member_name(number: usize) -> String {
    const FIRST: [&str; 8] = ["Ada", "Bea", "Cleo", "Dora", "Eva", "Fay", "Gus", "Hal"];
    const LAST: [&str; 6] = ["Abbot", "Berg", "Cole", "Diaz", "Egan", "Frost"];
    format!("{} {}", FIRST[number % 8], LAST[number / 8])
}

fn member_tel(number: usize) -> String {
    format!("+44 20 7946 {:04}", 100 + number)
}

/// Serves a list of all members, and a page for each member.
fn serve_listing(web: &Web) {
    let site = web.site(SITE);
    let mut list = page("Members");
    for number in 0..MEMBERS {
        let path = format!("/m{number}");
        list = list.mapped_link(&path);
        site.serve(
            &path,
            page("Member")
                .field("name", &member_name(number))
                .field(
                    "location",
                    if number.is_multiple_of(3) {
                        "Leeds"
                    } else {
                        "York"
                    },
                )
                .field("tel", &member_tel(number)),
        );
    }
    site.serve("/members", list);
}

/// A mapping that reads names, places and telephones, and follows links.
fn mapping_with_tel() -> Value {
    let mut mapping = profile_mapping();
    let xpath = json!({"type": "xpath", "parameters": {"expression": "//p[@class='tel']/text()"}});
    let tel = json!({"name": "tel", "processors": [xpath, {"type": "trim"}]});
    mapping["fields"].as_array_mut().unwrap().push(tel);
    mapping
}

fn member_record(number: usize, url: &str, fields: Value) -> Value {
    json!({"id": number.to_string(), "urls": [format!("http://{SITE}{url}")], "fields": fields})
}

struct Crawled {
    work: Workplace,
    summary: Value,
}

fn crawl_members(web: &Web, mapping: &Value, records: &[Value]) -> Crawled {
    let work = Workplace::new();
    work.write_json("mappings/profile.json", mapping);
    let seeds = work.write_lines("members.jsonl", records);
    let run = work.crawl(web).args(["--depth", "1", "--seeds"]).arg(seeds);
    let summary = run.finish().expect_code(0).summary().json.clone();
    Crawled { work, summary }
}

#[test]
fn each_record_gets_the_right_person_of_a_listing() {
    let web = Web::start();
    serve_listing(&web);
    let records: Vec<Value> = (0..MEMBERS)
        .map(|number| {
            let fields = json!({"name": member_name(number), "location": null, "tel": null});
            match number % 2 {
                0 => member_record(number, "/members", fields),
                _ => member_record(number, &format!("/m{number}"), fields),
            }
        })
        .collect();
    let crawled = crawl_members(&web, &mapping_with_tel(), &records);
    for (id, stored) in crawled.work.stored().records() {
        let number: usize = id.parse().unwrap();
        assert_eq!(
            stored.fields["tel"],
            member_tel(number),
            "record {id}: {stored:?}"
        );
        assert!(stored.resolved, "record {id}");
    }
}

#[test]
fn a_listing_fills_nothing_if_no_field_identifies_the_record() {
    let web = Web::start();
    serve_listing(&web);
    let fields = || json!({"name": null, "location": null, "tel": null});
    let records: Vec<Value> = (0..23)
        .map(|number| member_record(number, "/members", fields()))
        .collect();
    let crawled = crawl_members(&web, &mapping_with_tel(), &records);
    for (id, stored) in crawled.work.stored().records() {
        let is_empty = |field: &str| stored.fields[field].is_null();
        assert!(
            is_empty("name") && is_empty("tel") && is_empty("location"),
            "record {id}: {stored:?}"
        );
        assert!(!stored.resolved, "record {id}");
    }
    assert_eq!(crawled.summary["records"]["resolved"], 0);
    assert_eq!(crawled.summary["found"]["doubts"]["rivals"]["profile"], 23);
}

#[test]
fn fields_of_a_mapping_identify_the_record_of_a_page() {
    let web = Web::start();
    serve_listing(&web);
    let mut mapping = mapping_with_tel();
    mapping["match"] = json!(["tel"]);
    // All names in the records are wrong, but the telephone numbers are correct.
    let records: Vec<Value> = (0..23)
        .map(|number| {
            let fields =
                json!({"name": "Someone Else", "location": null, "tel": member_tel(number)});
            member_record(number, "/members", fields)
        })
        .collect();
    let crawled = crawl_members(&web, &mapping, &records);
    for (id, stored) in crawled.work.stored().records() {
        let number: usize = id.parse().unwrap();
        let place = if number.is_multiple_of(3) {
            "Leeds"
        } else {
            "York"
        };
        assert_eq!(stored.fields["location"], place, "record {id}");
        assert_eq!(
            stored.sources["location"]["url"],
            format!("http://{SITE}/m{number}")
        );
    }
}

#[test]
fn a_stale_value_costs_no_record_its_page() {
    let web = Web::start();
    serve_listing(&web);
    let records: Vec<Value> = (0..23)
        .map(|number| {
            let stale = format!("+1 555 {number:07}");
            member_record(
                number,
                "/members",
                json!({"name": member_name(number), "location": null, "tel": stale}),
            )
        })
        .collect();
    let crawled = crawl_members(&web, &mapping_with_tel(), &records);
    for (id, stored) in crawled.work.stored().records() {
        let number: usize = id.parse().unwrap();
        assert_eq!(
            stored.sources["location"]["url"],
            format!("http://{SITE}/m{number}")
        );
        assert!(
            stored.fields["tel"].as_str().unwrap().starts_with("+1"),
            "it is the user's"
        );
    }
}

#[test]
fn a_link_to_the_page_of_another_record_fills_that_record() {
    let web = Web::start();
    let site = web.site(SITE);
    site.serve("/ada", page("Ada").field("name", "Ada").mapped_link("/bob"));
    site.serve(
        "/bob",
        page("Bob").field("name", "Bob").field("location", "Bath"),
    );
    let missing = || json!({"name": null, "location": null});
    let records = [
        member_record(1, "/ada", missing()),
        member_record(2, "/bob", missing()),
    ];
    let crawled = crawl_members(&web, &profile_mapping(), &records);
    let stored = crawled.work.stored().records();
    assert_eq!(
        json!(stored["1"].fields),
        json!({"name": "Ada", "location": null})
    );
    assert_eq!(
        json!(stored["2"].fields),
        json!({"name": "Bob", "location": "Bath"})
    );
}
