//! Tests that a mapping written after a crawl reads the rows of stored pages in the same way as a crawl does.

use super::*;

/// The mapping of these tests. It has rows, whose stars are found by the CSS selector `stars`.
fn mapping_with_rows(stars: &str) -> Value {
    let css = |selector: &str| json!([{"type": "css", "parameters": {"selector": selector}}]);
    let mut mapping = profile_mapping();
    mapping["rows"] = json!({
        "dataset": "ratings",
        "select": css("li"),
        "fields": [
            {"name": "user", "from": "record", "record_field": "_id"},
            {"name": "item", "processors": css("a")},
            {"name": "stars", "processors": css(stars)},
        ],
        "key": ["user", "item"],
    });
    mapping
}

fn rating_rows(kept: &Kept) -> Vec<Value> {
    let mut rows: Vec<Value> = kept.exported_lines("records");
    rows.retain(|record| record["dataset"] == "ratings");
    rows.sort_by_key(|row| row["record_id"].to_string());
    rows
}

fn stars_by_id(rows: &[Value]) -> Vec<(&str, &Value)> {
    rows.iter()
        .map(|row| (row["record_id"].as_str().unwrap(), &row["fields"]["stars"]))
        .collect()
}

fn kept_pages_yield_rows(kept: &Kept) {
    let site = kept.web.site(HOST);
    site.serve(
        "/ada",
        page("Ada").html(
            "<ul><li><a>a</a><b>4</b><i>old</i><li><a>b</a><i>old</i><li><a>c</a><b>1</b></ul>",
        ),
    );
    let record = json!({"id": "ada", "urls": [site.url("/ada")], "fields": {"email": null}});
    let seeds = kept.work.write_lines("seeds.jsonl", &[record]);
    let crawl = kept.crawl().arg("--keep-bodies").arg("--seeds").arg(seeds);
    crawl.finish().expect_code(0);
    assert_eq!(rating_rows(kept), Vec::<Value>::new());
    let visits = kept.web.visits().0.len();

    kept.work
        .write_json("mappings/profile.json", &mapping_with_rows("b, i"));
    let tried = kept.run_extract(&["--dry-run"]);
    assert_eq!(rating_rows(kept), Vec::<Value>::new());
    let report = kept.run_extract(&[]);
    for report in [&tried, &report] {
        let counted = &report["mappings"]["profile"]["rows"];
        assert_eq!(*counted, json!({"ratings": 3}), "{report:#}");
    }
    let first = rating_rows(kept);
    let (four, old, one) = (json!("4"), json!("old"), json!("1"));
    let wanted = [("ada/a", &four), ("ada/b", &old), ("ada/c", &one)];
    assert_eq!(stars_by_id(&first), wanted);
    let page = kept.page("/ada");
    for row in &first {
        assert_eq!(row["row"]["url"], page["url"]);
        assert_eq!(row["row"]["at"], page["started_at"]);
        assert_eq!(row["row"]["mapping_version"], page["mapping_version"]);
    }

    // The new version of the mapping removes the values that only the previous version read.
    kept.work
        .write_json("mappings/profile.json", &mapping_with_rows("b"));
    kept.run_extract(&[]);
    let second = rating_rows(kept);
    let none = Value::Null;
    let wanted = [("ada/a", &four), ("ada/b", &none), ("ada/c", &one)];
    assert_eq!(stars_by_id(&second), wanted);
    assert_eq!(second[1]["history"]["stars"][0]["value"], "old");
    assert_eq!(second[1]["sources"].get("stars"), None);
    kept.run_extract(&[]);
    assert_eq!(rating_rows(kept), second, "again it changes nothing");
    assert_eq!(kept.web.visits().0.len(), visits, "nothing was requested");
}

#[test]
fn rows_of_a_mapping_that_was_written_later_are_read_from_kept_pages() {
    kept_pages_yield_rows(&Kept::new());
}

#[needs(mongod)]
#[test]
fn rows_of_a_mapping_that_was_written_later_are_read_from_kept_pages_in_mongodb() {
    let database = fresh_database();
    kept_pages_yield_rows(&Kept::with_store(Workplace::new(), database.uri()));
}
