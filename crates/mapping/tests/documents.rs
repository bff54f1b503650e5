//! Extraction from documents (PDF, ...): their text and their metadata.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

/// An engine whose only mapping reads these fields on the host `people.example`.
fn engine(fields: Value) -> Engine {
    let mapping = json!({
        "name": "papers",
        "url_patterns": [{"type": "host", "pattern": "people.example"}],
        "fields": fields,
        "url_parsers": [],
    });
    let source = Source {
        name: "test.json".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap_or_else(|errors| panic!("{errors}"));
    Engine::new(Arc::new(set), Limits::default())
}

fn step(kind: &str, key: &str, value: &str) -> Value {
    json!({"type": kind, "parameters": { key: value }})
}

#[test]
fn a_document_has_text_and_metadata_and_no_elements() {
    let chain = |kind: &str, key: &str, value: &str| json!([step(kind, key, value)]);
    let fields = json!([
        {"name": "number", "processors": chain("regex", "pattern", "No. (\\d+)")},
        {"name": "title", "processors": chain("meta", "name", "Title")},
        {"name": "pages", "processors": chain("meta", "name", "pages")},
        {"name": "author", "processors": chain("meta", "name", "author")},
        {"name": "heading", "processors": chain("xpath", "expression", "//h1")},
    ]);
    let engine = engine(fields);
    let page = PageInput {
        url: &Url::parse("https://people.example/paper.pdf").unwrap(),
        kind: PageKind::Text,
        text: "<h1>No. 7</h1>",
    };
    let metadata = [("title", "A paper".to_owned()), ("pages", "3".to_owned())];
    let found = engine.extract_document(page, &metadata, RequestedParts::default());
    let expected = json!({"number": "7", "title": "A paper", "pages": "3"});
    assert_eq!(Value::Object(found.unwrap().fields), expected);
}

#[test]
fn a_document_without_text_yields_only_its_metadata() {
    let price = [
        step("regex", "pattern", "\\d+"),
        step("default", "value", "none"),
    ];
    let fields = json!([
        {"name": "price", "processors": price},
        {"name": "constant", "processors": [step("default", "value", "shop")]},
        {"name": "title", "processors": [step("meta", "name", "title")]},
    ]);
    let engine = engine(fields);
    let page = PageInput {
        url: &Url::parse("https://people.example/scan.pdf").unwrap(),
        kind: PageKind::Text,
        text: "",
    };
    let metadata = [("title", "A scan".to_owned())];
    let found = engine.extract_document(page, &metadata, RequestedParts::default());
    let expected = json!({"title": "A scan"});
    assert_eq!(Value::Object(found.unwrap().fields), expected);
}
