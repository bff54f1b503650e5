//! Tests the schema of mappings, and that the mappings in `etl-mappings` load.

use std::path::Path;

use serde_json::Value;
use webfill_mapping::{MappingSet, mapping_file_schema};

/// Checks that every object schema with a closed set of keys describes all keys that it requires.
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
    let schema = mapping_file_schema();
    check_objects(&schema, "");
    let text = schema.to_string();
    for reference in text.split("#/$defs/").skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        assert!(schema["$defs"].get(name).is_some(), "{name}");
    }
}

#[test]
fn all_shipped_mappings_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etl-mappings");
    let set = MappingSet::load_dir(&folder).unwrap_or_else(|errors| panic!("{errors}"));
    let names: Vec<&str> = set.indexes().map(|index| set.name(index)).collect();
    assert!(names.contains(&"gravatar"), "{names:?}");
}
