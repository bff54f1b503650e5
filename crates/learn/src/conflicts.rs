//! Resolves conflicts between fields: two fields with different known values must not choose the same place on the
//! page. For one of them, the place is a coincidence.

use crate::field::{LearnedField, count_correct_labels};
use crate::score::trusted_labels;

/// If two fields have chosen the same place, removes it from the field where it is right on fewer pages.
pub(crate) fn resolve_conflicts(fields: &mut [(String, LearnedField)]) {
    // Each round removes a place from a field permanently, so two rounds for each field are enough.
    for _ in 0..fields.len() * 2 {
        let pairs = (0..fields.len()).flat_map(|one| (0..one).map(move |other| (other, one)));
        let conflict = pairs
            .into_iter()
            .find(|&(one, other)| is_conflict(&fields[one].1, &fields[other].1));
        let Some((one, other)) = conflict else {
            return;
        };
        let (winner, loser) =
            match count_correct_labels(&fields[other].1) > count_correct_labels(&fields[one].1) {
                true => (other, one),
                false => (one, other),
            };
        let taken = fields[winner].1.readings[fields[winner].1.ranking[0]].clone();
        let loser = &mut fields[loser].1;
        let readings = &loser.readings;
        loser
            .ranking
            .retain(|&candidate| readings[candidate] != taken);
        limit_expected_credits(loser);
    }
}

/// Whether two fields read the same on all pages, although their known values have nothing in common on some page.
/// Known values that are probably wrong are ignored.
fn is_conflict(one: &LearnedField, other: &LearnedField) -> bool {
    let (Some(&first), Some(&second)) = (one.ranking.first(), other.ranking.first()) else {
        return false;
    };
    let others = trusted_labels(&other.labels);
    let differ = trusted_labels(&one.labels).into_iter().any(|label| {
        let mut of_page = others.iter().filter(|other| other.page == label.page);
        of_page.any(|other| {
            let shared = |wanted| other.wanted.contains(wanted);
            !label.wanted.iter().any(shared)
        })
    });
    differ && one.readings[first] == other.readings[second]
}

/// After a place was removed, lowers the credits that the field expects to those of its new best candidate.
fn limit_expected_credits(found: &mut LearnedField) {
    for (label, left_out) in found.labels.iter().zip(&mut found.left_out) {
        let credit = found.ranking.first().map_or(0.0, |&best| {
            label.credit(&found.readings[best][label.page], found.multiple)
        });
        if !left_out.is_nan() {
            *left_out = left_out.min(credit);
        }
    }
}
