//! Checks whether the stated probabilities of values are true: whether values that are said to be right with some
//! probability are right that often. The values are those proposed for gaps, even those that are too uncertain to be
//! filled.

use std::path::Path;

use webfill_bench::sites::Failure;

use crate::catalogue::{BETWEEN, Given, Table};
use crate::judging::read_evidence;

const BUCKETS: usize = 10;

/// Values that are said to be at least this probable are nearly certain.
const CERTAIN: f64 = 0.99;

#[derive(Default, Clone, Copy)]
struct Bucket {
    values: usize,
    right: usize,
    /// The sum of the stated probabilities.
    said: f64,
}

#[derive(Default)]
pub struct Calibration {
    buckets: [Bucket; BUCKETS],
    certain: Bucket,
}

impl Bucket {
    fn add(&mut self, said: f64, is_right: bool) {
        self.values += 1;
        self.right += usize::from(is_right);
        self.said += said;
    }

    fn right_share(&self) -> f64 {
        self.right as f64 / self.values.max(1) as f64
    }

    fn mean_said(&self) -> f64 {
        self.said / self.values.max(1) as f64
    }
}

impl Calibration {
    /// Adds all gaps of a table where a value was read.
    pub fn add_table(&mut self, table: &Table, folder: &Path) -> Result<(), Failure> {
        let evidence = read_evidence(folder)?;
        for (at, row) in table.rows.iter().enumerate() {
            for (field, (given, truth)) in row.given.iter().zip(&row.truth).enumerate() {
                if !matches!(given, Given::Gap | Given::Nothing) {
                    continue;
                }
                let Some(lines) = evidence.get(&(at, table.fields[field].clone())) else {
                    continue;
                };
                let values: Vec<&str> = lines
                    .iter()
                    .filter_map(|line| line["value"].as_str())
                    .collect();
                let said = lines.iter().find_map(|line| line["confidence"].as_f64());
                let Some(said) = said.filter(|_| !values.is_empty()) else {
                    continue;
                };
                let is_right = truth.matches(&values.join(BETWEEN));
                let bucket = ((said * BUCKETS as f64) as usize).min(BUCKETS - 1);
                self.buckets[bucket].add(said, is_right);
                if said >= CERTAIN {
                    self.certain.add(said, is_right);
                }
            }
        }
        Ok(())
    }

    pub fn print(&self) {
        let all: usize = self.buckets.iter().map(|bucket| bucket.values).sum();
        let distances = self
            .buckets
            .iter()
            .map(|bucket| bucket.values as f64 * (bucket.mean_said() - bucket.right_share()).abs());
        let error = distances.sum::<f64>() / all.max(1) as f64;
        println!(
            "  calibration error {error:.4} over {all} values of gaps; {:.4} of {} at {CERTAIN} and above are right",
            self.certain.right_share(),
            self.certain.values
        );
        for bucket in self.buckets.iter().filter(|bucket| bucket.values > 0) {
            println!(
                "    {:5} said {:.3}, right {:.3}",
                bucket.values,
                bucket.mean_said(),
                bucket.right_share()
            );
        }
    }
}
