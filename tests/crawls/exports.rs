//! Tests exports: their content, the programs that read them, and their use as seeds.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};
use webfill_test_needs::needs;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// A workplace where three profiles were crawled.
fn crawl_three_profiles() -> Workplace {
    let web = Web::start();
    let site = web.site("x.example");
    site.serve(
        "/1",
        page("One")
            .field("name", "Ada, \"the\" first")
            .field("location", "=1+1"),
    );
    site.serve("/2", page("Two").field("name", "Zoë\u{1F600}"));
    site.serve("/3", page("Three").status(404));
    let work = Workplace::new();
    let missing = json!({"name": null, "location": null});
    let records: Vec<Value> = (1..=3)
        .map(|n| json!({"id": n.to_string(), "urls": [site.url(&format!("/{n}"))], "fields": missing}))
        .collect();
    let seeds = work.write_lines("seeds.jsonl", &records);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    work
}

fn run_export(work: &Workplace, args: &[&str]) -> Finished {
    let store = format!("sqlite:{}", work.path("store.db").display());
    Run::new(["export", "--store", &store])
        .args(args)
        .finish()
        .expect_code(0)
}

#[test]
fn export_writes_pages_and_records_as_json_lines() {
    let work = crawl_three_profiles();
    let lines = |what: &str| -> Vec<Value> {
        let run = run_export(&work, &[what, "--format", "jsonl"]);
        run.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("a JSON value per line"))
            .collect()
    };
    let records = lines("records");
    assert_eq!(records.len(), 3);
    let first = records
        .iter()
        .find(|record| record["record_id"] == "1")
        .expect("record 1");
    assert_eq!(first["fields"]["name"], "Ada, \"the\" first");
    let pages = lines("pages");
    assert_eq!(pages.len(), 3);
    let lost = pages
        .iter()
        .find(|page| page["url"] == "http://x.example/3")
        .expect("page 3");
    assert_eq!(
        (&lost["outcome"], &lost["status_code"]),
        (&json!("http_error"), &json!(404))
    );
}

#[test]
fn export_writes_csv_for_programs_or_for_spreadsheets() {
    let work = crawl_three_profiles();
    let run = run_export(&work, &["records", "--format", "csv"]);
    let mut lines = run.stdout.lines();
    let header = lines.next().expect("a header");
    assert!(
        header.starts_with("id,") && header.contains("name") && header.contains("location"),
        "{header}"
    );
    assert_eq!(run.stdout.lines().count(), 4);
    assert!(
        run.stdout.contains("\"Ada, \"\"the\"\" first\""),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("Zoë\u{1F600}"), "{}", run.stdout);
    assert!(run.stdout.contains(",=1+1"), "as it is: {}", run.stdout);
    let run = run_export(&work, &["records", "--format", "csv", "--spreadsheet"]);
    assert!(
        run.stdout.contains(",'=1+1"),
        "a formula is disarmed: {}",
        run.stdout
    );
}

#[test]
fn an_export_of_nothing_says_so() {
    let work = crawl_three_profiles();
    for (args, reported) in [
        (
            ["records", "--dataset", "nosuch"],
            "no records of the dataset `nosuch`",
        ),
        (
            ["pages", "--crawl", "nosuch"],
            "no pages of the crawl `nosuch`",
        ),
    ] {
        let run = run_export(&work, &args);
        assert_eq!(run.stdout, "");
        assert!(run.stderr.contains(reported), "{}", run.stderr);
    }
    assert_eq!(run_export(&work, &["pages"]).stderr, "");
}

#[test]
fn export_of_a_store_that_is_not_there_makes_none() {
    let work = Workplace::new();
    let store = format!("sqlite:{}", work.path("none.db").display());
    let run = Run::new(["export", "--store", &store, "pages", "--format", "jsonl"]).finish();
    assert!(matches!(run.status.code(), Some(1 | 2)), "{:?}", run.status);
    assert!(run.one_sentence().contains("none.db"), "{}", run.stderr);
    assert!(!work.path("none.db").exists());
}

/// Crawls the seeds that were exported from an earlier crawl. The web now has one more page.
fn crawl_again(seeds: &Path) -> Workplace {
    let web = Web::start();
    let site = web.site("x.example");
    site.serve("/3", page("Three").field("name", "Grace"));
    let work = Workplace::new();
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .args(["--dataset", "people"])
        .finish()
        .expect_code(0);
    let fetched = site.visits().for_path("/3").len() + site.visits().for_path("/2").len();
    assert_eq!(fetched, 2, "what misses a field is fetched");
    assert_eq!(
        site.visits().for_path("/1").len(),
        0,
        "nothing is missing there"
    );
    work
}

fn assert_is_complete(work: &Workplace) {
    let stored = work.stored();
    let first = stored.record("1");
    let expected = json!({"name": "Ada, \"the\" first", "location": "=1+1"});
    assert_eq!(json!(first.fields), expected);
    assert!(first.resolved, "{first:?}");
    let second = stored.record("2");
    assert_eq!(second.fields["name"], "Zoë\u{1F600}");
    assert_eq!(second.missing, ["location"]);
    let third = stored.record("3");
    assert_eq!(third.fields["name"], "Grace");
    assert_eq!(third.sources["name"]["url"], "http://x.example/3");
}

#[test]
fn exported_records_are_seeds_again() {
    let work = crawl_three_profiles();
    for (name, args) in [
        ("again.jsonl", &["records"][..]),
        (
            "again.csv",
            &["records", "--format", "csv", "--sources"][..],
        ),
    ] {
        let seeds = work.write(name, run_export(&work, args).stdout);
        assert_is_complete(&crawl_again(&seeds));
    }
    let without = work.write(
        "none.csv",
        run_export(&work, &["records", "--format", "csv"]).stdout,
    );
    let web = Web::start();
    let refused = Workplace::new()
        .crawl(&web)
        .arg("--seeds")
        .arg(without)
        .finish();
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("--sources"), "{}", refused.stderr);
}

#[test]
fn exported_pages_are_seeds_again() {
    let work = crawl_three_profiles();
    for (name, args) in [
        ("again.jsonl", &["pages"][..]),
        ("again.csv", &["pages", "--format", "csv"][..]),
    ] {
        let seeds = work.write(name, run_export(&work, args).stdout);
        let web = Web::start();
        let site = web.site("x.example");
        let again = Workplace::new();
        again
            .crawl(&web)
            .arg("--seeds")
            .arg(&seeds)
            .finish()
            .expect_code(0);
        for path in ["/1", "/2", "/3"] {
            assert_eq!(site.visits().for_path(path).len(), 1, "{name} {path}");
        }
        assert_eq!(again.stored().records().len(), 0, "pages are no records");
    }
}

/// The contents of a Parquet file as pyarrow reads them: the types of the columns, and the rows.
struct Parquet {
    types: Map<String, Value>,
    rows: Vec<Value>,
}

fn export_parquet(work: &Workplace, args: &[&str]) -> Parquet {
    let file = work.path("export.parquet");
    let output = file.to_str().expect("a path of ours");
    let args = [args, &["--format", "parquet", "--output", output]].concat();
    run_export(work, &args);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = Command::new(tests.join("../.cache/parquet-tools/venv/bin/python"))
        .arg(tests.join("parquet/read.py"))
        .arg(&file)
        .output()
        .expect("the tools are installed");
    let reported = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{reported}");
    let text = String::from_utf8(read.stdout).expect("JSON");
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON value per line"));
    let Some(Value::Object(types)) = lines.next() else {
        panic!("no types: {text}");
    };
    let sizes = lines.next().expect("sizes");
    let rows: Vec<Value> = lines.collect();
    assert_eq!(sizes["rows"], rows.len());
    Parquet { types, rows }
}

fn export_json_lines(work: &Workplace, what: &str) -> Vec<Value> {
    let lines = run_export(work, &[what]).stdout;
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON value per line"))
        .collect()
}

#[needs(parquet_tools)]
#[test]
fn a_parquet_file_of_pages_has_their_types() {
    let work = crawl_three_profiles();
    let file = export_parquet(&work, &["pages"]);
    for (column, kind) in [
        ("url", "string"),
        ("depth", "int64"),
        ("status_code", "int64"),
        ("links", "list<element: string not null>"),
        ("started_at", "timestamp[ms, tz=UTC]"),
    ] {
        assert_eq!(file.types[column], kind, "{column}: {:?}", file.types);
    }
    let pages = export_json_lines(&work, "pages");
    assert_eq!(file.rows.len(), pages.len());
    for (row, page) in file.rows.iter().zip(&pages) {
        for column in [
            "_id",
            "url",
            "status_code",
            "started_at",
            "links",
            "records",
            "bytes",
            "mapping",
        ] {
            assert_eq!(row[column], page[column], "{column}");
        }
        for column in ["fields", "tries", "attrs"] {
            let nested = row[column].as_str().map(serde_json::from_str::<Value>);
            let nested = nested.transpose().expect("JSON").unwrap_or_default();
            assert_eq!(nested, page[column], "{column}");
        }
    }
}

#[needs(parquet_tools)]
#[test]
fn a_parquet_file_of_records_has_the_types_of_their_fields() {
    let web = Web::start();
    let site = web.site("x.example");
    site.serve("/1", page("One").field("name", "Ada"));
    let fields = [
        json!({"name": null, "age": 36, "score": 1, "alive": false, "tags": ["a", "b"], "mixed": "x", "id": "other"}),
        json!({"name": null, "age": null, "score": 1.5, "alive": true, "tags": [], "mixed": {"a": [1]}}),
    ];
    let seeds: Vec<Value> = fields
        .into_iter()
        .zip(1..)
        .map(|(fields, id)| json!({"id": id, "urls": [site.url(&format!("/{id}"))], "fields": fields}))
        .collect();
    let work = Workplace::new();
    let seeds = work.write_lines("people.jsonl", &seeds);
    work.crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);

    let file = export_parquet(&work, &["records", "--sources"]);
    let types = json!({
        "id": "string", "name": "string", "age": "int64", "score": "double", "alive": "bool",
        "tags": "list<element: string not null>", "fields.id": "string",
        "missing": "list<element: string not null>", "resolved_at": "timestamp[ms, tz=UTC]",
        "dataset": "string", "urls": "list<element: string not null>", "source.name": "string",
    });
    for (column, kind) in types.as_object().expect("an object") {
        assert_eq!(file.types[column], *kind, "{column}: {:?}", file.types);
    }
    let [first, second] = file.rows.as_slice() else {
        panic!("{:?}", file.rows);
    };
    let stored = export_json_lines(&work, "records");
    assert_eq!(first["name"], "Ada");
    assert_eq!((&first["age"], &first["score"]), (&json!(36), &json!(1.0)));
    assert_eq!(
        (&first["tags"], &second["tags"]),
        (&json!(["a", "b"]), &json!([]))
    );
    assert_eq!(
        (&first["alive"], &second["alive"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        (&first["mixed"], &second["mixed"]),
        (&json!("\"x\""), &json!("{\"a\":[1]}"))
    );
    assert_eq!(first["resolved_at"], stored[0]["resolved_at"]);
    assert_eq!(first["source.name"], "http://x.example/1");
    assert_eq!(first["urls"], json!(["http://x.example/1"]));
    assert_eq!(first["fields.id"], "other");
    assert_eq!(second["age"], Value::Null);
    assert_eq!(second["missing"], stored[1]["missing"]);
    assert_eq!(second["resolved_at"], Value::Null);
}

/// Numbers as they are written in JSON, each with the digits that the output must contain.
const NUMBERS: [(&str, &str); 16] = [
    ("9007199254740993", "9007199254740993"),
    ("9223372036854775807", "9223372036854775807"),
    ("9223372036854775808", "9223372036854775808"),
    ("18446744073709551615", "18446744073709551615"),
    ("18446744073709551616", "18446744073709551616"),
    ("-9223372036854775809", "-9223372036854775809"),
    (
        "123456789012345678901234567890",
        "123456789012345678901234567890",
    ),
    ("12345678901234567.89", "12345678901234567.89"),
    ("0.1", "0.1"),
    ("1.10", "1.1"),
    ("19.99", "19.99"),
    ("1664.00", "1664.0"),
    ("-12.5", "-12.5"),
    ("0", "0"),
    ("-7", "-7"),
    ("5", "5"),
];

#[needs(parquet_tools)]
#[test]
fn no_number_of_a_table_loses_digits_on_its_way_through_the_store() {
    let web = Web::start();
    let site = web.site("x.example");
    let mut lines = String::new();
    for (id, (number, _)) in NUMBERS.iter().enumerate() {
        let url = site.url(&format!("/{id}"));
        lines += &format!(
            r#"{{"id": "{id}", "urls": ["{url}"], "fields": {{"n": {number}, "name": null}}}}"#
        );
        lines.push('\n');
    }
    let work = Workplace::new();
    let seeds = work.path("numbers.jsonl");
    std::fs::write(&seeds, lines).expect("a file of ours");
    work.crawl(&web).arg("--seeds").arg(seeds).finish();
    let digits = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };

    let records = export_json_lines(&work, "records");
    let rows = export_parquet(&work, &["records"]).rows;
    let csv = run_export(&work, &["records", "--format", "csv"]).stdout;
    for (id, (number, expected)) in NUMBERS.iter().enumerate() {
        let id = id.to_string();
        let of = |rows: &[Value], key: &str| rows.iter().find(|row| row[key] == id).cloned();
        let record = of(&records, "record_id").expect("the record");
        assert_eq!(
            digits(&record["fields"]["n"]),
            *expected,
            "{number} as JSON"
        );
        let row = of(&rows, "id").expect("the row");
        assert_eq!(digits(&row["n"]), *expected, "{number} in Parquet");
        let line = csv
            .lines()
            .find(|line| line.starts_with(&format!("{id},")))
            .expect("the line");
        let plain = expected.strip_suffix(".0").unwrap_or(expected);
        assert!(
            line.split(',')
                .any(|cell| cell == *expected || cell == plain),
            "{number} in CSV: {line}"
        );
    }
}
