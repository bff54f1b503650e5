//! Judges fields with a single truth: the probability of each value of an item.

use crate::evidence::Known;
use crate::index::{Index, Item, Reading};
use crate::model::{Counts, Model};

/// The probability of each claimed value and of the known value. The rest up to 1 is the probability that all of them
/// are wrong.
#[derive(Debug)]
pub(crate) struct Posterior {
    pub values: Vec<(u32, f64)>,
}

impl Posterior {
    pub fn probability_of(&self, value: u32) -> f64 {
        self.values
            .iter()
            .find(|(other, _)| *other == value)
            .map_or(0.0, |(_, probability)| *probability)
    }
}

/// The probability of each value, given the readings of all sites and the record's value, if there is one.
///
/// A site reads the truth with the probability of its precision. Otherwise it reads one of many wrong values, and an
/// alternative extraction chain of the site may read the truth. All wrong values are equally probable.
pub(crate) fn posterior(
    index: &Index,
    model: &Model,
    item: &Item,
    known: Option<&Known>,
) -> Posterior {
    let readings = index.readings_of(item);
    let collision = model.collision_probability(item);
    let mut values: Vec<u32> = readings.iter().map(|reading| reading.value).collect();
    values.extend(known.map(|known| known.value));
    values.sort_unstable();
    values.dedup();

    let others = (1.0 - collision * values.len() as f64).max(0.05);
    let mut logarithms: Vec<f64> = vec![collision.ln(); values.len()];
    logarithms.push(others.ln());
    let mut place_of_site = 0;
    for of_site in readings.chunk_by(|a, b| a.site == b.site) {
        let vote = model.vote_weight(item, place_of_site);
        let precision = model.precision(item, place_of_site, &of_site[0]);
        place_of_site += of_site.len();
        let alternatives = (of_site.len() - 1) as f64;
        let elsewhere = if alternatives > 0.0 {
            model.alternative
        } else {
            0.0
        };
        for (place, logarithm) in logarithms.iter_mut().enumerate() {
            let likelihood = match values.get(place) {
                Some(value) if of_site[0].value == *value => precision,
                Some(value) if of_site.iter().any(|reading| reading.value == *value) => {
                    (1.0 - precision) * elsewhere / alternatives
                }
                _ => (1.0 - precision) * (1.0 - elsewhere) * collision,
            };
            *logarithm += vote * likelihood.ln();
        }
    }
    if let Some(known) = known {
        let error = model.records.errors[item.field as usize];
        let unread = readings.iter().all(|reading| reading.value != known.value);
        let (if_right, if_wrong) = if unread {
            model.presence_likelihoods(index, item, known)
        } else {
            (1.0, 1.0)
        };
        for (place, logarithm) in logarithms.iter_mut().enumerate() {
            *logarithm += if values.get(place) == Some(&known.value) {
                ((1.0 - error) * if_right).ln()
            } else {
                (error * collision * if_wrong).ln()
            };
        }
    }
    let most = logarithms.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let weights: Vec<f64> = logarithms
        .iter()
        .map(|logarithm| (logarithm - most).exp())
        .collect();
    let sum: f64 = weights.iter().sum();
    Posterior {
        values: values
            .into_iter()
            .zip(weights)
            .map(|(value, weight)| (value, weight / sum))
            .collect(),
    }
}

/// Computes the probability that each reading of an item is right, and adds the item's evidence to `counts` and
/// `records`.
pub(crate) fn expectation_step(
    index: &Index,
    model: &Model,
    item: &Item,
    counts: &mut Counts,
    records: &mut Vec<(u32, f64)>,
) -> Vec<f64> {
    let readings = index.readings_of(item);
    let known = index.known_values(item).first();
    let posterior = posterior(index, model, item, known);
    if let Some(known) = known {
        let right = posterior.probability_of(known.value);
        records.push((item.field, 1.0 - right));
        if readings.iter().all(|reading| reading.value != known.value) {
            let is_elsewhere = index.elsewhere.has(item, known);
            counts.add_search(known, right, is_elsewhere, &model.records);
        }
    }
    for of_site in readings.chunk_by(|a, b| a.site == b.site) {
        if of_site.len() > 1 && (item.sites > 1 || known.is_some()) {
            counts.alternatives += 1.0 - posterior.probability_of(of_site[0].value);
            counts.alternatives_true += of_site[1..]
                .iter()
                .map(|reading| posterior.probability_of(reading.value))
                .sum::<f64>();
        }
    }
    if item.sites > 1 {
        count_collisions(readings, &posterior, item.field as usize, counts);
    }
    readings
        .iter()
        .map(|reading| posterior.probability_of(reading.value))
        .collect()
}

/// Counts the pairs of sites that are both wrong, and how many of these pairs claim the same value.
fn count_collisions(
    readings: &[Reading],
    posterior: &Posterior,
    field: usize,
    counts: &mut Counts,
) {
    const MOST_SITES: usize = 40;
    let leading: Vec<u32> = readings
        .iter()
        .filter(|reading| reading.leads)
        .map(|reading| reading.value)
        .take(MOST_SITES)
        .collect();
    for (place, one) in leading.iter().enumerate() {
        for other in &leading[..place] {
            if one == other {
                let wrong = 1.0 - posterior.probability_of(*one);
                counts.same_wrong[field] += wrong;
                counts.both_wrong[field] += wrong;
            } else {
                counts.both_wrong[field] +=
                    (1.0 - posterior.probability_of(*one) - posterior.probability_of(*other))
                        .max(0.0);
            }
        }
    }
}
