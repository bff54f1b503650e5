//! The rule that selects rows, as elements or as objects.

use serde_json::{Value, json};
use webfill_document::NodeRef;

use super::prepared_page::PreparedPage;
use super::roots::Shape;
use super::{ENOUGH, objects, select, standing, target};
use crate::labels::Leaks;
use crate::types::KnownRow;

/// A row of a page, prepared for learning.
pub(super) struct PreparedRow<'d> {
    pub(super) sheet: usize,
    pub(super) position: usize,
    pub(super) what: RowNode<'d>,
    pub(super) known: Option<usize>,
}

pub(super) enum RowNode<'d> {
    Element(NodeRef<'d>),
    Object(Value),
}

/// The rule that selects rows.
pub(super) struct Rule<'d> {
    pub(super) select: Vec<Value>,
    pub(super) anchor: String,
    pub(super) shape: Shape,
    pub(super) rows: Vec<PreparedRow<'d>>,
    /// How well a rule that is learned from one half of the known rows selects the other half.
    pub(super) confidence: f64,
}

/// The likeliest way to select rows: as elements, or as objects if these contain more known values.
pub(super) fn likeliest_rule<'d>(sheets: &[PreparedPage<'d>]) -> Option<Rule<'d>> {
    let standings = standing::locate_records(sheets);
    let elements = rule_of_elements(sheets, &standings);
    let objects = objects::find(sheets);
    let values: usize = sheets
        .iter()
        .flat_map(|sheet| sheet.list.rows)
        .map(|row| row.known_values().len())
        .sum();
    let of_elements = elements
        .as_ref()
        .map_or(0.0, |(_, read)| *read as f64 / values.max(1) as f64);
    match (elements, objects) {
        (Some((rule, _)), Some(objects)) if of_elements + 0.02 >= objects.coverage => Some(rule),
        (_, Some(objects)) => Some(rule_of_objects(objects)),
        (elements, None) => elements.map(|(rule, _)| rule),
    }
}

fn rule_of_objects<'d>(objects: objects::Objects) -> Rule<'d> {
    let mut rows = Vec::new();
    for (sheet, (values, known)) in objects.rows.into_iter().zip(objects.known).enumerate() {
        let of_sheet = values.into_iter().zip(known).enumerate();
        rows.extend(of_sheet.map(|(position, (value, known))| PreparedRow {
            sheet,
            position,
            what: RowNode::Object(value),
            known,
        }));
    }
    let anchor = match objects.select[0]["type"].as_str() {
        Some("json_ld") => "linked data",
        _ => "JSON of the page",
    };
    Rule {
        anchor: anchor.to_owned(),
        select: objects.select,
        shape: Shape {
            width: 1,
            first: None,
        },
        rows,
        confidence: 1.0,
    }
}

/// The likeliest rule that selects elements, and how many known values are in the rows of their records.
pub(super) fn rule_of_elements<'d>(
    sheets: &[PreparedPage<'d>],
    standings: &[standing::RecordElements<'d>],
) -> Option<(Rule<'d>, usize)> {
    let (layout, target, selected) = select_by_layout(sheets, standings)?;
    let width = match layout.is_wide {
        true => 1 + target.tails,
        false => 1,
    };
    let mut rows = Vec::new();
    let mut read = 0;
    for (sheet, elements) in selected.rows.iter().enumerate() {
        for (position, element) in elements.iter().enumerate() {
            let is_it = |(number, head): &&(usize, NodeRef<'d>)| {
                standings[*number].sheet == sheet && head == element
            };
            let standing = layout
                .heads
                .iter()
                .find(is_it)
                .map(|(number, _)| &standings[*number]);
            read += standing.map_or(0, |standing| {
                let row = target::row_elements(*element, width);
                let holds = |node: &NodeRef<'d>| row.iter().any(|part| part.contains(*node));
                standing
                    .values
                    .iter()
                    .filter(|nodes| nodes.iter().any(holds))
                    .count()
            });
            rows.push(PreparedRow {
                sheet,
                position,
                what: RowNode::Element(*element),
                known: standing.map(|standing| standing.row),
            });
        }
    }
    let confidence = confidence(sheets, standings, &layout, selected.f1);
    let rule = Rule {
        select: vec![json!({"type": "xpath", "parameters": {"expression": selected.expression}})],
        anchor: selected.anchor.name().to_owned(),
        shape: Shape {
            width,
            first: selected.first,
        },
        rows,
        confidence,
    };
    Some((rule, read))
}

type Selection<'d> = (
    standing::Layout<'d>,
    target::Target<'d>,
    select::RowSelector<'d>,
);

fn select_by_layout<'d>(
    sheets: &[PreparedPage<'d>],
    standings: &[standing::RecordElements<'d>],
) -> Option<Selection<'d>> {
    let layout = standing::likeliest_layout(standings)?;
    let target = target::Target::new(sheets, standings, &layout);
    let values = sheets
        .iter()
        .flat_map(|sheet| sheet.list.rows)
        .flat_map(KnownRow::known_values);
    let leaks = Leaks::new(values.map(|wanted| wanted.folded));
    let selected = select::select(sheets, standings, &layout, &target, &leaks)?;
    Some((layout, target, selected))
}

/// The confidence of a rule. It is `f1` times the share of known rows that are selected by a rule learned from the
/// other half of them.
fn confidence<'d>(
    sheets: &[PreparedPage<'d>],
    standings: &[standing::RecordElements<'d>],
    layout: &standing::Layout<'d>,
    f1: f64,
) -> f64 {
    if layout.heads.len() < 2 * ENOUGH - 2 {
        return f1;
    }
    let (mut right, mut all) = (0usize, 0usize);
    for half in 0..2 {
        let is_shown = |number: usize| number % 2 == half;
        let shown: Vec<standing::RecordElements<'d>> = standings
            .iter()
            .enumerate()
            .filter(|(number, _)| is_shown(*number))
            .map(|(_, standing)| standing.clone())
            .collect();
        let found = select_by_layout(sheets, &shown).map(|(_, _, selected)| selected.rows);
        let withheld = layout.heads.iter().filter(|(number, _)| !is_shown(*number));
        for (number, head) in withheld {
            let rows = found.as_ref().map(|rows| &rows[standings[*number].sheet]);
            all += 1;
            right += usize::from(rows.is_some_and(|rows| rows.contains(head)));
        }
    }
    (f1 * 1_000.0 * right as f64 / all.max(1) as f64).round() / 1_000.0
}
