//! The result of reading pages again: for each mapping and field, how many values are new, changed, unchanged or lost,
//! with examples.

mod json;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use webfill_store::{CrawlId, Listing, RereadAnswer, ValueCounts, has_value};

/// The longest value in examples. Longer ones are truncated.
const MOST_VALUE_BYTES: usize = 4 << 10;
/// The most unreadable pages that are listed, and the most truncated files.
const MOST_LISTED: usize = 20;

/// The name for counting pages that no mapping has read, neither in the crawl nor now.
const NO_MAPPING: &str = "(none)";

/// Why a kept page was left out.
#[derive(Debug, Clone, Copy)]
pub enum SkipReason {
    NotStored,
    OfAnotherFetch,
}

#[derive(Debug, Default)]
struct FieldCounts {
    /// Pages that had no value before, but have one now.
    new: u64,
    changed: u64,
    same: u64,
    /// Pages that had a value before, but have none now.
    lost: u64,
    /// Pages that had no value before, and have none now.
    empty: u64,
    examples: u64,
}

impl FieldCounts {
    fn filled_records(&self) -> u64 {
        self.new + self.changed + self.same
    }
}

#[derive(Debug, Default)]
struct MappingCounts {
    pages: u64,
    changed_pages: u64,
    fields: BTreeMap<String, FieldCounts>,
    /// The number of rows that the pages list, by dataset.
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
    /// Whether at least one kept body belongs to a stored page of the crawl.
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
    /// The number of pages that were left out because a limit was reached before their bodies were searched for.
    pub left_out: u64,
    /// Messages about damaged WARC files, which could be read only in part.
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
    pub fn note_failure(&mut self, url: &str, reason: &str) {
        self.failed += 1;
        if self.failures.len() < MOST_LISTED {
            self.failures.push((url.to_owned(), reason.to_owned()));
        }
    }

    /// Counts the differences between the stored and the current fields of a page.
    pub fn count_differences(
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
            let (old, new) = (non_empty_value(old, name), non_empty_value(new, name));
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
                    old: shorten_example(old),
                    new: shorten_example(new),
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

    /// Counts the result of storing a page that was read again.
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
}

fn non_empty_value<'m>(fields: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    fields.get(name).filter(|value| has_value(value))
}

/// Counts how a value has changed. Returns the name of the change; `None` if it is unchanged.
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
fn shorten_example(value: Option<&Value>) -> Value {
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
