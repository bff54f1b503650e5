//! Lists: each value of an item is decided by itself, as in the Latent Truth Model.
//!
//! A site that claims a value speaks for it with its precision. A site that reads the item without that value
//! speaks against it with its recall.

use crate::index::{Index, Item};
use crate::model::{Counts, Model};

/// The probability that a site reads a value that is not true: small, or lists would be endless.
const READ_IF_WRONG: f64 = 0.1;

/// The values that anybody claims, each with the probability that it is true. The record speaks where `known`.
pub(crate) fn posterior(index: &Index, model: &Model, item: &Item, known: bool) -> Vec<(u32, f64)> {
    let readings = index.readings(item);
    let record = if known { index.known(item) } else { &[] };
    let mut values: Vec<u32> = readings.iter().map(|reading| reading.value).collect();
    values.extend(record.iter().map(|known| known.value));
    values.sort_unstable();
    values.dedup();
    let error = model.records.errors[item.field as usize];
    values
        .into_iter()
        .map(|value| {
            let mut logarithm = 0.0;
            for of_site in readings.chunk_by(|a, b| a.site == b.site) {
                if let Some(reading) = of_site.iter().find(|reading| reading.value == value) {
                    let precision = model.precision(reading);
                    logarithm += (precision / (1.0 - precision)).ln();
                } else {
                    let recall = model.recalls[of_site[0].cell as usize];
                    logarithm += ((1.0 - recall) / (1.0 - READ_IF_WRONG)).ln();
                }
            }
            if !record.is_empty() {
                let listed = record.iter().find(|known| known.value == value);
                logarithm += match listed {
                    Some(known) => {
                        let unread = readings.iter().all(|reading| reading.value != value);
                        let (right, wrong) = if unread {
                            model.presence(known.presence)
                        } else {
                            (1.0, 1.0)
                        };
                        ((1.0 - error) / error * right / wrong).ln()
                    }
                    None => (error / (1.0 - error)).ln(),
                };
            }
            (value, 1.0 / (1.0 + (-logarithm).exp()))
        })
        .collect()
}

/// The probability that each reading is right; counts what else the item teaches.
pub(crate) fn expect(
    index: &Index,
    model: &Model,
    item: &Item,
    counts: &mut Counts,
    records: &mut Vec<(u32, f64)>,
) -> Vec<f64> {
    let readings = index.readings(item);
    let posterior = posterior(index, model, item, true);
    let of = |value: u32| {
        posterior
            .binary_search_by_key(&value, |(value, _)| *value)
            .map_or(0.0, |place| posterior[place].1)
    };
    for known in index.known(item) {
        let right = of(known.value);
        records.push((item.field, 1.0 - right));
        if readings.iter().all(|reading| reading.value != known.value) {
            counts.search(known.presence, right);
        }
    }
    for of_site in readings.chunk_by(|a, b| a.site == b.site) {
        let cell = of_site[0].cell as usize;
        for (value, probability) in &posterior {
            counts.to_recall[cell] += probability;
            if of_site.iter().any(|reading| reading.value == *value) {
                counts.recalled[cell] += probability;
            }
        }
    }
    readings.iter().map(|reading| of(reading.value)).collect()
}
