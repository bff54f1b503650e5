//! Runs candidate extraction chains on pages, with the engine and the limits of a crawl. Many candidates run as fields
//! of one mapping, so that a page is parsed only once for all of them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, RequestedParts, Row, Source};

use crate::fold::Spelling;
use crate::types::Page;

/// The most candidates that run together as one mapping.
const TOGETHER: usize = 100;

/// The most values of one reading that are compared, and the most bytes of them together. Longer lists are truncated.
const MOST_VALUES: usize = 200;
const MOST_BYTES: usize = 40_000;

/// The most characters of a value that are compared.
const LONGEST: usize = 2_000;

/// The values that an extraction chain reads on a page: each once, in page order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) values: Vec<Spelling>,
    /// How often each of the values is read.
    pub(crate) times: Vec<usize>,
    /// The number of values, including repetitions.
    pub(crate) count: usize,
}

/// What each extraction chain reads on each page: `[chain][page]`.
pub(crate) fn read_chains(chains: &[&[Value]], pages: &[&Page]) -> Vec<Vec<Reading>> {
    let mut readings = vec![Vec::with_capacity(pages.len()); chains.len()];
    for (chunk, chains) in chains.chunks(TOGETHER).enumerate() {
        let Some(engine) = build_field_engine(chains) else {
            // Each extraction chain runs by itself, so that a chain that cannot be loaded does not affect the others.
            for (at, chain) in chains.iter().enumerate() {
                let engine = build_field_engine(&[chain]);
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

/// Runs extraction chains in each row of several pages.
pub(crate) struct RowReader<'p> {
    pub(crate) select: Vec<Value>,
    pub(crate) pages: Vec<&'p Page>,
    /// For each row, its page and its position among the rows of that page.
    pub(crate) rows: Vec<(usize, usize)>,
}

impl RowReader<'_> {
    /// What each extraction chain reads in each of these rows: `[chain][row]`.
    pub(crate) fn read(&self, chains: &[&[Value]], rows: &[usize]) -> Vec<Vec<Reading>> {
        let mut readings = Vec::with_capacity(chains.len());
        for chains in chains.chunks(TOGETHER) {
            readings.extend(self.read_together(chains, rows));
        }
        readings
    }

    fn read_together(&self, chains: &[&[Value]], rows: &[usize]) -> Vec<Vec<Reading>> {
        let mut readings = vec![vec![Reading::default(); rows.len()]; chains.len()];
        let Some(engine) = build_row_engine(&self.select, chains) else {
            if chains.len() > 1 {
                let alone = chains
                    .iter()
                    .map(|chain| self.read_together(&[chain], rows));
                return alone.flatten().collect();
            }
            return readings;
        };
        for (number, page) in self.pages.iter().enumerate() {
            let places = rows.iter().enumerate();
            let wanted: HashMap<usize, usize> = places
                .filter(|(_, row)| self.rows[**row].0 == number)
                .map(|(place, &row)| (self.rows[row].1, place))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            for row in extract_rows(&engine, page) {
                let Some(&place) = wanted.get(&row.position) else {
                    continue;
                };
                for (at, readings) in readings.iter_mut().enumerate() {
                    let value = row.fields.get(&format!("c{at}"));
                    let value = value.filter(|value| !value.is_null());
                    readings[place] = value.map(reading_from_value).unwrap_or_default();
                }
            }
        }
        readings
    }
}

fn extract_rows(engine: &Engine, page: &Page) -> Vec<Row> {
    let mapping = engine.set().indexes().next();
    let extraction = engine.extract_with_mapping(mapping, input(page), RequestedParts::default());
    let listing = extraction.ok().and_then(|mut found| found.listings.pop());
    listing.map(|listing| listing.rows).unwrap_or_default()
}

/// The JSON rows that an extraction chain selects on a page.
pub(crate) fn select_objects(select: &[Value], page: &Page) -> Vec<Value> {
    let whole = json!([{"type": "jsonpath", "parameters": {"expression": "$"}}]);
    let rows = json!({
        "dataset": "candidates",
        "select": select,
        "fields": [{"name": "whole", "processors": whole}],
        "key": ["whole"],
    });
    let Some(engine) = build_engine("rows", rows) else {
        return Vec::new();
    };
    let object = |row: Row| match row.fields.get("whole") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(value) => value.clone(),
        None => Value::Null,
    };
    extract_rows(&engine, page)
        .into_iter()
        .map(object)
        .collect()
}

/// The rows that a rule reads on a page.
pub(crate) fn read_rows(rule: &Value, page: &Page) -> Vec<Map<String, Value>> {
    let engine = build_engine("rows", rule.clone());
    let rows = engine
        .map(|engine| extract_rows(&engine, page))
        .unwrap_or_default();
    rows.into_iter().map(|row| row.fields).collect()
}

/// An engine that runs the extraction chains in each selected row. An additional field has a value in all rows, so that
/// no row is left out.
fn build_row_engine(select: &[Value], chains: &[&[Value]]) -> Option<Engine> {
    let mut fields = fields_of(chains);
    let row = json!({"type": "default", "parameters": {"value": "row"}});
    fields.push(json!({"name": "row", "processors": [row]}));
    build_engine(
        "rows",
        json!({"dataset": "candidates", "select": select, "fields": fields, "key": ["row"]}),
    )
}

fn build_field_engine(chains: &[&[Value]]) -> Option<Engine> {
    build_engine("fields", fields_of(chains).into())
}

fn fields_of(chains: &[&[Value]]) -> Vec<Value> {
    let cut = json!({"type": "length_limit", "parameters": {"characters": LONGEST}});
    let field = |(number, chain): (usize, &&[Value])| {
        let mut chain = chain.to_vec();
        chain.push(cut.clone());
        json!({"name": format!("c{number}"), "multiple": true, "processors": chain})
    };
    chains.iter().enumerate().map(field).collect()
}

fn build_engine(part: &str, what: Value) -> Option<Engine> {
    let mut mapping = json!({
        "name": "candidates",
        "url_patterns": [{"type": "regex", "pattern": "^"}],
    });
    mapping[part] = what;
    let source = Source {
        name: "candidates".to_owned(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).ok()?;
    Some(Engine::new(Arc::new(set), limits()))
}

/// The limits of a crawl, with the memory that a worker has for one page.
pub(crate) fn limits() -> Limits {
    Limits::with_memory(256 << 20)
}

fn input(page: &Page) -> PageInput<'_> {
    PageInput {
        url: &page.url,
        kind: page.kind,
        text: &page.text,
    }
}

fn read_page(engine: &Engine, count: usize, page: &Page) -> Vec<Reading> {
    let mapping = engine.set().indexes().next();
    let Ok(extraction) =
        engine.extract_with_mapping(mapping, input(page), RequestedParts::default())
    else {
        return vec![Reading::default(); count];
    };
    let field = |number: usize| extraction.fields.get(&format!("c{number}"));
    (0..count)
        .map(|number| field(number).map(reading_from_value).unwrap_or_default())
        .collect()
}

/// Converts the extracted value of a field (a single value or a list) to a reading that can be compared.
pub(crate) fn reading_from_value(value: &Value) -> Reading {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let mut reading = Reading {
        values: Vec::new(),
        times: Vec::new(),
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
        match reading.values.iter().position(|value| *value == spelling) {
            Some(place) => reading.times[place] += 1,
            None => {
                reading.values.push(spelling);
                reading.times.push(1);
            }
        }
    }
    reading
}
