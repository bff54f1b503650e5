//! Traces of rows: how they are selected, and each field of some of them.

use serde::Serialize;
use serde_json::Value;

use super::{FieldTrace, StepTrace, Steps, explain_loss, trace_field};
use crate::chain::NoObserver;
use crate::engine::field_value;
use crate::item::Item;
use crate::row_extraction::gather_columns;
use crate::rows::{Origin, RowField, RowRule};
use crate::run::Run;

/// The trace of one row rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowsTrace {
    pub dataset: String,
    /// How many elements `select` yields.
    pub count: usize,
    pub empty_because: Option<String>,
    pub select: Vec<StepTrace>,
    /// The traces of the rows that were chosen.
    pub rows: Vec<RowTrace>,
}

/// The trace of one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowTrace {
    /// The position among the selected elements, counted from 0.
    pub position: usize,
    pub fields: Vec<FieldTrace>,
}

impl RowsTrace {
    /// How many rows a trace shows for each row rule.
    pub const MOST_ROWS: usize = 20;
}

pub(super) fn trace_rule(rule: &RowRule, chosen: &[usize], run: &Run<'_>) -> RowsTrace {
    run.set_subject(format!("rows of {}", rule.dataset));
    let mut steps = Steps::default();
    let selected = run.with_most_values(run.limits.rows, || {
        rule.select.run_for_rows(run, &mut steps)
    });
    let elements = selected.unwrap_or_default();
    gather_columns(rule, &elements, run);
    let mut positions = match chosen {
        [] => run
            .columns
            .with_evidence(|| example_positions(rule, &elements, run)),
        chosen => chosen.to_vec(),
    };
    positions.sort_unstable();
    positions.dedup();
    let rows = positions.into_iter().filter_map(|position| {
        let element = elements.get(position)?;
        let fields = rule.fields.iter();
        let fields = fields.map(|one| trace_row_field(one, element, run));
        Some(RowTrace {
            position,
            fields: fields.collect(),
        })
    });
    RowsTrace {
        dataset: rule.dataset.clone(),
        count: elements.len(),
        empty_because: elements
            .is_empty()
            .then(|| explain_loss(&steps.0, "the page")),
        rows: rows.take(RowsTrace::MOST_ROWS).collect(),
        select: steps.0,
    }
}

/// The positions of two rows to show: the first row, and the first that has some fields and lacks others.
fn example_positions<'p>(rule: &RowRule, elements: &[Item<'p>], run: &Run<'p>) -> Vec<usize> {
    let of_row = rule.fields.iter().filter(|one| one.origin == Origin::Row);
    let of_row: Vec<&RowField> = of_row.collect();
    let lacks_some = |element: &Item<'p>| {
        let has = |one: &&&RowField| {
            let (field, start) = (&one.field, element.clone());
            let found = field_value(field, &field.alternatives, start, run, &mut NoObserver);
            matches!(found, Ok(Some(_)))
        };
        let filled = of_row.iter().filter(has).count();
        (1..of_row.len()).contains(&filled)
    };
    let lacking = elements.iter().position(lacks_some);
    std::iter::once(0).chain(lacking).collect()
}

fn trace_row_field<'p>(one: &RowField, element: &Item<'p>, run: &Run<'p>) -> FieldTrace {
    let url;
    let (start, place) = match one.origin {
        Origin::Row => (element, "the row"),
        Origin::Page => (&Item::Page, "the page"),
        Origin::Url => {
            url = Item::Text(run.page.url().as_str().into());
            (&url, "the page's URL")
        }
        Origin::Record(_) => return trace_record_field(one),
    };
    match one.origin {
        Origin::Row => run
            .columns
            .with_evidence(|| trace_field(&one.field, start, place, run)),
        _ => trace_field(&one.field, start, place, run),
    }
}

fn trace_record_field(one: &RowField) -> FieldTrace {
    FieldTrace {
        name: one.field.name.clone(),
        value: Value::Null,
        empty_because: vec![
            "its value comes from the record for which a crawl fetches the page".to_owned(),
        ],
        alternatives: Vec::new(),
    }
}
