//! Finds rows that are objects: in a JSON page, in the data of a script, or in linked data.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use webfill_mapping::PageKind;

use super::prepared_page::PreparedPage;
use crate::evaluate::select_objects;
use crate::fold::KnownValue;
use crate::places::Places;
use crate::types::Page;

/// The most paths and types of objects that are tried.
const MOST: usize = 60;

/// The share of known records that must have an object of their own.
const SEPARATE: f64 = 0.75;

/// A way to select the rows, as objects.
pub(super) struct Objects {
    pub(super) select: Vec<Value>,
    /// The objects of each page, in page order.
    pub(super) rows: Vec<Vec<Value>>,
    /// For each page and each object, the index of the known row that it is, if it is one.
    pub(super) known: Vec<Vec<Option<usize>>>,
    /// The share of known values that are in the objects of their records.
    pub(super) coverage: f64,
}

/// The likeliest way to select objects; `None` if the records are not in objects.
pub(super) fn find(sheets: &[PreparedPage<'_>]) -> Option<Objects> {
    let mut selects: BTreeSet<String> = BTreeSet::new();
    for sheet in sheets.iter().filter(|sheet| !sheet.list.rows.is_empty()) {
        selects.extend(candidate_selects(sheet.list.page));
    }
    let mut best: Option<((usize, usize), Objects)> = None;
    for select in selects.iter().take(MOST) {
        let Ok(Value::Array(select)) = serde_json::from_str(select) else {
            continue;
        };
        let Some(objects) = evaluate_select(sheets, select) else {
            continue;
        };
        let rows = objects.rows.iter().map(Vec::len).sum();
        // If two ways find about as many values, the one with more rows is better, because the other one has several
        // records in one object.
        let rank = ((objects.coverage * 20.0).round() as usize, rows);
        if best.as_ref().is_none_or(|(most, _)| rank > *most) {
            best = Some((rank, objects));
        }
    }
    best.map(|(_, objects)| objects)
}

/// The chains (lists of extraction steps) that may select objects of a page, as JSON.
fn candidate_selects(page: &Page) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut of_json = |text: &str, is_linked: bool| {
        let Ok(value) = serde_json::from_str::<Value>(text.trim()) else {
            return;
        };
        if is_linked {
            visit_types(&value, 0, &mut |kind| {
                let of_type = json!([{"type": "json_ld", "parameters": {"type": kind}}]);
                found.insert(of_type.to_string());
            });
        } else {
            visit_lists(&value, "$", 0, &mut |path| {
                let of_path = json!([{"type": "jsonpath", "parameters": {"expression": path}}]);
                found.insert(of_path.to_string());
            });
        }
    };
    match page.kind {
        PageKind::Json => of_json(&page.text, false),
        PageKind::Html => {
            let document = crate::learning::parse_page(page, 8);
            for script in document.elements_by_tag("script") {
                let declared = script
                    .attribute("type")
                    .unwrap_or_default()
                    .to_ascii_lowercase();
                if declared.starts_with("application/ld+json") {
                    of_json(script.text(), true);
                } else if declared.starts_with("application/json") {
                    of_json(script.text(), false);
                }
            }
        }
        PageKind::Xml | PageKind::Text => {}
    }
    found
}

/// Calls `found` with the path of each list of objects, and of each object whose members are objects.
fn visit_lists(value: &Value, path: &str, depth: usize, found: &mut dyn FnMut(String)) {
    if depth > 10 {
        return;
    }
    match value {
        Value::Array(items) => {
            let path = format!("{path}[*]");
            if items.iter().any(Value::is_object) {
                found(path.clone());
            }
            items
                .iter()
                .take(50)
                .for_each(|item| visit_lists(item, &path, depth + 1, found));
        }
        Value::Object(object) => {
            let members = object.values().filter(|member| member.is_object()).count();
            if members > 1 && members == object.len() {
                found(format!("{path}.*"));
                object
                    .values()
                    .take(50)
                    .for_each(|member| visit_lists(member, &format!("{path}.*"), depth + 1, found));
            }
            for (name, member) in object.iter().take(300) {
                if let Some(path) = crate::places::member_path(path, name) {
                    visit_lists(member, &path, depth + 1, found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn visit_types(value: &Value, depth: usize, found: &mut dyn FnMut(&str)) {
    if depth > 16 {
        return;
    }
    match value {
        Value::Array(items) => items
            .iter()
            .for_each(|item| visit_types(item, depth + 1, found)),
        Value::Object(object) => {
            let kind = match object.get("@type") {
                Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
                Some(kind) => kind.as_str(),
                None => None,
            };
            if let Some(kind) = kind.filter(|kind| kind.len() <= 80) {
                found(kind.rsplit([':', '/', '#']).next().unwrap_or(kind));
            }
            object
                .values()
                .for_each(|member| visit_types(member, depth + 1, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn evaluate_select(sheets: &[PreparedPage<'_>], select: Vec<Value>) -> Option<Objects> {
    let rows: Vec<Vec<Value>> = sheets
        .iter()
        .map(|sheet| select_objects(&select, sheet.list.page))
        .collect();
    let mut known = Vec::new();
    let (mut read, mut all, mut records, mut separate) = (0, 0, 0, 0);
    for (sheet, rows) in sheets.iter().zip(&rows) {
        let of_page = match_rows(sheet, rows);
        all += of_page.known;
        records += sheet.list.rows.len();
        read += of_page.read;
        separate += of_page.rows.iter().flatten().count();
        known.push(of_page.rows);
    }
    let is_separate = separate > 0 && separate as f64 >= SEPARATE * records as f64;
    let has_lists = rows.iter().any(|rows| rows.len() > 1);
    (is_separate && has_lists).then(|| Objects {
        select,
        rows,
        known,
        coverage: read as f64 / all.max(1) as f64,
    })
}

struct RowMatches {
    rows: Vec<Option<usize>>,
    read: usize,
    known: usize,
}

/// Matches each known row with the object that has the most of its values. A row has no object if two objects have
/// equally many values, or if an earlier row has taken the object.
fn match_rows(sheet: &PreparedPage<'_>, rows: &[Value]) -> RowMatches {
    let list = sheet.list;
    let places: Vec<Places<'_>> = rows
        .iter()
        .map(|row| Places::from_object(list.page, sheet.document, row))
        .collect();
    let mut matched = RowMatches {
        rows: vec![None; rows.len()],
        read: 0,
        known: 0,
    };
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    for (number, row) in list.rows.iter().enumerate() {
        let wanted: Vec<KnownValue> = row.known_values();
        matched.known += wanted.len();
        let count = |places: &Places<'_>| {
            wanted
                .iter()
                .filter(|one| {
                    !places.find_exact(one).is_empty() || !places.find_containing(one, 1).is_empty()
                })
                .count()
        };
        let mut counts: Vec<(usize, usize)> = places.iter().map(count).zip(0..).collect();
        counts.sort_by_key(|(count, at)| (usize::MAX - count, *at));
        let Some(&(most, at)) = counts.first().filter(|(most, _)| *most > 0) else {
            continue;
        };
        if counts.get(1).is_some_and(|(second, _)| *second == most) || taken.contains_key(&at) {
            continue;
        }
        taken.insert(at, number);
        matched.rows[at] = Some(number);
        matched.read += most;
    }
    matched
}
