//! Unions of two candidates: a list may have its values in two places of a page, each with its own candidate. A union
//! reads both places.

use serde_json::{Value, json};

use crate::candidates::Candidate;
use crate::evaluate::Reading;
use crate::score::Label;

/// The most unions that are run on pages.
const MOST: usize = 24;

/// How many more known values a union must read than the better of its two candidates, as a share of all pages with
/// known values.
const WORTH: f64 = 0.1;

/// The unions of two candidates that read the most known values. This is estimated from the readings of the two.
pub(crate) fn best_unions(
    candidates: &[Candidate],
    readings: &[Vec<Reading>],
    labels: &[Label],
    credits: &[Vec<f64>],
) -> Vec<Candidate> {
    let sums: Vec<f64> = credits.iter().map(|credits| credits.iter().sum()).collect();
    let worth = WORTH * labels.len() as f64;
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for one in 0..candidates.len() {
        for other in one + 1..candidates.len() {
            if !can_be_joined(&candidates[one], &candidates[other]) {
                continue;
            }
            let joined: f64 = labels
                .iter()
                .map(|label| {
                    let both =
                        join_readings(&readings[one][label.page], &readings[other][label.page]);
                    label.credit(&both, true)
                })
                .sum();
            if joined >= sums[one].max(sums[other]) + worth {
                let burden = candidates[one].burden + candidates[other].burden;
                pairs.push((joined - 0.2 * burden, one, other));
            }
        }
    }
    pairs.sort_by(|one, other| {
        let by_place = (one.1, one.2).cmp(&(other.1, other.2));
        other.0.total_cmp(&one.0).then(by_place)
    });
    pairs
        .iter()
        .take(MOST)
        .filter_map(|&(_, one, other)| union(&candidates[one], &candidates[other]))
        .collect()
}

fn can_be_joined(one: &Candidate, other: &Candidate) -> bool {
    xpath(one).is_some() && xpath(other).is_some() && one.processors[1..] == other.processors[1..]
}

fn join_readings(one: &Reading, other: &Reading) -> Reading {
    let mut both = one.clone();
    for value in &other.values {
        if !both.values.contains(value) {
            both.values.push(value.clone());
            both.times.push(1);
        }
    }
    both
}

fn union(one: &Candidate, other: &Candidate) -> Option<Candidate> {
    let (first, second) = (xpath(one)?, xpath(other)?);
    let mut processors = one.processors.clone();
    processors[0] =
        json!({"type": "xpath", "parameters": {"expression": format!("{first} | {second}")}});
    Some(Candidate {
        anchor: one.anchor.max(other.anchor),
        processors,
        burden: one.burden + other.burden + 0.3,
        is_formed: one.is_formed,
        without_condition: None,
        is_by_order: one.is_by_order || other.is_by_order,
        is_unusable: false,
        // The union counts as found only on pages where both candidates were found.
        found_on: one
            .found_on
            .iter()
            .copied()
            .filter(|page| other.found_on.contains(page))
            .collect(),
    })
}

/// The XPath expression that an extraction chain begins with; `None` if it begins with something else.
pub(crate) fn xpath(candidate: &Candidate) -> Option<&str> {
    let first: &Value = candidate.processors.first()?;
    (first["type"] == "xpath")
        .then(|| first["parameters"]["expression"].as_str())
        .flatten()
}
