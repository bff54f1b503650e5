//! Lists that continue on further pages: a record gets the entries of all of them, or none.
//!
//! Each page of a list is a *part*. Two pages belong to the same list if one leads to the other, or if the user has
//! named both. A list is complete once every page of its mapping that its parts lead to is a part as well. Until then
//! it is not a value: the field stays missing, its parts are kept as candidates, and the record notes the pages it
//! waits for. If one of these pages cannot be read, the list stays incomplete, and an incomplete list is not a value.
//!
//! The entries are in the order of the pages, following their links from the first one, whatever the order of arrival.
//! An entry that an earlier page also has counts once. A refresh keeps the former list until the new one is complete.
//! Of two lists reached over links, the one with more evidence counts; lists with equal evidence are rivals, and the
//! field stays missing.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::candidates::Candidates;
use super::doubts::IdentityDoubt;
use super::fill_rules::{FillRules, PageValues};
use super::source::{EVIDENCE, MAX_PARTS, PARTS, evidence_in, evidence_weight, is_part};
use super::spelling::{has_value, is_same_value};
use super::stored::StoredRecord;
use crate::timestamp::iso_time;

/// The entries of a list that one page has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Part {
    value: Vec<Value>,
    url: String,
    mapping: Option<String>,
    at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evidence: Option<u32>,
    #[serde(default)]
    further: Vec<String>,
}

/// Whether the parts known so far make up the whole list of a field.
#[derive(Debug, PartialEq)]
enum Assembled {
    /// The list is complete. The indexes of its parts, in the order of the pages.
    Complete(Vec<usize>),
    /// The list is incomplete. The URLs of the pages that are still to be read.
    Incomplete(Vec<String>),
    Rivals,
}

/// Adds the entries of one page to a list of the record. Returns whether anything changed.
pub(super) fn add_list_part(
    record: &mut StoredRecord,
    name: &str,
    page: &PageValues<'_>,
    evidence: Option<u32>,
    rules: &FillRules,
) -> bool {
    let is_missing = record.missing.iter().any(|one| one == name);
    let source = record.sources.get(name).cloned();
    // Nothing is added to a list that the user has given or that a person has accepted.
    if (source.is_none() && !is_missing) || record.doubts.is_final(name) {
        return false;
    }
    let is_refresh = is_missing && source.is_some();
    let same_mapping = source.clone();
    let same_mapping = same_mapping.filter(|source| source["mapping"].as_str() == page.mapping);
    let value = record.fields.get(name).cloned().unwrap_or_default();
    let kept = same_mapping.map_or_else(Vec::new, |source| parts_from_source(source, &value));
    let is_answered = |part: &Part| part.url == page.url && part.at == fetched_at(page);
    if is_refresh && (page.is_reread || kept.iter().any(is_answered)) {
        return false;
    }
    let before = record.clone();
    let mut parts = take_parts(&mut record.candidates, name, page.mapping);
    if !is_refresh {
        parts.retain(|part| kept.iter().all(|kept| kept.url != part.url));
        let is_own = kept.iter().any(|part| part.url == page.url);
        parts.splice(0..0, kept);
        // A page that is already a part of the list does not replace its part when it is fetched again.
        if is_own && !page.is_reread {
            *record = before;
            return false;
        }
    }
    if !add_or_replace_part(&mut parts, part_from_page(name, page, evidence)) {
        *record = before;
        return false;
    }
    let mut list = GatheredList {
        record,
        name,
        page,
        rules,
        is_refresh,
    };
    list.apply_parts(parts);
    *record != before
}

/// The list of one field, with the page whose entries are being added to it.
struct GatheredList<'g> {
    record: &'g mut StoredRecord,
    name: &'g str,
    page: &'g PageValues<'g>,
    rules: &'g FillRules,
    is_refresh: bool,
}

impl GatheredList<'_> {
    /// Makes the parts the field's value if they are a complete list. Otherwise they are kept as candidates.
    fn apply_parts(&mut self, parts: Vec<Part>) {
        let (name, page) = (self.name, self.page);
        let assembled = assemble_list(&parts, &self.record.urls);
        let awaited = match &assembled {
            Assembled::Incomplete(awaited) => &awaited[..],
            _ => &[],
        };
        let at_ms = page.started_at_ms;
        self.record.doubts.note_gaps(page.mapping, awaited, at_ms);
        match assembled {
            Assembled::Complete(order) if self.may_be_value(join_entries(&parts, &order)) => {
                match self.may_replace(&parts[order[0]]) {
                    true => self.set_list(parts, &order),
                    false => store_parts_as_candidates(&mut self.record.candidates, name, parts),
                }
            }
            unsettled => {
                if unsettled == Assembled::Rivals {
                    self.record.doubts.note_doubt(page, IdentityDoubt::Rivals);
                }
                let source = self.record.sources.get(name);
                let is_of_list =
                    source.is_some_and(|source| source["mapping"].as_str() == page.mapping);
                store_parts_as_candidates(&mut self.record.candidates, name, parts);
                if !self.is_refresh && is_of_list {
                    self.remove_list();
                }
            }
        }
    }

    fn may_be_value(&self, entries: Vec<Value>) -> bool {
        let doubts = &self.record.doubts;
        !entries.is_empty() && !doubts.is_closed_to(self.name, &Value::Array(entries))
    }

    /// Whether a complete list that begins with this part is preferred to the present value of the field.
    fn may_replace(&self, first: &Part) -> bool {
        let Some(source) = self.record.sources.get(self.name) else {
            return true;
        };
        let rank = self.rules.order.priority_rank(first.mapping.as_deref());
        let kept_rank = self.rules.order.priority_rank(source["mapping"].as_str());
        let is_of_list = source["mapping"].as_str() == first.mapping.as_deref();
        let is_more = evidence_weight(first.evidence) > evidence_weight(evidence_in(source));
        rank < kept_rank || is_of_list || (rank == kept_rank && (is_more || self.is_refresh))
    }

    /// Sets the field to the complete list.
    fn set_list(&mut self, parts: Vec<Part>, order: &[usize]) {
        let (name, page) = (self.name, self.page);
        let record = &mut *self.record;
        let mut list = Value::Array(join_entries(&parts, order));
        let source = record.sources.get(name).cloned();
        let former = record.fields.get(name).cloned().unwrap_or_default();
        if has_value(&former) && is_same_value(&former, &list) {
            list = former;
        } else if page.is_reread
            || source.as_ref().is_none_or(|source| source[PARTS].is_null())
            || record.missing.iter().any(|one| one == name)
        {
            // The former list becomes history, except if the new one only has further entries.
            record.history.add(name, former, source, page.ended_at_ms);
        }
        let first = &parts[order[0]];
        let mut source = json!({"url": first.url, "mapping": first.mapping, "at": first.at});
        if let Some(evidence) = first.evidence {
            source[EVIDENCE] = evidence.into();
        }
        source[PARTS] = order.iter().map(|index| json!(parts[*index])).collect();
        let is_other = |(index, part)| (!order.contains(&index)).then_some(part);
        let others = parts.into_iter().enumerate().filter_map(is_other);
        let others: Vec<Part> = others.collect();
        store_parts_as_candidates(&mut record.candidates, name, others);
        record.sources.insert(name.to_owned(), source);
        record.fields.insert(name.to_owned(), list);
        record.missing.retain(|missing| missing != name);
    }

    /// Removes the value of a field because its list has turned out to be incomplete.
    fn remove_list(&mut self) {
        let (name, record) = (self.name, &mut *self.record);
        let source = record.sources.shift_remove(name);
        let former = record.fields.insert(name.to_owned(), Value::Null);
        if source
            .as_ref()
            .is_some_and(|source| source[PARTS].is_null())
        {
            let former = former.unwrap_or_default();
            record
                .history
                .add(name, former, source, self.page.ended_at_ms);
        }
        record.missing.push(name.to_owned());
    }
}

/// Keeps the parts of a list whose value is taken back as candidates, except the parts of one fetch.
pub(super) fn store_parts(
    candidates: &mut Candidates,
    name: &str,
    mut source: Value,
    is_of_fetch: impl Fn(&Value) -> bool,
) {
    if let Value::Array(parts) = source[PARTS].take() {
        let parts = parts.into_iter().filter(|part| !is_of_fetch(part));
        let parts = parts.filter_map(|part| serde_json::from_value(part).ok());
        store_parts_as_candidates(candidates, name, parts.collect());
    }
}

/// Removes the parts of incomplete lists from a field's candidates, because their pages are to be fetched again.
pub(super) fn remove_parts(candidates: &mut Candidates, name: &str) {
    candidates.retain(name, |candidate| !is_part(candidate));
}

/// Removes the parts of a mapping's list from the candidates, and returns them.
fn take_parts(candidates: &mut Candidates, name: &str, mapping: Option<&str>) -> Vec<Part> {
    let is_of_list = |one: &Value| is_part(one) && one["mapping"].as_str() == mapping;
    let all = candidates.take(name).into_iter();
    let (parts, others): (Vec<Value>, Vec<Value>) = all.partition(is_of_list);
    candidates.set(name, others);
    let parts = parts.into_iter();
    parts
        .filter_map(|part| serde_json::from_value(part).ok())
        .collect()
}

fn store_parts_as_candidates(candidates: &mut Candidates, name: &str, parts: Vec<Part>) {
    if !parts.is_empty() {
        candidates.extend(name, parts.into_iter().map(|part| json!(part)));
    }
}

fn fetched_at(page: &PageValues<'_>) -> String {
    iso_time(page.started_at_ms)
}

fn part_from_page(name: &str, page: &PageValues<'_>, evidence: Option<u32>) -> Part {
    let value = match page.fields.get(name) {
        Some(Value::Array(items)) => items.clone(),
        Some(value) if has_value(value) => vec![value.clone()],
        _ => Vec::new(),
    };
    Part {
        value,
        url: page.url.to_owned(),
        mapping: page.mapping.map(str::to_owned),
        at: fetched_at(page),
        evidence,
        further: page.leads.further.clone(),
    }
}

/// The parts of a field's list, from its source. A value without parts counts as one part: it was stored before its
/// mapping had lists that continue on further pages.
fn parts_from_source(mut source: Value, value: &Value) -> Vec<Part> {
    match source[PARTS].take() {
        Value::Array(parts) => {
            let parts = parts.into_iter();
            parts
                .filter_map(|part| serde_json::from_value(part).ok())
                .collect()
        }
        _ => {
            source["value"] = match value {
                Value::Array(_) => value.clone(),
                single => json!([single]),
            };
            serde_json::from_value(source).into_iter().collect()
        }
    }
}

/// Adds a part, or replaces an earlier part of the same page. Returns false if a later part of this page is known, or
/// the list is full.
fn add_or_replace_part(parts: &mut Vec<Part>, part: Part) -> bool {
    match parts.iter().position(|known| known.url == part.url) {
        // All times have the same format, so that they can be compared as texts.
        Some(known) if parts[known].at > part.at => false,
        Some(known) => {
            parts[known] = part;
            true
        }
        None if parts.len() < MAX_PARTS => {
            parts.push(part);
            true
        }
        None => false,
    }
}

fn assemble_list(parts: &[Part], own: &[String]) -> Assembled {
    let lists = group_by_list(parts);
    let evidence = |list: &Vec<usize>| {
        let weights = list
            .iter()
            .map(|index| evidence_weight(parts[*index].evidence));
        weights.max().unwrap_or_default()
    };
    let most = lists.iter().map(&evidence).max().unwrap_or_default();
    let best: Vec<&Vec<usize>> = lists.iter().filter(|list| evidence(list) == most).collect();
    let known: HashSet<&str> = parts.iter().map(|part| part.url.as_str()).collect();
    let mut awaited: Vec<String> = Vec::new();
    for further in best
        .iter()
        .flat_map(|list| list.iter())
        .flat_map(|index| &parts[*index].further)
    {
        if !known.contains(further.as_str()) && !awaited.contains(further) {
            awaited.push(further.clone());
        }
    }
    if !awaited.is_empty() {
        return Assembled::Incomplete(awaited);
    }
    let mut orders = best.iter().map(|list| sorted_parts(parts, list, own));
    let first = orders.next().unwrap_or_default();
    let list = Value::Array(join_entries(parts, &first));
    let is_same =
        |order: Vec<usize>| is_same_value(&Value::Array(join_entries(parts, &order)), &list);
    match orders.all(is_same) {
        true => Assembled::Complete(first),
        false => Assembled::Rivals,
    }
}

/// Groups the parts that belong to the same list.
fn group_by_list(parts: &[Part]) -> Vec<Vec<usize>> {
    let indexes = indexes_by_url(parts);
    let mut list_of: Vec<usize> = (0..parts.len()).collect();
    let mut join = |one: usize, other: usize| {
        let (from, to) = (list_of[one], list_of[other]);
        list_of
            .iter_mut()
            .filter(|list| **list == from)
            .for_each(|list| *list = to);
    };
    let mut own: Option<usize> = None;
    for (index, part) in parts.iter().enumerate() {
        let further = part.further.iter();
        for other in further.filter_map(|url| indexes.get(url.as_str())) {
            join(index, *other);
        }
        if part.evidence.is_none() {
            join(index, *own.get_or_insert(index));
        }
    }
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
    for (index, list) in list_of.into_iter().enumerate() {
        lists[list].push(index);
    }
    lists.retain(|list| !list.is_empty());
    lists
}

fn indexes_by_url(parts: &[Part]) -> HashMap<&str, usize> {
    let urls = parts.iter().map(|part| part.url.as_str());
    urls.zip(0..).collect()
}

/// The parts of a list in the order of its pages: first the user's, then those that no other part leads to. After each
/// page come the pages that it leads to.
fn sorted_parts(parts: &[Part], list: &[usize], own: &[String]) -> Vec<usize> {
    let indexes = indexes_by_url(parts);
    let led_to: HashSet<&str> = list
        .iter()
        .flat_map(|index| parts[*index].further.iter().map(String::as_str))
        .collect();
    let mut roots = list.to_vec();
    roots.sort_by_key(|index| {
        let part = &parts[*index];
        let place = own.iter().position(|url| *url == part.url);
        let is_led_to = led_to.contains(part.url.as_str());
        (
            place.unwrap_or(usize::MAX),
            part.evidence.is_some(),
            is_led_to,
            *index,
        )
    });
    let mut order = Vec::with_capacity(list.len());
    let mut ahead: Vec<usize> = roots.into_iter().rev().collect();
    let mut seen = HashSet::new();
    while let Some(index) = ahead.pop() {
        if seen.insert(index) {
            order.push(index);
            let further = parts[index].further.iter().rev();
            ahead.extend(further.filter_map(|url| indexes.get(url.as_str()).copied()));
        }
    }
    order
}

/// The entries of the parts, without those that an earlier part already has.
fn join_entries(parts: &[Part], order: &[usize]) -> Vec<Value> {
    let mut earlier: HashSet<String> = HashSet::new();
    let mut list = Vec::new();
    for index in order {
        let items = &parts[*index].value;
        let is_new = |item: &&Value| !earlier.contains(&item.to_string());
        list.extend(items.iter().filter(is_new).cloned());
        earlier.extend(items.iter().map(Value::to_string));
    }
    list
}
