//! Makes the reports on learned fields and mappings.

use std::collections::BTreeSet;

use serde_json::Value;
use webfill_urls::Url;

use crate::alternatives::choose_alternatives;
use crate::candidates::{Candidate, has_word};
use crate::evaluate::Reading;
use crate::field::LearnedField;
use crate::fold::KnownValue;
use crate::guards;
use crate::page_group::Group;
use crate::places::Places;
use crate::same::common_form;
use crate::score::{Label, MISSPELT, Scores, reads_truncated};
use crate::survival::Anchor;
use crate::types::{CandidateReport, Disagreement, FieldReport, LearnedMapping};

/// If a field has a lower confidence than this, the mapping is a draft.
const SURE: f64 = 0.9;

/// A field with a lower confidence than this is left out, because more of its values would be wrong than right.
const LIKELY: f64 = 0.5;

/// The highest confidence of a field if more than a quarter of its records are probably wrong. It is low enough to make
/// the mapping a draft.
const MOST_WHERE_DOUBTED: f64 = 0.8;

/// To prove that a name (such as a label) is not specific to one page, this many pages must yield a value by it.
const READ_BY_NAME: usize = 3;

/// A mapping that was learned from fewer records is a draft.
const ENOUGH: usize = 3;

/// The most values that a report shows of each side of a disagreement.
const SHOWN: usize = 10;

/// Makes the report on a learned field.
pub(crate) fn field_report(field: &str, found: &LearnedField, group: &Group<'_>) -> FieldReport {
    let mut report = FieldReport {
        field: field.to_owned(),
        multiple: found.multiple,
        processors: None,
        alternatives: Vec::new(),
        anchor: None,
        confidence: 0.0,
        agree: Vec::new(),
        disagree: Vec::new(),
        doubted: Vec::new(),
        without_page: left_out_results(found, group),
        reads: None,
        least: None,
        disputed: Vec::new(),
        runner_up: None,
        candidates: Vec::new(),
        why: String::new(),
    };
    let Some(&best) = found.ranking.first() else {
        report.why = explain_failure(found);
        return report;
    };
    report.anchor = Some(found.candidates[best].anchor.name().to_owned());
    report.confidence = confidence(found, best);
    add_comparison(found, best, group, &mut report);
    report.candidates = best_by_anchor_kind(found, best, group);
    report.runner_up = report.candidates.get(1).map(|one| one.processors.clone());
    report.why = explain_choice(found, best, &report, |page| {
        !found.readings[best][page].values.is_empty()
    });
    if report.confidence < LIKELY && !found.labels.iter().any(|label| label.is_certain) {
        report.why = format!(
            "left out, because it is likelier wrong than right: {}",
            report.why
        );
        return report;
    }
    let guard = guards::guard_for_readings(found, best);
    let layout = guards::layout_guard(found, best, group);
    let guards = || guard.iter().chain(&layout);
    let chain = |one: usize| -> Value {
        let mut processors = found.candidates[one].processors.clone();
        processors.extend(guards().map(|guard| guard.processor.clone()));
        processors.into()
    };
    let is_guarded = |one: &usize| guards().all(|guard| guard.keeps_correct_values(found, *one));
    report.processors = Some(chain(best));
    // If a row lacks a value, another value takes its position. An extraction chain without a name, or one that filters
    // by the form of values, may then read the other value.
    let is_of_row = group.rows.is_some();
    let of_shape = guard
        .as_ref()
        .filter(|guard| guard.has_shape() && !is_of_row);
    let is_named = |one: &usize| !is_of_row || found.candidates[*one].anchor != Anchor::Path;
    let alternatives: Vec<usize> = choose_alternatives(found, of_shape);
    let alternatives = alternatives.into_iter().filter(is_guarded).filter(is_named);
    let alternatives: Vec<usize> = alternatives.collect();
    report.alternatives = alternatives.iter().copied().map(chain).collect();
    let accepts = |text: &str| guards().all(|guard| guard.accepts(text));
    report.reads = expected_read_count(found, best, accepts);
    report.least = min_read_count(found, best, report.reads, accepts);
    report.disputed = disputed_pages(found, best, group, report.reads, accepts);
    report.why = explain_choice(found, best, &report, |page| {
        let chains = [best].into_iter().chain(alternatives.iter().copied());
        let mut values = chains.flat_map(|one| &found.readings[one][page].values);
        values.any(|value| accepts(&value.text))
    });
    report
}

/// The share of pages with known values that are read correctly by extraction chains learned without that page; for
/// lists, as F1. A single page cannot show that share. Then it is estimated from the number of pages that yield a
/// value, and from how far a chain with another kind of anchor agrees.
fn confidence(found: &LearnedField, best: usize) -> f64 {
    // The credit of a list is the number of values both read and known, divided by the number of values either read or
    // known. It is converted to F1.
    let share = |credit: f64| match found.multiple {
        true => 2.0 * credit / (1.0 + credit),
        false => credit,
    };
    let known = found.left_out.iter().filter(|credit| !credit.is_nan());
    let known: Vec<f64> = known.map(|&credit| share(credit)).collect();
    if known.len() > 1 {
        let share = known.iter().sum::<f64>() / known.len() as f64;
        let is_out_of_date = |label: &&usize| found.left_out[**label].is_nan();
        let is_doubtful = found.doubted.iter().filter(is_out_of_date).count() * 3 > known.len();
        let most = if is_doubtful { MOST_WHERE_DOUBTED } else { 1.0 };
        return round_share(share.min(most));
    }
    let scores = Scores::new(
        &found.candidates,
        &found.readings,
        &found.labels,
        found.multiple,
    );
    let kind = found.candidates[best].anchor;
    let other = found
        .ranking
        .iter()
        .find(|&&one| found.candidates[one].anchor != kind);
    let pages = found.readings[best].len();
    let alike = |other: usize| {
        (0..pages)
            .map(|page| scores.reading_similarity(best, other, page))
            .sum::<f64>()
    };
    let is_filled = |reading: &&Reading| !reading.values.is_empty();
    let filled = found.readings[best].iter().filter(is_filled).count();
    let filled = match finds_by_name(&found.candidates[best]) && filled >= READ_BY_NAME {
        true => pages,
        false => filled,
    };
    let agreement = other.map_or(0.0, |&other| alike(other));
    round_share((0.5 * filled as f64 + 0.3 * agreement) / pages as f64)
}

/// For each page with a known value, its URL, and whether an extraction chain learned without the page reads the value.
fn left_out_results(found: &LearnedField, group: &Group<'_>) -> Vec<(String, bool)> {
    let labels = found.labels.iter().zip(&found.left_out);
    let judged = labels.filter(|(label, credit)| !label.wanted.is_empty() && !credit.is_nan());
    let is_misspelt = |label: &Label| {
        let best = found.ranking.first();
        best.is_some_and(|&best| {
            label.is_misspelt(&found.readings[best][label.page], found.multiple)
        })
    };
    let judged: Vec<(String, bool)> = judged
        .map(|(label, &credit)| {
            let url = group.pages[label.page].page.url.to_string();
            let is_read = credit >= 0.99 || credit >= MISSPELT && is_misspelt(label);
            (url, is_read)
        })
        .collect();
    match judged.as_slice() {
        // With one correct and one misspelt known value, only the misspelt one can be judged, so a failure proves
        // nothing.
        [(_, is_read)] if !is_read || found.labels.len() == 1 => Vec::new(),
        _ => judged,
    }
}

/// Whether an extraction chain finds the value only by a name, such as a label or an attribute. A page without the name
/// lacks the field, and so is no evidence for or against the chain.
fn finds_by_name(candidate: &Candidate) -> bool {
    let is_unnamed_pattern = |processor: &Value| {
        let pattern = processor["parameters"]["pattern"].as_str();
        processor["type"] == "regex" && !pattern.is_some_and(has_word)
    };
    candidate.anchor != Anchor::Path
        && !candidate.counts_positions()
        && !candidate.processors.iter().any(is_unnamed_pattern)
}

fn round_share(share: f64) -> f64 {
    (share * 1_000.0).round() / 1_000.0
}

fn add_comparison(found: &LearnedField, best: usize, group: &Group<'_>, report: &mut FieldReport) {
    for (number, label) in found.labels.iter().enumerate() {
        if label.wanted.is_empty() {
            continue;
        }
        let url = group.pages[label.page].page.url.to_string();
        let reading = &found.readings[best][label.page];
        let is_right = label.credit(reading, found.multiple) >= 0.99;
        if is_right && (found.multiple || !is_incomplete(label, reading, &group.pages[label.page]))
        {
            report.agree.push(url);
            continue;
        }
        let read = reading
            .values
            .iter()
            .take(if found.multiple { SHOWN } else { 1 });
        let list = match found.doubted.contains(&number) {
            true => &mut report.doubted,
            false => &mut report.disagree,
        };
        list.push(Disagreement {
            url,
            known: label
                .wanted
                .iter()
                .take(SHOWN)
                .map(|one| one.given.clone())
                .collect(),
            read: read.map(|value| value.text.clone()).collect(),
        });
    }
}

/// Whether an extraction chain reads only one value although the page has further known values.
fn is_incomplete(label: &Label, reading: &Reading, page: &Places<'_>) -> bool {
    let is_read = |wanted: &KnownValue| {
        reading
            .values
            .first()
            .is_some_and(|read| wanted.matches(read))
    };
    let mut others = label.wanted.iter().filter(|wanted| !is_read(wanted));
    others.any(|wanted| !page.find_exact(wanted).is_empty())
}

/// Two extraction chains are compared only on at least this many pages. On fewer pages, they may read the same by
/// chance.
const FEWEST_COMPARED: usize = 5;

fn best_by_anchor_kind(
    found: &LearnedField,
    best: usize,
    group: &Group<'_>,
) -> Vec<CandidateReport> {
    let scores = Scores::new(
        &found.candidates,
        &found.readings,
        &found.labels,
        found.multiple,
    );
    let mut kinds = BTreeSet::new();
    let firsts = found
        .ranking
        .iter()
        .filter(|&&one| kinds.insert(found.candidates[one].anchor));
    let pages = group.pages.len();
    // If the extraction chain counts positions, such as the third text of each part, it reads something else wherever a
    // list is shorter. That holds for any anchor of the parts, so agreement with it proves nothing.
    let is_counted = found.multiple && found.candidates[best].counts_positions();
    firsts
        .take(3)
        .map(|&one| {
            // A page where neither candidate reads anything does not count as agreement.
            let reads = |one: usize, page: usize| !found.readings[one][page].values.is_empty();
            let read: Vec<usize> = (0..pages)
                .filter(|&page| reads(best, page) || reads(one, page))
                .collect();
            let likeness = read
                .iter()
                .map(|&page| scores.reading_similarity(best, one, page));
            let agreement = match read.len() < FEWEST_COMPARED || is_counted {
                true => 0.0,
                false => likeness.sum::<f64>() / read.len() as f64,
            };
            let known = found.labels.iter().zip(&scores.credits[one]);
            let agree = known.filter(|(_, credit)| **credit >= 0.99);
            CandidateReport {
                processors: found.candidates[one].processors.clone().into(),
                anchor: found.candidates[one].anchor.name().to_owned(),
                agree: agree
                    .map(|(label, _)| group.pages[label.page].page.url.to_string())
                    .collect(),
                agreement: round_share(agreement),
            }
        })
        .collect()
}

/// The number of different values that an extraction chain reads on a page, as far as `accepts` accepts them. Spellings
/// of one value count once.
fn count_distinct(
    found: &LearnedField,
    one: usize,
    page: usize,
    accepts: impl Fn(&str) -> bool,
) -> usize {
    let values = found.readings[one][page].values.iter();
    let values = values.filter(|value| accepts(&value.text));
    let different: BTreeSet<String> = values.map(|value| common_form(&value.text)).collect();
    different.len()
}

/// How many values each page should yield; see [`FieldReport::reads`].
fn expected_read_count(
    found: &LearnedField,
    best: usize,
    accepts: impl Fn(&str) -> bool + Copy,
) -> Option<usize> {
    /// At least this many lists must have equal lengths. Fewer may have the same number of values by chance.
    const LISTS: usize = 3;
    let known = found.labels.iter().filter(|label| {
        let reading = &found.readings[best][label.page];
        !label.wanted.is_empty() && label.credit(reading, found.multiple) >= 0.99
    });
    let counts = known.map(|label| count_distinct(found, best, label.page, accepts));
    let counts: Vec<usize> = counts.collect();
    let first = *counts.first()?;
    let is_shown = match found.multiple {
        true => counts.len() >= LISTS,
        false => first == 1,
    };
    (is_shown && counts.iter().all(|count| *count == first)).then_some(first)
}

/// How many values each page must yield at least; see [`FieldReport::least`].
fn min_read_count(
    found: &LearnedField,
    best: usize,
    expected: Option<usize>,
    accepts: impl Fn(&str) -> bool,
) -> Option<usize> {
    /// This many pages prove the number of values if all pages with known values yield the same number.
    const EQUAL: usize = 3;
    /// This many pages prove the smallest number of values if pages yield different numbers.
    const DIFFERENT: usize = 15;
    if found.multiple || expected.is_some() {
        return None;
    }
    let known = found.labels.iter().filter(|label| {
        let reading = &found.readings[best][label.page];
        !label.wanted.is_empty() && label.credit(reading, false) >= 0.99
    });
    let counts = known.map(|label| {
        let reading = &found.readings[best][label.page];
        let values = reading.values.iter().zip(&reading.times);
        let accepted = values.filter(|(value, _)| accepts(&value.text));
        accepted.map(|(_, times)| times).sum::<usize>()
    });
    let counts: Vec<usize> = counts.collect();
    let least = counts.iter().copied().min().filter(|least| *least > 1)?;
    let are_equal = counts.iter().all(|count| *count == least);
    let needed = if are_equal { EQUAL } else { DIFFERENT };
    (counts.len() >= needed).then_some(least)
}

/// The URLs of pages that are probably read wrongly; see [`FieldReport::disputed`]. `accepts` returns whether the
/// filters of the extraction chain keep a value.
fn disputed_pages(
    found: &LearnedField,
    best: usize,
    group: &Group<'_>,
    expected: Option<usize>,
    accepts: impl Fn(&str) -> bool + Copy,
) -> Vec<String> {
    if group.rows.is_some() {
        return Vec::new();
    }
    let scores = Scores::new(
        &found.candidates,
        &found.readings,
        &found.labels,
        found.multiple,
    );
    let reads = |one: usize, label: usize| scores.credits[one][label] >= 0.99;
    let known: Vec<usize> = (0..found.labels.len())
        .filter(|&label| !found.labels[label].wanted.is_empty())
        .collect();
    let read: Vec<usize> = known
        .iter()
        .copied()
        .filter(|&label| reads(best, label))
        .collect();
    let different = |page: usize| count_distinct(found, best, page, accepts);
    let mut kinds = BTreeSet::from([found.candidates[best].anchor, Anchor::Path]);
    let is_witness = |one: usize| {
        !found.candidates[one].counts_positions()
            && !reads_truncated(&found.labels, &found.readings[one], found.multiple)
            && read.iter().all(|&label| reads(one, label))
    };
    let mut others = Vec::new();
    if group.pages.len() < FEWEST_COMPARED && !read.is_empty() {
        let ranking = found.ranking.iter().copied();
        let of_kind = ranking.filter(|&one| is_witness(one));
        others.extend(of_kind.filter(|&one| kinds.insert(found.candidates[one].anchor)));
    }
    let differs = |page: usize| {
        let has_more = !found.multiple && expected == Some(1) && different(page) > 1;
        let is_contradicted = others.iter().any(|&other| {
            !found.readings[other][page].values.is_empty()
                && scores.reading_similarity(best, other, page) < 0.99
        });
        has_more || is_contradicted
    };
    let is_known = |page: usize| known.iter().any(|&label| found.labels[label].page == page);
    let pages = (0..group.pages.len()).filter(|&page| !is_known(page) && different(page) > 0);
    let disputed = pages.filter(|&page| differs(page));
    disputed
        .map(|page| group.pages[page].page.url.to_string())
        .collect()
}

fn explain_failure(found: &LearnedField) -> String {
    let known = found
        .labels
        .iter()
        .filter(|label| !label.wanted.is_empty())
        .count();
    if found.candidates.is_empty() {
        return format!("none of the values known of {known} pages stands on its page");
    }
    let tried = found.candidates.len();
    format!(
        "{tried} candidates were tried, and none reads a known value without contradicting the given examples"
    )
}

/// Why the best candidate was chosen, in words for users. `reads` returns whether something is read on a page.
fn explain_choice(
    found: &LearnedField,
    best: usize,
    report: &FieldReport,
    reads: impl Fn(usize) -> bool,
) -> String {
    let kind = found.candidates[best].anchor.name();
    let right = report.agree.len();
    let all = right + report.disagree.len();
    let doubted = match report.doubted.len() {
        0 => String::new(),
        doubted => format!("; {doubted} known values look out of date"),
    };
    let lacking = describe_pages_without_values(found, reads);
    let sure = match all {
        1 => "one record cannot be checked against another".to_owned(),
        _ => format!(
            "on pages left out of learning, it is right {:.0} times in 100",
            report.confidence * 100.0
        ),
    };
    format!(
        "found by {kind}; right on {right} of {all} pages whose value is known; {sure}{doubted}{lacking}"
    )
}

/// Says on how many pages without known values nothing is read, if these are at least a fifth. Such a page may lack the
/// field, or the anchor of the extraction chain.
fn describe_pages_without_values(found: &LearnedField, reads: impl Fn(usize) -> bool) -> String {
    let is_known = |page: usize| {
        let mut labels = found.labels.iter();
        labels.any(|label| label.page == page && !label.wanted.is_empty())
    };
    let pages = found.readings.first().map_or(0, Vec::len);
    let (mut lack, mut all) = (0, 0);
    for page in (0..pages).filter(|&page| !is_known(page)) {
        all += 1;
        lack += usize::from(!reads(page));
    }
    match lack * 5 >= all && lack > 0 {
        true => format!("; nothing is read on {lack} of {all} other pages"),
        false => String::new(),
    }
}

/// Makes the report on a learned mapping.
pub(crate) fn mapping_report(
    mapping: Value,
    urls: &[&Url],
    fields: Vec<FieldReport>,
    page_to_check: Option<String>,
) -> LearnedMapping {
    let is_unsure = |field: &FieldReport| {
        field.confidence < SURE || field.agree.len() + field.disagree.len() < ENOUGH
    };
    LearnedMapping {
        mapping,
        pages: urls.iter().map(|url| url.to_string()).collect(),
        draft: fields.iter().any(is_unsure),
        page_to_check,
        rows: None,
        fields,
    }
}

/// For each page, how far the best candidates with other kinds of anchors read something else than the chosen
/// candidate.
pub(crate) fn doubts(found: &LearnedField, group: &Group<'_>) -> Vec<f64> {
    let mut doubts = vec![0.0; group.pages.len()];
    let Some(&best) = found.ranking.first() else {
        return doubts;
    };
    let scores = Scores::new(
        &found.candidates,
        &found.readings,
        &found.labels,
        found.multiple,
    );
    let mut kinds = BTreeSet::from([found.candidates[best].anchor]);
    let others = found
        .ranking
        .iter()
        .filter(|&&one| kinds.insert(found.candidates[one].anchor));
    for &other in others.take(3) {
        for (page, doubt) in doubts.iter_mut().enumerate() {
            *doubt += 1.0 - scores.reading_similarity(best, other, page);
        }
    }
    doubts
}

/// The URL of the page where candidates disagree most; `None` if they agree on all pages.
pub(crate) fn page_to_check(doubts: &[f64], group: &Group<'_>) -> Option<String> {
    let most = doubts.iter().copied().fold(0.0, f64::max);
    let page = doubts
        .iter()
        .position(|doubt| *doubt == most && most > 0.0)?;
    Some(group.pages[page].page.url.to_string())
}
