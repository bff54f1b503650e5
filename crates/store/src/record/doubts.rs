//! The doubts about a record: why pages did not fill it, which of its pages lead to several others, and the decisions
//! of people about its values.

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::fill_rules::PageValues;
use super::spelling::is_same_value;
use crate::timestamp::iso_time;

/// Maximum number of pages that a record lists with the reason why they did not fill it.
const MAX_DOUBTS: usize = 16;

/// Maximum number of mappings that a record lists under `forks`: those with several pages that its pages link to.
const MAX_FORKS: usize = 16;

/// The member that is set if pages of the record list rows, such as a table of products.
const LISTS_ROWS: &str = "rows";

/// The member with the decisions: field name to `{answer, by, at, rejected, former}`.
const DECIDED: &str = "decided";

/// Why a page did not fill a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdentityDoubt {
    /// The page contradicts the user's values of the record.
    OtherValues,
    /// Another record names the page's URL.
    OtherRecord,
    /// Other pages of the same mapping have other values, and none of them is more likely to be right.
    Rivals,
    /// The page belongs to a list that continues over several pages, and has not been read.
    Gap,
}

impl IdentityDoubt {
    fn as_str(self) -> &'static str {
        match self {
            IdentityDoubt::OtherValues => "other_values",
            IdentityDoubt::OtherRecord => "other_record",
            IdentityDoubt::Rivals => "rivals",
            IdentityDoubt::Gap => "gap",
        }
    }
}

/// What is doubtful about a record, as JSON. Under `pages`: the pages that did not fill the record, URL to `{why,
/// mapping, at}`. Under `forks`: the mappings with several pages that the record's pages link to. Under `decided`: the
/// decisions of people.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Doubts(Map<String, Value>);

impl Doubts {
    /// Notes the mappings with several pages that this page links to. Each of these pages may be about another record.
    /// Returns whether any of the mappings is new.
    pub(super) fn note_forks(&mut self, page: &PageValues<'_>) -> bool {
        let is_known =
            |forks: &Vec<Value>, mapping: &String| forks.iter().any(|one| one == mapping);
        let forks = self.0.entry("forks").or_insert_with(|| json!([]));
        let Value::Array(forks) = forks else {
            return false;
        };
        let before = forks.len();
        for mapping in &page.leads.forks {
            if forks.len() < MAX_FORKS && !is_known(forks, mapping) {
                forks.push(mapping.as_str().into());
            }
        }
        let is_new = forks.len() > before;
        if forks.is_empty() {
            self.0.shift_remove("forks");
        }
        is_new
    }

    /// The mappings with several pages that the record's pages link to. Each of these pages may be about another
    /// record.
    pub(super) fn forks(&self) -> &[Value] {
        let forks = self.0.get("forks").and_then(Value::as_array);
        forks.map_or(&[], Vec::as_slice)
    }

    /// Notes that the record's pages list rows.
    pub(super) fn note_rows(&mut self) {
        self.0.insert(LISTS_ROWS.to_owned(), true.into());
    }

    /// Whether the record's pages list rows.
    pub(super) fn lists_rows(&self) -> bool {
        self.0.contains_key(LISTS_ROWS)
    }

    /// Notes why a page did not fill the record, or one of its fields. Returns whether the note is new.
    pub(super) fn note_doubt(&mut self, page: &PageValues<'_>, doubt: IdentityDoubt) -> bool {
        let pages = self.0.entry("pages").or_insert_with(|| json!({}));
        let Value::Object(pages) = pages else {
            return false;
        };
        let why = doubt.as_str();
        if pages.get(page.url).is_some_and(|known| known["why"] == why)
            || (pages.len() >= MAX_DOUBTS && !pages.contains_key(page.url))
        {
            return false;
        }
        let noted =
            json!({"why": why, "mapping": page.mapping, "at": iso_time(page.started_at_ms)});
        pages.insert(page.url.to_owned(), noted);
        true
    }

    /// Notes pages that are still to be read, because a list of this mapping continues there.
    pub(super) fn note_gaps(&mut self, mapping: Option<&str>, awaited: &[String], at_ms: i64) {
        let gap = IdentityDoubt::Gap.as_str();
        let pages = self.0.entry("pages").or_insert_with(|| json!({}));
        if let Value::Object(pages) = pages {
            pages.retain(|url, page| {
                page["why"] != gap || page["mapping"].as_str() != mapping || awaited.contains(url)
            });
            for url in awaited {
                if pages.len() < MAX_DOUBTS && !pages.contains_key(url) {
                    let noted = json!({"why": gap, "mapping": mapping, "at": iso_time(at_ms)});
                    pages.insert(url.clone(), noted);
                }
            }
            if pages.is_empty() {
                self.0.shift_remove("pages");
            }
        }
    }

    /// Removes the note on a page because the page fills the record after all. A note on rivals, which are pages with
    /// equally likely other values, stays. Returns whether the note was removed.
    pub(super) fn clear_page(&mut self, page: &PageValues<'_>) -> bool {
        let Some(Value::Object(pages)) = self.0.get_mut("pages") else {
            return false;
        };
        let is_other = pages
            .get(page.url)
            .is_some_and(|known| known["why"] != IdentityDoubt::Rivals.as_str());
        if is_other {
            pages.shift_remove(page.url);
        }
        is_other
    }

    /// Removes the notes on rivals: pages with other values that are equally likely.
    pub(super) fn clear_rivals(&mut self) {
        if let Some(Value::Object(pages)) = self.0.get_mut("pages") {
            pages.retain(|_, page| page["why"] != IdentityDoubt::Rivals.as_str());
        }
    }

    /// Removes the doubts about pages. Decisions stay.
    pub(super) fn clear_except_decisions(&mut self) {
        self.0.retain(|kind, _| kind == DECIDED);
    }

    /// Stores a person's decision about a field, as JSON.
    pub(super) fn set_decision(&mut self, name: &str, decision: Value) {
        let decided = self.0.entry(DECIDED).or_insert_with(|| json!({}));
        decided[name] = decision;
    }

    /// The stored decision of a person about a field.
    pub(super) fn decision(&self, name: &str) -> Option<&Value> {
        self.0.get(DECIDED)?.get(name)
    }

    pub(super) fn decision_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.get_mut(DECIDED)?.get_mut(name)
    }

    /// Removes the decision about a field, and returns it.
    pub(super) fn forget_decision(&mut self, name: &str) -> Option<Value> {
        let decided = self.0.get_mut(DECIDED)?.as_object_mut()?;
        let decision = decided.shift_remove(name);
        if decided.is_empty() {
            self.0.shift_remove(DECIDED);
        }
        decision
    }

    /// Whether a person has accepted or typed the present value.
    pub(super) fn is_final(&self, name: &str) -> bool {
        self.decision(name)
            .is_some_and(|decision| decision["answer"] != "rejected")
    }

    /// Whether a person's decision forbids pages to give the field this value.
    pub(super) fn is_closed_to(&self, name: &str, value: &Value) -> bool {
        let Some(decision) = self.decision(name) else {
            return false;
        };
        let mut rejected = decision["rejected"].as_array().into_iter().flatten();
        decision["answer"] != "rejected" || rejected.any(|one| is_same_value(one, value))
    }
}

/// Prepares a stored record for readers: its doubts are replaced by the reasons why pages did not fill it, by URL, and
/// by the decisions of people. If there are none, the member is removed.
pub(crate) fn explain_doubts(record: &mut Map<String, Value>) {
    let Some(doubts) = record.shift_remove("doubts") else {
        return;
    };
    if let Some(Value::Object(pages)) = doubts.get("pages").filter(|pages| **pages != json!({})) {
        record.insert("doubts".to_owned(), Value::Object(pages.clone()));
    }
    if let Some(decisions) = shown_decisions(&doubts) {
        record.insert("decisions".to_owned(), Value::Object(decisions));
    }
}

/// The reason and mapping of each doubt of a record, for counting. Each pair is returned once per record.
pub(crate) fn reasons_with_mappings(doubts: &Map<String, Value>) -> Vec<(String, String)> {
    let pages = doubts.get("pages").and_then(Value::as_object);
    let mut found: Vec<(String, String)> = pages
        .into_iter()
        .flat_map(Map::values)
        .filter_map(|page| {
            let mapping = page["mapping"].as_str().unwrap_or_default();
            Some((page["why"].as_str()?.to_owned(), mapping.to_owned()))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The decisions in the form shown to readers of a record, without the members that are needed only to undo them.
fn shown_decisions(doubts: &Value) -> Option<Map<String, Value>> {
    let mut decided = doubts.get(DECIDED)?.as_object()?.clone();
    for decision in decided.values_mut().filter_map(Value::as_object_mut) {
        decision.shift_remove("former");
    }
    Some(decided).filter(|decided| !decided.is_empty())
}

impl Deref for Doubts {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<Map<String, Value>> for Doubts {
    fn from(doubts: Map<String, Value>) -> Doubts {
        Doubts(doubts)
    }
}
