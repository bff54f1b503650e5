//! Tests new, changed and gone rows on pages with lists.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::site::{Page, page};

use super::{MAPPED, Watched, found_changes};

/// A mapping that reads only rows, and no fields of the page.
fn mapping_with_rows() -> Value {
    let css = |selector: &str| json!([{"type": "css", "parameters": {"selector": selector}}]);
    let field = |name: &str| json!({"name": name, "processors": css(&format!(".{name}"))});
    json!({
        "name": "profile",
        "url_patterns": [{"type": "host", "pattern": MAPPED}],
        "rows": {
            "dataset": "ratings",
            "select": css("li"),
            "fields": [field("item"), field("stars")],
            "key": ["item"],
        },
    })
}

fn list_page(rows: &[(&str, &str)]) -> Page {
    let row = |(item, stars): &(&str, &str)| {
        format!("<li><b class=\"item\">{item}</b><i class=\"stars\">{stars}</i></li>")
    };
    let rows: String = rows.iter().map(row).collect();
    page("Ratings").html(format!("<ul>{rows}</ul>"))
}

fn rows_that_come_change_and_go_are_reported(store: Option<&str>) {
    let shop = Watched::new(MAPPED, store);
    shop.work
        .write_json("mappings/profile.json", &mapping_with_rows());
    let site = shop.site();
    let run = || found_changes(&shop.run(&["/list"], &json!({})))["changes"].clone();
    site.serve("/list", list_page(&[("a", "4"), ("b", "3"), ("c", "5")]));
    assert_eq!(run(), json!({}), "all is new in the first run");
    site.serve("/list", list_page(&[("d", "2"), ("b", "1"), ("a", "4")]));
    assert_eq!(run(), json!({"changed": 1}));
    let changes = shop.changes(&[]);
    assert_eq!(changes.len(), 1, "{changes:#?}");
    let change = &changes[0];
    assert_eq!(
        (&change["kind"], &change["mapping"]),
        (&json!("changed"), &json!("profile"))
    );
    assert_eq!(
        change["old"],
        json!({"ratings[b]": {"stars": "3"}, "ratings[c]": {"item": "c", "stars": "5"}})
    );
    assert_eq!(
        change["new"],
        json!({"ratings[b]": {"stars": "1"}, "ratings[d]": {"item": "d", "stars": "2"}})
    );
    let reported = change["difference"].as_str().unwrap();
    for line in [
        "- ratings[c]: {\"item\":\"c\",\"stars\":\"5\"}",
        "+ ratings[d]: {\"item\":\"d\",\"stars\":\"2\"}",
    ] {
        assert!(
            reported.lines().any(|one| one == line),
            "{line} in {reported}"
        );
    }
    site.serve("/list", list_page(&[("a", "4"), ("b", "1"), ("d", "2")]));
    assert_eq!(run(), json!({}), "the order of rows is no difference");
}

#[test]
fn new_changed_and_gone_rows_are_reported_with_their_values() {
    rows_that_come_change_and_go_are_reported(None);
}

#[needs(mongod)]
#[test]
fn new_changed_and_gone_rows_are_reported_with_their_values_in_mongodb() {
    rows_that_come_change_and_go_are_reported(Some(fresh_database().uri()));
}

/// If a page has many changed rows, the report stays small and says that there are more.
#[test]
fn a_page_with_many_rows_makes_no_large_change() {
    const ROWS: usize = 6_000;
    let shop = Watched::new(MAPPED, None);
    shop.work
        .write_json("mappings/profile.json", &mapping_with_rows());
    let serve = |stars: &str| {
        let items: Vec<String> = (0..ROWS).map(|number| format!("item-{number}")).collect();
        let rows: Vec<(&str, &str)> = items.iter().map(|item| (item.as_str(), stars)).collect();
        shop.site().serve("/list", list_page(&rows));
        shop.run(&["/list"], &json!({}))
    };
    serve("4");
    assert_eq!(found_changes(&serve("5"))["changes"], json!({"changed": 1}));
    let changes = shop.changes(&[]);
    let new = changes[0]["new"].as_object().unwrap();
    assert!(new.contains_key("(further rows)"), "{}", new.len());
    assert!(changes[0].to_string().len() < 300_000);
}
