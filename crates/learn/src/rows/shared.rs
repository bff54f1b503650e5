//! Learns fields that all rows of a page share: their value occurs once on the page, or in its URL.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_document::Document;
use webfill_urls::Url;

use super::prepared_page::PreparedPage;
use crate::field::learn_field;
use crate::fold::{KnownValue, Spelling, fold_text};
use crate::known;
use crate::learning::prepare_group;
use crate::report;
use crate::types::{FieldReport, Limits, Page};

/// A field that all rows of a page share, and where its value comes from.
pub(super) struct SharedField {
    pub(super) from: &'static str,
    pub(super) report: FieldReport,
}

/// For each page, the value of a field that all its known rows share. `None` if rows of a page differ.
fn shared_values(sheets: &[PreparedPage<'_>], field: &str) -> Option<Vec<(usize, String)>> {
    let mut found = Vec::new();
    for (number, sheet) in sheets.iter().enumerate() {
        let known = sheet
            .list
            .rows
            .iter()
            .filter_map(|row| row.known.get(field)?.first());
        let values: BTreeSet<String> = known.clone().map(|value| fold_text(value)).collect();
        match values.len() {
            0 => {}
            1 => found.extend(known.take(1).map(|value| (number, value.clone()))),
            _ => return None,
        }
    }
    let rows: usize = sheets.iter().map(|sheet| sheet.list.rows.len()).sum();
    (!found.is_empty() && rows > found.len()).then_some(found)
}

pub(super) fn learn(
    sheets: &[PreparedPage<'_>],
    documents: &[Document],
    field: &str,
    limits: &Limits,
) -> Option<SharedField> {
    let values = shared_values(sheets, field)?;
    learn_from_url(sheets, field, &values)
        .or_else(|| learn_from_page(sheets, documents, field, &values, limits))
}

/// Learns the field as a part of the page's URL.
fn learn_from_url(
    sheets: &[PreparedPage<'_>],
    field: &str,
    values: &[(usize, String)],
) -> Option<SharedField> {
    let urls: Vec<(&Url, KnownValue)> = values
        .iter()
        .filter_map(|(sheet, value)| Some((&sheets[*sheet].list.page.url, KnownValue::new(value)?)))
        .collect();
    let (first, wanted) = urls.first()?;
    let pattern = url_patterns(first, wanted).into_iter().find(|pattern| {
        let Ok(regex) = regex::Regex::new(pattern) else {
            return false;
        };
        urls.iter().all(|(url, wanted)| {
            let found = regex.captures(url.as_str());
            found.is_some_and(|found| wanted.matches(&Spelling::new(&found[1])))
        })
    })?;
    let chain = json!([{"type": "regex", "parameters": {"pattern": pattern, "group": 1}}]);
    let pages = values
        .iter()
        .map(|(sheet, _)| sheets[*sheet].list.page.url.to_string());
    let count = values.len();
    Some(SharedField {
        from: "url",
        report: FieldReport {
            field: field.to_owned(),
            multiple: false,
            processors: Some(chain),
            alternatives: Vec::new(),
            anchor: Some("URL".to_owned()),
            confidence: 1.0,
            agree: pages.collect(),
            disagree: Vec::new(),
            doubted: Vec::new(),
            without_page: Vec::new(),
            reads: None,
            least: None,
            disputed: Vec::new(),
            runner_up: None,
            candidates: Vec::new(),
            why: format!(
                "a part of the URL, the same for all rows of a page; right on {count} of {count} pages"
            ),
        },
    })
}

/// Patterns that extract the value from a URL.
fn url_patterns(url: &Url, wanted: &KnownValue) -> Vec<String> {
    let is_it = |text: &str| wanted.matches(&Spelling::new(text));
    let mut patterns = Vec::new();
    for (name, value) in url.query_pairs() {
        if is_it(&value) {
            patterns.push(format!("[?&]{}=([^&]*)", regex::escape(&name)));
        }
    }
    let segments: Vec<&str> = url.path().split('/').skip(1).collect();
    for (at, segment) in segments
        .iter()
        .enumerate()
        .filter(|(_, segment)| is_it(segment))
    {
        let _ = segment;
        if let Some(before) = at
            .checked_sub(1)
            .map(|at| segments[at])
            .filter(|one| !one.is_empty())
        {
            patterns.push(format!("/{}/([^/?]+)", regex::escape(before)));
        }
        patterns.push(format!("^https?://[^/]+{}/([^/?]+)", "/[^/?]+".repeat(at)));
    }
    patterns
}

/// Learns the field from the whole page, as a field of the page is learned.
fn learn_from_page(
    sheets: &[PreparedPage<'_>],
    documents: &[Document],
    field: &str,
    values: &[(usize, String)],
    limits: &Limits,
) -> Option<SharedField> {
    let pages: Vec<Page> = sheets
        .iter()
        .enumerate()
        .map(|(number, sheet)| {
            let mut page = sheet.list.page.clone();
            let known = values.iter().find(|(of, _)| *of == number);
            page.known.clear();
            page.known
                .extend(known.map(|(_, value)| (field.to_owned(), vec![value.clone()])));
            page
        })
        .collect();
    let all: Vec<usize> = (0..pages.len()).collect();
    let group = prepare_group(&pages, documents, &all);
    let (labels, pointed) = known::labels_and_pointed_places(&group.pages, field);
    let found = learn_field(&group, labels, &pointed, Some(false), limits);
    let report = report::field_report(field, &found, &group);
    report.processors.is_some().then_some(SharedField {
        from: "page",
        report,
    })
}

/// Sets `from` in a field of a rule, which says that the value comes from the page or its URL, not from the row.
pub(super) fn with_origin(mut field: Value, from: &str) -> Value {
    field["from"] = from.into();
    field
}
