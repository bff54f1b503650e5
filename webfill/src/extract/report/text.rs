//! The report for people.

use std::cmp::Reverse;

use serde_json::Value;

use super::{Example, FieldCounts, MOST_LISTED, Report};
use crate::demand::table::{table, without_control_characters};

/// The longest value that is printed, in characters. Longer ones are truncated.
const MOST_SHOWN_CHARS: usize = 80;

impl Report {
    pub fn text(&self) -> String {
        let mut lines = vec![self.head()];
        if !self.mappings.is_empty() {
            lines.push(String::new());
            lines.push(self.table());
        }
        for (mapping, counts) in &self.mappings {
            let rows = counts.rows.iter();
            lines.extend(rows.map(|(dataset, rows)| {
                let (mapping, dataset) = (
                    without_control_characters(mapping),
                    without_control_characters(dataset),
                );
                format!(
                    "{mapping}: {rows} rows of {dataset} on {} pages",
                    counts.pages
                )
            }));
        }
        if !self.examples.is_empty() {
            lines.push(String::new());
            lines.extend(self.examples.iter().map(example_text));
        }
        lines.push(String::new());
        lines.extend(self.skipped_lines());
        lines.push(self.closing_line());
        lines.join("\n")
    }

    fn head(&self) -> String {
        let from = match self.source {
            "warc" => "WARC files",
            "documents" => "kept documents",
            _ => "kept bodies",
        };
        let (app, crawl) = (
            without_control_characters(&self.app_id),
            without_control_characters(&self.crawl_id),
        );
        format!("{app}/{crawl}: {} pages read again from {from}", self.read)
    }

    fn table(&self) -> String {
        let heads = [
            "mapping", "field", "filled", "empty", "new", "changed", "same", "lost",
        ];
        let row = |mapping: &str, field: &str, of: &FieldCounts| {
            let numbers = [
                of.filled_records(),
                of.empty + of.lost,
                of.new,
                of.changed,
                of.same,
                of.lost,
            ];
            let names = [
                without_control_characters(mapping),
                without_control_characters(field),
            ]
            .into_iter();
            names.chain(numbers.iter().map(u64::to_string)).collect()
        };
        let rows = self.mappings.iter().flat_map(|(mapping, counts)| {
            let fields = counts.fields.iter();
            fields.map(move |(field, of)| row(mapping, field, of))
        });
        table(&heads, &rows.collect::<Vec<Vec<String>>>())
    }

    /// Describes how many pages were not read, and why.
    fn skipped_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, what) in [
            (
                self.overtaken,
                "were fetched again meanwhile and stay unchanged",
            ),
            (
                self.of_another_fetch,
                "bodies are from another fetch than the stored page and were skipped",
            ),
            (
                self.not_stored,
                "are not stored as pages of this crawl and were skipped",
            ),
            (
                self.left_out,
                "pages of the archive were skipped: their bodies are in other records, of too many pages",
            ),
            (self.failed, "pages could not be read and stay unchanged"),
        ] {
            if number > 0 {
                lines.push(format!("{number} {what}"));
            }
        }
        let failures = self.failures.iter();
        lines.extend(failures.map(|(url, reason)| {
            format!(
                "  {}: {}",
                without_control_characters(url),
                without_control_characters(reason)
            )
        }));
        lines.extend(
            self.torn
                .iter()
                .take(MOST_LISTED)
                .map(|torn| without_control_characters(torn)),
        );
        lines
    }

    fn closing_line(&self) -> String {
        let (written, same, values) = (self.written, self.unchanged, self.record_values());
        let (records, fields) = (self.records.0, self.record_fields());
        match self.is_trial {
            true => format!(
                "{written} pages would change, {same} would not; {values} values of {records} records would be new or different{fields}; nothing was written (--dry-run)"
            ),
            false => format!(
                "{written} pages written, {same} unchanged; {values} values of {records} records are new or different{fields}"
            ),
        }
    }

    /// The fields of records with new or changed values. Those with the most come first.
    fn record_fields(&self) -> String {
        let (_, counts) = &self.records;
        let mut fields: Vec<_> = counts.iter().collect();
        fields.sort_by_key(|(_, (new, changed))| Reverse(new + changed));
        let parts = fields.iter().take(MOST_LISTED);
        let parts = parts.map(|(name, (new, changed))| {
            format!(
                "{} {new} new, {changed} changed",
                without_control_characters(name)
            )
        });
        let parts = parts.collect::<Vec<_>>().join("; ");
        match parts.is_empty() {
            true => parts,
            false => format!(" ({parts})"),
        }
    }
}

fn example_text(example: &Example) -> String {
    let (mapping, field) = (
        without_control_characters(&example.mapping),
        without_control_characters(&example.field),
    );
    let (old, new) = (format_value(&example.old), format_value(&example.new));
    format!(
        "{mapping}.{field}: {old} -> {new}  {}",
        without_control_characters(&example.url)
    )
}

fn format_value(value: &Value) -> String {
    let text = match value {
        Value::Null => return "-".to_owned(),
        value => without_control_characters(&value.to_string()),
    };
    match text.chars().count() > MOST_SHOWN_CHARS {
        true => text.chars().take(MOST_SHOWN_CHARS).collect::<String>() + "\u{2026}",
        false => text,
    }
}
