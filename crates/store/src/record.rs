//! Records, and the rules by which pages fill their missing fields. The rules are the same for every backend.
//!
//! - A value of the user replaces any other, because the user knows better; see [`input`](self) for which values are
//!   the user's. The page's value, its source and the candidates are dropped.
//! - A page about another subject fills nothing; see [`identity`](self).
//! - Otherwise a field that has a value keeps it, except under the following rules.
//! - A wanted field without a value is *missing*, until a page or the user's input supplies a value. A page's value is
//!   stored with its source.
//! - A record is *resolved* while no wanted field is missing, and *open* otherwise.
//! - If two pages have different values for a field, the page whose mapping comes first in the [`MappingOrder`] wins,
//!   whatever the order of saving. If the mappings are equal, the page with more evidence wins, then the page that was
//!   saved first. The other value is stored as a *candidate*, with its source. Values from the user have no
//!   candidates, and no page replaces them.
//! - A refresh wants a new value for a field that has one. The field counts as missing, and keeps its value until
//!   another one comes: from the page that gave it, from a page of a better mapping, or from a page with a new value.
//!   So a failed refresh costs nothing, and pages that disagree do not take turns.
//! - A value in another spelling does not replace the present one.
//! - A list that continues on further pages becomes a value once all of them are read; see [`gathered`](self).
//! - A person's decision about a value is final, until the user's input has another one; see [`deciding`](self).
//! - A value that is replaced by the user's input or by a refresh becomes *history*, with its source. The same applies
//!   if a page is read again without fetching: its values replace those from this fetch or earlier ones of the page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::dataset_name::{DatasetName, record_key};
use crate::timestamp::iso_time;

mod deciding;
mod filling;
mod gathered;
mod identity;
mod input;
mod reread;
mod row;
mod spelling;
mod taking_back;
mod urls;

pub use deciding::{Decided, Decision, DecisionAnswer};
pub use filling::{MappingOrder, MappingRules};
use gathered::PARTS;
use identity::{IdentityDoubt, evidence_in, evidence_weight};

pub(crate) use filling::{FillRules, Leads, PageValues};
pub(crate) use identity::{doubts_of, explain_doubts};
pub(crate) use input::Entry;
pub(crate) use row::{RowLoss, RowValues};
pub use spelling::has_value;
pub(crate) use spelling::is_same_value as is_one_value;

/// The longest record id, in bytes.
pub const MAX_RECORD_ID_BYTES: usize = 1024;

/// One row of the user's dataset, as given.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub dataset: DatasetName,
    /// The record's id within the dataset.
    pub id: String,
    /// Known values; null means that the value is missing.
    pub fields: Map<String, Value>,
    /// The fields to be filled. Those that already have a value are not missing.
    pub want: Vec<String>,
}

impl Record {
    /// The record's key; see [`record_key`].
    pub fn key(&self) -> String {
        record_key(&self.dataset, &self.id)
    }
}

/// The state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    /// A wanted field is missing or is to be refreshed.
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

/// The most candidates for one field.
const MAX_CANDIDATES: usize = 8;

/// The largest candidate, in bytes of JSON, so that candidates do not make a record too large to store. The same limit
/// applies to values in the history.
const MAX_CANDIDATE_BYTES: usize = 16 << 10;

/// The most former values of one field. Beyond that, the oldest are dropped.
const MAX_HISTORY: usize = 8;

/// The member of a source that names the page whose value a refresh has replaced by this one.
const INSTEAD_OF: &str = "instead_of";

/// A stored record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct StoredRecord {
    pub(crate) fields: Map<String, Value>,
    /// Field name to `{url, mapping, at}`, for values from pages.
    pub(crate) sources: Map<String, Value>,
    /// Field name to a list of `{value, url, mapping, at}`, in order of arrival.
    pub(crate) candidates: Map<String, Value>,
    /// Field name to a list of `{value, until}`, with `{url, mapping, at}` if the value came from a page: former
    /// values of the field, the latest last.
    pub(crate) history: Map<String, Value>,
    pub(crate) missing: Vec<String>,
    /// When the record was resolved, in ISO 8601.
    pub(crate) resolved_at: Option<String>,
    /// URLs of pages that may have the record's values, according to the user's input.
    pub(crate) urls: Vec<String>,
    /// Field name to the latest value of the input; `None` if no input has named the record, which is then a row of a
    /// page.
    pub(crate) given: Option<Map<String, Value>>,
    /// Field name to a list of values that may be in the user's dataset because they were written back.
    pub(crate) written: Map<String, Value>,
    /// Under `pages`: URL to `{why, mapping, at}`, for pages that did not fill the record. Under `forks`: mappings of
    /// which the record's pages lead to several pages.
    pub(crate) doubts: Map<String, Value>,
    /// If the record is a row of a page: where it was last seen, `{url, position, mapping, mapping_version, parent,
    /// at}`.
    pub(crate) row: Option<Value>,
}

impl StoredRecord {
    pub(crate) fn state(&self) -> RecordState {
        if self.missing.is_empty() {
            RecordState::Resolved
        } else {
            RecordState::Open
        }
    }

    /// The state that decides about fetching: open if the record needs further pages, even if no field is missing.
    pub(crate) fn state_for_fetching(&self) -> RecordState {
        match self.is_unsure() || self.is_gathered() || self.has_rows() {
            true => RecordState::Open,
            false => self.state(),
        }
    }

    /// The values that are not from pages.
    pub(crate) fn user_values(&self) -> Map<String, Value> {
        let is_given = |(name, value): &(&String, &Value)| {
            has_value(value) && !self.sources.contains_key(*name)
        };
        let given = self.fields.iter().filter(is_given);
        given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Adds a former value of a field to the history.
    fn add_to_history(&mut self, name: &str, value: Value, source: Option<Value>, now_ms: i64) {
        if !has_value(&value) || value.to_string().len() > MAX_CANDIDATE_BYTES {
            return;
        }
        let mut former = Map::from_iter([("value".to_owned(), value)]);
        if let Some(Value::Object(source)) = source {
            former.extend(source);
        }
        former.shift_remove(PARTS);
        former.insert("until".to_owned(), iso_time(now_ms).into());
        let history = self.history.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(history) = history {
            history.push(Value::Object(former));
            if history.len() > MAX_HISTORY {
                // Values from the user are kept longer.
                let by_page = history.iter().position(|former| !former["url"].is_null());
                history.remove(by_page.unwrap_or(0));
            }
        }
    }

    /// Removes a value from the history if it is the field's value again.
    fn remove_from_history_if_current(&mut self, name: &str, value: &Value) {
        if let Some(Value::Array(history)) = self.history.get_mut(name) {
            history.pop_if(|former| former["value"] == *value);
            if history.is_empty() {
                self.history.shift_remove(name);
            }
        }
    }

    /// The values that other pages, or earlier fetches, gave for a field.
    pub(crate) fn other_values(&self, name: &str) -> Vec<Value> {
        let of = |values: &Map<String, Value>| values.get(name).and_then(Value::as_array).cloned();
        let (candidates, history) = (of(&self.candidates), of(&self.history));
        let values = candidates.into_iter().chain(history).flatten();
        let by_pages = values.filter(|value| !value["url"].is_null());
        by_pages.map(|value| value["value"].clone()).collect()
    }

    /// Takes values from a page, with their source: for missing fields, and for fields for which the page has more
    /// evidence than the source of the present value. Returns whether anything changed.
    pub(crate) fn fill(&mut self, page: &PageValues<'_>, rules: &FillRules) -> bool {
        let mut changed = self.note_forks(page);
        changed |= self.note_rows(page, rules);
        let continued = rules.continued_fields(page.mapping);
        if !self.has_fillable_value(page, &continued) {
            return changed;
        }
        let evidence = match self.evidence_of(page, rules) {
            Ok(evidence) => evidence,
            Err(doubt) => return self.note_doubt(page, doubt) || changed,
        };
        changed |= self.clear_doubt(page);
        for name in &continued {
            changed |= self.gather(name, page, evidence, rules);
        }
        for (name, value) in page.fields {
            if !has_value(value)
                || continued.contains(&name.as_str())
                || self.is_closed_to(name, value)
            {
                continue;
            }
            if self.missing.contains(name) {
                changed |= self.fill_missing_field(name, value, page, evidence, rules);
            } else if let Some(source) = self.sources.get(name) {
                let source = source.clone();
                changed |= self.weigh_against_present(name, value, page, evidence, source, rules);
            }
        }
        if changed {
            self.settle_rivals();
            self.update_resolved(page.ended_at_ms);
        }
        changed
    }

    /// Whether the page has a value for a field that pages may fill. A page of a list counts even if it has no
    /// entries.
    fn has_fillable_value(&self, page: &PageValues<'_>, continued: &[&str]) -> bool {
        let may_fill = |name: &str| {
            self.missing.iter().any(|one| one == name) || self.sources.contains_key(name)
        };
        let mut fields = page.fields.iter();
        fields.any(|(name, value)| has_value(value) && may_fill(name))
            || continued.iter().any(|name| may_fill(name))
    }

    /// Takes a page's value for a field that is missing or to be refreshed.
    fn fill_missing_field(
        &mut self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        evidence: Option<u32>,
        rules: &FillRules,
    ) -> bool {
        if self.is_in_conflict(name, value, page, evidence) {
            return self.add_candidate(name, value, page.source(evidence));
        }
        let source = self
            .sources
            .get(name)
            .filter(|source| source["url"] != page.url);
        let Some(source) = source.filter(|_| self.fields.get(name).is_some_and(has_value)) else {
            return self.set_if_new_fetch(name, value, page, evidence);
        };
        let source = source.clone();
        let rank = rules.order.rank(page.mapping);
        let kept_rank = rules.order.rank(source["mapping"].as_str());
        // If the page gives the same value as before, that is no reason to prefer it.
        let is_news = self.update_candidate(name, value, page.source(evidence));
        let is_same = self
            .fields
            .get(name)
            .is_some_and(|kept| spelling::is_same_value(kept, value));
        let is_worse = rank > kept_rank
            || (rank == kept_rank
                && evidence_weight(evidence) < evidence_weight(evidence_in(&source)));
        if is_worse || !(rank < kept_rank || is_news || is_same) {
            return is_news;
        }
        let former = self.fields.get(name).cloned().unwrap_or_default();
        self.set_if_new_fetch(name, value, page, evidence);
        if !is_same {
            self.add_candidate(name, &former, source.clone());
        }
        // If the page that gave the former value is fetched as well, it takes precedence.
        if rank == kept_rank {
            self.sources[name][INSTEAD_OF] = source["url"].clone();
        }
        true
    }

    /// Takes a page's value for a missing field, unless the present value is from the same fetch. Returns whether it
    /// was taken.
    fn set_if_new_fetch(
        &mut self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        evidence: Option<u32>,
    ) -> bool {
        let source = self.sources.get(name).cloned();
        let kept = self
            .fields
            .get(name)
            .filter(|kept| spelling::is_same_value(kept, value))
            .cloned();
        if kept.is_some() && source.as_ref() == Some(&page.source(evidence)) {
            return false;
        }
        if kept.is_none()
            && let Some(former) = self.fields.get(name).cloned()
        {
            self.add_to_history(name, former, source, page.ended_at_ms);
        }
        self.remove_candidate(name, value, page.url);
        self.set_field(name, &kept.unwrap_or_else(|| value.clone()), page, evidence);
        self.missing.retain(|missing| missing != name);
        true
    }

    fn set_field(
        &mut self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        evidence: Option<u32>,
    ) {
        self.fields.insert(name.to_owned(), value.clone());
        self.sources.insert(name.to_owned(), page.source(evidence));
    }

    /// Handles a page's value for a field that another page has filled (`source`). It replaces the present one,
    /// becomes a candidate, or leaves the field without a value because neither is known to be right. Returns whether
    /// anything changed.
    fn weigh_against_present(
        &mut self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        evidence: Option<u32>,
        source: Value,
        rules: &FillRules,
    ) -> bool {
        let kept = self.fields.get(name).cloned().unwrap_or_default();
        let is_first = source[INSTEAD_OF] == page.url;
        if is_first && spelling::is_same_value(&kept, value) {
            self.sources.insert(name.to_owned(), page.source(evidence));
            return true;
        }
        // The same page, fetched again, does not compete with itself.
        if spelling::is_same_value(&kept, value) || source["url"] == page.url {
            return false;
        }
        let rank = rules.order.rank(page.mapping);
        let kept_rank = rules.order.rank(source["mapping"].as_str());
        let is_better = is_first
            || rank < kept_rank
            || (rank == kept_rank
                && evidence_weight(evidence) > evidence_weight(evidence_in(&source)));
        if is_better {
            self.set_field(name, value, page, evidence);
            self.remove_from_history_if_current(name, value);
            self.remove_candidate(name, value, page.url);
            self.add_candidate(name, &kept, source);
            return true;
        }
        let are_rivals = StoredRecord::are_rivals(&source, page, evidence);
        let is_new = self.add_candidate(name, value, page.source(evidence));
        if are_rivals {
            self.sources.shift_remove(name);
            self.fields.insert(name.to_owned(), Value::Null);
            self.add_candidate(name, &kept, source);
            self.missing.push(name.to_owned());
            self.note_doubt(page, IdentityDoubt::Rivals);
        }
        is_new || are_rivals
    }

    /// Adds a candidate, unless the value is already known, is too large, or there is no room. Returns whether it was
    /// added.
    fn add_candidate(&mut self, name: &str, value: &Value, source: Value) -> bool {
        let known = self.candidates.get(name).and_then(Value::as_array);
        let is_known = |known: &Vec<Value>| {
            known
                .iter()
                .any(|known| spelling::is_same_value(&known["value"], value))
        };
        let is_full = |known: &Vec<Value>| known.len() >= MAX_CANDIDATES;
        if known.is_some_and(|known| is_known(known) || is_full(known))
            || value.to_string().len() > MAX_CANDIDATE_BYTES
        {
            return false;
        }
        let mut candidate = Map::from_iter([("value".to_owned(), value.clone())]);
        if let Value::Object(source) = source {
            candidate.extend(source);
            candidate.shift_remove(PARTS);
        }
        let candidates = self.candidates.entry(name).or_insert_with(|| json!([]));
        if let Value::Array(candidates) = candidates {
            candidates.push(Value::Object(candidate));
        }
        true
    }

    /// Like [`StoredRecord::add_candidate`], replacing the earlier candidate of the same page.
    fn update_candidate(&mut self, name: &str, value: &Value, source: Value) -> bool {
        let others = self.candidates.get(name).and_then(Value::as_array);
        let is_known = |one: &Value| {
            one["url"] == source["url"] && spelling::is_same_value(&one["value"], value)
        };
        if others.is_some_and(|others| others.iter().any(is_known)) {
            return false;
        }
        if let Some(Value::Array(others)) = self.candidates.get_mut(name) {
            others.retain(|one| one["url"] != source["url"]);
        }
        self.add_candidate(name, value, source)
    }

    /// Removes a candidate that this page has now given as the field's value.
    fn remove_candidate(&mut self, name: &str, value: &Value, url: &str) {
        if let Some(Value::Array(candidates)) = self.candidates.get_mut(name) {
            candidates
                .retain(|one| one["url"] != url && !spelling::is_same_value(&one["value"], value));
            if candidates.is_empty() {
                self.candidates.shift_remove(name);
            }
        }
    }

    /// Updates the time of resolution. It is set once, and removed only if fields are missing again.
    fn update_resolved(&mut self, at_ms: i64) {
        if !self.missing.is_empty() {
            self.resolved_at = None;
        } else if self.resolved_at.is_none() {
            self.resolved_at = Some(iso_time(at_ms));
        }
    }
}
