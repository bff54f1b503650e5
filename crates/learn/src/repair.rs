//! Repairs the fields of a mapping that no longer work after a change of the site. The values extracted before the
//! change are the known values of the new pages. A wrong repair is worse than none, so repairs that are not certain are
//! refused.

mod page_kinds;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use webfill_mapping::{Engine, MappingSet, PageInput, RequestedParts, Source};

use crate::evaluate::{self, Reading};
use crate::field::{LearnedField, learn_field_again};
use crate::fold::KnownValue;
use crate::former::FormerSteps;
use crate::known;
use crate::learning::{field_json, parse_pages, prepare_group};
use crate::page_group::Group;
use crate::report;
use crate::score::{Label, count_filled_and_empty};
use crate::types::{FieldReport, LearnError, Limits, Page};

use page_kinds::repair_by_page_kind;

/// The fewest pages where a repaired extraction chain must find the earlier value again.
const ENOUGH: usize = 3;

/// The fewest such pages in a special case: the words beside the value are the same as before, and pages without a
/// value confirm the extraction chain.
const FEWEST: usize = 2;

/// The confidence required for a repair.
const SURE: f64 = 0.9;

/// The share of all values read by a repaired extraction chain that must look like the earlier values.
const ALIKE: f64 = 0.9;

/// A repaired mapping.
#[derive(Debug, Clone, Serialize)]
pub struct Repaired {
    /// The old mapping, with the extraction chains of the accepted fields replaced.
    pub mapping: Value,
    /// The results for all fields with earlier values, accepted or not.
    pub fields: Vec<FieldRepair>,
}

/// The result of repairing one field.
#[derive(Debug, Clone, Serialize)]
pub struct FieldRepair {
    pub field: String,
    /// Whether the old extraction chain reads less than half of the earlier values.
    pub broken: bool,
    /// Whether the field was broken and its extraction chain was replaced.
    pub accepted: bool,
    /// The reason for the decision, in one sentence for users.
    pub why: String,
    /// The newly learned extraction chain, accepted or not; `None` if the field is not broken.
    pub learned: Option<FieldReport>,
}

/// Learns the broken fields of a mapping again. `pages` are new versions of pages of the mapping. Their `known` values
/// were extracted from the same URLs before the site changed. An empty list means that nothing was extracted from the
/// page.
///
/// # Errors
///
/// The old mapping cannot be loaded, there are no pages, or nothing is known about them.
pub fn repair(old: &Value, pages: &[Page], limits: &Limits) -> Result<Repaired, LearnError> {
    if pages.is_empty() {
        return Err(LearnError::NoPages);
    }
    let engine = build_engine(old)?;
    let chosen: Vec<usize> = (0..pages.len().min(limits.pages.max(1))).collect();
    let documents = parse_pages(pages, &chosen);
    let group = prepare_group(pages, &documents, &chosen);
    let read: Vec<_> = chosen
        .iter()
        .map(|&page| extract(&engine, &pages[page]))
        .collect();
    let mut repaired = Repaired {
        mapping: old.clone(),
        fields: Vec::new(),
    };
    let Some(fields) = repaired.mapping["fields"].as_array_mut() else {
        return Err(LearnError::NothingKnown);
    };
    for field in fields {
        let name = field["name"].as_str().unwrap_or_default().to_owned();
        let (mut labels, pointed) = known::labels_and_pointed_places(&group.pages, &name);
        let known = labels
            .iter()
            .filter(|label| !label.wanted.is_empty())
            .count();
        if known == 0 {
            continue;
        }
        let multiple = field["multiple"].as_bool().unwrap_or(false);
        let credit = |label: &Label| {
            let reading = read[label.page]
                .get(&name)
                .map(evaluate::reading_from_value);
            label.credit(&reading.unwrap_or_default(), multiple)
        };
        let right: f64 = labels.iter().map(credit).sum();
        if right * 2.0 >= known as f64 {
            repaired.fields.push(intact_field(name, right, known));
            continue;
        }
        labels.extend(labels_of_empty_pages(&group, &name));
        let former = FormerSteps::of_field(field);
        let found = learn_field_again(&group, labels, &pointed, multiple, &former, limits);
        let mut repair = assess_repair(&name, &found, &group, &former);
        if !repair.accepted
            && let Some(by_kind) =
                repair_by_page_kind(&name, &found, &group, &pointed, &former, limits)
        {
            repair = by_kind;
        }
        if repair.accepted
            && let Some(learned) = repair.learned.as_ref().and_then(field_json)
        {
            replace_chain(field, &learned);
        }
        repaired.fields.push(repair);
    }
    match repaired.fields.is_empty() {
        true => Err(LearnError::NothingKnown),
        false => Ok(repaired),
    }
}

fn build_engine(old: &Value) -> Result<Engine, LearnError> {
    let source = Source {
        name: "the old mapping".to_owned(),
        text: old.to_string(),
    };
    let set = MappingSet::from_sources(vec![source])
        .map_err(|errors| LearnError::OldMapping(errors.to_string()))?;
    Ok(Engine::new(Arc::new(set), evaluate::limits()))
}

fn extract(engine: &Engine, page: &Page) -> serde_json::Map<String, Value> {
    let input = PageInput {
        url: &page.url,
        kind: page.kind,
        text: &page.text,
    };
    let mapping = engine.set().indexes().next();
    let extraction = engine.extract_with_mapping(mapping, input, RequestedParts::default());
    extraction
        .map(|extraction| extraction.fields)
        .unwrap_or_default()
}

fn intact_field(field: String, right: f64, known: usize) -> FieldRepair {
    FieldRepair {
        field,
        broken: false,
        accepted: false,
        why: format!("it still reads {right:.0} of {known} values of before"),
        learned: None,
    }
}

/// Replaces the extraction chain of a field in the mapping. Other keys of the field, such as its description, stay.
fn replace_chain(field: &mut Value, learned: &Value) {
    if let Some(field) = field.as_object_mut() {
        for key in ["processors", "alternatives"] {
            field.shift_remove(key);
            if let Some(chains) = learned.get(key) {
                field.insert(key.to_owned(), chains.clone());
            }
        }
    }
}

/// Makes a [`Label`] without values for each page that had no value of the field before the change.
fn labels_of_empty_pages(group: &Group<'_>, field: &str) -> Vec<Label> {
    let is_empty = |page: &Page| {
        let known = page.known.get(field).is_some_and(Vec::is_empty);
        known && !page.said.contains_key(field)
    };
    let pages = group.pages.iter().enumerate();
    let empty = pages.filter(|(_, places)| is_empty(places.page));
    empty
        .map(|(page, _)| Label {
            page,
            was_empty: true,
            ..Label::default()
        })
        .collect()
}

fn assess_repair(
    field: &str,
    found: &LearnedField,
    group: &Group<'_>,
    former: &FormerSteps,
) -> FieldRepair {
    let report = report::field_report(field, found, group);
    let refusal = refusal_reason(found, &report, former);
    FieldRepair {
        broken: true,
        accepted: refusal.is_none(),
        why: refusal.unwrap_or_else(|| report.why.clone()),
        learned: Some(report),
        field: field.to_owned(),
    }
}

/// Why a repair is not certain enough; `None` if it is.
fn refusal_reason(
    found: &LearnedField,
    report: &FieldReport,
    former: &FormerSteps,
) -> Option<String> {
    let Some(&best) = found.ranking.first() else {
        return Some(report.why.clone());
    };
    if report.agree.len() < enough_pages(found, best, former) {
        let right = report.agree.len();
        return Some(format!(
            "only {right} values of before were found again, {ENOUGH} are needed"
        ));
    }
    if report.confidence < SURE {
        return Some(format!(
            "on pages left out of learning, it is right only {:.2} of the time",
            report.confidence
        ));
    }
    let known: Vec<&KnownValue> = found
        .labels
        .iter()
        .flat_map(|label| &label.wanted)
        .collect();
    let readings = &found.readings[best];
    if !is_varied(readings) && known.iter().any(|one| one.folded != known[0].folded) {
        return Some("it reads the same on every page, where values of before differed".to_owned());
    }
    let values: Vec<&str> = readings
        .iter()
        .flat_map(|reading| &reading.values)
        .map(|value| value.folded.as_str())
        .collect();
    let alike = values
        .iter()
        .filter(|value| resembles(value, &known))
        .count();
    // One of fewer than ten values may differ from the earlier ones.
    (alike as f64)
        .lt(&(ALIKE * values.len() as f64).floor())
        .then(|| {
            format!(
                "only {alike} of {} values look like those of before",
                values.len()
            )
        })
}

/// On how many pages earlier values must be found again. Fewer suffice if the extraction chain finds values by the same
/// words as the former chain, and pages without a value confirm it.
fn enough_pages(found: &LearnedField, best: usize, former: &FormerSteps) -> usize {
    let (filled, empty) = count_filled_and_empty(&found.readings[best], &found.labels);
    let is_confirmed = filled == 0 && empty >= ENOUGH;
    match is_confirmed && former.find_by_words(&found.candidates[best].processors) {
        true => FEWEST,
        false => ENOUGH,
    }
}

fn is_varied(readings: &[Reading]) -> bool {
    let mut filled = readings.iter().filter(|reading| !reading.values.is_empty());
    let first = filled.next();
    filled.any(|reading| Some(&reading.values) != first.map(|first| &first.values))
}

/// Whether a value resembles the earlier ones in length and characters.
fn resembles(value: &str, known: &[&KnownValue]) -> bool {
    let length = |text: &str| text.chars().count();
    let longest = known
        .iter()
        .map(|one| length(&one.folded))
        .max()
        .unwrap_or(0);
    let shortest = known
        .iter()
        .map(|one| length(&one.folded))
        .min()
        .unwrap_or(0);
    let has = |text: &str, of: fn(char) -> bool| text.chars().any(of);
    let always = |of: fn(char) -> bool| known.iter().all(|one| has(&one.folded, of));
    let never = |of: fn(char) -> bool| !known.iter().any(|one| has(&one.folded, of));
    let agrees = |of: fn(char) -> bool| match has(value, of) {
        true => !never(of),
        false => !always(of),
    };
    // The range of lengths is wide, because a few earlier values do not show how long a value may be.
    (shortest / 3..=longest * 3 + 2).contains(&length(value))
        && agrees(|c| c.is_ascii_digit())
        && agrees(char::is_alphabetic)
}
