//! Alternatives: further chains (lists of extraction steps) for a field, with other kinds of anchors than the first
//! chain. They are used if the site removes the anchor of the first chain.
//!
//! Alternatives also run on pages that lack the value. So none of them may count positions or take the first of several
//! elements, because it would read something else there.
//!
//! An alternative may fill pages that the first chain does not read, but only if all evidence supports it. The known
//! values must share a shape, which the field's guard then requires of all other values. The alternative must read each
//! known value. On other pages, it must read the same as the first chain.

use std::collections::BTreeSet;

use crate::field::LearnedField;
use crate::guards::Guard;
use crate::score::{Scores, reads_truncated};

/// The most alternatives of one field.
const MOST: usize = 2;

/// An alternative may fill pages only if it reads the known values of this many pages, and agrees with the best
/// extraction chain on as many other pages.
const PROVEN: usize = 3;

/// Chooses alternatives, as indexes of candidates. They use other kinds of anchors than the best candidate and each
/// other. They read the same as the best candidate almost wherever both read something. Where the best candidate reads
/// nothing, an alternative may read something only if known values prove it right, or if [`reads_reliably`] is true.
pub(crate) fn choose_alternatives(found: &LearnedField, guard: Option<&Guard>) -> Vec<usize> {
    let scores = Scores::new(
        &found.candidates,
        &found.readings,
        &found.labels,
        found.multiple,
    );
    let Some(&best) = found.ranking.first() else {
        return Vec::new();
    };
    let mut chosen = vec![best];
    for &one in &found.ranking {
        let is_other =
            |&other: &usize| found.candidates[other].anchor != found.candidates[one].anchor;
        let is_whole = !reads_truncated(&found.labels, &found.readings[one], found.multiple);
        let is_right = || match compare_readings(&scores, best, one) {
            ReadingDifference::Alike => true,
            ReadingDifference::ReadsMore => {
                guard.is_some_and(|guard| reads_reliably(found, &scores, one, guard))
            }
            ReadingDifference::Differs => false,
        };
        let is_sure = is_whole && reads_by_name(found, one) && is_right();
        if chosen.iter().all(is_other) && is_sure {
            chosen.push(one);
        }
        if chosen.len() > MOST {
            break;
        }
    }
    chosen.split_off(1)
}

/// Whether the extraction chain finds the value by a name, not by its position among other values.
fn reads_by_name(found: &LearnedField, one: usize) -> bool {
    let is_only = || {
        let mut pages = found.readings[one].iter();
        pages.all(|reading| reading.values.len() < 2)
    };
    let candidate = &found.candidates[one];
    let mut candidates = found.candidates.iter();
    // If there is a variant of the extraction chain with a condition, then the chain itself reads more than the value.
    let has_safer = candidates.any(|other| other.without_condition == Some(one));
    let is_named = !candidate.counts_positions() && !candidate.finds_any_label() && !has_safer;
    is_named && (found.multiple || is_only())
}

/// How the readings of an extraction chain differ from those of the best chain.
#[derive(PartialEq, Eq)]
enum ReadingDifference {
    Alike,
    /// The extraction chain agrees with the best one, and also reads something where the best one reads nothing.
    ReadsMore,
    Differs,
}

fn compare_readings(scores: &Scores<'_>, best: usize, one: usize) -> ReadingDifference {
    let pages = scores.readings[best].len();
    let (mut both, mut alike, mut more, mut proven) = (0.0, 0.0, 0usize, 0usize);
    for page in 0..pages {
        let first = &scores.readings[best][page];
        let second = &scores.readings[one][page];
        if !first.values.is_empty() && !second.values.is_empty() {
            both += 1.0;
            alike += scores.reading_similarity(best, one, page);
        } else if !second.values.is_empty() {
            let label = scores
                .labels
                .iter()
                .position(|label| label.page == page && !label.wanted.is_empty());
            match label {
                Some(label) if scores.credits[one][label] >= 0.99 => proven += 1,
                _ => more += 1,
            }
        }
    }
    match both >= 1.0 && alike / both >= 0.95 {
        false => ReadingDifference::Differs,
        true if more == 0 || proven > more => ReadingDifference::Alike,
        // To fill pages that the best extraction chain does not read, a chain must never differ from the best one.
        true if alike == both && both >= (2 * PROVEN) as f64 => ReadingDifference::ReadsMore,
        true => ReadingDifference::Differs,
    }
}

/// Whether the extraction chain reads each known value, and on the other pages different values of the same shape.
fn reads_reliably(found: &LearnedField, scores: &Scores<'_>, one: usize, guard: &Guard) -> bool {
    let known = || {
        let labels = found.labels.iter().enumerate();
        labels.filter(|(number, label)| !label.wanted.is_empty() && !found.doubted.contains(number))
    };
    let is_right = known().all(|(number, _)| scores.credits[one][number] >= 0.99);
    let values: Vec<&str> = found.readings[one]
        .iter()
        .flat_map(|reading| &reading.values)
        .map(|value| value.text.as_str())
        .filter(|text| guard.accepts(text))
        .collect();
    let distinct: BTreeSet<&str> = values.iter().copied().collect();
    let is_constant = distinct.len() * 2 < values.len();
    is_right && known().count() >= PROVEN && !is_constant
}
