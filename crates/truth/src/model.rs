//! What is learned of sites and records: expectation and maximisation in turn.
//!
//! Given how precise each cell is and how often records are wrong, each item's truth has a probability; given
//! these, precisions and errors are counted. Records' errors are apart from those of pages: where sites, kinds
//! of anchors or the search of the page speak against a record, its disagreement does not count against the
//! page.

use crate::cells::{Cell, weigh_kinds};
use crate::evidence::{FieldShape, Presence};
use crate::index::{Index, Item, PATTERNS, Reading};
use crate::{several, single};

const ROUNDS: usize = 25;

/// How much more frequent each pattern is among right readings than among wrong ones, before it is measured.
const PATTERN_PRIOR: [f64; PATTERNS] = [1.0, 4.0, 8.0, 1.0, 0.25, 0.1];
/// As many readings as this weighs, among right and among wrong ones.
const PATTERN_WEIGHS: f64 = 4.0;

#[derive(Debug)]
pub(crate) struct Model {
    pub cells: Vec<Cell>,
    /// By pattern: the factor by which it changes the odds that a reading is right.
    pub patterns: [f64; PATTERNS],
    pub records: Records,
    /// By field: the probability that two wrong values are the same.
    pub collisions: Vec<f64>,
    /// The probability that the truth is an alternative where the leading value is wrong.
    pub alternative: f64,
    /// By cell: the share of a list's true values that are read.
    pub recalls: Vec<f64>,
}

/// How records go wrong.
#[derive(Debug)]
pub(crate) struct Records {
    /// By field.
    pub errors: Vec<f64>,
    /// By field: known values that were compared, and those of them that are probably wrong.
    pub compared: Vec<f64>,
    pub wrong: Vec<f64>,
    /// The probability that a known value that a chain did not read stands on the page: if it is right, and if
    /// it is wrong.
    pub present_if_right: f64,
    pub present_if_wrong: f64,
}

/// What one round counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub right: [f64; PATTERNS],
    pub wrong: [f64; PATTERNS],
    pub same_wrong: Vec<f64>,
    pub both_wrong: Vec<f64>,
    pub alternatives_true: f64,
    pub alternatives: f64,
    pub present_right: f64,
    pub searched_right: f64,
    pub present_wrong: f64,
    pub searched_wrong: f64,
    pub recalled: Vec<f64>,
    pub to_recall: Vec<f64>,
}

impl Counts {
    fn new(index: &Index) -> Counts {
        Counts {
            same_wrong: vec![0.0; index.shapes.len()],
            both_wrong: vec![0.0; index.shapes.len()],
            recalled: vec![0.0; index.cells.len()],
            to_recall: vec![0.0; index.cells.len()],
            ..Counts::default()
        }
    }

    /// One search of a page for a known value that no chain read there.
    pub fn search(&mut self, presence: Presence, record_right: f64) {
        if presence == Presence::Unknown {
            return;
        }
        self.searched_right += record_right;
        self.searched_wrong += 1.0 - record_right;
        if presence == Presence::OnPage {
            self.present_right += record_right;
            self.present_wrong += 1.0 - record_right;
        }
    }
}

impl Model {
    pub fn learn(index: &Index) -> Model {
        let fields = index.shapes.len();
        let mut model = Model {
            cells: index.cells.clone(),
            patterns: [1.0; PATTERNS],
            records: Records {
                errors: vec![0.05; fields],
                compared: vec![0.0; fields],
                wrong: vec![0.0; fields],
                present_if_right: 0.8,
                present_if_wrong: 0.05,
            },
            collisions: vec![0.08; fields],
            alternative: 0.4,
            recalls: vec![0.9; index.cells.len()],
        };
        weigh_kinds(&mut model.cells, index.sites.len(), fields);
        let frequencies = pattern_frequencies(index);
        model.weigh_patterns(&Counts::new(index), &frequencies);
        for _ in 0..ROUNDS {
            model.round(index, &frequencies);
        }
        model
    }

    fn round(&mut self, index: &Index, frequencies: &[f64; PATTERNS]) {
        let mut counts = Counts::new(index);
        let mut cells = index.cells.clone();
        self.records.compared.fill(0.0);
        self.records.wrong.fill(0.0);
        let mut records = Vec::new();
        for item in &index.items {
            // One site alone, and no record, say nothing of how right the site is.
            let measured = item.sites > 1 || index.known(item).iter().any(|known| known.held_out);
            if !measured && index.known(item).is_empty() {
                continue;
            }
            let right = match index.shape(item) {
                FieldShape::Single => single::expect(index, self, item, &mut counts, &mut records),
                FieldShape::Several => {
                    several::expect(index, self, item, &mut counts, &mut records)
                }
            };
            if !measured {
                continue;
            }
            for (reading, right) in index.readings(item).iter().zip(right) {
                if reading.leads {
                    let cell = &mut cells[reading.cell as usize];
                    cell.trials += 1.0;
                    cell.right += right;
                    counts.right[reading.pattern as usize] += right;
                    counts.wrong[reading.pattern as usize] += 1.0 - right;
                }
            }
        }
        for (field, wrong) in records {
            self.records.compared[field as usize] += 1.0;
            self.records.wrong[field as usize] += wrong;
        }
        weigh_kinds(&mut cells, index.sites.len(), index.shapes.len());
        self.cells = cells;
        self.weigh_patterns(&counts, frequencies);
        self.records.count();
        self.count(&counts);
    }

    fn count(&mut self, counts: &Counts) {
        for (field, collision) in self.collisions.iter_mut().enumerate() {
            *collision = (0.8 + counts.same_wrong[field]) / (10.0 + counts.both_wrong[field]);
        }
        self.alternative = (2.0 + counts.alternatives_true) / (5.0 + counts.alternatives);
        self.records.present_if_right =
            (8.0 + counts.present_right) / (10.0 + counts.searched_right);
        self.records.present_if_wrong =
            (0.5 + counts.present_wrong) / (10.0 + counts.searched_wrong);
        for (cell, recall) in self.recalls.iter_mut().enumerate() {
            *recall = (4.5 + counts.recalled[cell]) / (5.0 + counts.to_recall[cell]);
        }
    }

    fn weigh_patterns(&mut self, counts: &Counts, frequencies: &[f64; PATTERNS]) {
        let prior = |power: f64| {
            let raw: Vec<f64> = (0..PATTERNS)
                .map(|bucket| frequencies[bucket] * PATTERN_PRIOR[bucket].powf(power))
                .collect();
            let sum: f64 = raw.iter().sum();
            raw.into_iter()
                .map(|share| share / sum)
                .collect::<Vec<f64>>()
        };
        let (among_right, among_wrong) = (prior(0.5), prior(-0.5));
        let sum_right: f64 = counts.right.iter().sum::<f64>() + PATTERN_WEIGHS;
        let sum_wrong: f64 = counts.wrong.iter().sum::<f64>() + PATTERN_WEIGHS;
        for bucket in 0..PATTERNS {
            let right = (counts.right[bucket] + PATTERN_WEIGHS * among_right[bucket]) / sum_right;
            let wrong = (counts.wrong[bucket] + PATTERN_WEIGHS * among_wrong[bucket]) / sum_wrong;
            self.patterns[bucket] = if frequencies[bucket] > 0.0 {
                right / wrong
            } else {
                1.0
            };
        }
    }

    /// The probability that a reading is right, before other readings of the item are seen.
    pub fn precision(&self, reading: &Reading) -> f64 {
        let mean = self.cells[reading.cell as usize].mean();
        let odds = mean / (1.0 - mean) * self.patterns[reading.pattern as usize];
        (odds / (1.0 + odds)).clamp(1e-4, 1.0 - 1e-5)
    }

    /// The factors of a known value that was not read, if it is right and if it is wrong.
    pub fn presence(&self, presence: Presence) -> (f64, f64) {
        let records = &self.records;
        match presence {
            Presence::Unknown => (1.0, 1.0),
            Presence::OnPage => (records.present_if_right, records.present_if_wrong),
            Presence::Absent => (
                1.0 - records.present_if_right,
                1.0 - records.present_if_wrong,
            ),
        }
    }

    pub fn collision(&self, item: &Item) -> f64 {
        self.collisions[item.field as usize]
    }
}

impl Records {
    /// The errors of each field, drawn towards those of all.
    fn count(&mut self) {
        const ALL_WEIGH: f64 = 20.0;
        let compared: f64 = self.compared.iter().sum();
        let wrong: f64 = self.wrong.iter().sum();
        let all = (0.5 + wrong) / (10.0 + compared);
        for (field, error) in self.errors.iter_mut().enumerate() {
            let share = (ALL_WEIGH * all + self.wrong[field]) / (ALL_WEIGH + self.compared[field]);
            *error = share.clamp(1e-4, 0.9);
        }
    }
}

fn pattern_frequencies(index: &Index) -> [f64; PATTERNS] {
    let mut frequencies = [0.0; PATTERNS];
    for reading in index.readings.iter().filter(|reading| reading.leads) {
        frequencies[reading.pattern as usize] += 1.0;
    }
    let sum: f64 = frequencies.iter().sum::<f64>().max(1.0);
    frequencies.map(|count| count / sum)
}
