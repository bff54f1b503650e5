//! Judges lists: each value of an item is decided separately, as in the Latent Truth Model.
//!
//! A site that claims a value is evidence for it. The evidence grows with the site's precision, and with how rarely two
//! sites make the same mistake. A site that reads the list without the value is evidence against it. This evidence
//! grows with the site's recall (the share of a list's true values that it reads).

use crate::evidence::{Known, Presence};
use crate::index::{Index, Item, Reading};
use crate::model::{Counts, Model};

/// All claimed values, each with the probability that it is true. If `known` is true, the record counts as evidence,
/// and its values are included.
pub(crate) fn posterior(index: &Index, model: &Model, item: &Item, known: bool) -> Vec<(u32, f64)> {
    let readings = index.readings_of(item);
    let record = if known { index.known_values(item) } else { &[] };
    let mut values: Vec<u32> = readings.iter().map(|reading| reading.value).collect();
    values.extend(record.iter().map(|known| known.value));
    values.sort_unstable();
    values.dedup();
    let by_pages = |value: u32| log_odds_by_pages(index, model, item, value);
    if record.is_empty() {
        let judged = values.into_iter();
        return judged
            .map(|value| (value, probability_of_log_odds(by_pages(value))))
            .collect();
    }
    let error = model.records.errors[item.field as usize];
    let is_read = |value: u32| readings.iter().any(|reading| reading.value == value);
    let listed = |known: &Known| {
        let (right, wrong) = match is_read(known.value) {
            true => (1.0, 1.0),
            false => model.presence_likelihoods(index, item, known),
        };
        let agreement = -model.collision_probability(item).ln();
        by_pages(known.value) + ((1.0 - error) / error * right / wrong).ln() + agreement
    };
    // A record with a wrong value, such as one of another row, is no evidence against values that the record lacks.
    let unread = record.iter().filter(|known| !is_read(known.value));
    let is_wrong = unread
        .map(|known| 1.0 - probability_of_log_odds(listed(known)))
        .fold(0.0, f64::max);
    let judged = values.into_iter().map(|value| {
        let probability = match record.iter().find(|known| known.value == value) {
            Some(known) => probability_of_log_odds(listed(known)),
            None => {
                let (alone, against) = (by_pages(value), by_pages(value) + error.ln());
                is_wrong * probability_of_log_odds(alone)
                    + (1.0 - is_wrong) * probability_of_log_odds(against)
            }
        };
        (value, probability)
    });
    judged.collect()
}

/// The logarithm of the odds that a value is true, judged by pages.
fn log_odds_by_pages(index: &Index, model: &Model, item: &Item, value: u32) -> f64 {
    let readings = index.readings_of(item);
    let agreement = -model.collision_probability(item).ln();
    // The first claim of a value gets no bonus for agreement. Later ones do, because two sites rarely claim the same
    // wrong value.
    let mut logarithm = -agreement;
    let mut first = 0;
    for of_site in readings.chunk_by(|a, b| a.site == b.site) {
        let place = of_site.iter().position(|reading| reading.value == value);
        let from = first;
        first += of_site.len();
        if let Some(place) = place {
            let precision = model.precision(item, from + place, &of_site[place]);
            let vote = model.vote_weight(item, from + place);
            logarithm += vote * ((precision / (1.0 - precision)).ln() + agreement);
        } else {
            let recall = model.recalls[of_site[0].cell as usize];
            logarithm += (1.0 - recall).ln();
        }
    }
    logarithm
}

fn probability_of_log_odds(logarithm: f64) -> f64 {
    1.0 / (1.0 + (-logarithm).exp())
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
    let posterior = posterior(index, model, item, true);
    let of = |value: u32| {
        posterior
            .binary_search_by_key(&value, |(value, _)| *value)
            .map_or(0.0, |place| posterior[place].1)
    };
    for known in index.known_values(item) {
        let right = of(known.value);
        records.push((item.field, 1.0 - right));
        if readings.iter().all(|reading| reading.value != known.value) {
            let is_elsewhere = index.elsewhere.has(item, known);
            counts.add_search(known, right, is_elsewhere, &model.records);
        }
    }
    for of_site in readings.chunk_by(|a, b| a.site == b.site) {
        let cell = of_site[0].cell as usize;
        if index.known_values(item).iter().any(|known| known.held_out) {
            let is_unread = |known: &&Known| of_site.iter().all(|read| read.value != known.value);
            let unread: Vec<&Known> = index.known_values(item).iter().filter(is_unread).collect();
            // A known value that is not on the page cannot be read by the extraction chain, so the list is not
            // compared.
            let is_elsewhere =
                |known: &&Known| matches!(known.presence, Presence::Absent | Presence::Misspelt);
            if !unread.iter().any(is_elsewhere) {
                let missing = unread.iter().map(|known| of(known.value));
                let wrong = of_site.iter().map(|reading| 1.0 - of(reading.value));
                let right = missing.chain(wrong).map(|one| 1.0 - one);
                counts.lists[cell] += 1.0;
                counts.whole[cell] += right.product::<f64>();
            }
        }
        for (value, probability) in &posterior {
            counts.to_recall[cell] += probability;
            if of_site.iter().any(|reading| reading.value == *value) {
                counts.recalled[cell] += probability;
            }
        }
    }
    if item.sites > 1 {
        count_collisions(readings, &of, item.field as usize, counts);
    }
    readings.iter().map(|reading| of(reading.value)).collect()
}

/// Counts the pairs of wrong values that two sites claim, and how many of these pairs are equal.
fn count_collisions(
    readings: &[Reading],
    of: &impl Fn(u32) -> f64,
    field: usize,
    counts: &mut Counts,
) {
    const MOST_READINGS: usize = 60;
    let readings = &readings[..readings.len().min(MOST_READINGS)];
    for (place, one) in readings.iter().enumerate() {
        let wrong = 1.0 - of(one.value);
        for other in readings[..place]
            .iter()
            .filter(|other| other.site != one.site)
        {
            if one.value == other.value {
                counts.same_wrong[field] += wrong;
                counts.both_wrong[field] += wrong;
            } else {
                counts.both_wrong[field] += wrong * (1.0 - of(other.value));
            }
        }
    }
}
