//! Finds sites that copy from each other, so that the votes of copies count only once.
//!
//! Two sites that agree on the truth need not be copies. If they share rare mistakes, one has copied from the other.
//! For each pair of sites, the odds of copying are computed from all items (a field of a row) that both read, as in
//! AccuCopy. Each item is judged by what the remaining sites say about it. Lists are left out, because two sites that
//! list the same part of the truth look like copies, and treating them as copies makes the judgement worse.

use std::collections::HashMap;

use crate::evidence::FieldShape;
use crate::index::{Index, Item, Reading};
use crate::model::Model;
use crate::single;

/// The odds that one of two sites copies the other, before they are compared.
const PRIOR_ODDS: f64 = 0.02;
/// Two assumptions about how much a copying site copies, as shares of its values. The odds are computed for both.
const COPIED: [f64; 2] = [0.35, 0.85];
/// The most sites of one item that are compared with each other.
const MOST_SITES: usize = 40;
/// The most pairs of sites that are compared.
const MOST_PAIRS: usize = 1_000_000;

/// For each pair of sites, the logarithm of the odds of copying, once for each share in [`COPIED`].
type Pairs = HashMap<(u32, u32), [f64; 2]>;

/// The weight of each reading's vote: 1, or less if it repeats the value of a better site that it may copy.
pub(crate) fn vote_weights(index: &Index, model: &Model) -> Vec<f32> {
    let mut pairs = Pairs::new();
    let compared = |item: &&Item| item.sites > 1 && index.shape(item) == FieldShape::Single;
    for item in index.items.iter().filter(compared) {
        compare_sites(index, model, item, &mut pairs);
    }
    let mut votes = vec![1.0; index.readings.len()];
    let dependence: HashMap<(u32, u32), f64> = pairs
        .into_iter()
        .map(|(pair, logarithms)| (pair, copied_share(logarithms)))
        .filter(|(_, dependence)| *dependence > 0.02)
        .collect();
    if dependence.is_empty() {
        return votes;
    }
    for item in index.items.iter().filter(compared) {
        let readings = index.readings_of(item);
        let mut order: Vec<usize> = (0..readings.len())
            .filter(|place| readings[*place].leads)
            .collect();
        order.sort_by(|a, b| {
            let precision = |place: &usize| model.cells[readings[*place].cell as usize].mean();
            precision(b).total_cmp(&precision(a)).then(a.cmp(b))
        });
        for (rank, place) in order.iter().enumerate() {
            let reading = &readings[*place];
            let independent: f64 = order[..rank]
                .iter()
                .map(|better| &readings[*better])
                .filter(|better| better.value == reading.value)
                .map(|better| {
                    1.0 - dependence
                        .get(&ordered_pair(better, reading))
                        .copied()
                        .unwrap_or(0.0)
                })
                .product();
            votes[item.readings.start + place] = independent as f32;
        }
    }
    votes
}

/// The expected share of one site's values that were copied from the other one.
fn copied_share(logarithms: [f64; 2]) -> f64 {
    let odds = logarithms.map(|logarithm| PRIOR_ODDS / 2.0 * logarithm.min(600.0).exp());
    (odds[0] * COPIED[0] + odds[1] * COPIED[1]) / (1.0 + odds[0] + odds[1])
}

fn ordered_pair(one: &Reading, other: &Reading) -> (u32, u32) {
    (one.site.min(other.site), one.site.max(other.site))
}

fn update_pair(pairs: &mut Pairs, pair: (u32, u32), change: impl Fn(f64) -> f64) {
    if pairs.len() >= MOST_PAIRS && !pairs.contains_key(&pair) {
        return;
    }
    let sums = pairs.entry(pair).or_default();
    for (sum, copied) in sums.iter_mut().zip(COPIED) {
        *sum += change(copied);
    }
}

fn compare_sites(index: &Index, model: &Model, item: &Item, pairs: &mut Pairs) {
    let collision = model.collision_probability(item);
    let readings = index.readings_of(item);
    let leading: Vec<usize> = (0..readings.len())
        .filter(|place| readings[*place].leads)
        .take(MOST_SITES)
        .collect();
    let posterior = single::posterior(index, model, item, index.known_values(item).first());
    // How much a site's vote raises the odds of its value, as the logarithm of a factor.
    let said = |place: usize| {
        let precision = model.precision(item, place, &readings[place]);
        model.vote_weight(item, place) * (precision / ((1.0 - precision) * collision)).ln()
    };
    for (rank, place) in leading.iter().enumerate() {
        for before in &leading[..rank] {
            let (one, other) = (&readings[*place], &readings[*before]);
            if one.value != other.value {
                update_pair(pairs, ordered_pair(one, other), |copied| {
                    (1.0 - copied).ln()
                });
                continue;
            }
            let right = probability_without_pair(
                posterior.probability_of(one.value),
                said(*place) + said(*before),
            );
            let says = |reading: &Reading| {
                let precision = model.usual_precision(reading);
                (precision, (1.0 - precision) * collision)
            };
            add_agreement(
                pairs,
                ordered_pair(one, other),
                right,
                says(one),
                says(other),
            );
        }
    }
}

/// The probability that a value is true if the votes of two sites are left out. `said` is how much these votes raise
/// its odds, as the logarithm of a factor.
fn probability_without_pair(right: f64, said: f64) -> f64 {
    let right = right.clamp(1e-9, 1.0 - 1e-9);
    1.0 / (1.0 + (1.0 - right) / right * said.min(600.0).exp())
}

/// The probabilities that a site states a certain value: first if the value is true, then if it is not.
type StatementProbabilities = (f64, f64);

/// Adds the evidence of two sites that state the same value. `right` is the probability that the value is true, judged
/// by the other sites.
fn add_agreement(
    pairs: &mut Pairs,
    pair: (u32, u32),
    right: f64,
    p: StatementProbabilities,
    q: StatementProbabilities,
) {
    let alone = right * p.0 * q.0 + (1.0 - right) * p.1 * q.1;
    let original = if p.0 > q.0 { p } else { q };
    let from_one = right * original.0 + (1.0 - right) * original.1;
    update_pair(pairs, pair, |copied| {
        (copied * from_one / alone.max(1e-12) + 1.0 - copied).ln()
    });
}
