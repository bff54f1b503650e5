//! A stored record, and how pages fill its missing fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RecordState;
use super::candidates::Candidates;
use super::doubts::{Doubts, IdentityDoubt};
use super::fill_rules::{FillRules, PageValues};
use super::history::History;
use super::identity::SURE;
use super::source::{INSTEAD_OF, PARTS, evidence_in, evidence_weight};
use super::spelling::{has_value, is_same_value};
use super::{gathered, identity};
use crate::timestamp::iso_time;

/// A record as it is stored, with all that is known about its values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct StoredRecord {
    pub(crate) fields: Map<String, Value>,
    /// Field name to `{url, mapping, at}`: the page that gave the value. Values of the user have no source.
    pub(crate) sources: Map<String, Value>,
    pub(crate) candidates: Candidates,
    pub(crate) history: History,
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
    pub(crate) doubts: Doubts,
    /// If the record is a row of a page, the place where it was last seen: `{url, position, mapping, mapping_version,
    /// parent, at}`. The links of the row and the lists that hold it are members, too.
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

    /// Whether further pages are to be fetched for the record. It may need pages, and so count as open, even if no
    /// field is missing.
    pub(crate) fn state_for_fetching(&self) -> RecordState {
        match self.may_be_contradicted() || self.has_extendable_list() || self.doubts.lists_rows() {
            true => RecordState::Open,
            false => self.state(),
        }
    }

    /// Whether similar pages are to be fetched as well, because they may contradict the page that completed the record.
    fn may_be_contradicted(&self) -> bool {
        let forks = self.doubts.forks();
        let is_unsure = |source: &Value| {
            evidence_in(source).is_some_and(|evidence| evidence < SURE)
                && forks.contains(&source["mapping"])
        };
        let mut open = self
            .sources
            .iter()
            .filter(|(name, _)| !self.doubts.is_final(name));
        !forks.is_empty() && open.any(|(_, source)| is_unsure(source))
    }

    /// Whether the record has a list that further pages may extend.
    fn has_extendable_list(&self) -> bool {
        self.sources.values().any(|source| !source[PARTS].is_null())
    }

    /// The user's values: those without a source.
    pub(crate) fn user_values(&self) -> Map<String, Value> {
        let is_given = |(name, value): &(&String, &Value)| {
            has_value(value) && !self.sources.contains_key(*name)
        };
        let given = self.fields.iter().filter(is_given);
        given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The values that other pages, or earlier fetches of the same page, gave for a field.
    pub(crate) fn other_values(&self, name: &str) -> Vec<Value> {
        let values = self.candidates.of_field(name).iter();
        let values = values.chain(self.history.of_field(name));
        let by_pages = values.filter(|value| !value["url"].is_null());
        by_pages.map(|value| value["value"].clone()).collect()
    }

    /// Fills missing fields from a page, and replaces values that have less evidence than the page's. The page becomes
    /// the source of both. Returns whether anything changed.
    pub(crate) fn fill(&mut self, page: &PageValues<'_>, rules: &FillRules) -> bool {
        let mut changed = self.doubts.note_forks(page);
        changed |= self.note_rows(page, rules);
        let continued = rules.continued_fields(page.mapping);
        if !self.has_fillable_value(page, &continued) {
            return changed;
        }
        let evidence = match identity::evidence_for_page(self, page, rules) {
            Ok(evidence) => evidence,
            Err(doubt) => return self.doubts.note_doubt(page, doubt) || changed,
        };
        changed |= self.doubts.clear_page(page);
        for name in &continued {
            changed |= gathered::add_list_part(self, name, page, evidence, rules);
        }
        for (name, value) in page.fields {
            if !has_value(value)
                || continued.contains(&name.as_str())
                || self.doubts.is_closed_to(name, value)
            {
                continue;
            }
            if self.missing.contains(name) {
                changed |= self.fill_missing_field(name, value, page, evidence, rules);
            } else if let Some(source) = self.sources.get(name) {
                let source = source.clone();
                changed |= self.resolve_competing_value(name, value, page, evidence, source, rules);
            }
        }
        if changed {
            self.clear_rivals_if_complete();
            self.update_resolved_at(page.ended_at_ms);
        }
        changed
    }

    /// Notes that the record's pages list rows. These pages are wanted even if the record itself is complete. Returns
    /// whether this is new.
    fn note_rows(&mut self, page: &PageValues<'_>, rules: &FillRules) -> bool {
        let is_new = !self.doubts.lists_rows()
            && (page.leads.lists_rows || self.urls.iter().any(|url| rules.page_lists_rows(url)));
        if is_new {
            self.doubts.note_rows();
        }
        is_new
    }

    /// Whether the page has a value for a field that pages may fill. For a page of a list, an empty list is a value,
    /// too.
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
        if identity::is_in_conflict(self, name, value, page, evidence) {
            return self.candidates.add(name, value, page.to_source(evidence));
        }
        let source = self
            .sources
            .get(name)
            .filter(|source| source["url"] != page.url);
        let Some(source) = source.filter(|_| self.fields.get(name).is_some_and(has_value)) else {
            return self.set_if_new_fetch(name, value, page, evidence);
        };
        let source = source.clone();
        let rank = rules.order.priority_rank(page.mapping);
        let kept_rank = rules.order.priority_rank(source["mapping"].as_str());
        // `is_news` means that the page did not have this value before. Only then, or if its mapping has a higher
        // priority, it replaces a different present value.
        let is_news = self
            .candidates
            .update(name, value, page.to_source(evidence));
        let is_same = self
            .fields
            .get(name)
            .is_some_and(|kept| is_same_value(kept, value));
        let is_worse = rank > kept_rank
            || (rank == kept_rank
                && evidence_weight(evidence) < evidence_weight(evidence_in(&source)));
        if is_worse || !(rank < kept_rank || is_news || is_same) {
            return is_news;
        }
        let former = self.fields.get(name).cloned().unwrap_or_default();
        self.set_if_new_fetch(name, value, page, evidence);
        if !is_same {
            self.candidates.add(name, &former, source.clone());
        }
        // The URL of the page that gave the former value is noted. If that page is fetched as well, its value is
        // preferred.
        if rank == kept_rank {
            self.sources[name][INSTEAD_OF] = source["url"].clone();
        }
        true
    }

    /// Sets a field to a page's value, unless it already has this value from the same fetch. A different former value
    /// goes to the history. Returns whether the field was set.
    pub(super) fn set_if_new_fetch(
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
            .filter(|kept| is_same_value(kept, value))
            .cloned();
        if kept.is_some() && source.as_ref() == Some(&page.to_source(evidence)) {
            return false;
        }
        if kept.is_none()
            && let Some(former) = self.fields.get(name).cloned()
        {
            self.history.add(name, former, source, page.ended_at_ms);
        }
        self.candidates.remove(name, value, page.url);
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
        self.sources
            .insert(name.to_owned(), page.to_source(evidence));
    }

    /// Handles a page's value for a field that another page has filled (`source`). The value replaces the present one,
    /// or becomes a candidate, or both become candidates because neither is known to be right. Returns whether anything
    /// changed.
    fn resolve_competing_value(
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
        if is_first && is_same_value(&kept, value) {
            self.sources
                .insert(name.to_owned(), page.to_source(evidence));
            return true;
        }
        // Values compete only if they differ and come from different pages.
        if is_same_value(&kept, value) || source["url"] == page.url {
            return false;
        }
        let rank = rules.order.priority_rank(page.mapping);
        let kept_rank = rules.order.priority_rank(source["mapping"].as_str());
        let is_better = is_first
            || rank < kept_rank
            || (rank == kept_rank
                && evidence_weight(evidence) > evidence_weight(evidence_in(&source)));
        if is_better {
            self.set_field(name, value, page, evidence);
            self.history.remove_if_current(name, value);
            self.candidates.remove(name, value, page.url);
            self.candidates.add(name, &kept, source);
            return true;
        }
        let are_rivals = identity::are_rivals(&source, page, evidence);
        let is_new = self.candidates.add(name, value, page.to_source(evidence));
        if are_rivals {
            self.sources.shift_remove(name);
            self.fields.insert(name.to_owned(), Value::Null);
            self.candidates.add(name, &kept, source);
            self.missing.push(name.to_owned());
            self.doubts.note_doubt(page, IdentityDoubt::Rivals);
        }
        is_new || are_rivals
    }

    /// Removes the notes on rivals, which are pages with equally likely other values, once no field is missing.
    pub(super) fn clear_rivals_if_complete(&mut self) {
        if self.missing.is_empty() {
            self.doubts.clear_rivals();
        }
    }

    /// Updates the time of resolution. It is set once, and removed only if fields are missing again.
    pub(super) fn update_resolved_at(&mut self, at_ms: i64) {
        if !self.missing.is_empty() {
            self.resolved_at = None;
        } else if self.resolved_at.is_none() {
            self.resolved_at = Some(iso_time(at_ms));
        }
    }
}
