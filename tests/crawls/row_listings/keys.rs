//! Tests rows with the same key, and fields that are named like other columns.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::{
    crawl_command, export_items, list_page, mapping_with_rule, rows_rule, sqlite_uri, stored_rows,
};

/// For each case, its name, the rows of a page, the rows that are stored, and the number of rows reported as lost.
fn key_cases() -> Vec<(&'static str, Vec<Value>, Value, u64)> {
    let row = |id: &str, price: &str| json!({"id": id, "price": price});
    vec![
        (
            "/other",
            vec![row("a", "1"), row("b", "1")],
            json!(["a 1", "b 1"]),
            0,
        ),
        (
            "/equal",
            vec![row("c", "1"), row("c", "1")],
            json!(["c 1"]),
            0,
        ),
        (
            "/space",
            vec![row("d", "1"), row(" d ", " 1")],
            json!(["d 1"]),
            0,
        ),
        (
            "/price",
            vec![row("e", "1"), row("e", "2"), row("e", "2")],
            json!(["e 1"]),
            2,
        ),
        (
            "/lacks",
            vec![json!({"id": "f"}), row("f", "1")],
            json!(["f null"]),
            1,
        ),
    ]
}

fn assert_lost_rows_are_reported(work: &Workplace, store: &str) {
    let web = Web::start();
    let site = web.site(super::HOST);
    work.write_json(
        "mappings/profile.json",
        &mapping_with_rule(&rows_rule(&["id", "price"], &["id"])),
    );
    for (path, rows, ..) in key_cases() {
        site.serve(path, list_page(&rows, None));
    }
    let paths: Vec<&str> = key_cases().iter().map(|case| case.0).collect();
    crawl_command(work, &web, store, &paths)
        .finish()
        .expect_code(0);
    let rows = stored_rows(store, &[]);
    let logs = work.logs();
    for (path, _, expected, lost) in key_cases() {
        let of_page = rows
            .iter()
            .filter(|row| row["row"]["url"].as_str().unwrap().ends_with(path));
        let reported = of_page.map(|row| {
            let [id, price] = ["id", "price"].map(|name| row["fields"][name].clone());
            json!(format!(
                "{} {}",
                id.as_str().unwrap(),
                price.as_str().unwrap_or("null")
            ))
        });
        assert_eq!(Value::from_iter(reported), expected, "{path}");
        let said = logs.values().flatten().filter(|line| {
            line["event"] == "rows_with_same_key" && line["url"].as_str().unwrap().ends_with(path)
        });
        let said: u64 = said.map(|line| line["rows"].as_u64().unwrap()).sum();
        assert_eq!(said, lost, "{path}");
    }
}

#[test]
fn rows_lost_to_another_one_with_their_key_are_reported() {
    let work = Workplace::new();
    assert_lost_rows_are_reported(&work, &sqlite_uri(&work));
}

#[needs(mongod)]
#[test]
fn rows_lost_to_another_one_with_their_key_are_reported_in_mongodb() {
    let (work, database) = (Workplace::new(), fresh_database());
    assert_lost_rows_are_reported(&work, database.uri());
}

/// Names of fields that could be confused with columns or members of records, rows and sources, because these have the
/// same names.
const NAMES: [&str; 14] = [
    "at",
    "dataset",
    "fields",
    "id",
    "mapping",
    "missing",
    "parent",
    "position",
    "record_id",
    "resolved_at",
    "row",
    "since",
    "url",
    "urls",
];

fn row_of_names() -> Value {
    let value = |name: &&str| ((*name).to_owned(), json!(format!("value of {name}")));
    Value::Object(NAMES.iter().map(value).collect())
}

fn assert_every_field_name_works(work: &Workplace, store: &str) {
    let web = Web::start();
    let file = work.write_json(
        "mappings/profile.json",
        &mapping_with_rule(&rows_rule(&NAMES, &["id"])),
    );
    let html = list_page(&[row_of_names()], None);
    web.site(super::HOST).serve("/list", html);
    crawl_command(work, &web, store, &["/list"])
        .finish()
        .expect_code(0);
    let rows = stored_rows(store, &["--with-parent"]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["fields"], row_of_names());
    assert_eq!(rows[0]["row"]["position"], 0);
    assert_eq!(rows[0]["record_id"], "value of id");
    let csv = export_items(store, &["--format", "csv", "--sources", "--with-parent"]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (heads, cells) = (lines.next().unwrap(), lines.next().unwrap());
    let mut sorted = heads.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), heads.len(), "{heads:?}");
    for name in NAMES {
        let is_of = |head: &&str| *head == name || *head == format!("fields.{name}");
        let columns = heads.iter().zip(&cells).filter(|(head, _)| is_of(head));
        let wanted = format!("value of {name}");
        let found = columns.filter(|(_, cell)| **cell == wanted).count();
        assert!(found > 0, "{name}: {csv}");
    }
    let parquet = work.path("rows.parquet").display().to_string();
    export_items(
        store,
        &[
            "--format",
            "parquet",
            "--sources",
            "--with-parent",
            "--output",
            &parquet,
        ],
    );
    let saved = work.write("page.html", list_text());
    let test = |format: &str| {
        let test = Run::new(["mapping", "test"]).arg(&file).arg(&saved);
        let url = format!("http://{}/list", super::HOST);
        test.args(["--url", &url, "--format", format])
            .finish()
            .expect_code(0)
            .stdout
    };
    let answer: Value = serde_json::from_str(&test("json")).unwrap();
    assert_eq!(answer["rows"][0]["rows"], json!([row_of_names()]));
    let table = test("text");
    let heads = table
        .lines()
        .find(|line| line.contains("position"))
        .unwrap();
    let rows = heads
        .split_whitespace()
        .filter(|head| *head == "row")
        .count();
    assert!(rows <= 1, "{table}");
}

fn list_text() -> String {
    let names = NAMES.map(|name| format!("<b class=\"{name}\">value of {name}</b>"));
    format!("<ul><li class=\"item\">{}</li></ul>", names.concat())
}

#[test]
fn every_field_name_of_rows_works() {
    let work = Workplace::new();
    assert_every_field_name_works(&work, &sqlite_uri(&work));
}

#[needs(mongod)]
#[test]
fn every_field_name_of_rows_works_in_mongodb() {
    let (work, database) = (Workplace::new(), fresh_database());
    assert_every_field_name_works(&work, database.uri());
}
