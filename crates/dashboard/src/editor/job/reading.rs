//! Runs mappings on pages, for results and traces.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use webfill_mapping::{
    Engine, Extraction, Limits, MappingIndex, MappingSet, PageKind, RequestedParts, Source, Trace,
};

use super::MEMORY_BYTES;
use super::nodes::element_number_at;
use super::page::Page;

/// How long reading one page may take.
const PAGE_TIME: Duration = Duration::from_secs(20);

/// How many characters of a value are shown, and how many values, links and rows of a page.
const SHOWN_CHARS: usize = 600;
const SHOWN_VALUES: usize = 50;
const SHOWN_LINKS: usize = 200;
const SHOWN_ROWS: usize = 200;

/// Reads each page by one mapping of a set. Returns the fields, rows and links of each page.
pub(super) fn read_pages(
    sources: Vec<Source>,
    mapping: &str,
    is_whole: bool,
    pages: &[Page],
) -> Result<Value, String> {
    let (engine, index) = build_engine(sources, mapping)?;
    let read: Vec<Value> = pages
        .iter()
        .map(|page| read_page(&engine, index, is_whole, page))
        .collect();
    Ok(json!({"pages": read}))
}

fn read_page(engine: &Engine, index: MappingIndex, is_whole: bool, page: &Page) -> Value {
    let set = engine.set();
    let found = set.find(page.url.as_str());
    let used = found.map(|index| set.name(index));
    match extract(engine, index, page) {
        Err(why) => json!({"url": page.url.as_str(), "used": used, "error": why}),
        Ok(extraction) => {
            let rows = rows_json(&extraction, is_whole);
            let mut fields = extraction.fields;
            if !is_whole {
                fields.iter_mut().for_each(|(_, value)| shorten(value));
            }
            let followed = |link: &String| {
                let name = set.find(link).map(|index| set.name(index));
                json!({"url": link, "mapping": name})
            };
            let most = if is_whole { usize::MAX } else { SHOWN_LINKS };
            let links = extraction.links.iter().take(most).map(followed);
            json!({
                "url": page.url.as_str(),
                "used": used,
                "fields": fields,
                "rows": rows,
                "links": links.collect::<Vec<Value>>(),
                "link_count": extraction.links.len(),
                "truncated": extraction.truncated,
                "warnings": extraction.warnings,
            })
        }
    }
}

/// The extracted rows of each row rule, in the form of golden cases. Unless `is_whole`, the rows and their values are
/// shortened for display, and the number of all rows is added.
pub(super) fn rows_json(extraction: &Extraction, is_whole: bool) -> Value {
    let rules = extraction.listings.iter().map(|listing| {
        let mut answer = listing.to_json();
        if !is_whole {
            answer["count"] = listing.rows.len().into();
            let rows = answer["rows"].as_array_mut().into_iter().flatten();
            rows.flat_map(|row| row.as_object_mut().into_iter().flatten())
                .for_each(|(_, value)| shorten(value));
            if let Some(rows) = answer["rows"].as_array_mut() {
                rows.truncate(SHOWN_ROWS);
            }
        }
        answer
    });
    rules.collect()
}

/// Extracts a page by one mapping.
pub(super) fn extract(
    engine: &Engine,
    index: MappingIndex,
    page: &Page,
) -> Result<Extraction, String> {
    let wants = RequestedParts {
        mapped_links: true,
        row_links: true,
        deadline: Some(Instant::now() + PAGE_TIME),
        ..RequestedParts::default()
    };
    let extraction = match &page.metadata {
        Some(metadata) => {
            engine.extract_document_with_mapping(Some(index), page.to_page_input(), metadata, wants)
        }
        None => engine.extract_with_mapping(Some(index), page.to_page_input(), wants),
    };
    extraction.map_err(|error| error.to_string())
}

/// Traces a mapping on a page: each step, and the elements that the fields come from.
pub(super) fn trace(sources: Vec<Source>, mapping: &str, page: &Page) -> Result<Value, String> {
    let (engine, index) = build_engine(sources, mapping)?;
    let trace = match &page.metadata {
        Some(metadata) => engine.trace_document(Some(index), page.to_page_input(), metadata),
        None => engine.trace(Some(index), page.to_page_input()),
    };
    let trace = trace.ok_or_else(|| format!("unknown mapping {mapping}"))?;
    let elements = element_numbers_by_field(&trace, page);
    let mut answer = serde_json::to_value(&trace).map_err(|error| error.to_string())?;
    answer["elements"] = elements;
    Ok(answer)
}

/// For each field, the numbers of the elements that its value comes from. They are the output of the last step that
/// yields elements.
pub(super) fn element_numbers_by_field(trace: &Trace, page: &Page) -> Value {
    let mut all = Map::new();
    if matches!(page.kind, PageKind::Json | PageKind::Text) {
        return all.into();
    }
    let document = page.document();
    for field in trace.fields.iter().filter(|field| !field.value.is_null()) {
        let steps = field.alternatives.last().into_iter().flatten().rev();
        let nodes = steps
            .map(|step| &step.reading.nodes)
            .find(|nodes| !nodes.is_empty());
        let nodes = nodes.into_iter().flatten();
        let elements = nodes.filter_map(|node| element_number_at(&document, &node.path));
        all.insert(field.name.clone(), elements.collect::<Vec<usize>>().into());
    }
    all.into()
}

/// Builds an engine with a set of mappings. Also returns the position of the mapping with this name.
pub(super) fn build_engine(
    sources: Vec<Source>,
    mapping: &str,
) -> Result<(Engine, MappingIndex), String> {
    let set = MappingSet::from_sources(sources).map_err(|errors| errors.to_string())?;
    let index = set
        .find_by_name(mapping)
        .ok_or_else(|| format!("unknown mapping {mapping}"))?;
    let memory = usize::try_from(MEMORY_BYTES / 2).unwrap_or(usize::MAX);
    Ok((
        Engine::new(Arc::new(set), Limits::with_memory(memory)),
        index,
    ))
}

/// Shortens a value for display.
pub(super) fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(values) => {
            values.truncate(SHOWN_VALUES);
            values.iter_mut().for_each(shorten);
        }
        _ => {}
    }
}
