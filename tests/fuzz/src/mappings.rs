//! Fuzzes mapping files. The first byte selects whether the rest is a whole file or one expression in a file.

use serde_json::{Value, json};
use webfill_mapping::{MappingSet, Source};

use crate::pages::extract;

const PAGE: &str = "<html><head><title>T</title><meta property=og:title content=x></head><body>\
    <h1 id=a class='b c'>Ada <b>Lovelace</b></h1><ul><li><a href=/1>one</a><li><a href='/2?a=b'>2</a>\
    </ul><table><tr><td>1815-12-10<td>36.5</table>\
    <script type=application/ld+json>{\"@type\":\"Person\",\"name\":\"Ada\"}</script>";

pub(crate) fn run(input: &[u8]) {
    let (kind, text) = crate::split_choice(input);
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let processor = |kind: &str, name: &str| json!([{"type": kind, "parameters": {name: text}}]);
    let text = match kind % 8 {
        0 => text.to_owned(),
        1 => mapping_with_chain(processor("xpath", "expression")),
        2 => mapping_with_chain(processor("css", "selector")),
        3 => mapping_with_chain(processor("regex", "pattern")),
        4 => mapping_with_chain(processor("jsonpath", "expression")),
        5 => mapping_with_chain(json!([{"type": "date", "parameters": {"formats": [text]}}])),
        6 => mapping_with_pattern("regex", text),
        _ => mapping_with_pattern("glob", text),
    };
    let source = Source {
        name: "m.json".into(),
        text,
    };
    match MappingSet::from_sources(vec![source]) {
        Ok(set) => extract(set, webfill_mapping::PageKind::Html, PAGE),
        Err(faults) => assert!(!faults.to_string().is_empty(), "a refusal says why"),
    }
}

fn mapping_with_chain(chain: Value) -> String {
    json!({
        "name": "m",
        "url_patterns": [{"type": "host", "pattern": "example.com"}],
        "fields": [{"name": "f", "multiple": true, "processors": chain}],
    })
    .to_string()
}

fn mapping_with_pattern(kind: &str, pattern: &str) -> String {
    json!({
        "name": "m",
        "url_patterns": [{"type": kind, "pattern": pattern}],
        "fields": [{"name": "f", "processors": [{"type": "xpath", "parameters": {"expression": "//h1"}}]}],
    })
    .to_string()
}
