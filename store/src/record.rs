//! Records: the user's dataset, and how pages fill what is missing in it.
//!
//! The rules are the same for every backend and live here. A field that has a value keeps it. A
//! wanted field without a value is missing, until a page or the user's own input supplies one; a
//! page's value is kept with its source. A record is resolved while nothing is missing.
//!
//! Of two pages that bring different values for a field, the one whose mapping comes first in the
//! [`MappingOrder`] wins, whichever was saved first; of equals, the first saved. The other value
//! is kept as a candidate, with its source. What the user gave is never a matter of candidates.

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

/// Candidates kept of a field, at most.
const MAX_CANDIDATES: usize = 8;

/// A longer value, as JSON, is no candidate: candidates must not make a record too large to keep.
const MAX_CANDIDATE_BYTES: usize = 16 << 10;

/// The names of the mappings, the one that wins first. A mapping that is not among them comes
/// after all that are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingOrder(pub Vec<String>);

impl MappingOrder {
    fn place(&self, mapping: Option<&str>) -> usize {
        let same = |name: &String| Some(name.as_str()) == mapping;
        self.0.iter().position(same).unwrap_or(self.0.len())
    }
}

/// A record as stored.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StoredRecord {
    pub(crate) fields: Map<String, Value>,
    /// Name to `{url, mapping, at}`, for what came from pages.
    pub(crate) sources: Map<String, Value>,
    /// Name to a list of `{value, url, mapping, at}`, in order of arrival.
    pub(crate) candidates: Map<String, Value>,
    pub(crate) missing: Vec<String>,
    /// ISO 8601.
    pub(crate) resolved_at: Option<String>,
}

/// What of a page goes into records.
pub(crate) struct PageValues<'a> {
    pub(crate) fields: &'a Map<String, Value>,
    pub(crate) url: &'a str,
    pub(crate) mapping: Option<&'a str>,
    pub(crate) started_at_ms: i64,
    pub(crate) ended_at_ms: i64,
}

impl<'a> PageValues<'a> {
    pub(crate) fn of(page: &'a Page) -> PageValues<'a> {
        PageValues {
            fields: &page.fields,
            url: &page.url,
            mapping: page.mapping.as_deref(),
            started_at_ms: page.started_at_ms,
            ended_at_ms: page.ended_at_ms(),
        }
    }

    fn source(&self) -> Value {
        json!({
            "url": self.url,
            "mapping": self.mapping,
            "at": iso_time(self.started_at_ms),
        })
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

    /// Forgets what is known of these fields, so that they are missing again. Returns whether
    /// anything changed.
    pub(crate) fn reopen(&mut self, names: &[String]) -> bool {
        let mut changed = false;
        for name in names {
            changed |= self.sources.shift_remove(name).is_some();
            changed |= self.candidates.shift_remove(name).is_some();
            if let Some(value) = self.fields.get_mut(name).filter(|value| has_value(value)) {
                *value = Value::Null;
                changed = true;
            }
        }
        changed
    }

    /// The values that other pages brought for a field.
    pub(crate) fn candidate_values(&self, name: &str) -> Vec<Value> {
        let candidates = self.candidates.get(name).and_then(Value::as_array);
        let values = candidates.into_iter().flatten();
        values.map(|candidate| candidate["value"].clone()).collect()
    }

    /// Takes from a page what is missing or better than another page's, and keeps the source of
    /// each value. Returns whether anything changed.
    pub(crate) fn fill(&mut self, page: &PageValues<'_>, order: &MappingOrder) -> bool {
        let mut changed = false;
        for (name, value) in page.fields {
            if !has_value(value) {
                continue;
            }
            if self.missing.contains(name) {
                self.take(name, value, page);
                changed = true;
            } else if let Some(source) = self.sources.get(name) {
                let source = source.clone();
                changed |= self.compare(name, value, page, source, order);
            }
        }
        if changed {
            self.settle(page.ended_at_ms);
        }
        changed
    }

    fn take(&mut self, name: &str, value: &Value, page: &PageValues<'_>) {
        self.fields.insert(name.to_owned(), value.clone());
        self.sources.insert(name.to_owned(), page.source());
    }

    /// A page has a value for a field that another page (`source`) has filled.
    fn compare(
        &mut self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        source: Value,
        order: &MappingOrder,
    ) -> bool {
        let kept = self.fields.get(name).cloned().unwrap_or_default();
        // A page that was fetched again is no second witness.
        if kept == *value || source["url"] == page.url {
            return false;
        }
        if order.place(page.mapping) < order.place(source["mapping"].as_str()) {
            self.take(name, value, page);
            self.forget_candidate(name, value);
            self.add_candidate(name, &kept, source);
            return true;
        }
        self.add_candidate(name, value, page.source())
    }

    /// Returns whether there was room for it, and it was not there already.
    fn add_candidate(&mut self, name: &str, value: &Value, source: Value) -> bool {
        let known = self.candidates.get(name).and_then(Value::as_array);
        let is_known = |known: &Vec<Value>| known.iter().any(|known| known["value"] == *value);
        let is_full = |known: &Vec<Value>| known.len() >= MAX_CANDIDATES;
        if known.is_some_and(|known| is_known(known) || is_full(known))
            || value.to_string().len() > MAX_CANDIDATE_BYTES
        {
            return false;
        }
        let mut candidate = Map::from_iter([("value".to_owned(), value.clone())]);
        if let Value::Object(source) = source {
            candidate.extend(source);
        }
        let candidates = self.candidates.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(candidates) = candidates {
            candidates.push(Value::Object(candidate));
        }
        true
    }

    fn forget_candidate(&mut self, name: &str, value: &Value) {
        if let Some(Value::Array(candidates)) = self.candidates.get_mut(name) {
            candidates.retain(|candidate| candidate["value"] != *value);
        }
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
