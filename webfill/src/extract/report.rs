//! The result of reading pages again: for each mapping and field, how many values are new, changed, unchanged or lost,
//! with examples.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use webfill_store::{CrawlId, Listing, RereadAnswer, ValueCounts, has_value};

use crate::demand::table::{table, without_control_characters};

/// Limits of a value in examples, in JSON and in text. Longer values are truncated.
const MOST_VALUE_BYTES: usize = 4 << 10;
const MOST_SHOWN_CHARS: usize = 80;

/// The most unreadable pages, and the most torn files, that are listed.
const MOST_LISTED: usize = 20;

/// The name for pages that no mapping reads, now or before.
const NO_MAPPING: &str = "(none)";

/// Why a kept page was left out.
#[derive(Debug, Clone, Copy)]
pub enum SkipReason {
    NotStored,
    OfAnotherFetch,
}

#[derive(Debug, Default)]
struct FieldCounts {
    /// Pages without a value before, and with one now.
    new: u64,
    changed: u64,
    same: u64,
    /// Pages with a value before, and without one now.
    lost: u64,
    /// Pages without a value before and now.
    empty: u64,
    examples: u64,
}

impl FieldCounts {
    fn filled(&self) -> u64 {
        self.new + self.changed + self.same
    }
}

#[derive(Debug, Default)]
struct MappingCounts {
    pages: u64,
    changed_pages: u64,
    fields: BTreeMap<String, FieldCounts>,
    /// How many rows are listed, by dataset.
    rows: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Example {
    mapping: String,
    field: String,
    change: &'static str,
    url: String,
    old: Value,
    new: Value,
}

/// The report on reading pages again.
#[derive(Debug)]
pub struct Report {
    app_id: String,
    crawl_id: String,
    pub source: &'static str,
    is_trial: bool,
    most_examples: u64,
    /// Whether at least one body belonged to a stored page of the crawl.
    pub has_found: bool,
    read: u64,
    written: u64,
    unchanged: u64,
    overtaken: u64,
    not_stored: u64,
    of_another_fetch: u64,
    failed: u64,
    failures: Vec<(String, String)>,
    /// How many records have new or changed values, and the number of these values by field.
    pub records: (u64, ValueCounts),
    mappings: BTreeMap<String, MappingCounts>,
    examples: Vec<Example>,
    /// How many pages of an archive were left out, because their bodies were not searched for.
    pub left_out: u64,
    /// Messages about files that could be read only in part.
    pub torn: Vec<String>,
}

impl Report {
    pub fn new(
        crawl: &CrawlId,
        source: &'static str,
        is_trial: bool,
        most_examples: u64,
    ) -> Report {
        Report {
            app_id: crawl.app_id.clone(),
            crawl_id: crawl.crawl_id.clone(),
            source,
            is_trial,
            most_examples,
            has_found: false,
            read: 0,
            written: 0,
            unchanged: 0,
            overtaken: 0,
            not_stored: 0,
            of_another_fetch: 0,
            failed: 0,
            failures: Vec::new(),
            records: (0, ValueCounts::new()),
            mappings: BTreeMap::new(),
            examples: Vec::new(),
            left_out: 0,
            torn: Vec::new(),
        }
    }

    pub fn count_skipped(&mut self, why: SkipReason) {
        match why {
            SkipReason::NotStored => self.not_stored += 1,
            SkipReason::OfAnotherFetch => self.of_another_fetch += 1,
        }
    }

    /// Notes that a page could not be read or its values could not be stored. The stored page stays unchanged.
    pub fn fail(&mut self, url: &str, reason: &str) {
        self.failed += 1;
        if self.failures.len() < MOST_LISTED {
            self.failures.push((url.to_owned(), reason.to_owned()));
        }
    }

    /// Counts the differences between the stored and the current fields of a page.
    pub fn compare(
        &mut self,
        mapping: Option<&str>,
        declared: Vec<&str>,
        (url, old, new): (&str, &Map<String, Value>, &Map<String, Value>),
    ) {
        self.read += 1;
        let mapping = mapping.unwrap_or(NO_MAPPING);
        let counts = self.mappings.entry(mapping.to_owned()).or_default();
        counts.pages += 1;
        counts.changed_pages += u64::from(old != new);
        let names = old.keys().chain(new.keys()).map(String::as_str);
        let names: BTreeSet<&str> = names.chain(declared).collect();
        for name in names {
            let (old, new) = (value_of(old, name), value_of(new, name));
            let of_field = counts.fields.entry(name.to_owned()).or_default();
            let Some(change) = count_change(of_field, old, new) else {
                continue;
            };
            if of_field.examples < self.most_examples {
                of_field.examples += 1;
                self.examples.push(Example {
                    mapping: mapping.to_owned(),
                    field: name.to_owned(),
                    change,
                    url: url.to_owned(),
                    old: example_value(old),
                    new: example_value(new),
                });
            }
        }
    }

    /// Counts the rows that a page of a mapping lists.
    pub fn count_rows(&mut self, mapping: Option<&str>, listings: &[Listing]) {
        let mapping = mapping.unwrap_or(NO_MAPPING);
        let counts = self.mappings.entry(mapping.to_owned()).or_default();
        for listing in listings {
            let dataset = listing.dataset.as_str().to_owned();
            *counts.rows.entry(dataset).or_default() += listing.rows.len() as u64;
        }
    }

    /// Counts the store's answer for a page that was read.
    pub fn count_answer(&mut self, is_changed: bool, answer: &RereadAnswer) {
        match (answer.is_overtaken, is_changed) {
            (true, _) => self.overtaken += 1,
            (false, true) => self.written += 1,
            (false, false) => self.unchanged += 1,
        }
    }

    /// How many values of records are new or changed.
    fn record_values(&self) -> u64 {
        let (_, counts) = &self.records;
        counts.values().map(|(new, changed)| new + changed).sum()
    }

    pub fn json(&self) -> Value {
        let failures = self.failures.iter();
        let failures = failures.map(|(url, reason)| json!({"url": url, "reason": reason}));
        json!({
            "app_id": self.app_id,
            "crawl_id": self.crawl_id,
            "source": self.source,
            "dry_run": self.is_trial,
            "pages": {
                "read": self.read,
                "written": self.written,
                "unchanged": self.unchanged,
                "overtaken": self.overtaken,
                "failed": self.failed,
                "of_another_fetch": self.of_another_fetch,
                "not_stored": self.not_stored,
                "left_out": self.left_out,
            },
            "records": self.records.0,
            "record_values": self.record_values(),
            "record_fields": self.records.1.iter().map(record_field_json).collect::<Map<_, _>>(),
            "mappings": self.mappings.iter().map(mapping_json).collect::<Map<_, _>>(),
            "examples": self.examples.iter().map(example_json).collect::<Vec<_>>(),
            "failures": failures.collect::<Vec<_>>(),
            "torn_files": self.torn,
        })
    }

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
        lines.push(self.end());
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
                of.filled(),
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

    /// The pages that were not read, and why.
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

    fn end(&self) -> String {
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

    /// The fields with new or changed values of records, those with the most first.
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

fn value_of<'m>(fields: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    fields.get(name).filter(|value| has_value(value))
}

/// Counts the change of a value. Returns the name of the change, if there is one.
fn count_change(
    of: &mut FieldCounts,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Option<&'static str> {
    let (counted, change) = match (old, new) {
        (None, None) => (&mut of.empty, None),
        (None, Some(_)) => (&mut of.new, Some("new")),
        (Some(_), None) => (&mut of.lost, Some("lost")),
        (Some(old), Some(new)) if old == new => (&mut of.same, None),
        (Some(_), Some(_)) => (&mut of.changed, Some("changed")),
    };
    *counted += 1;
    change
}

/// The value of an example, truncated if it is long.
fn example_value(value: Option<&Value>) -> Value {
    let Some(value) = value else {
        return Value::Null;
    };
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    if text.len() <= MOST_VALUE_BYTES {
        return value.clone();
    }
    let end = text.floor_char_boundary(MOST_VALUE_BYTES);
    Value::String(format!("{}\u{2026}", &text[..end]))
}

fn mapping_json((name, counts): (&String, &MappingCounts)) -> (String, Value) {
    let field = |(name, of): (&String, &FieldCounts)| {
        let counts = json!({
            "filled": of.filled(),
            "empty": of.empty + of.lost,
            "new": of.new,
            "changed": of.changed,
            "same": of.same,
            "lost": of.lost,
        });
        (name.clone(), counts)
    };
    let mut row = json!({
        "pages": counts.pages,
        "changed_pages": counts.changed_pages,
        "fields": counts.fields.iter().map(field).collect::<Map<_, _>>(),
    });
    if !counts.rows.is_empty() {
        row["rows"] = json!(counts.rows);
    }
    (name.clone(), row)
}

fn record_field_json((name, (new, changed)): (&String, &(u64, u64))) -> (String, Value) {
    (name.clone(), json!({"new": new, "changed": changed}))
}

fn example_json(example: &Example) -> Value {
    json!({
        "mapping": example.mapping,
        "field": example.field,
        "change": example.change,
        "url": example.url,
        "old": example.old,
        "new": example.new,
    })
}

fn example_text(example: &Example) -> String {
    let (mapping, field) = (
        without_control_characters(&example.mapping),
        without_control_characters(&example.field),
    );
    let (old, new) = (shown(&example.old), shown(&example.new));
    format!(
        "{mapping}.{field}: {old} -> {new}  {}",
        without_control_characters(&example.url)
    )
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => return "-".to_owned(),
        value => without_control_characters(&value.to_string()),
    };
    match text.chars().count() > MOST_SHOWN_CHARS {
        true => text.chars().take(MOST_SHOWN_CHARS).collect::<String>() + "\u{2026}",
        false => text,
    }
}
