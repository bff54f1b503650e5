//! Finds known values that are outdated or belong to another record, because records can be wrong too.

use crate::evaluate::Reading;
use crate::page_group::Group;
use crate::score::{Label, Scores};

/// How many known values must be read correctly for each one that is doubted. If there are fewer, the extraction chain
/// is wrong, not the records.
const RIGHT_FOR_EACH: usize = 3;

/// How many known values must be read correctly if records seem to be mixed up, because the extraction chain reads the
/// doubted values on other pages. In addition, there must be one for every two doubted values.
const RIGHT_BESIDE_MIXED: usize = 2;

/// The best extraction chain needs a witness: a chain with another kind of anchor. It must read at least this share of
/// the values that the best chain reads correctly.
const WITNESS: f64 = 0.6;

/// The labels (known values of a page) that are outdated. Such a value is nowhere on its page, and extraction chains
/// with different anchors agree on another value there, as they do on pages with a correct value. Misspelt values are
/// doubted as well. Statements of a person are never doubted.
pub(crate) fn outdated_labels(
    scores: &Scores<'_>,
    ranking: &[usize],
    group: &Group<'_>,
) -> Vec<usize> {
    let Some(&best) = ranking.first() else {
        return Vec::new();
    };
    let is_right = |label: usize| scores.credits[best][label] >= 0.99;
    let right = (0..scores.labels.len())
        .filter(|&label| is_right(label))
        .count();
    let witnesses = independent_chains(scores, ranking, best);
    let is_doubted = |&label: &usize| {
        let Label {
            page,
            wanted,
            is_certain,
            ..
        } = &scores.labels[label];
        let read = &scores.readings[best][*page];
        let agrees = |&one: &usize| scores.reading_similarity(best, one, *page) >= 0.99;
        !is_right(label)
            && !is_certain
            && !wanted.is_empty()
            && !read.values.is_empty()
            && witnesses.iter().any(agrees)
            && !wanted.iter().any(|wanted| {
                let is_of_record =
                    |value| wanted.is_in_other_notation(value) || wanted.overlaps(value);
                group.pages[*page].mentions(wanted) || read.values.iter().any(is_of_record)
            })
    };
    let is_misspelt = |&label: &usize| {
        let label = &scores.labels[label];
        label.is_misspelt(&scores.readings[best][label.page], scores.multiple)
    };
    let all = 0..scores.labels.len();
    // Misspelt values are doubted without other evidence.
    let misspelt: Vec<usize> = all.clone().filter(is_misspelt).collect();
    let doubted: Vec<usize> = all
        .filter(|label| !misspelt.contains(label) && is_doubted(label))
        .collect();
    let is_mixed =
        |&&label: &&usize| is_read_elsewhere(&scores.labels[label], &scores.readings[best]);
    let mixed = doubted.iter().filter(is_mixed).count();
    let is_enough = right >= (doubted.len() - mixed) * RIGHT_FOR_EACH
        && (right >= doubted.len() * RIGHT_FOR_EACH
            || right >= RIGHT_BESIDE_MIXED && right * 2 >= mixed);
    match is_enough {
        true => misspelt.into_iter().chain(doubted).collect(),
        false => misspelt,
    }
}

/// Whether the extraction chain reads the known value of this page on another page.
fn is_read_elsewhere(label: &Label, readings: &[Reading]) -> bool {
    let of_others = || {
        let others = readings.iter().enumerate();
        others.filter(|(page, _)| *page != label.page)
    };
    label.wanted.iter().all(|wanted| {
        of_others().any(|(_, reading)| reading.values.iter().any(|value| wanted.matches(value)))
    })
}

/// The best extraction chain with each other kind of anchor, if it reads at least the share `WITNESS` of the known
/// values that the best chain reads.
fn independent_chains(scores: &Scores<'_>, ranking: &[usize], best: usize) -> Vec<usize> {
    let sum = |one: usize| scores.credits[one].iter().sum::<f64>();
    let mut kinds = vec![scores.candidates[best].anchor];
    let mut found = Vec::new();
    for &one in ranking {
        let kind = scores.candidates[one].anchor;
        if kinds.contains(&kind) {
            continue;
        }
        kinds.push(kind);
        if sum(one) >= WITNESS * sum(best) {
            found.push(one);
        }
    }
    found
}
