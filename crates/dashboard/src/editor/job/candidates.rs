//! Learns mappings from the elements that a user has pointed at.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use webfill_document::Document;
use webfill_learn::{
    FieldReport, FieldStatement, LearnedMapping, Limits, Page as LearnPage, Task, learn,
};
use webfill_mapping::{PageKind, Source};

use super::nodes::{element_by_number, innermost_element, xpath_to};
use super::page::Page;
use super::reading::{build_engine, element_numbers_by_field, extract, shorten};
use super::{MOST_PAGES, PointedField, ROWS};

/// How many candidate chains are tried for a field. Commands try more, but here a visitor waits.
const MOST_CANDIDATES: usize = 800;

/// How many of the elements that the user has pointed at are used on one page.
const MOST_POINTED: usize = 50;

/// Finds the best chains for a field, which find the value in different ways, and reads all pages with each of them.
pub(super) fn find_candidates(
    field: &str,
    said: &[PointedField],
    pages: &[Page],
) -> Result<Value, String> {
    let mut to_learn: Vec<LearnPage> = pages.iter().map(Page::to_learn_page).collect();
    for page in &mut to_learn {
        page.known.retain(|name, _| name == field);
    }
    let notes = add_statements(field, said, pages, &mut to_learn);
    let learned = learn_mappings("draft", &[field.to_owned()], &to_learn)?;
    let Some((mapping, report)) = report_for_pointed_pages(&learned, field, said, pages) else {
        let mut why = "no chain found that reads this value".to_owned();
        why.extend(notes.iter().map(|note| format!("; {note}")));
        return Ok(json!({"candidates": [], "why": why, "notes": notes}));
    };
    let read = candidate_values(report, pages)?;
    let pages_of_kind: Vec<usize> = (0..pages.len())
        .filter(|&page| {
            mapping
                .pages
                .iter()
                .any(|url| url == pages[page].url.as_str())
        })
        .collect();
    let pairs = report.candidates.iter().zip(read);
    let candidates: Vec<Value> = pairs
        .map(|(candidate, values)| {
            json!({
                "processors": candidate.processors,
                "anchor": candidate.anchor,
                "right": candidate.agree.len(),
                "agreement": candidate.agreement,
                "values": values,
            })
        })
        .collect();
    Ok(json!({
        "candidates": candidates,
        "multiple": report.multiple,
        "confidence": report.confidence,
        "why": report.why,
        "notes": notes,
        "pages": pages_of_kind,
        "url_patterns": mapping.mapping["url_patterns"],
        "page_to_check": mapping.page_to_check,
    }))
}

/// Learns a mapping with all fields that have known values, or elements that the user has pointed at.
pub(super) fn learn_all_fields(
    name: &str,
    said: &BTreeMap<String, Vec<PointedField>>,
    pages: &[Page],
) -> Result<Value, String> {
    let mut to_learn: Vec<LearnPage> = pages.iter().map(Page::to_learn_page).collect();
    for (field, said) in said.iter().filter(|(field, _)| !field.starts_with(ROWS)) {
        add_statements(field, said, pages, &mut to_learn);
    }
    for page in &mut to_learn {
        page.known.retain(|name, _| is_field_name(name));
    }
    let learned = learn_mappings(name, &[], &to_learn)?;
    let best = learned.iter().max_by_key(|mapping| mapping.pages.len());
    let best = best.ok_or("none of the known values is on these pages")?;
    serde_json::to_value(best).map_err(|error| error.to_string())
}

/// Whether a name is valid in mappings. Names of record fields may not be.
fn is_field_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_plain)
}

fn learn_mappings(
    name: &str,
    fields: &[String],
    pages: &[LearnPage],
) -> Result<Vec<LearnedMapping>, String> {
    let task = Task {
        name: name.to_owned(),
        fields: fields.to_vec(),
        limits: Limits {
            pages: MOST_PAGES,
            candidates: MOST_CANDIDATES,
        },
    };
    match learn(pages, &[], &task) {
        Ok(learned) => Ok(learned.mappings),
        Err(error) => Err(error.to_string()),
    }
}

/// Passes the elements that the user has pointed at to the learner. Returns a description, for the user, of each
/// element that cannot be used.
pub(super) fn add_statements(
    field: &str,
    said: &[PointedField],
    pages: &[Page],
    to_learn: &mut [LearnPage],
) -> Vec<String> {
    let mut notes = Vec::new();
    for pointed in said {
        let (Some(page), Some(learn)) = (pages.get(pointed.page), to_learn.get_mut(pointed.page))
        else {
            continue;
        };
        if matches!(page.kind, PageKind::Json | PageKind::Text) {
            continue;
        }
        let document = page.document();
        let mut paths = |numbers: &[usize]| {
            let mut paths = Vec::new();
            for &number in numbers.iter().take(MOST_POINTED) {
                match element_xpath(&document, number) {
                    Ok(path) => paths.push(path),
                    Err(note) => notes.push(note),
                }
            }
            paths
        };
        let said = FieldStatement {
            nodes: paths(&pointed.right),
            rejected_nodes: paths(&pointed.wrong),
            absent: pointed.absent,
            ..FieldStatement::default()
        };
        learn.said.insert(field.to_owned(), said);
    }
    notes
}

pub(super) fn element_xpath(document: &Document, number: usize) -> Result<String, String> {
    let Some(node) = element_by_number(document, number) else {
        return Err(format!("no element {number} on the page"));
    };
    let node = innermost_element(node);
    let tag = node.tag().unwrap_or_default();
    let length = node.text().trim().chars().count();
    if length > 1_000 {
        return Err(format!(
            "<{tag}> holds {length} characters, too many for a value: point at a smaller element in it"
        ));
    }
    Ok(xpath_to(node))
}

/// Of the learned mappings, the one for the most pages where the user has pointed at elements. If several are equal,
/// the one for the most pages of all.
fn report_for_pointed_pages<'l>(
    learned: &'l [LearnedMapping],
    field: &str,
    said: &[PointedField],
    pages: &[Page],
) -> Option<(&'l LearnedMapping, &'l FieldReport)> {
    let report = |mapping: &'l LearnedMapping| {
        let of_field = |report: &&FieldReport| report.field == field && report.processors.is_some();
        Some((mapping, mapping.fields.iter().find(of_field)?))
    };
    let pointed = |mapping: &LearnedMapping| {
        let urls = said.iter().filter_map(|one| pages.get(one.page));
        urls.filter(|page| mapping.pages.iter().any(|url| url == page.url.as_str()))
            .count()
    };
    let found = learned.iter().filter_map(report);
    found.max_by_key(|(mapping, _)| (pointed(mapping), mapping.pages.len()))
}

/// The values that each candidate chain reads on each page, with the elements that they come from.
fn candidate_values(report: &FieldReport, pages: &[Page]) -> Result<Vec<Vec<Value>>, String> {
    let fields = report.candidates.iter().enumerate();
    let fields: Vec<Value> = fields
        .map(|(number, candidate)| {
            json!({
                "name": candidate_name(number),
                "multiple": report.multiple,
                "processors": candidate.processors,
            })
        })
        .collect();
    let mapping = json!({
        "name": "candidates",
        "url_patterns": [{"type": "regex", "pattern": "."}],
        "fields": fields,
    });
    let source = Source {
        name: "candidates".to_owned(),
        text: mapping.to_string(),
    };
    let (engine, index) = build_engine(vec![source], "candidates")?;
    let mut all: Vec<Vec<Value>> = vec![Vec::new(); report.candidates.len()];
    for page in pages {
        let fields = extract(&engine, index, page).map(|extraction| extraction.fields);
        let fields = fields.unwrap_or_default();
        let trace = engine.trace(Some(index), page.to_page_input());
        let elements = trace.map_or_else(
            || Map::new().into(),
            |trace| element_numbers_by_field(&trace, page),
        );
        for (number, values) in all.iter_mut().enumerate() {
            let name = candidate_name(number);
            let mut value = fields.get(&name).cloned().unwrap_or_default();
            shorten(&mut value);
            values.push(json!({"value": value, "elements": elements[&name]}));
        }
    }
    Ok(all)
}

fn candidate_name(candidate: usize) -> String {
    format!("candidate_{candidate}")
}

#[cfg(test)]
mod tests;
