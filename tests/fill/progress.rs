//! Tests the interface of a run for other programs: `--progress json`, and the end of a run when its parent process has
//! died.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::Value;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{Oddities, fill_command, gap_count, serve_books, table_with_gaps};

fn read_schema() -> Value {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/reference/progress.schema.json"
    );
    let text = std::fs::read_to_string(file).expect("it ships");
    serde_json::from_str(&text).expect("JSON")
}

fn object_keys(object: &Value) -> BTreeSet<&str> {
    let members = object.as_object().into_iter().flatten();
    members.map(|(key, _)| key.as_str()).collect()
}

/// Checks that a line has exactly the fields that the schema requires for its kind, each with a permitted type.
fn assert_follows(schema: &Value, line: &Value) {
    let kinds = schema["oneOf"].as_array().expect("a list");
    let is_its = |kind: &&Value| kind["properties"]["kind"]["const"] == line["kind"];
    let kind = kinds.iter().find(is_its);
    let properties = &kind.unwrap_or_else(|| panic!("no kind: {line}"))["properties"];
    assert_eq!(object_keys(properties), object_keys(line), "{line}");
    for (name, rule) in properties.as_object().expect("an object") {
        let value = &line[name];
        let type_name = match value {
            Value::Null => "null",
            Value::Number(number) if number.is_u64() => "integer",
            Value::String(_) => "string",
            Value::Object(_) => "object",
            _ => "another",
        };
        let permitted = match &rule["type"] {
            Value::String(one) => one == type_name,
            Value::Array(some) => some.iter().any(|one| one == type_name),
            _ => match rule["enum"].as_array() {
                Some(values) => values.contains(value),
                None => rule["const"] == *value,
            },
        };
        assert!(permitted, "{name} is {value}, and not {rule}");
    }
}

#[test]
fn programs_see_each_step_as_json() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let started = Instant::now();
    let run = fill_command(&work, &web).replace_flag("--progress", "json");
    let run = run.finish().expect_code(0);
    let seconds = started.elapsed().as_secs() as usize + 1;
    let read = |line: &str| -> Value { serde_json::from_str(line).expect("JSON only") };
    let lines: Vec<Value> = run.stderr.lines().map(read).collect();
    assert!(lines.len() <= 10 * seconds, "{} lines", lines.len());
    let schema = read_schema();
    for line in &lines {
        assert_follows(&schema, line);
    }
    let of_kind = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    let steps: Vec<&str> = of_kind("fill")
        .filter_map(|line| line["step"].as_str())
        .collect();
    assert!(
        steps.starts_with(&["fetch", "learn", "read", "judge", "fetch"]),
        "{steps:?}"
    );
    assert!(steps.ends_with(&["write", "done"]), "{steps:?}");
    let done = of_kind("fill").next_back().expect("the end");
    assert_eq!(done["gaps"], gap_count());
    assert_eq!(done["filled"], gap_count());
    let fetched = of_kind("crawl").next_back().expect("a crawl");
    assert_eq!(fetched["done"], fetched["total"]);
    assert_eq!(fetched["errors"], 0);
}

#[test]
fn a_run_ends_when_its_parent_has_died() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    // No process has this id, so the run must believe that its parent has already died.
    let run = fill_command(&work, &web).replace_flag("--delay", "60");
    let run = run.args(["--parent-process", "4194304"]).finish();
    assert!(!run.status.success());
    assert!(!work.path("books.filled.csv").exists());
    fill_command(&work, &web).finish().expect_code(0);
}
