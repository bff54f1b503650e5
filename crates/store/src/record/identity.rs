//! Identity: whether a page is about the record that it was fetched for.
//!
//! The user names the URLs of a record, so these are the record's own pages. A page reached over links may be about
//! anyone: a page that lists members leads each record on it to all of them. The values known from the user decide:
//!
//! - a value that the page also has, in any spelling, is *evidence* that the page belongs to this record;
//! - a different value means that the page belongs to another record, or that the user's value is stale. A number, a
//!   date or a telephone number changes more easily than a name, and counts less.
//!
//! A page that belongs to another record fills nothing. If two pages of one mapping, both reached over links,
//! disagree, the one with more evidence counts. Without a difference the field stays missing, because a wrong value is
//! worse than none. The record notes the reason, for the report of the crawl.

use serde_json::Value;

use super::doubts::IdentityDoubt;
use super::fill_rules::{FillRules, PageValues};
use super::source::evidence_in;
use super::spelling::{has_value, is_same_value};
use super::stored::StoredRecord;

/// The weights of a value that a page shares with a record: of a value that changes easily or that many records share,
/// such as a number, and of another one, such as a name.
const WEAK: u32 = 1;
const STRONG: u32 = 2;

/// The weight of a page whose URL the user has named.
const OWN: u32 = 2;

/// The least weight of matching values that proves that a page is about a record.
pub(super) const SURE: u32 = STRONG;

/// How many letters and digits a text needs to be unlikely to match another record by chance.
const LONG: usize = 8;

/// How much speaks for and against a page being about a record.
#[derive(Debug, Default)]
struct MatchWeights {
    agrees: u32,
    differs: u32,
}

/// Whether the page was reached over links, not given by the user. False for a record without kept URLs, because then
/// this is unknown.
fn is_linked(record: &StoredRecord, page: &PageValues<'_>) -> bool {
    page.depth != Some(0) && !record.urls.is_empty() && !is_own_url(record, page.url)
}

/// Whether the user has named this URL for the record.
fn is_own_url(record: &StoredRecord, url: &str) -> bool {
    record.urls.iter().any(|own| own == url)
}

/// How well a page that was reached over links matches the record; `None` for pages that the user has named. An error
/// is the reason why the page belongs to another record.
pub(super) fn evidence_for_page(
    record: &StoredRecord,
    page: &PageValues<'_>,
    rules: &FillRules,
) -> Result<Option<u32>, IdentityDoubt> {
    if page.is_of_other && !is_own_url(record, page.url) {
        return Err(IdentityDoubt::OtherRecord);
    }
    let is_linked = is_linked(record, page);
    let MatchWeights {
        mut agrees,
        differs,
    } = match_weights(record, page);
    let is_match = is_match(record, page, rules);
    if is_match == Some(true) {
        agrees = agrees.max(SURE);
    }
    let is_others = match is_match {
        Some(is_match) => !is_match,
        None if is_linked => differs > 0 && differs >= agrees,
        None => differs > agrees + OWN,
    };
    match is_others {
        true => Err(IdentityDoubt::OtherValues),
        false => Ok(is_linked.then_some(agrees)),
    }
}

/// Whether the page and the record agree in the fields that the page's mapping recognises a record by. `None` if the
/// mapping names no such fields, or both have values for none of them.
fn is_match(record: &StoredRecord, page: &PageValues<'_>, rules: &FillRules) -> Option<bool> {
    let names = rules.mappings.as_ref()?.match_fields(page.mapping?);
    let mut both = names
        .iter()
        .filter_map(|name| Some((known_value(record, name)?, page.fields.get(name)?)))
        .filter(|(_, value)| has_value(value))
        .peekable();
    both.peek()?;
    Some(both.all(|(known, value)| is_same_value(known, value)))
}

/// The user's value of a field; `None` if the user wants another value for it.
fn known_value<'r>(record: &'r StoredRecord, name: &str) -> Option<&'r Value> {
    let is_users = record.doubts.is_final(name)
        || !record.sources.contains_key(name) && !record.missing.iter().any(|one| one == name);
    let value = record.fields.get(name).filter(|_| is_users)?;
    has_value(value).then_some(value)
}

fn match_weights(record: &StoredRecord, page: &PageValues<'_>) -> MatchWeights {
    let mut weights = MatchWeights::default();
    for (name, value) in page.fields {
        let Some(known) = known_value(record, name).filter(|_| has_value(value)) else {
            continue;
        };
        match (is_same_value(known, value), find_overlap(known, value)) {
            (true, _) => weights.agrees += weight_of_agreement(known),
            (false, Overlap::Words) => {}
            (false, Overlap::Nothing) => weights.differs += weight_of_difference(known, value),
        }
    }
    weights
}

/// Whether a field's value and this page are rivals: both were reached over links, have the same mapping, and match the
/// record equally well. `kept` is the source of the value, or of a candidate.
pub(super) fn are_rivals(kept: &Value, page: &PageValues<'_>, evidence: Option<u32>) -> bool {
    kept["url"] != page.url
        && kept["mapping"].as_str() == page.mapping
        && evidence.is_some()
        && evidence_in(kept) == evidence
}

/// Whether a field stays without a value, because another page of the same mapping has a different value and matches
/// the record at least as well.
pub(super) fn is_in_conflict(
    record: &StoredRecord,
    name: &str,
    value: &Value,
    page: &PageValues<'_>,
    evidence: Option<u32>,
) -> bool {
    let mut others = record.candidates.of_field(name).iter();
    !record.fields.get(name).is_some_and(has_value)
        && others.any(|other| {
            other["url"] != page.url
                && other["mapping"].as_str() == page.mapping
                && !is_same_value(&other["value"], value)
                && evidence.is_some_and(|evidence| evidence_in(other) >= Some(evidence))
        })
}

/// The similarity of two different values.
enum Overlap {
    Words,
    Nothing,
}

/// Whether two different values share words. They do if one is the other with additional words, such as a title or a
/// second name, or if lists share an item.
fn find_overlap(one: &Value, other: &Value) -> Overlap {
    let (Value::String(one), Value::String(other)) = (one, other) else {
        let has_common = |items: &[Value], others: &[Value]| {
            items
                .iter()
                .any(|item| others.iter().any(|other| is_same_value(item, other)))
        };
        return match (one, other) {
            (Value::Array(one), Value::Array(other)) if has_common(one, other) => Overlap::Words,
            (Value::Array(items), single) | (single, Value::Array(items))
                if has_common(items, std::slice::from_ref(single)) =>
            {
                Overlap::Words
            }
            _ => Overlap::Nothing,
        };
    };
    let words = |text: &str| -> Vec<String> {
        let words = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    let is_within = |few: &[String], many: &[String]| {
        !few.is_empty() && few.iter().all(|word| many.contains(word))
    };
    match is_within(&one, &other) || is_within(&other, &one) {
        true => Overlap::Words,
        false => Overlap::Nothing,
    }
}

fn weight_of_agreement(value: &Value) -> u32 {
    let Value::String(text) = value else {
        return WEAK;
    };
    let signs = text.chars().filter(|c| c.is_alphanumeric()).count();
    let has_words = text.split_whitespace().count() > 1;
    match is_of_letters(text) && has_words || signs >= LONG {
        true => STRONG,
        false => WEAK,
    }
}

fn weight_of_difference(known: &Value, value: &Value) -> u32 {
    match (known, value) {
        (Value::String(known), Value::String(value))
            if is_of_letters(known) && is_of_letters(value) =>
        {
            STRONG
        }
        _ => WEAK,
    }
}

/// Whether a text is more than a number, a date or a telephone number.
fn is_of_letters(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let digits = text.chars().filter(char::is_ascii_digit).count();
    letters > digits
}
