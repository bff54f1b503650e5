//! Records: the user's dataset, and how pages fill what is missing in it.
//!
//! The rules are the same for every backend and live here. A field that has a value keeps it. A
//! wanted field without a value is missing, until a page or the user's own input supplies one; a
//! page's value is kept with its source. A record is resolved while nothing is missing.

use serde_json::{Map, Value, json};

use crate::page::Page;
use crate::timestamp::iso_time;

/// No record id is longer than this.
pub const MAX_RECORD_ID_BYTES: usize = 1024;

/// One row of the user's dataset, as given.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub id: String,
    /// Known values; null means that the value is missing.
    pub fields: Map<String, Value>,
    /// The fields to be filled; those that have a value already are not missing.
    pub want: Vec<String>,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    /// A wanted field is missing.
    Open,
    /// No wanted field is missing.
    Resolved,
}

/// How many records a crawl has, and how many of them are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordCounts {
    pub total: u64,
    pub resolved: u64,
}

/// Whether a value says anything: null, "" and [] do not, and leave a field missing.
pub fn has_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// A record as stored.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StoredRecord {
    pub(crate) fields: Map<String, Value>,
    pub(crate) sources: Map<String, Value>,
    pub(crate) missing: Vec<String>,
    /// ISO 8601.
    pub(crate) resolved_at: Option<String>,
}

/// What of a page goes into records.
pub(crate) struct Filling<'a> {
    pub(crate) fields: &'a Map<String, Value>,
    pub(crate) url: &'a str,
    pub(crate) mapping: Option<&'a str>,
    pub(crate) started_at_ms: i64,
    pub(crate) ended_at_ms: i64,
}

impl<'a> Filling<'a> {
    pub(crate) fn of(page: &'a Page) -> Filling<'a> {
        Filling {
            fields: &page.fields,
            url: &page.url,
            mapping: page.mapping.as_deref(),
            started_at_ms: page.started_at_ms,
            ended_at_ms: page.ended_at_ms(),
        }
    }
}

impl StoredRecord {
    pub(crate) fn state(&self) -> RecordState {
        if self.missing.is_empty() {
            RecordState::Resolved
        } else {
            RecordState::Open
        }
    }

    /// Takes the user's input in: values where there are none, and further wanted fields.
    /// Returns whether anything changed.
    pub(crate) fn merge(&mut self, input: &Record, now_ms: i64) -> bool {
        let before = (
            self.fields.len(),
            self.missing.len(),
            self.resolved_at.is_some(),
        );
        let mut changed = false;
        for (name, value) in &input.fields {
            match self.fields.get_mut(name) {
                Some(kept) if has_value(kept) || !has_value(value) => {}
                Some(kept) => {
                    *kept = value.clone();
                    changed = true;
                }
                None => {
                    self.fields.insert(name.clone(), value.clone());
                }
            }
        }
        for name in &input.want {
            if !self.missing.contains(name) {
                self.missing.push(name.clone());
            }
        }
        self.settle(now_ms);
        changed
            || before
                != (
                    self.fields.len(),
                    self.missing.len(),
                    self.resolved_at.is_some(),
                )
    }

    /// Fills missing fields from a page and keeps the source of each. Returns whether it could.
    pub(crate) fn fill(&mut self, page: &Filling<'_>) -> bool {
        let mut filled = false;
        for name in &self.missing {
            let Some(value) = page.fields.get(name).filter(|value| has_value(value)) else {
                continue;
            };
            let source = json!({
                "url": page.url,
                "mapping": page.mapping,
                "at": iso_time(page.started_at_ms),
            });
            self.fields.insert(name.clone(), value.clone());
            self.sources.insert(name.clone(), source);
            filled = true;
        }
        if filled {
            self.settle(page.ended_at_ms);
        }
        filled
    }

    /// Drops from `missing` what has a value by now. The time of resolution is set once; it goes
    /// only if the user wants more than before.
    fn settle(&mut self, at_ms: i64) {
        let fields = &self.fields;
        self.missing
            .retain(|name| !fields.get(name).is_some_and(has_value));
        if !self.missing.is_empty() {
            self.resolved_at = None;
        } else if self.resolved_at.is_none() {
            self.resolved_at = Some(iso_time(at_ms));
        }
    }
}
