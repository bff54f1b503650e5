//! What is learned about sites, extraction chains and records: how precise they are, and how signs such as agreement
//! change the odds of a reading. [`rounds`](crate::rounds) learns it.

use crate::cells::{Cell, weigh_kinds};
use crate::evidence::{FieldShape, Known, Presence};
use crate::foreign::Pages;
use crate::index::{Index, Item, PATTERNS, Reading};
use crate::profile::FITS;

/// How many times more frequent each pattern of agreement is among right readings than among wrong ones. Assumed until
/// it is measured.
const PATTERN_PRIOR: [f64; PATTERNS] = [1.0, 4.0, 8.0, 1.0, 0.25, 0.1];
/// How many times more frequent values of each form (usual, rare, unlike any other) are among right readings than among
/// wrong ones. Assumed until it is measured.
const FIT_PRIOR: [f64; FITS] = [1.0, 0.3, 0.1];
/// The share of known values that are assumed to be wrong before any is compared. It falls quickly if pages have the
/// known values. With a low start, it would not rise: many wrong records would be taken for a wrong extraction chain.
const AT_FIRST: f64 = 0.4;
/// How strongly [`PATTERN_PRIOR`] and [`FIT_PRIOR`] count against measurements: like this many right readings, and as
/// many wrong ones.
const PRIOR_WEIGHS: f64 = 4.0;

/// The share of wrong known values that are assumed to be read for other rows, before any is counted.
const ELSEWHERE: f64 = 0.3;

#[derive(Debug)]
pub(crate) struct Model {
    pub cells: Vec<Cell>,
    /// For each pattern of agreement, how much it changes the odds that a reading is right, as a factor.
    pub patterns: [f64; PATTERNS],
    /// For each form of values, how much it changes the odds that a reading is right, as a factor.
    fits: [f64; FITS],
    pub records: Records,
    /// For each field, the probability that two wrong values are equal.
    pub collisions: Vec<f64>,
    /// The probability that an alternative extraction chain of the site reads the truth if the site's main value is
    /// wrong.
    pub alternative: f64,
    /// For each cell (a layout and a field), the share of a list's true values that its extraction chain reads.
    pub recalls: Vec<f64>,
    /// Like `cells`, but each list counts as one trial: it is right if all its values are right and none is missing.
    /// One extraction chain reads all values of a list from one place, so errors affect them together.
    pub units: Vec<Cell>,
    /// For each reading, how much its vote counts; see [`copies::vote_weights`].
    pub votes: Vec<f32>,
    pub pages: Pages,
    /// For each reading, the probability that its page belongs to its row.
    pub own: Vec<f32>,
}

/// How often the known values of records are wrong.
#[derive(Debug)]
pub(crate) struct Records {
    /// For each field, the probability that a known value is wrong.
    pub errors: Vec<f64>,
    /// For each field, how many known values were compared, and how many of them are probably wrong.
    pub compared: Vec<f64>,
    pub wrong: Vec<f64>,
    /// The probabilities that a right and a wrong known value are on the page, although no extraction chain reads them.
    /// The second one is for pages without other values of the column.
    pub present_if_right: f64,
    pub present_if_wrong: f64,
    /// The probability that a wrong known value is read for another row.
    pub elsewhere_if_wrong: f64,
}

/// The counts of one round. The model is updated from them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub right: [f64; PATTERNS],
    pub wrong: [f64; PATTERNS],
    pub fits_right: [f64; FITS],
    pub fits_wrong: [f64; FITS],
    pub same_wrong: Vec<f64>,
    pub both_wrong: Vec<f64>,
    pub alternatives_true: f64,
    pub alternatives: f64,
    pub present_right: f64,
    pub searched_right: f64,
    pub present_wrong: f64,
    pub searched_wrong: f64,
    pub elsewhere_wrong: f64,
    pub unread_wrong: f64,
    pub recalled: Vec<f64>,
    pub to_recall: Vec<f64>,
    /// For each cell, how many held-out known lists were compared (`lists`), and how many of them were read without any
    /// error (`whole`).
    pub lists: Vec<f64>,
    pub whole: Vec<f64>,
}

impl Counts {
    pub fn new(index: &Index) -> Counts {
        Counts {
            same_wrong: vec![0.0; index.shapes.len()],
            both_wrong: vec![0.0; index.shapes.len()],
            recalled: vec![0.0; index.cells.len()],
            to_recall: vec![0.0; index.cells.len()],
            lists: vec![0.0; index.cells.len()],
            whole: vec![0.0; index.cells.len()],
            ..Counts::default()
        }
    }

    /// Counts the search of a page for a known value that no extraction chain has read. `record_right` is the
    /// probability that the value is right, and `is_elsewhere` says whether it is read for another row.
    pub fn add_search(
        &mut self,
        known: &Known,
        record_right: f64,
        is_elsewhere: bool,
        records: &Records,
    ) {
        let wrong = 1.0 - record_right;
        self.unread_wrong += wrong;
        self.elsewhere_wrong += if is_elsewhere { wrong } else { 0.0 };
        if matches!(known.presence, Presence::Unknown | Presence::Misspelt) {
            return;
        }
        self.searched_right += record_right;
        self.searched_wrong += wrong;
        if known.presence == Presence::OnPage {
            self.present_right += record_right;
            // A wrong value may be on the page only because the page mentions many values of the column. So it counts
            // less.
            self.present_wrong +=
                wrong * records.present_if_wrong / records.present_if_wrong_at(known.chance);
        }
    }
}

impl Model {
    /// The model with assumed values, before anything is counted.
    pub fn new(index: &Index, frequencies: &Frequencies) -> Model {
        let fields = index.shapes.len();
        let mut model = Model {
            cells: index.cells.clone(),
            patterns: [1.0; PATTERNS],
            fits: [1.0; FITS],
            records: Records {
                errors: vec![AT_FIRST; fields],
                compared: vec![0.0; fields],
                wrong: vec![0.0; fields],
                present_if_right: 0.8,
                present_if_wrong: 0.05,
                elsewhere_if_wrong: ELSEWHERE,
            },
            collisions: vec![0.08; fields],
            alternative: 0.4,
            recalls: vec![0.6; index.cells.len()],
            units: index.cells.clone(),
            votes: vec![1.0; index.readings.len()],
            pages: Pages::new(),
            own: vec![1.0; index.readings.len()],
        };
        weigh_kinds(&mut model.cells, index.sites.len(), fields);
        model.weigh_patterns(&Counts::new(index), frequencies);
        model
    }

    /// Updates the model with the counts of a round.
    pub fn update(&mut self, index: &Index, counts: &Counts) {
        for (field, collision) in self.collisions.iter_mut().enumerate() {
            *collision = (0.8 + counts.same_wrong[field]) / (10.0 + counts.both_wrong[field]);
        }
        self.alternative = (2.0 + counts.alternatives_true) / (5.0 + counts.alternatives);
        self.records.present_if_right =
            (8.0 + counts.present_right) / (10.0 + counts.searched_right);
        self.records.present_if_wrong =
            (0.5 + counts.present_wrong) / (10.0 + counts.searched_wrong);
        self.records.elsewhere_if_wrong =
            (10.0 * ELSEWHERE + counts.elsewhere_wrong) / (10.0 + counts.unread_wrong);
        self.update_recalls(counts);
        self.update_units(index, counts);
    }

    /// Updates `units`. Fields with one truth are copied from `cells`. Lists are learned only from other lists, because
    /// they are harder to read.
    fn update_units(&mut self, index: &Index, counts: &Counts) {
        self.units.clone_from(&self.cells);
        let (mut lists, mut places) = (Vec::new(), Vec::new());
        for (place, cell) in index.cells.iter().enumerate() {
            if index.shapes[cell.field as usize] == FieldShape::Several {
                let mut list = cell.clone();
                (list.trials, list.right) = (counts.lists[place], counts.whole[place]);
                lists.push(list);
                places.push(place);
            }
        }
        weigh_kinds(&mut lists, index.sites.len(), index.shapes.len());
        for (place, list) in places.into_iter().zip(lists) {
            self.units[place] = list;
        }
    }

    /// Updates the recall of each cell. With few counts, it stays close to the recall of its field, and the recall of a
    /// field starts low. So a site that lists few values is weak evidence against other values at first.
    fn update_recalls(&mut self, counts: &Counts) {
        const FIELD_WEIGHS: f64 = 5.0;
        let mut fields = vec![(6.0, 10.0); self.collisions.len()];
        for (cell, of) in self.cells.iter().enumerate() {
            fields[of.field as usize].0 += counts.recalled[cell];
            fields[of.field as usize].1 += counts.to_recall[cell];
        }
        for (cell, of) in self.cells.iter().enumerate() {
            let (recalled, all) = fields[of.field as usize];
            self.recalls[cell] = (FIELD_WEIGHS * recalled / all + counts.recalled[cell])
                / (FIELD_WEIGHS + counts.to_recall[cell]);
        }
    }

    pub fn weigh_patterns(&mut self, counts: &Counts, frequencies: &Frequencies) {
        self.patterns = bucket_factors(
            &counts.right,
            &counts.wrong,
            &PATTERN_PRIOR,
            &frequencies.patterns,
        );
        self.fits = bucket_factors(
            &counts.fits_right,
            &counts.fits_wrong,
            &FIT_PRIOR,
            &frequencies.fits,
        );
    }

    /// The probability that a reading is right, judged without the item's other readings and the page's other fields.
    pub fn usual_precision(&self, reading: &Reading) -> f64 {
        /// The share of errors that are on the page itself. They remain even if all kinds of anchors agree on a value.
        const OF_THE_PAGE: f64 = 0.3;
        let error = 1.0 - self.cells[reading.cell as usize].mean();
        let factor = self.patterns[reading.pattern as usize] * self.fits[reading.fit as usize];
        let odds = (1.0 - error) / error * factor;
        let least = if factor > 1.0 {
            OF_THE_PAGE * error
        } else {
            0.0
        };
        (odds / (1.0 + odds))
            .min(1.0 - least)
            .clamp(1e-4, 1.0 - 1e-5)
    }

    /// Like [`Model::usual_precision`], but also considers the probability that the page belongs to the row.
    pub fn precision(&self, item: &Item, place: usize, reading: &Reading) -> f64 {
        (self.usual_precision(reading) * f64::from(self.own[item.readings.start + place]))
            .clamp(1e-4, 1.0 - 1e-5)
    }

    /// How likely the result of searching the page for a known value is: first if the value is right, then if it is
    /// wrong. It is for values that no extraction chain has read.
    pub fn presence_likelihoods(&self, index: &Index, item: &Item, known: &Known) -> (f64, f64) {
        /// The probabilities that a right and a wrong value differ from the page by one typing error. About half of the
        /// wrong values are typing errors.
        const MISSPELT: (f64, f64) = (0.002, 0.5);
        let records = &self.records;
        let if_wrong = records.present_if_wrong_at(known.chance);
        // A right value is on the page at least as often as a wrong one.
        let if_right = records.present_if_right.max(if_wrong);
        let (right, wrong) = match known.presence {
            Presence::Misspelt => return MISSPELT,
            Presence::Unknown => (1.0, 1.0),
            Presence::OnPage => (if_right, if_wrong),
            Presence::Absent => (1.0 - if_right, 1.0 - if_wrong),
        };
        if !index.elsewhere.has(item, known) {
            return (right, wrong);
        }
        // A wrong value is read for another row at least as often as a right one.
        let elsewhere = records.elsewhere_if_wrong;
        let by_chance = index.elsewhere.chance(item).min(elsewhere);
        (right * by_chance, wrong * elsewhere)
    }

    /// How much the vote of a reading counts. `reading` is its index among the readings of the item.
    pub fn vote_weight(&self, item: &Item, reading: usize) -> f64 {
        f64::from(self.votes[item.readings.start + reading])
    }

    pub fn collision_probability(&self, item: &Item) -> f64 {
        self.collisions[item.field as usize]
    }
}

impl Records {
    /// The probability that a wrong known value is on a page. `chance` is the share of the column's other values that
    /// are on it too.
    fn present_if_wrong_at(&self, chance: f32) -> f64 {
        /// The highest share that counts. Even if all values of the column are on the page, the search remains weak
        /// evidence.
        const MOST: f32 = 0.9;
        let chance = f64::from(chance.clamp(0.0, MOST));
        chance + (1.0 - chance) * self.present_if_wrong
    }

    /// Updates the share of wrong known values of each field. With few counts, it stays close to the share of all
    /// fields.
    pub fn update(&mut self) {
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

/// For each bucket, how many times more frequent it is among right readings than among wrong ones: its factor for the
/// odds of a reading. With few readings, the factors stay close to `prior`.
fn bucket_factors<const N: usize>(
    right: &[f64; N],
    wrong: &[f64; N],
    prior: &[f64; N],
    frequencies: &[f64; N],
) -> [f64; N] {
    let expected = |power: f64| {
        let mut shares = [0.0; N];
        for bucket in 0..N {
            shares[bucket] = frequencies[bucket] * prior[bucket].powf(power);
        }
        let sum: f64 = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        shares.map(|share| share / sum)
    };
    let (among_right, among_wrong) = (expected(0.5), expected(-0.5));
    let sum_right: f64 = right.iter().sum::<f64>() + PRIOR_WEIGHS;
    let sum_wrong: f64 = wrong.iter().sum::<f64>() + PRIOR_WEIGHS;
    let mut factors = [1.0; N];
    for bucket in (0..N).filter(|bucket| frequencies[*bucket] > 0.0) {
        let right = (right[bucket] + PRIOR_WEIGHS * among_right[bucket]) / sum_right;
        let wrong = (wrong[bucket] + PRIOR_WEIGHS * among_wrong[bucket]) / sum_wrong;
        factors[bucket] = right / wrong;
    }
    factors
}

/// The share of each pattern of agreement, and of each form of values, among all readings.
pub(crate) struct Frequencies {
    patterns: [f64; PATTERNS],
    fits: [f64; FITS],
}

impl Frequencies {
    pub fn new(index: &Index) -> Frequencies {
        let mut frequencies = Frequencies {
            patterns: [0.0; PATTERNS],
            fits: [0.0; FITS],
        };
        let leading = index.readings.iter().filter(|reading| reading.leads);
        let share = 1.0 / leading.clone().count().max(1) as f64;
        for reading in leading {
            frequencies.patterns[reading.pattern as usize] += share;
            frequencies.fits[reading.fit as usize] += share;
        }
        frequencies
    }
}
