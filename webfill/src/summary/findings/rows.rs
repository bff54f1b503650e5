//! The part of the summary about rows: how many of them became records, and how often each field has a value. Results
//! of `writeln!` are ignored, because writing to a string cannot fail.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};
use webfill_store::{MappingCounts, RowFieldCounts, RowTotals};

use super::{FIELDS_SHOWN, Findings, format_page_count, round_share, share, write_more};
use crate::summary::printing::escape_and_shorten;

impl Findings {
    /// The counts of this mapping's rows in this dataset in the previous crawl.
    fn rows_before(&self, mapping: &str, dataset: &str) -> Option<&RowTotals> {
        let (_, before) = self.before.as_ref()?;
        before.mappings.get(mapping)?.rows.get(dataset)
    }

    pub(super) fn rows_json(&self, mapping: &str, counts: &MappingCounts) -> Value {
        let mut rows = BTreeMap::new();
        for (dataset, totals) in &counts.rows {
            let before = self.rows_before(mapping, dataset);
            let fields = totals.fields.iter().map(|(name, field)| {
                let shown = json!({
                    "filled": field.filled,
                    "empty": field.rows.saturating_sub(field.filled),
                    "undecided": field.undecided,
                    "share": round_share(share(field.filled, field.rows)),
                    "share_before": share_before(before, name).map(round_share),
                });
                (name.as_str(), shown)
            });
            let shown = json!({
                "pages": totals.pages,
                "pages_without": totals.pages_without,
                "pages_cut": totals.cut_pages,
                "rows": totals.rows,
                "stored": totals.stored,
                "without_key": totals.without_key,
                "same_key": totals.same_key,
                "fields": fields.collect::<BTreeMap<&str, Value>>(),
            });
            rows.insert(dataset.as_str(), shown);
        }
        json!(rows)
    }

    pub(super) fn write_rows(&self, mapping: &str, counts: &MappingCounts, text: &mut String) {
        for (dataset, totals) in &counts.rows {
            let _ = writeln!(
                text,
                "  rows      {} of dataset {}, from {}: {}",
                totals.rows,
                escape_and_shorten(dataset),
                format_page_count(totals.pages),
                describe_results(totals)
            );
            let before = self.rows_before(mapping, dataset);
            let some_empty = |(_, field): &(&String, &RowFieldCounts)| field.filled < field.rows;
            let (empty, full): (Vec<_>, Vec<_>) = totals.fields.iter().partition(some_empty);
            if !full.is_empty() {
                let full: Vec<_> = full
                    .iter()
                    .map(|(name, _)| escape_and_shorten(name))
                    .collect();
                let _ = writeln!(text, "            always filled: {}", full.join(", "));
            }
            for (name, field) in empty.iter().take(FIELDS_SHOWN) {
                let shown = field_text(name, field, share_before(before, name));
                let _ = writeln!(text, "            {shown}");
            }
            write_more(text, empty.len().saturating_sub(FIELDS_SHOWN), "fields");
        }
    }
}

/// Describes how many rows were stored, and why others were not.
fn describe_results(totals: &RowTotals) -> String {
    let mut parts = vec![format!("{} stored", totals.stored)];
    if totals.without_key > 0 {
        parts.push(format!("{} without key", totals.without_key));
    }
    if totals.same_key > 0 {
        parts.push(format!(
            "{} lost to another row with the same key (see rows_with_same_key in the log)",
            totals.same_key
        ));
    }
    if totals.pages_without > 0 {
        parts.push(format!(
            "{} without rows",
            format_page_count(totals.pages_without)
        ));
    }
    if totals.cut_pages > 0 {
        parts.push(format!(
            "{} cut at a limit (see extraction_warning in the log)",
            format_page_count(totals.cut_pages)
        ));
    }
    parts.join(", ")
}

fn field_text(name: &str, field: &RowFieldCounts, share_before: Option<f64>) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = format!(
        "{}: {} filled, {} empty, {}",
        escape_and_shorten(name),
        field.filled,
        field.rows.saturating_sub(field.filled),
        percent(share(field.filled, field.rows))
    );
    if field.undecided > 0 {
        let _ = write!(text, "; {} can be read in two ways", field.undecided);
    }
    if let Some(before) = share_before {
        let _ = write!(text, "; {} in the crawl before", percent(before));
    }
    text
}

fn share_before(before: Option<&RowTotals>, field: &str) -> Option<f64> {
    let before = before?.fields.get(field)?;
    (before.rows > 0).then(|| share(before.filled, before.rows))
}

/// Describes a field that no row has, or a rule that found no rows; `None` if there is neither.
pub(super) fn unfilled_field(counts: &MappingCounts) -> Option<String> {
    counts.rows.iter().find_map(|(dataset, totals)| {
        if totals.pages > 0 && totals.rows == 0 {
            return Some(format!("no rows of dataset {dataset}"));
        }
        let mut fields = totals.fields.iter();
        let (name, _) = fields.find(|(_, field)| field.rows > 0 && field.filled == 0)?;
        Some(format!("`{name}` in none of its rows of dataset {dataset}"))
    })
}
