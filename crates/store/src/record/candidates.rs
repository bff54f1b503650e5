//! The candidates of a record: other values that pages gave for its fields, and the parts of lists that are not
//! complete.

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::fill_rules::MappingOrder;
use super::source::{MAX_CANDIDATE_BYTES, PARTS, is_part};
use super::spelling::is_same_value;

/// The most candidates for one field.
const MAX_CANDIDATES: usize = 8;

/// The candidates of each field, by its name: a list of `{value, url, mapping, at}` in order of arrival.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Candidates(Map<String, Value>);

impl Candidates {
    /// The candidates of a field.
    pub(super) fn of_field(&self, name: &str) -> &[Value] {
        let candidates = self.0.get(name).and_then(Value::as_array);
        candidates.map_or(&[], Vec::as_slice)
    }

    /// Adds a candidate, unless the value is already known, is too large, or there is no room. Returns whether it was
    /// added.
    pub(super) fn add(&mut self, name: &str, value: &Value, source: Value) -> bool {
        let is_known = |known: &Value| is_same_value(&known["value"], value);
        if self.of_field(name).iter().any(is_known)
            || self.of_field(name).len() >= MAX_CANDIDATES
            || value.to_string().len() > MAX_CANDIDATE_BYTES
        {
            return false;
        }
        let mut candidate = Map::from_iter([("value".to_owned(), value.clone())]);
        if let Value::Object(source) = source {
            candidate.extend(source);
            candidate.shift_remove(PARTS);
        }
        let candidates = self.0.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(candidates) = candidates {
            candidates.push(Value::Object(candidate));
        }
        true
    }

    /// Like [`Candidates::add`], but replaces the earlier candidate of the same page.
    pub(super) fn update(&mut self, name: &str, value: &Value, source: Value) -> bool {
        let is_known =
            |one: &Value| one["url"] == source["url"] && is_same_value(&one["value"], value);
        if self.of_field(name).iter().any(is_known) {
            return false;
        }
        if let Some(Value::Array(others)) = self.0.get_mut(name) {
            others.retain(|one| one["url"] != source["url"]);
        }
        self.add(name, value, source)
    }

    /// Removes the candidates that this page gave and the candidates with this value, because the page's value is now
    /// the field's value.
    pub(super) fn remove(&mut self, name: &str, value: &Value, url: &str) {
        self.retain(name, |one| {
            one["url"] != url && !is_same_value(&one["value"], value)
        });
    }

    /// Removes the candidates with this value, whichever pages gave them.
    pub(super) fn remove_value(&mut self, name: &str, value: &Value) {
        self.retain(name, |one| !is_same_value(&one["value"], value));
    }

    /// Removes the candidates of a field that do not meet a condition.
    pub(super) fn retain(&mut self, name: &str, keeps: impl Fn(&Value) -> bool) {
        if let Some(Value::Array(candidates)) = self.0.get_mut(name) {
            candidates.retain(keeps);
            if candidates.is_empty() {
                self.0.shift_remove(name);
            }
        }
    }

    /// Removes all candidates of a field, and returns them.
    pub(super) fn take(&mut self, name: &str) -> Vec<Value> {
        match self.0.shift_remove(name) {
            Some(Value::Array(candidates)) => candidates,
            _ => Vec::new(),
        }
    }

    /// Sets the candidates of a field.
    pub(super) fn set(&mut self, name: &str, candidates: Vec<Value>) {
        match candidates.is_empty() {
            true => self.0.shift_remove(name),
            false => self.0.insert(name.to_owned(), candidates.into()),
        };
    }

    /// Adds candidates without a limit.
    pub(super) fn extend(&mut self, name: &str, more: impl IntoIterator<Item = Value>) {
        let candidates = self.0.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(candidates) = candidates {
            candidates.extend(more);
        }
    }

    /// Removes the candidate whose mapping has the highest priority, and returns it. Parts of lists are left out.
    pub(super) fn take_best(&mut self, name: &str, order: &MappingOrder) -> Option<Value> {
        let candidates = self.0.get_mut(name)?.as_array_mut()?;
        let rank = |candidate: &Value| order.priority_rank(candidate["mapping"].as_str());
        let is_whole = |index: &usize| !is_part(&candidates[*index]);
        let best = (0..candidates.len())
            .filter(is_whole)
            .min_by_key(|index| rank(&candidates[*index]))?;
        let best = candidates.remove(best);
        if candidates.is_empty() {
            self.0.shift_remove(name);
        }
        Some(best)
    }

    /// Removes the values of one fetch of a page from all fields.
    pub(super) fn retract(&mut self, is_of_fetch: impl Fn(&Value) -> bool) {
        retract_from_lists(&mut self.0, is_of_fetch);
    }
}

/// Removes the values of one fetch of a page from the lists of all fields, for example from all candidates.
pub(super) fn retract_from_lists(
    lists: &mut Map<String, Value>,
    is_of_fetch: impl Fn(&Value) -> bool,
) {
    for values in lists.values_mut().filter_map(Value::as_array_mut) {
        values.retain(|value| !is_of_fetch(value));
    }
    lists.retain(|_, values| *values != json!([]));
}

impl Deref for Candidates {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<Map<String, Value>> for Candidates {
    fn from(candidates: Map<String, Value>) -> Candidates {
        Candidates(candidates)
    }
}
