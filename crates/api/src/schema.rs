//! The JSON Schema of a crawl request, made from the table of keys that requests are checked with.

use serde_json::{Map, Value, json};

use crate::crawl_request::KEYS;
use crate::rule::Key;

/// Makes the JSON Schema (draft 2020-12) of a crawl request from the table of its keys.
pub fn crawl_request_schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webfill crawl request",
        "description": "One URL to crawl, with the names of Scrapy Cluster 1.0. Beyond this \
                        schema, the URL, the domains and the patterns are checked, too, and \
                        `expires` must be in the future. Null counts as if the key were left out.",
    });
    add_members(&mut schema, object_schema(KEYS));
    for key in KEYS.iter().filter(|key| !key.required) {
        allow_null(&mut schema["properties"][key.name]);
    }
    schema
}

/// The schema of an object with these keys and no others.
pub(crate) fn object_schema(keys: &[Key]) -> Value {
    let described = |key: &Key| {
        let mut schema = key.rule.schema();
        schema["description"] = key.meaning.into();
        (key.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = keys.iter().map(described).collect();
    let required = keys.iter().filter(|key| key.required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Adds the members of one object to another.
pub(crate) fn add_members(to: &mut Value, more: Value) {
    if let (Some(to), Value::Object(more)) = (to.as_object_mut(), more) {
        to.extend(more);
    }
}

fn allow_null(schema: &mut Value) {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
}
