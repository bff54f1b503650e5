//! Generates the JSON Schema of mapping files (draft 2020-12) from the [catalogue](crate::catalogue). Editors use it
//! for completion and checks.

use serde_json::{Map, Value, json};

use crate::catalogue;
use crate::entry::{Entry, Kind, Parameter, Presence};
use crate::keys::{
    FIELD_KEYS, FIELD_NAME, MAPPING_KEYS, MAPPING_NAME, STEP_KEYS, URL_PARSER_KEYS,
    URL_PATTERN_KEYS,
};
use crate::mapping::PageLane;
use crate::reader::Key;
use crate::request_headers::REQUEST_HEADERS;
use crate::rows::{ORIGINS, ROW_FIELD_KEYS, ROW_KEYS};
use crate::url_pattern::KINDS;

/// The JSON Schema of a mapping file.
pub fn mapping_file_schema() -> Value {
    let mapping = schema_reference("mapping");
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webfill mapping",
        "description": "The pages of a kind, the links to follow on them, and the fields to extract.",
        "oneOf": [mapping, {"type": "array", "items": mapping}],
        "$defs": definitions(),
    })
}

/// The JSON Schema of a golden case, which is a test of a mapping: the URL of a page, and the expected result.
pub fn case_schema() -> Value {
    let link = json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webfill golden case",
        "description": "Expected results of a mapping on the page beside this file. Keys that are left out are not compared.",
        "type": "object",
        "properties": {
            "$schema": text_schema("For editors."),
            "url": text_schema("The page's URL."),
            "content_type": text_schema("The page's Content-Type, if known."),
            "mapping": {
                "type": ["string", "null"],
                "description": "The mapping that matches the URL; null if none does.",
            },
            "fields": {
                "type": "object",
                "description": "The values of the fields. Fields without a value are left out.",
            },
            "rows": {
                "type": "array",
                "description": "The rows, for each rule of the mapping in its order.",
                "items": {
                    "type": "object",
                    "properties": {
                        "dataset": text_schema("The dataset of the rule."),
                        "rows": {
                            "type": "array",
                            "items": {"type": "object"},
                            "description": "The rows in the order of the page, each with all of its fields. Missing values are null, and so are those that come from the record of the page.",
                        },
                    },
                    "required": ["dataset", "rows"],
                    "additionalProperties": false,
                },
            },
            "links": {
                "type": "array",
                "items": link,
                "description": "The links that url_parsers select, absolute and canonical.",
            },
        },
        "required": ["url"],
        "additionalProperties": false,
    })
}

fn definitions() -> Value {
    let chain = json!({
        "type": "array",
        "minItems": 1,
        "items": schema_reference("processor"),
        "description": "Processors. The first one gets the page, and each further one the output of the one before it.",
    });
    json!({
        "mapping": mapping_schema(),
        "url_pattern": url_pattern_schema(),
        "url_parser": object_schema(URL_PARSER_KEYS, |key| match key {
            "processors" => schema_reference("chain"),
            _ => text_schema("A description of these links, for people."),
        }),
        "field": field_schema(),
        "rows": rows_schema(),
        "row_field": row_field_schema(),
        "chain": chain,
        "processor": processor_schema(),
    })
}

fn schema_reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn text_schema(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// The schema of an object that has only these keys.
fn object_schema(keys: &[Key], schema_of: impl Fn(&str) -> Value) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| (key.name.to_owned(), schema_of(key.name)))
        .collect();
    let required = keys.iter().filter(|key| key.required).map(|key| key.name);
    json!({
        "type": "object",
        "properties": properties,
        "required": required.collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

fn mapping_schema() -> Value {
    object_schema(MAPPING_KEYS, |key| match key {
        "name" => json!({
            "type": "string",
            "pattern": MAPPING_NAME,
            "maxLength": 100,
            "description": "The mapping's unique name in commands and logs.",
        }),
        "lane" => json!({
            "enum": PageLane::NAMES.map(|(name, _)| name),
            "description": "`browser`: read the pages after their scripts have run, even in a crawl of the lane `http`. `http`: never run scripts. If left out, a page that is empty without its scripts is tried in a browser.",
        }),
        "url_patterns" => json!({
            "type": "array",
            "minItems": 1,
            "items": schema_reference("url_pattern"),
            "description": "The mapping applies to pages whose URL matches one of these patterns.",
        }),
        "headers" => headers_schema(),
        "match" => json!({
            "type": "array",
            "items": {"type": "string", "pattern": FIELD_NAME},
            "description": "Fields that identify the record of a page. The page fills a record only if these fields agree with its known values.",
        }),
        "url_parsers" => json!({
            "type": "array",
            "items": schema_reference("url_parser"),
            "description": "The links to follow. The URLs that a chain yields are made absolute.",
        }),
        "fields" => json!({
            "type": "array",
            "items": schema_reference("field"),
            "description": "The fields to extract.",
        }),
        "rows" => json!({
            "oneOf": [schema_reference("rows"), {"type": "array", "items": schema_reference("rows")}],
            "description": "Rows of the pages. Each row becomes a record of a dataset.",
        }),
        "$schema" => text_schema("For editors."),
        _ => text_schema("A description of the mapping, for people."),
    })
}

fn headers_schema() -> Value {
    let mut schema = object_schema(
        REQUEST_HEADERS,
        |_| json!({"type": "string", "minLength": 1}),
    );
    schema["description"] =
        json!("Headers to send with requests for these pages, such as Accept-Language.");
    schema
}

fn url_pattern_schema() -> Value {
    let kinds = KINDS
        .iter()
        .map(|(name, meaning)| json!({"const": name, "description": meaning}));
    let kinds: Vec<Value> = kinds.collect();
    object_schema(URL_PATTERN_KEYS, |key| match key {
        "type" => json!({"oneOf": kinds, "description": "The type of the pattern."}),
        "pattern" => text_schema("The pattern, compared with the canonical URL."),
        _ => text_schema("A description of these pages, for people."),
    })
}

fn field_schema() -> Value {
    let mut schema = object_schema(FIELD_KEYS, |key| match key {
        "name" => json!({
            "type": "string",
            "pattern": FIELD_NAME,
            "maxLength": 100,
            "description": "The field's name, unique in the mapping.",
        }),
        "continues" => json!({
            "type": "boolean",
            "default": false,
            "description": "true: the list continues on further pages of the mapping, found by its url_parsers. A record gets the values of all of them.",
        }),
        "keep_empty" => json!({
            "type": "boolean",
            "default": false,
            "description": "true: an empty value of the list keeps its position, as null. To read several lists side by side, use `rows`.",
        }),
        "multiple" => json!({
            "type": "boolean",
            "default": false,
            "description": "true: take all values, as a list; otherwise the first.",
        }),
        "processors" => schema_reference("chain"),
        "alternatives" => json!({
            "type": "array",
            "minItems": 1,
            "items": schema_reference("chain"),
            "description": "Several chains. The first one that yields a value is used.",
        }),
        _ => text_schema("A description of the field, for people."),
    });
    schema["oneOf"] = json!([{"required": ["processors"]}, {"required": ["alternatives"]}]);
    schema
}

fn rows_schema() -> Value {
    object_schema(ROW_KEYS, |key| match key {
        "dataset" => json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "The dataset of the rows.",
        }),
        "select" => json!({
            "$ref": "#/$defs/chain",
            "description": "Yields the rows: elements, the rows of a table, or JSON objects.",
        }),
        "fields" => json!({
            "type": "array",
            "minItems": 1,
            "items": schema_reference("row_field"),
            "description": "The fields of each row. A missing value is null.",
        }),
        "key" => json!({
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "pattern": FIELD_NAME},
            "description": "The fields that together identify a row. Rows with the same key are the same record.",
        }),
        "links" => json!({
            "type": "array",
            "minItems": 1,
            "items": schema_reference("url_parser"),
            "description": "Links from a row to pages that may fill its record. The first processor gets the row, and the URLs that a chain yields are made absolute.",
        }),
        "want" => json!({
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "pattern": FIELD_NAME},
            "description": "The fields of the row's record for these pages to fill if the row has no value for them.",
        }),
        "complete" => json!({
            "type": "boolean",
            "default": false,
            "description": "true: once all pages of a list are read, rows that it no longer has are marked as gone.",
        }),
        _ => text_schema("A description of these rows, for people."),
    })
}

fn row_field_schema() -> Value {
    let mut schema = object_schema(ROW_FIELD_KEYS, |key| match key {
        "name" => json!({
            "type": "string",
            "pattern": FIELD_NAME,
            "maxLength": 100,
            "description": "The field's name, unique in the row.",
        }),
        "from" => {
            let names =
                ORIGINS.map(|(name, meaning)| json!({"const": name, "description": meaning}));
            json!({"oneOf": names, "default": "row", "description": "The source of the field."})
        }
        "record_field" => json!({
            "type": "string",
            "description": "With `from` `record`: the field of the record, if its name differs from this one; `_id` is its id.",
        }),
        "multiple" => json!({
            "type": "boolean",
            "default": false,
            "description": "true: take all values, as a list; otherwise the first.",
        }),
        "processors" => json!({
            "$ref": "#/$defs/chain",
            "description": "Processors. The first one gets the row.",
        }),
        "alternatives" => json!({
            "type": "array",
            "minItems": 1,
            "items": schema_reference("chain"),
            "description": "Several chains. The first one that yields a value is used.",
        }),
        _ => text_schema("A description of the field, for people."),
    });
    schema["oneOf"] = json!([
        {"required": ["processors"]},
        {"required": ["alternatives"]},
        {"required": ["from"], "properties": {"from": {"const": "record"}, "processors": false, "alternatives": false}},
    ]);
    schema
}

/// The schema of a processor: `type` decides which parameters are allowed.
fn processor_schema() -> Value {
    let types = catalogue::ALL
        .iter()
        .map(|entry| json!({"const": entry.name, "description": entry.summary}));
    let types: Vec<Value> = types.collect();
    let mut schema = object_schema(STEP_KEYS, |key| match key {
        "type" => {
            json!({"oneOf": types, "description": "A description of the processor, for people."})
        }
        _ => json!({"type": "object"}),
    });
    schema["allOf"] = catalogue::ALL
        .iter()
        .map(|entry| parameters_schema(entry))
        .collect();
    schema
}

fn parameters_schema(entry: &Entry) -> Value {
    let properties: Map<String, Value> = entry
        .parameters
        .iter()
        .map(|parameter| (parameter.name.to_owned(), parameter_schema(parameter)))
        .collect();
    let required: Vec<&str> = entry
        .parameters
        .iter()
        .filter(|parameter| matches!(parameter.presence, Presence::Required))
        .map(|parameter| parameter.name)
        .collect();
    let mut then = json!({
        "properties": {
            "parameters": {
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }
        }
    });
    if !required.is_empty() {
        then["required"] = json!(["parameters"]);
    }
    json!({
        "if": {"properties": {"type": {"const": entry.name}}, "required": ["type"]},
        "then": then,
    })
}

fn parameter_schema(parameter: &Parameter) -> Value {
    let mut schema = match parameter.kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Integer(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::TextList => json!({"type": "array", "items": {"type": "string"}}),
        Kind::TextTable => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::Choice(choices) => json!({"enum": choices}),
        Kind::Group => json!({"type": ["string", "integer"], "minimum": 0}),
    };
    schema["description"] = json!(to_sentence(parameter.meaning));
    match parameter.presence {
        Presence::Text(default) => schema["default"] = json!(default),
        Presence::Boolean(default) => schema["default"] = json!(default),
        Presence::Required | Presence::Optional => {}
    }
    schema
}

fn to_sentence(meaning: &str) -> String {
    let mut characters = meaning.chars();
    match characters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), characters.as_str()),
        None => String::new(),
    }
}
