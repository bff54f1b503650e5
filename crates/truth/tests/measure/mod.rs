//! Measures judgements of tables with known truth: confidence, decisions to fill, and doubts about records.

use std::collections::HashMap;

use webfill_truth::Judgement;

use crate::made::Table;

/// Judged values in ten buckets by their confidence. Items with a known value are left out.
#[derive(Debug, Default)]
pub struct Buckets {
    /// For each bucket, the number of values, the sum of their confidence, and the number of right ones.
    pub tenths: [(f64, f64, f64); 10],
    at_99: (f64, f64),
}

impl Buckets {
    pub fn add(&mut self, table: &Table, judgement: &Judgement) {
        let known = table.known_items();
        for item in judgement
            .items
            .iter()
            .filter(|item| !known.contains(&item.item))
        {
            for chosen in &item.chosen {
                let right = f64::from(u8::from(
                    table.truth[item.item as usize].contains(&chosen.value),
                ));
                self.count(chosen.confidence, right);
            }
        }
    }

    pub fn count(&mut self, confidence: f64, right: f64) {
        let bucket = &mut self.tenths[((confidence * 10.0) as usize).min(9)];
        bucket.0 += 1.0;
        bucket.1 += confidence;
        bucket.2 += right;
        if confidence >= 0.99 {
            self.at_99.0 += 1.0;
            self.at_99.1 += right;
        }
    }

    /// The expected calibration error: the mean difference between the confidence of a bucket and its share of right
    /// values, weighted by the number of values.
    pub fn calibration_error(&self) -> f64 {
        let all: f64 = self.tenths.iter().map(|bucket| bucket.0).sum();
        self.tenths
            .iter()
            .map(|(_, confidence, right)| (confidence - right).abs())
            .sum::<f64>()
            / all
    }

    pub fn accuracy_at_99(&self) -> f64 {
        self.at_99.1 / self.at_99.0
    }

    pub fn share_at_99(&self) -> f64 {
        self.at_99.0 / self.tenths.iter().map(|bucket| bucket.0).sum::<f64>()
    }
}

/// The quality of decisions to fill: how precise the fields are that may be filled, and how many of the precise fields
/// may be filled.
#[derive(Debug, Default)]
pub struct Decisions {
    /// How many fields may be filled (`filled`), how many of these are as precise as required, and the sum of their
    /// precisions.
    filled: f64,
    filled_good: f64,
    precision: f64,
    /// How many fields are as precise as required, whether they may be filled or not.
    good: f64,
}

impl Decisions {
    pub fn add(&mut self, table: &Table, judgement: &Judgement, wished: f64) {
        for field in 0..table.shapes.len() as u32 {
            let items = judgement.items.iter().filter(|item| item.field == field);
            let right = |item: &&webfill_truth::ItemJudgement| {
                table.truth[item.item as usize].contains(&item.chosen[0].value)
            };
            let precision = items.clone().filter(right).count() as f64 / items.count() as f64;
            let good = f64::from(u8::from(precision >= wished));
            self.good += good;
            if judgement.decide_fill(0, field, wished).fill {
                self.filled += 1.0;
                self.filled_good += good;
                self.precision += precision;
            }
        }
    }
}

impl Decisions {
    pub fn precision(&self) -> f64 {
        self.precision / self.filled
    }
}

impl std::fmt::Display for Decisions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{:.0} fields at {:.4}, {:.0} % of them good, {:.0} % of all good ones",
            self.filled,
            self.precision / self.filled,
            100.0 * self.filled_good / self.filled,
            100.0 * self.filled_good / self.good
        )
    }
}

/// How well wrong known values are detected.
#[derive(Debug, Default)]
pub struct Doubting {
    wrong: f64,
    wrong_found: f64,
    right: f64,
    right_flagged: f64,
}

impl Doubting {
    pub fn add(&mut self, table: &Table, judgement: &Judgement) {
        let flagged: std::collections::HashSet<(u32, u32)> = judgement
            .likely_errors()
            .iter()
            .map(|doubt| (doubt.item, doubt.known))
            .collect();
        for known in table
            .known
            .iter()
            .filter(|known| judgement.item(known.item).is_some())
        {
            let flag = f64::from(u8::from(flagged.contains(&(known.item, known.value))));
            if !table.truth[known.item as usize].contains(&known.value) {
                self.wrong += 1.0;
                self.wrong_found += flag;
            } else {
                self.right += 1.0;
                self.right_flagged += flag;
            }
        }
    }

    pub fn found_share(&self) -> f64 {
        self.wrong_found / self.wrong
    }

    pub fn false_flag_rate(&self) -> f64 {
        self.right_flagged / self.right
    }
}

/// For each item, the value that most sites claim; for lists, the values that at least half of the sites claim.
pub fn majority_values(table: &Table) -> HashMap<u32, Vec<u32>> {
    let mut by_item: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
    for claim in &table.claims {
        let claims = by_item.entry(claim.item).or_default();
        // Only the first chain of a site votes.
        if claim.anchor == 0 {
            claims.push((claim.site, claim.value));
        }
    }
    let several = table.shapes[0] == webfill_truth::FieldShape::Several;
    by_item
        .into_iter()
        .map(|(item, claims)| {
            let sites = claims
                .iter()
                .map(|claim| claim.0)
                .collect::<std::collections::HashSet<u32>>()
                .len();
            let mut counts: HashMap<u32, usize> = HashMap::new();
            for (_, value) in claims {
                *counts.entry(value).or_default() += 1;
            }
            let mut counts: Vec<(usize, u32)> = counts
                .into_iter()
                .map(|(value, count)| (count, value))
                .collect();
            counts.sort_by_key(|(count, value)| (usize::MAX - count, *value));
            let values = match several {
                false => vec![counts[0].1],
                true => counts
                    .iter()
                    .filter(|(count, _)| count * 2 >= sites)
                    .map(|(_, value)| *value)
                    .collect(),
            };
            (item, values)
        })
        .collect()
}

/// Sums for items without a known value: the accuracy of the judgement, that of a majority vote, and the number of
/// items. The accuracy of a list is its F1.
pub fn sum_accuracies(
    table: &Table,
    judgement: &Judgement,
    voted: &HashMap<u32, Vec<u32>>,
) -> (f64, f64, f64) {
    let known = table.known_items();
    let mut sums = (0.0, 0.0, 0.0);
    for item in judgement
        .items
        .iter()
        .filter(|item| !known.contains(&item.item))
    {
        let chosen: Vec<u32> = item.chosen.iter().map(|chosen| chosen.value).collect();
        let truth = &table.truth[item.item as usize];
        sums.0 += f1(&chosen, truth);
        sums.1 += f1(&voted[&item.item], truth);
        sums.2 += 1.0;
    }
    sums
}

fn f1(values: &[u32], truth: &[u32]) -> f64 {
    let right = values.iter().filter(|value| truth.contains(value)).count() as f64;
    2.0 * right / (values.len() + truth.len()) as f64
}
