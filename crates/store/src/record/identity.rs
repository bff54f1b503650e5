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

use serde_json::{Map, Value, json};

use super::deciding::shown_decisions;
use super::{FillRules, PageValues, StoredRecord, has_value, spelling};
use crate::timestamp::iso_time;

/// The weight of a value that changes easily, or that many records share. A name weighs more.
const WEAK: u32 = 1;
const STRONG: u32 = 2;

/// The weight of a URL named by the user.
const OWN: u32 = 2;

/// The evidence with which a record is identified for certain.
const SURE: u32 = STRONG;

/// How many letters and digits a text needs to be unlikely to match another record by chance.
const LONG: usize = 8;

/// Maximum number of pages that a record lists with the reason why they did not fill it.
const MAX_DOUBTS: usize = 16;

/// Maximum number of mappings that a record lists under `forks`.
const MAX_FORKS: usize = 16;

/// The member of a source with the evidence for its page, if that was reached over links.
pub(super) const EVIDENCE: &str = "evidence";

/// Why a page did not fill a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdentityDoubt {
    /// The page contradicts the user's values of the record.
    OtherValues,
    /// Another record names the page's URL.
    OtherRecord,
    /// Other pages of the same mapping have other values.
    Rivals,
    /// The page is part of a list, and has not been read.
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

/// The weights of the evidence for a page and against it.
#[derive(Debug, Default)]
struct MatchWeights {
    agrees: u32,
    differs: u32,
}

impl StoredRecord {
    /// Whether the page was reached over links. It is unknown for a record whose URLs are not kept.
    fn is_linked(&self, page: &PageValues<'_>) -> bool {
        page.depth != Some(0) && !self.urls.is_empty() && !self.names(page.url)
    }

    /// Whether the user has named this URL for the record.
    fn names(&self, url: &str) -> bool {
        self.urls.iter().any(|own| own == url)
    }

    /// The evidence for a page reached over links; `None` for the record's own pages. An error is the reason why the
    /// page belongs to another record.
    pub(super) fn evidence_of(
        &self,
        page: &PageValues<'_>,
        rules: &FillRules,
    ) -> Result<Option<u32>, IdentityDoubt> {
        if page.is_of_other && !self.names(page.url) {
            return Err(IdentityDoubt::OtherRecord);
        }
        let is_linked = self.is_linked(page);
        let MatchWeights {
            mut agrees,
            differs,
        } = self.weigh(page);
        let is_match = self.is_match(page, rules);
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

    /// Whether the page and the record agree in the fields by which the page's mapping recognises a record. `None` if
    /// the mapping names no such fields, or both have values for none of them.
    fn is_match(&self, page: &PageValues<'_>, rules: &FillRules) -> Option<bool> {
        let names = rules.mappings.as_ref()?.match_fields(page.mapping?);
        let mut both = names
            .iter()
            .filter_map(|name| Some((self.known(name)?, page.fields.get(name)?)))
            .filter(|(_, value)| has_value(value))
            .peekable();
        both.peek()?;
        Some(both.all(|(known, value)| spelling::is_same_value(known, value)))
    }

    /// The user's value of a field, unless another one is wanted.
    fn known(&self, name: &str) -> Option<&Value> {
        let is_users = self.is_final(name)
            || !self.sources.contains_key(name) && !self.missing.iter().any(|one| one == name);
        let value = self.fields.get(name).filter(|_| is_users)?;
        has_value(value).then_some(value)
    }

    fn weigh(&self, page: &PageValues<'_>) -> MatchWeights {
        let mut weights = MatchWeights::default();
        for (name, value) in page.fields {
            let Some(known) = self.known(name).filter(|_| has_value(value)) else {
                continue;
            };
            match (
                spelling::is_same_value(known, value),
                overlap_of(known, value),
            ) {
                (true, _) => weights.agrees += weight_of_agreement(known),
                (false, Overlap::Words) => {}
                (false, Overlap::Nothing) => weights.differs += weight_of_difference(known, value),
            }
        }
        weights
    }

    /// Notes that a page leads to several pages of one mapping. Each of these may be about another record. Returns
    /// whether this is new.
    pub(crate) fn note_forks(&mut self, page: &PageValues<'_>) -> bool {
        let is_known =
            |forks: &Vec<Value>, mapping: &String| forks.iter().any(|one| one == mapping);
        let forks = self.doubts.entry("forks").or_insert_with(|| json!([]));
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
            self.doubts.shift_remove("forks");
        }
        is_new
    }

    /// Whether the record was completed by a page that similar pages may contradict. Then those are to be fetched too.
    pub(crate) fn is_unsure(&self) -> bool {
        let forks = self.doubts.get("forks").and_then(Value::as_array);
        let forks = forks.map_or(&[][..], Vec::as_slice);
        let is_unsure = |source: &Value| {
            let evidence = source[EVIDENCE].as_u64();
            evidence.is_some_and(|evidence| evidence < u64::from(SURE))
                && forks.contains(&source["mapping"])
        };
        let mut open = self.sources.iter().filter(|(name, _)| !self.is_final(name));
        !forks.is_empty() && open.any(|(_, source)| is_unsure(source))
    }

    /// Notes why a page did not fill the record or this field. Returns whether this is new.
    pub(super) fn note_doubt(&mut self, page: &PageValues<'_>, doubt: IdentityDoubt) -> bool {
        let pages = self.doubts.entry("pages").or_insert_with(|| json!({}));
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

    /// Notes the pages that the record waits for, because a list of this mapping continues there.
    pub(super) fn note_gaps(&mut self, mapping: Option<&str>, awaited: &[String], at_ms: i64) {
        let gap = IdentityDoubt::Gap.as_str();
        let pages = self.doubts.entry("pages").or_insert_with(|| json!({}));
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
                self.doubts.shift_remove("pages");
            }
        }
    }

    /// Removes the notes on a page that fills the record after all.
    pub(super) fn clear_doubt(&mut self, page: &PageValues<'_>) -> bool {
        let Some(Value::Object(pages)) = self.doubts.get_mut("pages") else {
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

    /// Removes the notes on rivals once no field is in conflict.
    pub(super) fn settle_rivals(&mut self) {
        if let Some(Value::Object(pages)) = self.doubts.get_mut("pages")
            && self.missing.is_empty()
        {
            pages.retain(|_, page| page["why"] != IdentityDoubt::Rivals.as_str());
        }
    }

    /// Whether the value of a field and this page are rivals: both were reached over links by one mapping, with equal
    /// evidence. `kept` is the source of the value, or of a candidate.
    pub(super) fn are_rivals(kept: &Value, page: &PageValues<'_>, evidence: Option<u32>) -> bool {
        kept["url"] != page.url
            && kept["mapping"].as_str() == page.mapping
            && evidence.is_some()
            && evidence_in(kept) == evidence
    }

    /// Whether a field is in conflict for this page: it has no value, because pages reached over links disagree.
    pub(super) fn is_in_conflict(
        &self,
        name: &str,
        value: &Value,
        page: &PageValues<'_>,
        evidence: Option<u32>,
    ) -> bool {
        let others = self.candidates.get(name).and_then(Value::as_array);
        let mut others = others.into_iter().flatten();
        !self.fields.get(name).is_some_and(has_value)
            && others.any(|other| {
                other["url"] != page.url
                    && other["mapping"].as_str() == page.mapping
                    && !spelling::is_same_value(&other["value"], value)
                    && evidence.is_some_and(|evidence| evidence_in(other) >= Some(evidence))
            })
    }
}

/// The weight of the evidence for a page. The record's own pages, which have none, weigh most: the user has named
/// them.
pub(super) fn evidence_weight(evidence: Option<u32>) -> u32 {
    evidence.unwrap_or(u32::MAX)
}

/// The evidence in a source; see [`EVIDENCE`].
pub(super) fn evidence_in(source: &Value) -> Option<u32> {
    source[EVIDENCE].as_u64().map(|evidence| evidence as u32)
}

/// In a stored record, replaces the doubts by the reasons why pages did not fill it, by URL, and by the decisions of
/// people. Removes them if there are none.
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
pub(crate) fn doubts_of(doubts: &Map<String, Value>) -> Vec<(String, String)> {
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

/// What two different values have in common.
enum Overlap {
    Words,
    Nothing,
}

/// One value is the other with additional words, such as a title or a second name.
fn overlap_of(one: &Value, other: &Value) -> Overlap {
    let (Value::String(one), Value::String(other)) = (one, other) else {
        let has_common = |items: &[Value], others: &[Value]| {
            items.iter().any(|item| {
                others
                    .iter()
                    .any(|other| spelling::is_same_value(item, other))
            })
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
