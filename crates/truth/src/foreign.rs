//! Finds foreign pages: pages that belong to another row, because a link was wrong or a site has two things of the same
//! name.
//!
//! A wrong record is wrong in one field, while a foreign page contradicts almost everything that is known about its
//! row. So the other fields of a page show whether a reading on it is about the row.

use std::collections::BTreeMap;

use crate::evidence::{FieldShape, Presence};
use crate::index::{Index, Item, Reading};
use crate::model::Model;

/// The evidence that pages are foreign (belong to another row).
#[derive(Debug)]
pub(crate) struct Pages {
    odds: BTreeMap<u32, f64>,
    /// The estimated share of foreign pages among all pages.
    share: f64,
}

impl Pages {
    pub fn new() -> Pages {
        Pages {
            odds: BTreeMap::new(),
            share: 0.003,
        }
    }

    /// Compares what all pages say with the known values of their rows.
    pub fn compare_with_records(&mut self, index: &Index, model: &Model) {
        let mut odds: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
        for item in &index.items {
            for reading in index
                .readings_of(item)
                .iter()
                .filter(|reading| reading.leads)
            {
                if let Some(own) = evidence_for_foreign_page(index, model, item, reading) {
                    let entry = odds.entry(reading.page).or_default();
                    entry.0 += own;
                    entry.1 += 1;
                }
            }
        }
        let prior = (self.share / (1.0 - self.share)).ln();
        let (mut foreign, mut pages) = (0.6, 200.0);
        for (sum, _) in odds.values().filter(|(_, compared)| *compared > 1) {
            foreign += probability_of_log_odds(prior + sum);
            pages += 1.0;
        }
        self.share = (foreign / pages).min(0.3);
        self.odds = odds
            .into_iter()
            .map(|(page, (sum, _))| (page, sum))
            .collect();
    }

    /// The probability that the page of a reading belongs to its row, judged by the other fields of the page.
    pub fn probability_of_own_page(
        &self,
        index: &Index,
        model: &Model,
        item: &Item,
        reading: &Reading,
    ) -> f64 {
        let Some(sum) = self.odds.get(&reading.page) else {
            return 1.0 - self.share;
        };
        let prior = (self.share / (1.0 - self.share)).ln();
        let rest = sum - evidence_for_foreign_page(index, model, item, reading).unwrap_or(0.0);
        1.0 - probability_of_log_odds(prior + rest)
    }
}

fn probability_of_log_odds(logarithm: f64) -> f64 {
    1.0 / (1.0 + (-logarithm).exp())
}

/// The evidence of one item's known value that the page belongs to another row: the logarithm of the likelihood ratio.
/// It is negative if page and record agree.
fn evidence_for_foreign_page(
    index: &Index,
    model: &Model,
    item: &Item,
    reading: &Reading,
) -> Option<f64> {
    if index.shape(item) != FieldShape::Single {
        return None;
    }
    let known = index.known_values(item).first()?;
    let by_chance = model.collision_probability(item).clamp(0.01, 0.5);
    let agrees = model.usual_precision(reading) * (1.0 - model.records.errors[item.field as usize]);
    let is_misspelt = known.presence == Presence::Misspelt;
    Some(if known.value == reading.value || is_misspelt {
        (by_chance / agrees).ln()
    } else {
        ((1.0 - by_chance) / (1.0 - agrees)).ln()
    })
}
