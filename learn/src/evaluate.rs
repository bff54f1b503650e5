//! Runs candidates on pages, with the engine of the crawl and its bounds: many as the fields of one
//! mapping, so that a page is parsed once for all of them.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, Source, Wants};

use crate::fold::Spelling;
use crate::types::Page;

/// Candidates in one mapping.
const TOGETHER: usize = 100;

/// Values of one reading that are compared, and their bytes; a list that is longer is cut for all alike.
const MOST_VALUES: usize = 200;
const MOST_BYTES: usize = 40_000;

/// Characters of a value that are compared.
const LONGEST: usize = 2_000;

/// What a chain reads on a page: the different values, in the order of the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) values: Vec<Spelling>,
    /// Values with repetitions.
    pub(crate) count: usize,
}

/// What each chain reads on each page: `[chain][page]`.
pub(crate) fn read(chains: &[&[Value]], pages: &[&Page]) -> Vec<Vec<Reading>> {
    let mut readings = vec![Vec::with_capacity(pages.len()); chains.len()];
    for (chunk, chains) in chains.chunks(TOGETHER).enumerate() {
        let Some(engine) = engine_of(chains) else {
            // One that cannot be loaded spoils none of the others.
            for (at, chain) in chains.iter().enumerate() {
                let engine = engine_of(&[chain]);
                for page in pages {
                    let read = engine.as_ref().map(|engine| read_page(engine, 1, page));
                    let reading = read.and_then(|mut read| read.pop()).unwrap_or_default();
                    readings[chunk * TOGETHER + at].push(reading);
                }
            }
            continue;
        };
        for page in pages {
            for (at, reading) in read_page(&engine, chains.len(), page)
                .into_iter()
                .enumerate()
            {
                readings[chunk * TOGETHER + at].push(reading);
            }
        }
    }
    readings
}

fn engine_of(chains: &[&[Value]]) -> Option<Engine> {
    let cut = json!({"type": "length_limit", "parameters": {"characters": LONGEST}});
    let fields: Vec<Value> = chains
        .iter()
        .enumerate()
        .map(|(number, chain)| {
            let mut chain = chain.to_vec();
            chain.push(cut.clone());
            json!({"name": format!("c{number}"), "multiple": true, "processors": chain})
        })
        .collect();
    let mapping = json!({
        "name": "candidates",
        "url_patterns": [{"type": "regex", "pattern": "^"}],
        "fields": fields,
    });
    let source = Source {
        name: "candidates".to_owned(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).ok()?;
    Some(Engine::new(Arc::new(set), limits()))
}

/// Those of the crawl, with as much memory as a worker gives a page.
pub(crate) fn limits() -> Limits {
    Limits::within(256 << 20)
}

fn read_page(engine: &Engine, count: usize, page: &Page) -> Vec<Reading> {
    let input = PageInput {
        url: &page.url,
        kind: page.kind,
        text: &page.text,
    };
    let mapping = engine.set().indexes().next();
    let Ok(extraction) = engine.extract_as(mapping, input, Wants::default()) else {
        return vec![Reading::default(); count];
    };
    let field = |number: usize| extraction.fields.get(&format!("c{number}"));
    (0..count)
        .map(|number| field(number).map(reading).unwrap_or_default())
        .collect()
}

/// The values of a field as they are compared.
pub(crate) fn reading(value: &Value) -> Reading {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let mut reading = Reading {
        values: Vec::new(),
        count: values.len(),
    };
    let mut bytes = 0;
    for value in values.iter().take(MOST_VALUES) {
        let spelling = match value {
            Value::String(text) => Spelling::new(text),
            value => Spelling::new(&value.to_string()),
        };
        bytes += spelling.folded.len();
        if bytes > MOST_BYTES {
            break;
        }
        if !reading.values.contains(&spelling) {
            reading.values.push(spelling);
        }
    }
    reading
}
