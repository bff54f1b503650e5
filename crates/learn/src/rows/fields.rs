//! Learns the fields of rows. Each row is prepared like a page of its own.

use std::collections::{BTreeMap, HashSet};

use webfill_document::NodeRef;

use super::prepared_page::PreparedPage;
use super::rule::{PreparedRow, RowNode, Rule};
use super::{roots, standing, target};
use crate::conflicts;
use crate::evaluate::RowReader;
use crate::field::{LearnedField, learn_field};
use crate::known;
use crate::labels::{Labels, Leaks};
use crate::page_group::Group;
use crate::places::Places;
use crate::report;
use crate::types::{FieldReport, Page, RowsTask};

/// The most known rows that are used for learning, and the most other rows.
const MOST_KNOWN: usize = 80;
const MOST_OTHERS: usize = 120;

/// Learns the fields of rows from each row as from a page.
pub(super) fn learn_fields(
    sheets: &[PreparedPage<'_>],
    rule: &Rule<'_>,
    task: &RowsTask,
) -> Vec<(&'static str, FieldReport)> {
    let rows = choose_rows(&rule.rows);
    let heads: BTreeMap<usize, HashSet<usize>> = head_positions(&rule.rows);
    let of_rows: Vec<Page> = rows
        .iter()
        .map(|row| row_as_page(sheets, row, rule, &heads))
        .collect();
    let places = rows.iter().zip(&of_rows).map(|(row, page)| {
        let document = sheets[row.sheet].document;
        match &row.what {
            RowNode::Element(element) => {
                let roots = roots::roots_of_row(*element, &rule.shape, &heads[&row.sheet]);
                Places::from_row(page, document, roots)
            }
            RowNode::Object(value) => Places::from_object(page, document, value),
        }
    });
    let places: Vec<Places<'_>> = places.collect();
    let values = known::folded_values(of_rows.iter());
    let leaks = Leaks::new(values.into_iter());
    let labels = Labels::new(&places, &leaks);
    let group = Group {
        pages: places,
        labels,
        leaks,
        rows: Some(RowReader {
            select: rule.select.clone(),
            pages: sheets.iter().map(|sheet| sheet.list.page).collect(),
            rows: rows.iter().map(|row| (row.sheet, row.position)).collect(),
        }),
    };
    let mut all: Vec<(String, LearnedField)> = Vec::new();
    for field in known::fields_to_learn(&of_rows, &task.task.fields) {
        let (labels, pointed) = known::labels_and_pointed_places(&group.pages, &field);
        if labels.iter().any(|label| !label.wanted.is_empty()) {
            let found = learn_field(&group, labels, &pointed, None, &task.task.limits);
            all.push((field, found));
        }
    }
    conflicts::resolve_conflicts(&mut all);
    let reports = all
        .iter()
        .map(|(field, found)| ("row", report::field_report(field, found, &group)));
    reports.collect()
}

fn choose_rows<'r, 'd>(rows: &'r [PreparedRow<'d>]) -> Vec<&'r PreparedRow<'d>> {
    let (mut known, mut others) = (0, 0);
    let is_taken = |row: &&PreparedRow<'_>| {
        let (count, most) = match row.known {
            Some(_) => (&mut known, MOST_KNOWN),
            None => (&mut others, MOST_OTHERS),
        };
        *count += 1;
        *count <= most
    };
    rows.iter().filter(is_taken).collect()
}

fn head_positions(rows: &[PreparedRow<'_>]) -> BTreeMap<usize, HashSet<usize>> {
    let mut heads: BTreeMap<usize, HashSet<usize>> = BTreeMap::new();
    for row in rows {
        let of_sheet = heads.entry(row.sheet).or_default();
        if let RowNode::Element(element) = row.what {
            of_sheet.insert(element.position());
        }
    }
    heads
}

/// Makes a page of a row, with the row's known values, and the nodes in it that a person pointed at.
fn row_as_page(
    sheets: &[PreparedPage<'_>],
    row: &PreparedRow<'_>,
    rule: &Rule<'_>,
    heads: &BTreeMap<usize, HashSet<usize>>,
) -> Page {
    let sheet = &sheets[row.sheet];
    let mut url = sheet.list.page.url.clone();
    url.set_fragment(Some(&format!("row-{}", row.position)));
    let known = row.known.map(|known| &sheet.list.rows[known]);
    let mut page = Page {
        url,
        kind: sheet.list.page.kind,
        text: String::new(),
        record: known.and_then(|known| known.record.clone()),
        known: known.map(|known| known.known.clone()).unwrap_or_default(),
        said: BTreeMap::new(),
    };
    let RowNode::Element(element) = row.what else {
        return page;
    };
    let own = heads.get(&row.sheet);
    let parts = target::row_elements(element, rule.shape.width).into_iter();
    let parts: Vec<NodeRef<'_>> = parts
        .take_while(|part| {
            *part == element || own.is_none_or(|own| !own.contains(&part.position()))
        })
        .collect();
    let is_within = |path: &&String| {
        let node = standing::element_at_path(sheet, path);
        node.is_some_and(|node| parts.iter().any(|part| part.contains(node)))
    };
    for (field, said) in &sheet.list.page.said {
        let mut of_row = said.clone();
        of_row.nodes = said.nodes.iter().filter(is_within).cloned().collect();
        of_row.rejected_nodes = said
            .rejected_nodes
            .iter()
            .filter(is_within)
            .cloned()
            .collect();
        of_row.absent = false;
        if !of_row.nodes.is_empty() || !of_row.rejected_nodes.is_empty() {
            page.said.insert(field.clone(), of_row);
        }
    }
    page
}
