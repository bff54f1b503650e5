//! The JSON Schema of a crawl request, made from the table of keys by which requests are checked.

use serde_json::{Map, Value, json};

use crate::crawl_request::KEYS;

/// The published schema: the file in the documentation, as text. A test compares it with
/// [`schema`], which is made from the code.
pub const SCHEMA: &str = include_str!("../../docs/crawl-request.schema.json");

/// Makes the JSON Schema (draft 2020-12) of a crawl request from the table of its keys.
pub fn schema() -> Value {
    let properties: Map<String, Value> = KEYS
        .iter()
        .map(|key| {
            let mut schema = key.rule.schema();
            if !key.required {
                allow_null(&mut schema);
            }
            schema["description"] = key.meaning.into();
            (key.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = KEYS
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webfill crawl request",
        "description": "One URL to crawl, by the names of Scrapy Cluster 1.0. What a schema cannot say: \
                        the URL, the domains and the patterns are judged, too, and `expires` is in the future. \
                        Null is as if the key were left out.",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn allow_null(schema: &mut Value) {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
}
