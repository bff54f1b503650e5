//! Learns rows from the elements that a user has pointed at: the row elements on the pages, and the fields in them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_learn::{
    KnownRow, LearnedMapping, Limits, Page as LearnPage, RowsTask, Task, learn_rows, select_rows,
};
use webfill_mapping::Source;

use super::candidates::add_statements;
use super::nodes::{element_by_number, xpath_to};
use super::page::Page;
use super::reading::{build_engine, extract, rows_json};
use super::{MOST_PAGES, PointedField, ROWS};

/// How many of the row elements that the user has pointed at are used on one page.
const MOST_POINTED: usize = 50;

/// Learns the chain that selects rows, and the rule that reads the fields that the user has pointed at. Returns both,
/// and the elements that are selected as rows.
pub(super) fn find_rows(
    name: &str,
    dataset: &str,
    said: &BTreeMap<String, Vec<PointedField>>,
    pages: &[Page],
) -> Result<Value, String> {
    let mut to_learn: Vec<LearnPage> = pages.iter().map(Page::to_learn_page).collect();
    let mut notes = Vec::new();
    for page in &mut to_learn {
        page.known.clear();
    }
    for (key, said) in said {
        if let Some(field) = key
            .strip_prefix(ROWS)
            .and_then(|rest| rest.strip_prefix('.'))
        {
            notes.extend(add_statements(field, said, pages, &mut to_learn));
        }
    }
    let pointed = said.get(ROWS).map(Vec::as_slice).unwrap_or_default();
    let known = known_rows(pointed, pages, &mut notes);
    if known.iter().flatten().count() < 2 {
        return Ok(json!({
            "why": "point at two or more rows: at their elements, or at something in each",
            "notes": notes,
        }));
    }
    let Some(selected) = select_rows(&to_learn, &known) else {
        let why = "the elements are not side by side: point at the same part of two rows";
        return Ok(json!({"why": why, "notes": notes}));
    };
    let count: usize = selected.elements.iter().map(Vec::len).sum();
    let mut answer = json!({
        "select": selected.select,
        "elements": selected.elements,
        "notes": notes,
        "why": format!("{count} rows, found by {}", selected.anchor),
    });
    if to_learn.iter().all(|page| page.said.is_empty()) {
        return Ok(answer);
    }
    let learned = learn_row_rule(name, dataset, &to_learn, &known)?;
    let Some(mapping) = learned else {
        answer["why"] = "no chain found that reads these values in the rows".into();
        return Ok(answer);
    };
    answer["rule"] = mapping.mapping["rows"].clone();
    answer["url_patterns"] = mapping.mapping["url_patterns"].clone();
    answer["url_parsers"] = mapping.mapping["url_parsers"].clone();
    answer["fields"] = json!(mapping.fields);
    answer["pages"] = read_rows(&mapping.mapping, name, pages)?;
    Ok(answer)
}

/// For each page, the row elements that the user has pointed at, with the values in them.
fn known_rows(
    pointed: &[PointedField],
    pages: &[Page],
    notes: &mut Vec<String>,
) -> Vec<Vec<KnownRow>> {
    let mut known: Vec<Vec<KnownRow>> = vec![Vec::new(); pages.len()];
    for pointed in pointed {
        let (Some(page), Some(rows)) = (pages.get(pointed.page), known.get_mut(pointed.page))
        else {
            continue;
        };
        let document = page.document();
        for &number in pointed.right.iter().take(MOST_POINTED) {
            match element_by_number(&document, number) {
                Some(node) => rows.push(KnownRow {
                    nodes: vec![xpath_to(node)],
                    ..KnownRow::default()
                }),
                None => notes.push(format!("no element {number} on the page")),
            }
        }
    }
    known
}

fn learn_row_rule(
    name: &str,
    dataset: &str,
    pages: &[LearnPage],
    known: &[Vec<KnownRow>],
) -> Result<Option<LearnedMapping>, String> {
    let task = RowsTask {
        task: Task {
            name: name.to_owned(),
            fields: Vec::new(),
            limits: Limits {
                pages: MOST_PAGES,
                ..Limits::default()
            },
        },
        dataset: dataset.to_owned(),
    };
    let learned = learn_rows(pages, known, &[], &[], &task).map_err(|error| error.to_string())?;
    let most = |mapping: &LearnedMapping| mapping.rows.as_ref().map_or(0, |rows| rows.matched);
    Ok(learned.mappings.into_iter().max_by_key(most))
}

/// The rows that a mapping reads on all pages, in a form for users.
fn read_rows(mapping: &Value, name: &str, pages: &[Page]) -> Result<Value, String> {
    let source = Source {
        name: name.to_owned(),
        text: mapping.to_string(),
    };
    let name = mapping["name"].as_str().unwrap_or_default();
    let (engine, index) = build_engine(vec![source], name)?;
    let read = pages
        .iter()
        .map(|page| match extract(&engine, index, page) {
            Ok(extraction) => rows_json(&extraction, false),
            Err(_) => json!([]),
        });
    Ok(read.collect())
}
