//! Lists whose values stand in two places: the union of two candidates.

use serde_json::{Value, json};

use crate::candidates::Candidate;

/// The best candidate is joined with so many others, and the second best as well.
const OTHERS: usize = 40;

/// Unions of the best two candidates with others whose further processors are the same.
pub(crate) fn of_best(candidates: &[Candidate], ranking: &[usize]) -> Vec<Candidate> {
    let mut unions = Vec::new();
    for (place, &best) in ranking.iter().enumerate().take(2) {
        for &other in ranking.iter().skip(place + 1).take(OTHERS) {
            unions.extend(union(&candidates[best], &candidates[other]));
        }
    }
    unions
}

fn union(one: &Candidate, other: &Candidate) -> Option<Candidate> {
    let (first, second) = (xpath(one)?, xpath(other)?);
    if one.processors[1..] != other.processors[1..] {
        return None;
    }
    let mut processors = one.processors.clone();
    processors[0] =
        json!({"type": "xpath", "parameters": {"expression": format!("{first} | {second}")}});
    Some(Candidate {
        anchor: one.anchor.max(other.anchor),
        processors,
        burden: one.burden + other.burden + 0.3,
        // A page on which only one of them was found does not show the union.
        found_on: one
            .found_on
            .iter()
            .copied()
            .filter(|page| other.found_on.contains(page))
            .collect(),
    })
}

fn xpath(candidate: &Candidate) -> Option<&str> {
    let first: &Value = candidate.processors.first()?;
    (first["type"] == "xpath")
        .then(|| first["parameters"]["expression"].as_str())
        .flatten()
}
