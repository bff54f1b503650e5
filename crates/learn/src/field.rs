//! Learns the chain (list of extraction steps) of one field, for one group of pages.

use std::collections::BTreeMap;

use crate::candidates::{Candidate, Candidates, Column};
use crate::evaluate::Reading;
use crate::fold::KnownValue;
use crate::foreign_parts;
use crate::former::{self, FormerSteps};
use crate::lookups;
use crate::optional;
use crate::page_group::Group;
use crate::ranges;
use crate::score::{Label, Scores};
use crate::shape;
use crate::stale;
use crate::stand_ins;
use crate::types::Limits;
use crate::unions;

/// How many candidates run on the first few pages with known values (`AT_FIRST`), and how many of these then run on all
/// pages.
const AT_FIRST: usize = 500;
const AT_LAST: usize = 80;
const FIRST_PAGES: usize = 4;

/// The result of learning a field.
pub(crate) struct LearnedField {
    pub(crate) multiple: bool,
    pub(crate) candidates: Vec<Candidate>,
    /// What each candidate reads on each page: `[candidate][page]`.
    pub(crate) readings: Vec<Vec<Reading>>,
    pub(crate) labels: Vec<Label>,
    /// The indexes of candidates, the likeliest first.
    pub(crate) ranking: Vec<usize>,
    /// For each page with known values, how right (0 to 1) the candidate is that would have been chosen without this
    /// page.
    pub(crate) left_out: Vec<f64>,
    /// The indexes of those `labels` (known values of a page) whose record is more likely wrong than the page; see
    /// `stale.rs`.
    pub(crate) doubted: Vec<usize>,
}

/// Learns a field from the known values of pages, and from the places that a person has pointed at. `multiple` says
/// whether the field is a list; `None` if that is unknown.
pub(crate) fn learn_field(
    group: &Group<'_>,
    labels: Vec<Label>,
    pointed: &[(usize, usize)],
    multiple: Option<bool>,
    limits: &Limits,
) -> LearnedField {
    match multiple.map_or_else(|| list_prevalence(&labels), ListPrevalence::from) {
        ListPrevalence::Always => learn_single_or_list(group, labels, pointed, true, None, limits),
        ListPrevalence::Never => learn_single_or_list(group, labels, pointed, false, None, limits),
        ListPrevalence::Rarely => {
            let list = learn_single_or_list(group, labels.clone(), pointed, true, None, limits);
            let single = learn_single_or_list(group, labels, pointed, false, None, limits);
            match are_read_as_lists(&list)
                && count_correct_labels(&list) + 0.5 >= count_correct_labels(&single)
            {
                true => list,
                false => single,
            }
        }
    }
}

/// Learns a field again that a mapping has read before the pages changed.
pub(crate) fn learn_field_again(
    group: &Group<'_>,
    labels: Vec<Label>,
    pointed: &[(usize, usize)],
    multiple: bool,
    former: &FormerSteps,
    limits: &Limits,
) -> LearnedField {
    learn_single_or_list(group, labels, pointed, multiple, Some(former), limits)
}

/// Whether the field is a list: most pages with several known values are read completely.
fn are_read_as_lists(list: &LearnedField) -> bool {
    let Some(&best) = list.ranking.first() else {
        return false;
    };
    let several = list.labels.iter().filter(|label| label.wanted.len() > 1);
    let (mut read, mut all) = (0, 0);
    for label in several {
        all += 1;
        read += usize::from(label.credit(&list.readings[best][label.page], true) >= 0.99);
    }
    read * 2 > all
}

/// The number of pages whose known values the best candidate reads. A list that is read in part counts in part.
pub(crate) fn count_correct_labels(found: &LearnedField) -> f64 {
    let Some(&best) = found.ranking.first() else {
        return 0.0;
    };
    let credit = |label: &Label| label.credit(&found.readings[best][label.page], found.multiple);
    found.labels.iter().map(credit).sum()
}

fn learn_single_or_list(
    group: &Group<'_>,
    mut labels: Vec<Label>,
    pointed: &[(usize, usize)],
    multiple: bool,
    former: Option<&FormerSteps>,
    limits: &Limits,
) -> LearnedField {
    for label in labels.iter_mut().filter(|label| !label.is_certain) {
        let page = &group.pages[label.page];
        let wanted = label.wanted.iter();
        label.is_unseen = wanted.map(|wanted| !page.mentions(wanted)).collect();
    }
    let column = Column::new(&labels, &group.pages);
    let mut made = Candidates::default();
    for label in &labels {
        let page = &group.pages[label.page];
        for wanted in label.wanted.iter().take(30) {
            made.add_value(
                label.page,
                page,
                wanted,
                &column,
                &group.labels,
                &group.leaks,
            );
        }
        if multiple {
            made.add_joined_values(label.page, page, &label.wanted, &group.labels, &group.leaks);
        }
    }
    if let Some(former) = former {
        former.add_candidates(&mut made, group, &labels, multiple);
    }
    for &(page, place) in pointed {
        made.add_place(
            page,
            &group.pages[page],
            place,
            &[],
            &group.labels,
            &group.leaks,
        );
    }
    let mut at_first = AT_FIRST;
    if let Some(pattern) = shape::common_pattern(&labels) {
        made.add_pattern_filtered(&pattern);
        at_first *= 2;
    }
    let candidates = made.select_likeliest(limits.candidates.min(at_first));
    let mut candidates = best_on_first_pages(group, candidates, &labels, multiple);
    let mut readings = group.read_all(&candidates);
    for (one, readings) in candidates.iter_mut().zip(&readings) {
        one.is_unusable |= one.has_optional_words() && !optional::is_shown(one, readings, &labels);
    }
    if !multiple && former.is_none() {
        let with_tables = lookups::chains_with_tables(group, &labels, &readings);
        readings.extend(group.read_all(&with_tables));
        candidates.extend(with_tables);
    }
    if multiple {
        let credits = Scores::new(&candidates, &readings, &labels, multiple).credits;
        let unions = unions::best_unions(&candidates, &readings, &labels, &credits);
        readings.extend(group.read_all(&unions));
        candidates.extend(unions);
    }
    let ranking = Scores::new(&candidates, &readings, &labels, multiple).ranking(None);
    let kept_out = foreign_parts::chains_without_foreign_parts(
        group,
        &candidates,
        &readings,
        &ranking,
        &labels,
        multiple,
    );
    readings.extend(group.read_all(&kept_out));
    candidates.extend(kept_out);
    if !multiple {
        exclude_ranges(group, &mut candidates, &mut readings, &labels);
        let is_repair = former.is_some();
        add_safer_chains(group, &mut candidates, &mut readings, &labels, is_repair);
    }
    let scores = Scores::new(&candidates, &readings, &labels, multiple);
    let ranking = scores.ranking(None);
    let doubted = stale::outdated_labels(&scores, &ranking, group);
    let is_misspelt = |label: usize| {
        let label = &labels[label];
        let best = ranking.first();
        best.is_some_and(|&best| label.is_misspelt(&readings[best][label.page], multiple))
    };
    let mut left_out = leave_one_out(&scores, &is_misspelt);
    for &label in doubted.iter().filter(|&&label| !is_misspelt(label)) {
        left_out[label] = f64::NAN;
    }
    LearnedField {
        multiple,
        ranking,
        left_out,
        doubted,
        candidates,
        readings,
        labels,
    }
}

/// Replaces extraction chains that read a number of a range; see `ranges.rs`.
fn exclude_ranges(
    group: &Group<'_>,
    candidates: &mut Vec<Candidate>,
    readings: &mut Vec<Vec<Reading>>,
    labels: &[Label],
) {
    let ranking = Scores::new(candidates, readings, labels, false).ranking(None);
    let found = ranges::chains_outside_ranges(group, candidates, readings, &ranking, labels);
    for one in found {
        candidates[one.number].is_unusable = true;
        candidates.push(one.safer);
        readings.push(one.readings);
    }
}

/// Adds variants of extraction chains with conditions. They do not read another value if a page lacks its own; see
/// `stand_ins.rs`.
fn add_safer_chains(
    group: &Group<'_>,
    candidates: &mut Vec<Candidate>,
    readings: &mut Vec<Vec<Reading>>,
    labels: &[Label],
    is_repair: bool,
) {
    let ranking = Scores::new(candidates, readings, labels, false).ranking(None);
    let risky = stand_ins::find_risky_chains(group, candidates, readings, &ranking, labels);
    let mut safer = Vec::new();
    for chain in risky {
        let is_shown = is_repair && former::shows_no_stand_in(&readings[chain.number], labels);
        candidates[chain.number].is_unusable |= chain.is_unusable && !is_shown;
        safer.extend(chain.safer);
    }
    readings.extend(group.read_all(&safer));
    candidates.extend(safer);
}

/// How many of the pages have several known values for the field.
enum ListPrevalence {
    Never,
    /// Fewer than three in ten pages have several. The field may be a list, or some records have an additional, wrong
    /// value.
    Rarely,
    Always,
}

impl From<bool> for ListPrevalence {
    fn from(is_list: bool) -> ListPrevalence {
        match is_list {
            true => ListPrevalence::Always,
            false => ListPrevalence::Never,
        }
    }
}

fn list_prevalence(labels: &[Label]) -> ListPrevalence {
    let known = labels
        .iter()
        .filter(|label| !label.wanted.is_empty())
        .count();
    match labels.iter().filter(|label| label.wanted.len() > 1).count() {
        0 => ListPrevalence::Never,
        several if several * 10 < known * 3 => ListPrevalence::Rarely,
        _ => ListPrevalence::Always,
    }
}

/// The candidates that are best on the first few pages with known values. Only these run on all pages.
fn best_on_first_pages(
    group: &Group<'_>,
    candidates: Vec<Candidate>,
    labels: &[Label],
    multiple: bool,
) -> Vec<Candidate> {
    if candidates.len() <= AT_LAST {
        return candidates;
    }
    let known = labels.iter().filter(|label| !label.wanted.is_empty());
    let first: Vec<Label> = known
        .take(FIRST_PAGES)
        .enumerate()
        .map(|(at, label)| Label {
            page: at,
            ..label.clone()
        })
        .collect();
    let numbers: Vec<usize> = labels
        .iter()
        .filter(|label| !label.wanted.is_empty())
        .take(FIRST_PAGES)
        .map(|label| label.page)
        .collect();
    let readings = group.read(&candidates, &numbers);
    let scores = Scores::new(&candidates, &readings, &first, multiple);
    let ranking = scores.ranking(None);
    let kept = select_diverse_candidates(&candidates, &readings, &first, &ranking);
    kept.into_iter()
        .map(|one| candidates[one].clone())
        .collect()
}

/// The best candidates of the ranking, and some more. Each kind of anchor is included, so that all kinds can vote. For
/// each known value, extraction chains that read it are included, so that lists with values in several places can be
/// joined.
fn select_diverse_candidates(
    candidates: &[Candidate],
    readings: &[Vec<Reading>],
    labels: &[Label],
    ranking: &[usize],
) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    let mut of_kind = BTreeMap::new();
    let mut of_value = BTreeMap::new();
    for &one in ranking {
        let kinds = of_kind.entry(candidates[one].anchor).or_insert(0usize);
        let values = of_value
            .entry(values_read(&readings[one], labels))
            .or_insert(0usize);
        if *kinds < AT_LAST / 6 || *values < AT_LAST / 10 {
            *kinds += 1;
            *values += 1;
            kept.push(one);
        }
    }
    kept.truncate(AT_LAST);
    for &one in ranking {
        if kept.len() >= AT_LAST {
            break;
        }
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

/// For each known value, whether a candidate reads it.
fn values_read(readings: &[Reading], labels: &[Label]) -> Vec<bool> {
    let of_label = |label: &Label| -> Vec<bool> {
        let values = &readings[label.page].values;
        let is_read = |wanted: &KnownValue| values.iter().any(|value| wanted.matches(value));
        label.wanted.iter().take(10).map(is_read).collect()
    };
    labels.iter().flat_map(of_label).collect()
}

fn leave_one_out(scores: &Scores<'_>, is_misspelt: &dyn Fn(usize) -> bool) -> Vec<f64> {
    let known = |label: &usize| !scores.labels[*label].wanted.is_empty();
    let all = 0..scores.labels.len();
    let right: Vec<usize> = all
        .clone()
        .filter(known)
        .filter(|&one| !is_misspelt(one))
        .collect();
    let credit = |label: usize| {
        if !known(&label) {
            return f64::NAN;
        }
        match scores.ranking(Some(label)).first() {
            Some(&best) => scores.credits[best][label],
            // If all other known values are misspelt, no extraction chain can be found without this page: a misspelt
            // value is nowhere on its page. So leaving the page out proves nothing.
            None if right == [label] && right.len() < scores.labels.len() => f64::NAN,
            None => 0.0,
        }
    };
    all.map(credit).collect()
}
