//! Decides for each cell whether it is filled, and with which value. `judgement.rs` judges how likely values are right.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use webfill_mapping::MappingIndex;
use webfill_truth::{Doubt, ItemJudgement, Judgement};
use webfill_wire::Outcome;

use super::judgement::ValueNumbers;
use super::likeness::Likeness;
use super::mappings::Mappings;
use super::pages::Pages;
use super::reading::{Reading, agrees};
use super::table::{Row, Table};

/// The result for one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The cell was a gap and has a value now.
    Filled,
    /// The cell's value is also on its page.
    Known,
    /// The page has another value than the cell.
    Contradicted,
    /// The cell stays a gap: its pages have several values, and none of them is certain enough.
    Conflicting,
    /// The cell stays a gap: no value was read on its pages.
    NotOnPage,
    /// The cell stays a gap: none of its pages was fetched.
    Unreachable,
    /// The cell stays a gap: robots.txt disallows its pages.
    Robots,
    /// The cell stays a gap: its value is not certain enough, or its pages were not fetched because no certain value
    /// was expected.
    BelowPrecision,
    /// The cell stays a gap: its value is certain, but does not fit the column; or other rows have its page, too.
    Refused,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Filled => "filled",
            State::Known => "known",
            State::Contradicted => "contradicted",
            State::Conflicting => "conflicting",
            State::NotOnPage => "not on the page",
            State::Unreachable => "page unreachable",
            State::Robots => "refused by robots",
            State::BelowPrecision => "below precision",
            State::Refused => "refused",
        }
    }
}

/// The result for one cell, with the source of its value.
#[derive(Debug)]
pub struct Cell {
    pub row: u32,
    pub field: usize,
    pub state: State,
    /// The values as the page has them.
    pub values: Vec<String>,
    /// The probability that the values are right; for a contradicted cell, that the table's value is wrong.
    pub confidence: f64,
    /// The page that the values come from; for a gap that stays, one of its pages.
    pub url: Option<String>,
    /// Why values that were read were not written.
    pub refusal: Option<String>,
    /// Whether the value is only proposed: the table has known values of the field for other sites, but none for this
    /// site.
    pub is_proposed: bool,
    /// Other values that the cell's pages have, each with its page.
    pub candidates: Vec<Candidate>,
}

/// A value that was read, but not chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub values: Vec<String>,
    pub url: String,
}

/// Proposals that are less likely right than this are shown to a person, whatever precision the user requests.
pub const LEAST_UNASKED: f64 = 0.95;

/// The confidence in a doubtful proposal: its page contradicts the row, or has another value that is as likely.
const DOUBTFUL: f64 = 0.3;

/// The highest confidence in a value if its page has another value that is as likely. Such a value is never filled in,
/// however low the requested precision.
const DISPUTED: f64 = 0.5;

/// Why a page that several rows have fills none of them.
const SHARED_PAGE: &str = "several rows have this page, so it is the page of none of them";

/// The most other values that are kept for a cell.
const MOST_CANDIDATES: usize = 8;

/// Decides the cells of a table one by one, by the judgement.
pub(super) struct Decider<'d> {
    pub(super) table: &'d Table,
    pub(super) pages: &'d Pages<'d>,
    pub(super) mappings: &'d Mappings,
    /// The rows that have each page.
    pub(super) targets: &'d BTreeMap<&'d str, BTreeSet<u32>>,
    pub(super) judgement: &'d Judgement,
    pub(super) values: &'d mut ValueNumbers,
    pub(super) precision: f64,
    pub(super) doubted: &'d HashMap<u32, &'d Doubt>,
    /// Whether values are precise enough to fill gaps, by layout of pages and by field. Both are given by their
    /// numbers.
    pub(super) permitted: HashMap<(u32, usize), bool>,
    /// The appearance of known values, by field; only for fields with proposals.
    pub(super) looks: HashMap<usize, Likeness>,
}

/// The values that a page has for a cell.
struct CellReading<'r> {
    url: &'r str,
    mapping: MappingIndex,
    chain: usize,
    values: Vec<String>,
    is_disputed: bool,
}

/// Whether a page contradicts more known values of the row than it confirms. Then it may be the page of another row.
fn is_foreign(row: &Row, reading: &Reading) -> bool {
    let (mut same, mut others) = (0, 0);
    for one in &reading.fields {
        let known = row.known_values(one.field);
        if !known.is_empty() {
            match agrees(&known, &one.values) {
                true => same += 1,
                false => others += 1,
            }
        }
    }
    others > same
}

impl Decider<'_> {
    /// Decides a cell. `None` for a known value that no page mentions, and for a gap in a row without links.
    pub(super) fn decide(
        &mut self,
        at: usize,
        field: usize,
        read: &[(&str, &Reading)],
    ) -> Option<Cell> {
        let mut candidates = Vec::new();
        let mut cell = self.decide_among(at, field, read, &mut candidates)?;
        for candidate in candidates {
            let is_same = |other: &Candidate| other.values == candidate.values;
            let is_new = candidate.values != cell.values && !cell.candidates.iter().any(is_same);
            if is_new && cell.candidates.len() < MOST_CANDIDATES {
                cell.candidates.push(candidate);
            }
        }
        Some(cell)
    }

    /// Decides a cell by its readings. If there are several, all of them are added to `candidates`.
    fn decide_among(
        &mut self,
        at: usize,
        field: usize,
        read: &[(&str, &Reading)],
        candidates: &mut Vec<Candidate>,
    ) -> Option<Cell> {
        let table = self.table;
        let row = &table.rows[at];
        let known = &row.known_values(field);
        let item = (at * table.fields.len() + field) as u32;
        let cell = |state, values: &[String], confidence, url: Option<&str>| Cell {
            row: at as u32,
            field,
            state,
            values: values.to_vec(),
            confidence,
            url: url.map(str::to_owned),
            refusal: None,
            is_proposed: false,
            candidates: Vec::new(),
        };
        // If the column has single values, a reading with several values is unclear.
        let (mut readings, mut unclear, mut proposed) = (Vec::new(), None, Vec::new());
        for (url, reading) in read {
            for one in reading.fields.iter().filter(|one| one.field == field) {
                let name = &table.fields[field].name;
                let origin = self.mappings.origin(reading.mapping);
                let origin = origin.and_then(|origin| origin.fields.get(name));
                let mut read = CellReading {
                    url,
                    mapping: reading.mapping,
                    chain: one.chain,
                    values: one.values.clone(),
                    is_disputed: origin.is_some_and(|field| field.is_disputed(url, one)),
                };
                if !table.fields[field].has_several() {
                    if self.intern_all(&read.values, known).len() > 1 {
                        unclear.get_or_insert(read);
                        continue;
                    }
                    read.values.truncate(1);
                }
                match self.mappings.proposed_confidence(read.mapping, name) {
                    Some(_) if read.is_disputed || is_foreign(row, reading) => {
                        proposed.push((DOUBTFUL, read));
                    }
                    Some(confidence) => proposed.push((confidence, read)),
                    None => readings.push(read),
                }
            }
        }
        let all = readings.iter().chain(&unclear);
        let all = all.chain(proposed.iter().map(|(_, read)| read));
        if all.clone().count() > 1 {
            candidates.extend(all.map(|read| Candidate {
                values: read.values.clone(),
                url: read.url.to_owned(),
            }));
        }
        if !known.is_empty() {
            let doubt = self.doubted.get(&item).copied();
            let surely = doubt.map_or(0.0, |doubt| doubt.surely);
            let (same, others): (Vec<&CellReading<'_>>, Vec<&CellReading<'_>>) = readings
                .iter()
                .partition(|read| agrees(known, &read.values));
            // If the judgement doubts the known value, these values are more likely true.
            let instead = doubt.and_then(|doubt| doubt.instead);
            let has_instead = |read: &&&CellReading<'_>| {
                instead
                    .is_some_and(|instead| self.intern_all(&read.values, known).contains(&instead))
            };
            let other = others.iter().find(has_instead).or(others.first());
            return match (same.first(), other) {
                (None, None) => None,
                (None, Some(other)) => Some(cell(
                    State::Contradicted,
                    &other.values,
                    surely,
                    Some(other.url),
                )),
                (Some(_), Some(other)) if surely >= Judgement::DOUBTED => Some(cell(
                    State::Contradicted,
                    &other.values,
                    surely,
                    Some(other.url),
                )),
                (Some(same), _) => Some(cell(
                    State::Known,
                    &same.values,
                    1.0 - surely,
                    Some(same.url),
                )),
            };
        }
        if readings.is_empty()
            && unclear.is_none()
            && let Some(cell) = self.decide_proposed(field, &proposed, &cell)
        {
            return Some(cell);
        }
        let judgement = self.judgement;
        let Some(judged) = judgement.item(item).filter(|_| !readings.is_empty()) else {
            if let Some(read) = unclear {
                return Some(cell(State::Conflicting, &read.values, 0.0, Some(read.url)));
            }
            let (state, url) = self.why_nothing_read(row.links.iter().copied());
            let mut cell = cell(state?, &[], 0.0, url.as_deref());
            if cell.state == State::Refused {
                cell.refusal = Some(String::from(SHARED_PAGE));
            }
            return Some(cell);
        };
        let chosen: BTreeSet<u32> = judged.chosen.iter().map(|value| value.value).collect();
        let best = readings.iter().max_by_key(|read| {
            let numbers = self.intern_all(&read.values, &[]);
            let shared = numbers.intersection(&chosen).count();
            // Prefer an undisputed reading among readings with the same values.
            (
                shared,
                !read.is_disputed,
                std::cmp::Reverse(read.chain),
                std::cmp::Reverse(numbers.len()),
            )
        })?;
        // The page has another value that is as likely, and no other site confirms the chosen value.
        let is_disputed = best.is_disputed && judged.chosen.iter().any(|value| value.sites < 2);
        let confidence = match is_disputed {
            true => judged.confidence.min(DISPUTED),
            false => judged.confidence,
        };
        // A list is filled only if a single page has all of it.
        let is_whole = self.intern_all(&best.values, &[]) == chosen;
        let is_sure = confidence >= self.precision && is_whole && !is_disputed;
        let state = match judged.rejected.is_empty() {
            _ if is_sure && self.may_fill(field, judged, &readings, &chosen) => State::Filled,
            false if !is_sure => State::Conflicting,
            _ if is_disputed => State::Conflicting,
            _ => State::BelowPrecision,
        };
        Some(cell(state, &best.values, confidence, Some(best.url)))
    }

    /// Decides a cell by its proposals. They conflict unless all have the same values. `None` if there are no
    /// proposals.
    fn decide_proposed<F>(
        &mut self,
        field: usize,
        proposed: &[(f64, CellReading<'_>)],
        cell: &F,
    ) -> Option<Cell>
    where
        F: Fn(State, &[String], f64, Option<&str>) -> Cell,
    {
        let (confidence, best) = proposed.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let numbers = self.intern_all(&best.values, &[]);
        let mut agree = true;
        for (_, other) in proposed {
            agree &= self.intern_all(&other.values, &[]) == numbers;
        }
        let looks = self.looks.entry(field);
        let looks = looks.or_insert_with(|| Likeness::from_field(self.table, field));
        let confidence = looks.weigh(*confidence, &best.values);
        let state = match agree {
            false => State::Conflicting,
            true if confidence >= self.precision.max(LEAST_UNASKED) => State::Filled,
            true => State::BelowPrecision,
        };
        let mut cell = cell(state, &best.values, confidence, Some(best.url));
        cell.is_proposed = true;
        Some(cell)
    }

    fn intern_all(&mut self, read: &[String], known: &[String]) -> BTreeSet<u32> {
        let values = &mut *self.values;
        read.iter()
            .map(|value| values.intern_read(value, known))
            .collect()
    }

    /// Whether these values may be filled in: a layout with measured precision or a person's mapping reads them, or
    /// several sites agree.
    fn may_fill(
        &mut self,
        field: usize,
        judged: &ItemJudgement,
        readings: &[CellReading<'_>],
        chosen: &BTreeSet<u32>,
    ) -> bool {
        if judged.chosen.iter().all(|value| value.sites > 1) {
            return true;
        }
        for read in readings {
            if self.intern_all(&read.values, &[]) != *chosen {
                continue;
            }
            let layout = self.mappings.position(read.mapping);
            let (judgement, precision) = (self.judgement, self.precision);
            let decide = || judgement.decide_fill(layout, field as u32, precision).fill;
            let is_permitted = *self.permitted.entry((layout, field)).or_insert_with(decide);
            if is_permitted || self.mappings.origin(read.mapping).is_none() {
                return true;
            }
        }
        false
    }

    /// Why no value was read for a gap; `None` for a row without links.
    fn why_nothing_read(
        &self,
        links: impl Iterator<Item = u32>,
    ) -> (Option<State>, Option<String>) {
        let (mut state, mut of, mut has_own_page) = (None, None, false);
        for link in links {
            let url = &self.table.links[link as usize].url;
            let (at, found) = match self.pages.target(url) {
                None if self.pages.is_unanswered(url) => (url.as_str(), State::Unreachable),
                None => (url.as_str(), State::BelowPrecision),
                Some((at, page)) => (
                    at,
                    match page.outcome {
                        Outcome::Ok | Outcome::NotModified | Outcome::ExtractError => {
                            has_own_page |= !self.is_of_several_rows(at);
                            State::NotOnPage
                        }
                        Outcome::Disallowed => State::Robots,
                        _ => State::Unreachable,
                    },
                ),
            };
            // A page that was fetched explains more than a page that was not.
            if state.is_none_or(|state| found < state) {
                (state, of) = (Some(found), Some(at.to_owned()));
            }
        }
        if state == Some(State::NotOnPage) && !has_own_page {
            state = Some(State::Refused);
        }
        (state, of)
    }

    fn is_of_several_rows(&self, target: &str) -> bool {
        let rows = self.targets.get(target);
        rows.is_some_and(|rows| rows.len() > 1)
    }
}
