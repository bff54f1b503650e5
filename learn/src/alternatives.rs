//! Alternatives: chains by other kinds of anchors, which serve when the site takes the first one away.
//!
//! They serve as well where a page lacks the value. So none may count positions, or take the first of several: it
//! would read whatever stands there instead.

use crate::field::Found;
use crate::score::{Scores, reads_cut_off};

/// Alternatives of one field.
const MOST: usize = 2;

/// Positions of candidates of other kinds than the best that agree with it wherever both read something,
/// and that read nothing where it reads nothing, unless a known value proves them right.
pub(crate) fn alternatives(found: &Found) -> Vec<usize> {
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
        let is_whole = !reads_cut_off(&found.labels, &found.readings[one], found.multiple);
        let is_sure = is_whole && reads_by_name(found, one) && agrees(&scores, best, one);
        if chosen.iter().all(is_other) && is_sure {
            chosen.push(one);
        }
        if chosen.len() > MOST {
            break;
        }
    }
    chosen.split_off(1)
}

/// Whether a chain says what it reads, and not where among others that stands.
fn reads_by_name(found: &Found, one: usize) -> bool {
    let is_only = || {
        let mut pages = found.readings[one].iter();
        pages.all(|reading| reading.values.len() < 2)
    };
    !found.candidates[one].counts_positions() && (found.multiple || is_only())
}

fn agrees(scores: &Scores<'_>, best: usize, one: usize) -> bool {
    let pages = scores.readings[best].len();
    let (mut both, mut alike, mut more, mut proven) = (0.0, 0.0, 0usize, 0usize);
    for page in 0..pages {
        let first = &scores.readings[best][page];
        let second = &scores.readings[one][page];
        if !first.values.is_empty() && !second.values.is_empty() {
            both += 1.0;
            alike += scores.likeness(best, one, page);
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
    both >= 1.0 && alike / both >= 0.95 && (more == 0 || proven > more)
}
