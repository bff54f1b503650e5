//! Compares `etl-mappings/schema.json` and `etl-mappings/golden/case.schema.json` with the schemas that the code
//! generates. `UPDATE_COMMITTED=1 cargo nextest run -p webfill-mapping committed` regenerates them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use webfill_mapping::{MappingSet, case_schema, schema};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etl-mappings")
}

fn compare(path: &Path, wanted: &str) {
    if std::env::var_os("UPDATE_COMMITTED").is_some() {
        fs::write(path, wanted).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap();
    let differs = committed
        .lines()
        .zip(wanted.lines())
        .position(|(left, right)| left != right);
    let line = differs.unwrap_or(committed.lines().count()) + 1;
    assert!(
        committed == wanted,
        "{} is not what the code makes, from line {line} on; run with UPDATE_COMMITTED=1",
        path.display()
    );
}

#[test]
fn the_committed_schema_is_what_the_code_makes() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    compare(&folder().join("schema.json"), &text);
}

#[test]
fn the_committed_schema_of_golden_cases_is_what_the_code_makes() {
    let text = serde_json::to_string_pretty(&case_schema()).unwrap() + "\n";
    compare(&folder().join("golden/case.schema.json"), &text);
}

/// Checks that every object schema with named keys refuses other keys, and describes all keys that it requires.
fn check_objects(schema: &Value, path: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties")
                && members.contains_key("additionalProperties")
            {
                let required = members["required"].as_array().expect("required is a list");
                let known = |key: &Value| properties.contains_key(key.as_str().unwrap_or_default());
                assert!(required.iter().all(known), "{path}");
            }
            members
                .iter()
                .for_each(|(key, value)| check_objects(value, &format!("{path}/{key}")));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| check_objects(entry, path)),
        _ => {}
    }
}

#[test]
fn the_schema_is_consistent_and_its_references_lead_somewhere() {
    let schema = schema();
    check_objects(&schema, "");
    let text = schema.to_string();
    for reference in text.split("#/$defs/").skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        assert!(schema["$defs"].get(name).is_some(), "{name}");
    }
}

#[test]
fn all_shipped_mappings_load() {
    let set = MappingSet::load_dir(&folder()).unwrap_or_else(|errors| panic!("{errors}"));
    let names: Vec<&str> = set.indexes().map(|index| set.name(index)).collect();
    assert!(names.contains(&"gravatar"), "{names:?}");
}
