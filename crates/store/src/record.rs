//! Records, and the rules by which pages fill their missing fields. The rules are the same for every
//! backend.
//!
//! - A value of the user replaces any other, because the user knows better; see [`input`](self) for what is one. The
//!   page's value, its source and the candidates go.
//! - A page that is about somebody else fills nothing; see [`identity`](self).
//! - Otherwise a field that has a value keeps it, except as in the last rule.
//! - A wanted field without a value is *missing*, until a page or the user's input supplies a value.
//!   A page's value is stored with its source.
//! - A record is *resolved* while no wanted field is missing, and *open* otherwise.
//! - If two pages bring different values for a field, the page whose mapping comes first in the
//!   [`MappingOrder`] wins, in whatever order they are saved; if the mappings are equal, the page for which more
//!   speaks, then the page that was saved first. The other value is stored as a *candidate*, with its source. Values
//!   from the user have no candidates, and no page replaces them.
//! - A refresh asks for a field again that has a value: it is among the missing ones, and keeps its value
//!   until the page that has brought it, one of a better mapping, or one that says something new brings another. So a
//!   refresh that fails costs nothing, and pages that disagree do not take turns.
//! - A value in another spelling does not replace the one that is there.
//! - A list that continues on further pages is a value once all of them are read; see [`gathered`](self).
//! - A value that another one of the user's input, or of a refresh, replaces becomes *history*, with its
//!   source. The same holds if a page is read again without fetching: its values replace those that this
//!   fetch of it, or an earlier one, has brought.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::dataset_name::{DatasetName, record_key};
use crate::timestamp::iso_time;

mod filling;
mod gathered;
mod identity;
mod input;
mod reread;
mod row;
mod spelling;
mod taking_back;
mod urls;

pub use filling::{MappingOrder, MappingRules};
use gathered::PARTS;
use identity::{Doubt, evidence_in, worth};

pub(crate) use filling::{FillRules, Leads, PageValues};
pub(crate) use identity::{doubts_of, tell_doubts};
pub(crate) use input::Entry;
pub(crate) use row::{Lost, RowValues};
pub(crate) use spelling::is_one as is_one_value;

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

/// Whether a value counts as one: null, [], and texts without a visible character do not, and leave a field missing.
pub fn has_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !webfill_values::is_blank(text),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// The most candidates of one field.
const MAX_CANDIDATES: usize = 8;

/// The largest candidate, in bytes of JSON: candidates must not make a record too large to store. The
/// same holds for a value in the history.
const MAX_CANDIDATE_BYTES: usize = 16 << 10;

/// The most former values of one field; the oldest go.
const MAX_HISTORY: usize = 8;

/// The member of a source that names the page whose value a refresh has replaced by this one.
const INSTEAD_OF: &str = "instead_of";

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
    /// Name to what the input has said last; `None`: no input has named the record, which is a row of a page.
    pub(crate) given: Option<Map<String, Value>>,
    /// Name to a list of the values that may stand in the user's dataset because they were written back.
    pub(crate) written: Map<String, Value>,
    /// `pages`: URL to `{why, mapping, at}`, of those that have not filled the record; `forks`: mappings to several
    /// pages of which its pages lead.
    pub(crate) doubts: Map<String, Value>,
    /// Of a row of a page: where it was seen last, `{url, position, mapping, mapping_version, parent, at}`.
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

    /// What is answered to who asks whether a record needs further pages.
    pub(crate) fn need(&self) -> RecordState {
        match self.is_unsure() || self.is_gathered() || self.has_rows() {
            true => RecordState::Open,
            false => self.state(),
        }
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

    /// Notes what a field was.
    fn remember(&mut self, name: &str, value: Value, source: Option<Value>, now_ms: i64) {
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
                // What the user has given is dearer.
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

    /// Takes values from a page, with their source: for missing fields, and where more speaks for the page than
    /// for the source of the present value. Returns whether anything changed.
    pub(crate) fn fill(&mut self, page: &PageValues<'_>, rules: &FillRules) -> bool {
        let mut changed = self.note_forks(page);
        changed |= self.note_rows(page, rules);
        let continued = rules.continued_fields(page.mapping);
        if !self.could_take(page, &continued) {
            return changed;
        }
        let evidence = match self.evidence_of(page, rules) {
            Ok(evidence) => evidence,
            Err(doubt) => return self.doubt(page, doubt) || changed,
        };
        changed |= self.trust(page);
        for name in &continued {
            changed |= self.gather(name, page, evidence, rules);
        }
        for (name, value) in page.fields {
            if !has_value(value) || continued.contains(&name.as_str()) {
                continue;
            }
            if self.missing.contains(name) {
                changed |= self.answer(name, value, page, evidence, rules);
            } else if let Some(source) = self.sources.get(name) {
                let source = source.clone();
                changed |= self.compete(name, value, page, evidence, source, rules);
            }
        }
        if changed {
            self.settle_rivals();
            self.update_resolved(page.ended_at_ms);
        }
        changed
    }

    /// Whether the page has a value for a field that pages may fill. A page of a list counts without entries as well.
    fn could_take(&self, page: &PageValues<'_>, continued: &[&str]) -> bool {
        let may_fill = |name: &str| {
            self.missing.iter().any(|one| one == name) || self.sources.contains_key(name)
        };
        let mut fields = page.fields.iter();
        fields.any(|(name, value)| has_value(value) && may_fill(name))
            || continued.iter().any(|name| may_fill(name))
    }

    /// A page's value for a missing field, or one that is asked for again.
    fn answer(
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
            return self.renew(name, value, page, evidence);
        };
        let source = source.clone();
        let rank = rules.order.rank(page.mapping);
        let kept_rank = rules.order.rank(source["mapping"].as_str());
        // A page that says what it said before gives no reason to believe it instead.
        let is_news = self.update_candidate(name, value, page.source(evidence));
        let is_same = self
            .fields
            .get(name)
            .is_some_and(|kept| spelling::is_one(kept, value));
        let is_worse = rank > kept_rank
            || (rank == kept_rank && worth(evidence) < worth(evidence_in(&source)));
        if is_worse || !(rank < kept_rank || is_news || is_same) {
            return is_news;
        }
        let former = self.fields.get(name).cloned().unwrap_or_default();
        self.renew(name, value, page, evidence);
        if !is_same {
            self.add_candidate(name, &former, source.clone());
        }
        // The page that has brought the former value is believed first, if it is fetched as well.
        if rank == kept_rank {
            self.sources[name][INSTEAD_OF] = source["url"].clone();
        }
        true
    }

    /// Takes a page's value for a missing field, unless the value that it has is of the same fetch. Returns
    /// whether it was taken.
    fn renew(
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
            .filter(|kept| spelling::is_one(kept, value))
            .cloned();
        if kept.is_some() && source.as_ref() == Some(&page.source(evidence)) {
            return false;
        }
        if kept.is_none()
            && let Some(former) = self.fields.get(name).cloned()
        {
            self.remember(name, former, source, page.ended_at_ms);
        }
        self.forget_candidate(name, value, page.url);
        self.take(name, &kept.unwrap_or_else(|| value.clone()), page, evidence);
        self.missing.retain(|missing| missing != name);
        true
    }

    fn take(&mut self, name: &str, value: &Value, page: &PageValues<'_>, evidence: Option<u32>) {
        self.fields.insert(name.to_owned(), value.clone());
        self.sources.insert(name.to_owned(), page.source(evidence));
    }

    /// For a field that another page (`source`) has filled: the page's value replaces the present one, becomes a
    /// candidate, or neither is known to be right. Returns whether anything changed.
    fn compete(
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
        if is_first && spelling::is_one(&kept, value) {
            self.sources.insert(name.to_owned(), page.source(evidence));
            return true;
        }
        // The same page, fetched again, does not compete with itself.
        if spelling::is_one(&kept, value) || source["url"] == page.url {
            return false;
        }
        let rank = rules.order.rank(page.mapping);
        let kept_rank = rules.order.rank(source["mapping"].as_str());
        let is_better = is_first
            || rank < kept_rank
            || (rank == kept_rank && worth(evidence) > worth(evidence_in(&source)));
        if is_better {
            self.take(name, value, page, evidence);
            self.forget_if_back(name, value);
            self.forget_candidate(name, value, page.url);
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
            self.doubt(page, Doubt::Rivals);
        }
        is_new || are_rivals
    }

    /// Adds a candidate, unless the value is known, too large, or one too many. Returns whether it
    /// was added.
    fn add_candidate(&mut self, name: &str, value: &Value, source: Value) -> bool {
        let known = self.candidates.get(name).and_then(Value::as_array);
        let is_known = |known: &Vec<Value>| {
            known
                .iter()
                .any(|known| spelling::is_one(&known["value"], value))
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

    /// As [`StoredRecord::add_candidate`], in place of what the same page has brought before.
    fn update_candidate(&mut self, name: &str, value: &Value, source: Value) -> bool {
        let others = self.candidates.get(name).and_then(Value::as_array);
        let is_known =
            |one: &Value| one["url"] == source["url"] && spelling::is_one(&one["value"], value);
        if others.is_some_and(|others| others.iter().any(is_known)) {
            return false;
        }
        if let Some(Value::Array(others)) = self.candidates.get_mut(name) {
            others.retain(|one| one["url"] != source["url"]);
        }
        self.add_candidate(name, value, source)
    }

    /// The field has this value now, of this page.
    fn forget_candidate(&mut self, name: &str, value: &Value, url: &str) {
        if let Some(Value::Array(candidates)) = self.candidates.get_mut(name) {
            candidates.retain(|one| one["url"] != url && !spelling::is_one(&one["value"], value));
            if candidates.is_empty() {
                self.candidates.shift_remove(name);
            }
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
