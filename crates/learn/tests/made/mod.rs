//! Pages generated for the tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use webfill_learn::{Learned, Limits, Page, Task};
use webfill_mapping::{Engine, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

pub const NAMES: [&str; 6] = ["Ada", "Mary", "Grace", "Emmy", "Hedy", "Rosa"];

pub fn page(path: &str, text: String, known: &[(&str, &[&str])]) -> Page {
    let known = known.iter().map(|(field, values)| {
        (
            (*field).to_owned(),
            values.iter().map(|value| (*value).to_owned()).collect(),
        )
    });
    Page {
        url: Url::parse(&format!("https://people.example/{path}")).unwrap(),
        kind: PageKind::Html,
        text,
        record: None,
        known: known.collect(),
        said: BTreeMap::new(),
    }
}

pub fn task() -> Task {
    Task {
        name: "people".into(),
        fields: Vec::new(),
        limits: Limits::default(),
    }
}

pub fn html(number: usize) -> String {
    let name = NAMES[number];
    format!(
        "<title>{name} - People</title><h1>{name} L</h1><p>Welcome</p><table>\
         <tr><th>Born:</th><td>{}</td></tr><tr><th>Paid:</th><td>${},500.00</td></tr></table>\
         <p class=note>Lives in town {number}, happily</p>\
         <ul class=works><li>Work {number}a</li><li>Work {number}b</li></ul>",
        1800 + number,
        number + 1
    )
}

pub fn read(mapping: &Value, page: &Page) -> serde_json::Map<String, Value> {
    let source = Source {
        name: "learned".into(),
        text: mapping.to_string(),
    };
    let set = Arc::new(MappingSet::from_sources(vec![source]).unwrap());
    let engine = Engine::new(set, webfill_mapping::Limits::default());
    let input = PageInput {
        url: &page.url,
        kind: page.kind,
        text: &page.text,
    };
    engine
        .extract(input, RequestedParts::default())
        .unwrap()
        .fields
}

/// Reads the last page with the mapping that was learned from the others.
pub fn read_last(learned: &Learned) -> serde_json::Map<String, Value> {
    assert_eq!(learned.mappings.len(), 1, "{learned:?}");
    read(
        &learned.mappings[0].mapping,
        &page("person/5", html(5), &[]),
    )
}
