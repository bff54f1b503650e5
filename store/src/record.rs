//! Records, and the rules by which pages fill their missing fields. The rules are the same for every
//! backend.
//!
//! - A value that the user's input gives replaces any other: an earlier one of the input, because it
//!   corrects it, and that of a page, because the user knows better. The page's value, its source and
//!   the candidates go. So what a record becomes does not depend on whether the page or the input came
//!   first. Empty values replace nothing.
//! - Otherwise a field that has a value keeps it, except as in the last rule.
//! - A wanted field without a value is *missing*, until a page or the user's input supplies a value.
//!   A page's value is stored with its source.
//! - A record is *resolved* while no wanted field is missing, and *open* otherwise.
//! - If two pages bring different values for a field, the page whose mapping comes first in the
//!   [`MappingOrder`] wins, in whatever order they are saved; if the mappings are equal, the page
//!   that was saved first. The other value is stored as a *candidate*, with its source. Values from
//!   the user have no candidates, and no page replaces them.
//! - A refresh asks for a field again that has a value: it is among the missing ones, and keeps its value
//!   until another fetch brings one. So a refresh that fails costs nothing.
//! - A value that another one of the user's input, or of a refresh, replaces becomes *history*, with its
//!   source. The same holds if a page is read again without fetching: its values replace those that this
//!   fetch of it, or an earlier one, has brought.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::dataset_name::{DatasetName, record_key};
use crate::page::Page;
use crate::source_document::DatasetRecord;
use crate::timestamp::iso_time;

mod reread;
mod taking_back;
mod urls;

/// No record id is longer than this.
pub const MAX_RECORD_ID_BYTES: usize = 1024;

/// One row of the user's dataset, as given.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub dataset: DatasetName,
    /// Its id within the dataset.
    pub id: String,
    /// Known values; null means that the value is missing.
    pub fields: Map<String, Value>,
    /// The fields to be filled; those that have a value already are not missing.
    pub want: Vec<String>,
}

impl Record {
    /// See [`record_key`].
    pub fn key(&self) -> String {
        record_key(&self.dataset, &self.id)
    }
}

/// The state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    /// A wanted field is missing, or asked for again.
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

/// Whether a value counts as one: null, [] and a text that shows nothing do not, and leave a field missing.
pub fn has_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !webfill_values::is_blank(text),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// Whether a value of the input is the one that is kept, perhaps as the text that a CSV file has in
/// its place.
fn is_same(kept: &Value, given: &Value) -> bool {
    match given {
        Value::String(text) if !kept.is_string() => {
            serde_json::from_str::<Value>(text).is_ok_and(|value| value == *kept)
        }
        given => given == kept,
    }
}

/// The most candidates of one field.
const MAX_CANDIDATES: usize = 8;

/// The largest candidate, in bytes of JSON: candidates must not make a record too large to store. The
/// same holds for a value in the history.
const MAX_CANDIDATE_BYTES: usize = 16 << 10;

/// The most former values of one field; the oldest go.
const MAX_HISTORY: usize = 8;

/// The names of mappings, in the order of their priority. A mapping that is not listed comes last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingOrder(pub Vec<String>);

impl MappingOrder {
    fn rank(&self, mapping: Option<&str>) -> usize {
        let same = |name: &String| Some(name.as_str()) == mapping;
        self.0.iter().position(same).unwrap_or(self.0.len())
    }
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct StoredRecord {
    pub(crate) fields: Map<String, Value>,
    /// Name to `{url, mapping, at}`, for what came from pages.
    pub(crate) sources: Map<String, Value>,
    /// Name to a list of `{value, url, mapping, at}`, in order of arrival.
    pub(crate) candidates: Map<String, Value>,
    /// Name to a list of `{value, until}`, with `{url, mapping, at}` if it came from a page: what the field
    /// was, the last value last.
    pub(crate) history: Map<String, Value>,
    pub(crate) missing: Vec<String>,
    /// ISO 8601.
    pub(crate) resolved_at: Option<String>,
    /// Where the user's input says that its values may be found.
    pub(crate) urls: Vec<String>,
}

/// The values of a page, with what a record's source says of them.
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

/// The input without its values of these fields.
fn without<'a>(record: &Record, names: impl IntoIterator<Item = &'a String>) -> Record {
    let mut known = record.clone();
    for name in names {
        if let Some(value) = known.fields.get_mut(name) {
            *value = Value::Null;
        }
    }
    known
}

impl StoredRecord {
    pub(crate) fn state(&self) -> RecordState {
        if self.missing.is_empty() {
            RecordState::Resolved
        } else {
            RecordState::Open
        }
    }

    /// Puts the user's input, and asks again for fields that are to be refreshed. Values of the input that
    /// these have, or had before a page brought another, say nothing new.
    pub(crate) fn put(&mut self, input: &DatasetRecord, enters: bool, now_ms: i64) -> bool {
        let (record, refresh) = (&input.record, &input.refresh);
        let mut again = self.filled_before(&record.want, refresh.after_ms, now_ms);
        let mut changed = false;
        if enters && !refresh.on_entry.is_empty() {
            let sources = &self.sources;
            let by_pages = record
                .want
                .iter()
                .filter(|name| sources.contains_key(*name));
            let news = without(record, by_pages);
            changed |= self.merge(&news, now_ms);
            again.extend(refresh.on_entry.iter().cloned());
        }
        changed |= self.ask_again(&again);
        let is_old = |name: &&String| {
            refresh.on_entry.contains(name)
                || (refresh.after_ms.is_some() && self.had(name, record))
        };
        let news = without(record, record.want.iter().filter(is_old));
        changed |= self.add_urls(&input.urls);
        self.merge(&news, now_ms) || changed
    }

    /// The values that no page has brought.
    pub(crate) fn given(&self) -> Map<String, Value> {
        let is_given = |(name, value): &(&String, &Value)| {
            has_value(value) && !self.sources.contains_key(*name)
        };
        let given = self.fields.iter().filter(is_given);
        given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Whether a page's value has replaced the one that the input gives.
    fn had(&self, name: &str, input: &Record) -> bool {
        let others = [&self.history, &self.candidates].into_iter();
        let others = others.filter_map(|values| values.get(name)?.as_array());
        let given = input.fields.get(name);
        let is_given = |other: &Value| given.is_some_and(|given| is_same(&other["value"], given));
        self.sources.contains_key(name) && others.flatten().any(is_given)
    }

    /// Which of these fields a page has filled at least so long ago.
    fn filled_before(&self, names: &[String], after_ms: Option<u64>, now_ms: i64) -> Vec<String> {
        let Some(after_ms) = after_ms else {
            return Vec::new();
        };
        let latest = iso_time(now_ms.saturating_sub_unsigned(after_ms));
        // All times are written alike, so that their texts are in order.
        let is_old = |name: &&String| {
            let at = self
                .sources
                .get(*name)
                .and_then(|source| source["at"].as_str());
            at.is_some_and(|at| at <= latest.as_str())
        };
        names.iter().filter(is_old).cloned().collect()
    }

    /// Adds the user's input: its values, and further wanted fields. Returns whether anything changed.
    fn merge(&mut self, input: &Record, now_ms: i64) -> bool {
        let before = (
            self.fields.len(),
            self.missing.len(),
            self.resolved_at.is_some(),
        );
        let mut changed = false;
        for (name, value) in &input.fields {
            match self.fields.get_mut(name) {
                Some(_) if !has_value(value) => {}
                Some(kept) if is_same(kept, value) => {
                    // A refresh has failed to find another one, and this input is content with it.
                    if !self.sources.contains_key(name) {
                        self.missing.retain(|missing| missing != name);
                    }
                }
                Some(kept) => {
                    let former = std::mem::replace(kept, value.clone());
                    let source = self.sources.shift_remove(name);
                    self.candidates.shift_remove(name);
                    self.remember(name, former, source, now_ms);
                    self.missing.retain(|missing| missing != name);
                    changed = true;
                }
                None => {
                    self.fields.insert(name.clone(), value.clone());
                    if has_value(value) {
                        self.missing.retain(|missing| missing != name);
                    }
                }
            }
        }
        for name in &input.want {
            if !self.fields.get(name).is_some_and(has_value) && !self.missing.contains(name) {
                self.missing.push(name.clone());
            }
        }
        self.update_resolved(now_ms);
        changed
            || before
                != (
                    self.fields.len(),
                    self.missing.len(),
                    self.resolved_at.is_some(),
                )
    }

    /// Asks again for those of these fields that have a value. Returns whether anything changed.
    fn ask_again(&mut self, names: &[String]) -> bool {
        let mut changed = false;
        for name in names {
            let is_filled = self.fields.get(name).is_some_and(has_value);
            if is_filled && !self.missing.contains(name) {
                self.missing.push(name.clone());
                changed = true;
            }
        }
        changed
    }

    /// Notes what a field was.
    fn remember(&mut self, name: &str, value: Value, source: Option<Value>, now_ms: i64) {
        if !has_value(&value) || value.to_string().len() > MAX_CANDIDATE_BYTES {
            return;
        }
        let mut former = Map::from_iter([("value".to_owned(), value)]);
        if let Some(Value::Object(source)) = source {
            former.extend(source);
        }
        former.insert("until".to_owned(), iso_time(now_ms).into());
        let history = self.history.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(history) = history {
            history.push(Value::Object(former));
            if history.len() > MAX_HISTORY {
                // What the user has given is known by this to say nothing new.
                let by_page = history.iter().position(|former| !former["url"].is_null());
                history.remove(by_page.unwrap_or(0));
            }
        }
    }

    /// The field has the value again that it had before: that is not history.
    fn forget_if_back(&mut self, name: &str, value: &Value) {
        if let Some(Value::Array(history)) = self.history.get_mut(name) {
            history.pop_if(|former| former["value"] == *value);
            if history.is_empty() {
                self.history.shift_remove(name);
            }
        }
    }

    /// The values that other pages, or earlier fetches, brought for a field.
    pub(crate) fn other_values(&self, name: &str) -> Vec<Value> {
        let of = |values: &Map<String, Value>| values.get(name).and_then(Value::as_array).cloned();
        let (candidates, history) = (of(&self.candidates), of(&self.history));
        let values = candidates.into_iter().chain(history).flatten();
        let by_pages = values.filter(|value| !value["url"].is_null());
        by_pages.map(|value| value["value"].clone()).collect()
    }

    /// Takes values from a page, with their source: for missing fields, and where the page's mapping
    /// ranks higher than that of the present value. Returns whether anything changed.
    pub(crate) fn fill(&mut self, page: &PageValues<'_>, order: &MappingOrder) -> bool {
        let mut changed = false;
        for (name, value) in page.fields {
            if !has_value(value) {
                continue;
            }
            if self.missing.contains(name) {
                changed |= self.renew(name, value, page);
            } else if let Some(source) = self.sources.get(name) {
                let source = source.clone();
                changed |= self.replace_or_add_candidate(name, value, page, source, order);
            }
        }
        if changed {
            self.update_resolved(page.ended_at_ms);
        }
        changed
    }

    /// Takes a page's value for a missing field, unless the value that it has is of the same fetch. Returns
    /// whether it was taken.
    fn renew(&mut self, name: &str, value: &Value, page: &PageValues<'_>) -> bool {
        let source = self.sources.get(name).cloned();
        let is_same = self.fields.get(name) == Some(value);
        if is_same && source.as_ref() == Some(&page.source()) {
            return false;
        }
        if let Some(former) = self.fields.get(name).filter(|_| !is_same).cloned() {
            self.remember(name, former, source, page.ended_at_ms);
        }
        // Those were found together with the former value.
        self.candidates.shift_remove(name);
        self.take(name, value, page);
        self.missing.retain(|missing| missing != name);
        true
    }

    fn take(&mut self, name: &str, value: &Value, page: &PageValues<'_>) {
        self.fields.insert(name.to_owned(), value.clone());
        self.sources.insert(name.to_owned(), page.source());
    }

    /// For a field that another page (`source`) has filled: the page's value replaces the present
    /// one, or becomes a candidate. Returns whether anything changed.
    fn replace_or_add_candidate(
        &mut self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        source: Value,
        order: &MappingOrder,
    ) -> bool {
        let kept = self.fields.get(name).cloned().unwrap_or_default();
        // The same page, fetched again, does not compete with itself.
        if kept == *value || source["url"] == page.url {
            return false;
        }
        if order.rank(page.mapping) < order.rank(source["mapping"].as_str()) {
            self.take(name, value, page);
            self.forget_if_back(name, value);
            self.forget_candidate(name, value);
            self.add_candidate(name, &kept, source);
            return true;
        }
        self.add_candidate(name, value, page.source())
    }

    /// Adds a candidate, unless the value is known, too large, or one too many. Returns whether it
    /// was added.
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

    /// The time of resolution is set once, and only removed if fields are missing again.
    fn update_resolved(&mut self, at_ms: i64) {
        if !self.missing.is_empty() {
            self.resolved_at = None;
        } else if self.resolved_at.is_none() {
            self.resolved_at = Some(iso_time(at_ms));
        }
    }
}
