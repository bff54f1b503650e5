//! Tests that `webfill extract --dry-run` reports exactly the changes that a later run makes: to pages, fields, and
//! values of records.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::site::page;
use webfill_tests::workplace::{Workplace, profile_mapping};

use super::{HOST, Kept};

/// The number of records. Each has two pages, which are read in the order of their URLs' hashes.
const RECORDS: usize = 12;

/// Writes a mapping for the pages in a folder. Each of its `fields` is given by its name and the class of the elements
/// to read.
fn write_mapping(kept: &Kept, name: &str, folder: &str, fields: &[(&str, &str)]) {
    let field = |(field, class): &(&str, &str)| {
        let expression = format!("//p[@class='{class}']/text()");
        json!({"name": field, "processors": [{"type": "xpath", "parameters": {"expression": expression}}]})
    };
    let mut mapping = profile_mapping();
    mapping["name"] = name.into();
    let url = kept.web.site(HOST).url(folder);
    mapping["url_patterns"] = json!([{"type": "prefix", "pattern": url}]);
    mapping["fields"] = fields.iter().map(field).collect();
    kept.work
        .write_json(&format!("mappings/{name}.json"), &mapping);
}

/// Crawls pages of two mappings. A value from a page of the first mapping takes precedence.
fn crawl(kept: &Kept) {
    let site = kept.web.site(HOST);
    std::fs::remove_file(kept.work.path("mappings/profile.json")).unwrap();
    write_mapping(kept, "first", "/first/", &[("name", "name")]);
    write_mapping(
        kept,
        "second",
        "/second/",
        &[("city", "city"), ("price", "price")],
    );
    let mut records = Vec::new();
    for number in 0..RECORDS {
        let city = format!("Rome {number}");
        let urls = ["first", "second"].map(|folder| {
            let path = format!("/{folder}/{number}");
            let served = page("Thing")
                .field("name", &format!("Name {number}"))
                .field("city", &city)
                .field("price", &format!("{number}"))
                .field("other", &format!("Oslo {number}"))
                .field("town", &format!("Town of {folder} {number}"));
            site.serve(&path, served);
            site.url(&path)
        });
        let fields = json!({"name": null, "city": null, "price": null, "town": null});
        records.push(json!({"id": number.to_string(), "urls": urls, "fields": fields}));
    }
    let seeds = kept.work.write_lines("seeds.jsonl", &records);
    let run = kept.crawl().arg("--keep-bodies").arg("--seeds").arg(seeds);
    run.finish().expect_code(0);
}

/// Changes both mappings so that they also read `town`, which had no value. For `city`, the first mapping now reads the
/// known value, and the second mapping reads another one.
fn change_mappings(kept: &Kept) {
    write_mapping(
        kept,
        "first",
        "/first/",
        &[("name", "name"), ("city", "city"), ("town", "town")],
    );
    let second = [("city", "other"), ("price", "price"), ("town", "town")];
    write_mapping(kept, "second", "/second/", &second);
}

fn index_by_id(lines: Vec<Value>) -> BTreeMap<String, Value> {
    let id = |line: &Value| line["_id"].as_str().unwrap().to_owned();
    lines.into_iter().map(|line| (id(&line), line)).collect()
}

/// For each field, the number of records whose value is new, and the number of records whose value has changed.
fn count_changed_values(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> Value {
    let mut differ: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (id, record) in after {
        for (field, value) in record["fields"].as_object().unwrap() {
            let old = &before[id]["fields"][field];
            if old != value {
                differ.entry(field).or_default()[usize::from(!old.is_null())] += 1;
            }
        }
    }
    let counts = differ
        .into_iter()
        .map(|(field, [new, changed])| (field.to_owned(), json!({"new": new, "changed": changed})));
    Value::Object(counts.collect())
}

/// For each mapping and field, the numbers of pages whose value is new, lost, unchanged or changed.
fn count_changed_fields(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> Value {
    let mut reported = json!({});
    for (id, page) in after {
        let (was, now) = (&before[id]["fields"], &page["fields"]);
        let names = [was, now].map(|fields| fields.as_object().unwrap().keys());
        let names: std::collections::BTreeSet<_> = names.into_iter().flatten().collect();
        for name in names {
            let what = match (was.get(name), now.get(name)) {
                (None, Some(_)) => "new",
                (Some(_), None) => "lost",
                (was, now) if was == now => "same",
                _ => "changed",
            };
            let mapping = page["mapping"].as_str().unwrap();
            let count = reported[mapping][name][what].as_u64().unwrap_or_default();
            reported[mapping][name][what] = json!(count + 1);
        }
    }
    reported
}

/// The counts of values in a report, by mapping and field.
fn reported_fields(report: &Value) -> Value {
    let mut reported = json!({});
    for (mapping, of) in report["mappings"].as_object().unwrap() {
        for (field, counts) in of["fields"].as_object().unwrap() {
            for what in ["new", "changed", "same", "lost"] {
                if counts[what] != 0 {
                    reported[mapping][field][what] = counts[what].clone();
                }
            }
        }
    }
    reported
}

fn a_dry_run_reports_the_later_changes(kept: &Kept) {
    crawl(kept);
    change_mappings(kept);
    let stored = || {
        (
            index_by_id(kept.exported_lines("pages")),
            index_by_id(kept.exported_lines("records")),
        )
    };
    let before = stored();
    let mut foreseen = kept.run_extract(&["--dry-run"]);
    assert_eq!(stored(), before);
    let mut made = kept.run_extract(&[]);
    let after = stored();

    for (report, dry_run) in [(&mut foreseen, true), (&mut made, false)] {
        let reported = report.as_object_mut().unwrap().remove("dry_run");
        assert_eq!(reported, Some(json!(dry_run)));
    }
    assert_eq!(foreseen, made);
    let pages = after.0.iter().filter(|(id, page)| before.0[*id] != **page);
    assert_eq!(made["pages"]["written"], json!(pages.count()), "{made:#}");
    assert_eq!(
        reported_fields(&made),
        count_changed_fields(&before.0, &after.0)
    );
    let records = after.1.iter();
    let changed = records.filter(|(id, now)| before.1[*id]["fields"] != now["fields"]);
    assert_eq!(made["records"], json!(changed.count()), "{made:#}");
    let differ = count_changed_values(&before.1, &after.1);
    assert_eq!(made["record_fields"], differ, "{made:#}");
    assert_eq!(differ["town"], json!({"new": RECORDS, "changed": 0}));
    let other_cities = differ["city"]["changed"].as_u64().unwrap();
    assert!(
        (1..RECORDS as u64).contains(&other_cities),
        "of some records the page with the known city is read last: {differ:#}"
    );
    let values = RECORDS as u64 + other_cities;
    assert_eq!(made["record_values"], json!(values), "{made:#}");
}

#[test]
fn a_dry_run_reports_the_later_changes_in_sqlite() {
    a_dry_run_reports_the_later_changes(&Kept::new());
}

#[needs(mongod)]
#[test]
fn a_dry_run_reports_the_later_changes_in_mongodb() {
    let database = fresh_database();
    let kept = Kept::with_store(Workplace::new(), database.uri());
    a_dry_run_reports_the_later_changes(&kept);
}
