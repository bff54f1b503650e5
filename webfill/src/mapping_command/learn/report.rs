//! Reports what was learned, for people and for programs.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use webfill_learn::{FieldReport, Learned, LearnedMapping};
use webfill_service::Fault;

use super::output;
use super::records::KnownRecords;
use crate::cli::{MappingOutputOptions, ReportFormat};
use crate::demand::table::{table, without_control_characters};
use crate::shell;
use crate::stdout::print;

const HEADS: [&str; 6] = [
    "field",
    "confidence",
    "agree",
    "disagree",
    "chain",
    "runner-up",
];

/// The most pages that the report names of each kind.
const MOST_PAGES: usize = 3;

/// The most characters of a chain that are printed.
const MOST_CHARS: usize = 60;

pub struct LearnReport<'t> {
    pub learned: &'t Learned,
    pub records: &'t KnownRecords,
    pub pages: usize,
}

impl LearnReport<'_> {
    /// Writes the mapping and reports how it was learned. Nothing is written if nothing was learned.
    pub fn write_and_report(&self, to: &MappingOutputOptions) -> Result<(), Fault> {
        let mappings: Vec<Value> = self
            .learned
            .mappings
            .iter()
            .map(|one| one.mapping.clone())
            .collect();
        let text = match mappings.is_empty() {
            true => None,
            false => Some(output::format_mappings(mappings)?),
        };
        if let (Some(file), Some(text)) = (&to.output, &text) {
            output::write(file, text)?;
        }
        match (to.format, &to.output, text) {
            (ReportFormat::Json, ..) => print(format_args!("{:#}", self.json())),
            (ReportFormat::Text, Some(file), _) => print(self.text(Some(file))),
            (ReportFormat::Text, None, text) => {
                webfill_service::say!("{}", self.text(None));
                text.map_or(Ok(()), |text| print(text.trim_end()))
            }
        }
    }

    fn json(&self) -> Value {
        let mut report = json!(self.learned);
        report["records"] = json!({
            "read": self.records.read,
            "joined": self.records.records.len(),
        });
        report["pages"] = json!(self.pages);
        report
    }

    fn text(&self, file: Option<&Path>) -> String {
        let mut parts: Vec<String> = Vec::new();
        for mapping in &self.learned.mappings {
            parts.push(mapping_text(mapping));
        }
        if self.learned.mappings.is_empty() {
            parts.push(format!("nothing was learned from {} pages", self.pages));
        }
        parts.extend(self.left_out_line());
        if let Some(file) = file.filter(|_| !self.learned.mappings.is_empty()) {
            parts.push(format!("written to {}", file.display()));
        }
        parts.join("\n\n")
    }

    /// Describes how many pages were left out, by reason.
    fn left_out_line(&self) -> Option<String> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for left in &self.learned.left_out {
            reasons.entry(&left.why).or_default().push(&left.url);
        }
        let lines = reasons.iter().map(|(why, urls)| {
            let more = urls.len().saturating_sub(1);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            without_control_characters(&format!("left out: {}{more}: {why}", urls[0]))
        });
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Formats a learned mapping for people: its fields as a table, and warnings.
pub fn mapping_text(learned: &LearnedMapping) -> String {
    let name = learned.mapping["name"].as_str().unwrap_or_default();
    let count = learned.pages.len();
    let rows: Vec<Vec<String>> = learned.fields.iter().map(field_row).collect();
    let mut lines = vec![
        without_control_characters(&format!("mapping {name}, learned from {count} pages")),
        table(&HEADS, &rows),
    ];
    if let Some(rows) = &learned.rows {
        let (dataset, key) = (&rows.dataset, rows.key.join(", "));
        let head = format!(
            "rows of {dataset}, key {key}, confidence {:.2}",
            rows.confidence
        );
        lines.push(without_control_characters(&format!("{head}: {}", rows.why)));
    }
    lines.extend(
        learned
            .fields
            .iter()
            .map(|field| without_control_characters(&format!("{}: {}", field.field, field.why))),
    );
    for field in &learned.fields {
        let disagreements = field.disagree.iter().take(MOST_PAGES);
        lines.extend(disagreements.map(|one| {
            let (known, read) = (one.known.join(", "), one.read.join(", "));
            without_control_characters(&format!(
                "{}: known is \"{known}\", read \"{read}\"  {}",
                field.field, one.url
            ))
        }));
    }
    for field in &learned.fields {
        let doubted = field.doubted.iter().take(MOST_PAGES);
        lines.extend(doubted.map(|one| {
            let (known, read) = (one.known.join(", "), one.read.join(", "));
            without_control_characters(&format!(
                "{}: the record looks out of date: known is \"{known}\", read \"{read}\"  {}",
                field.field, one.url
            ))
        }));
    }
    if learned.draft {
        lines.push(String::from(
            "this is a draft: read it before you crawl with it",
        ));
    }
    if let Some(url) = &learned.page_to_check {
        let word = shell::quote(url);
        lines.push(without_control_characters(&format!(
            "check {url}: give the right value with --correct {word} FIELD=VALUE, and learn again"
        )));
    }
    lines.join("\n")
}

fn field_row(field: &FieldReport) -> Vec<String> {
    let nothing = || String::from("-");
    vec![
        without_control_characters(&field.field),
        match field.processors {
            Some(_) => format!("{:.2}", field.confidence),
            None => nothing(),
        },
        field.agree.len().to_string(),
        field.disagree.len().to_string(),
        field.processors.as_ref().map_or_else(nothing, format_chain),
        field.runner_up.as_ref().map_or_else(nothing, format_chain),
    ]
}

/// Formats a chain of processors on one line: `xpath //h1/text(), trim`.
fn format_chain(processors: &Value) -> String {
    let steps = processors.as_array().into_iter().flatten().map(|step| {
        let name = step["type"].as_str().unwrap_or_default();
        let parameters = step["parameters"].as_object().into_iter().flatten();
        let first = parameters.map(|(_, value)| match value.as_str() {
            Some(text) => format!(" {text}"),
            None => format!(" {value}"),
        });
        format!("{name}{}", first.collect::<String>())
    });
    let text = without_control_characters(&steps.collect::<Vec<_>>().join(", "));
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
