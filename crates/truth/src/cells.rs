//! Estimates from few known values how precise each layout of a site is for each field. A cell is a layout and a field;
//! one chain (an extraction rule) reads its values.
//!
//! Most learned chains are almost perfect, some are fair, and some read something else than the field. So the
//! distribution of a precision is a mixture of three Beta distributions, one for each of these kinds of chains. The
//! weights of the mixture come from all cells of the table. Cells of the same site or field count more. Cells of the
//! same field whose chains read the same place count most.
//!
//! As a result, a cell with two known values is judged mainly by similar cells, and a cell with a hundred by its own
//! values.

use crate::evidence::{Chosen, FieldShape};
use crate::interval::{Interval, beta_at_most, ln_beta};

/// The kinds of extraction chains (sound, fair, poor). Each has the parameters a and b of the Beta distribution of its
/// precision.
const KINDS: [(f64, f64); 3] = [(60.0, 0.6), (8.0, 2.0), (1.0, 2.0)];
/// The shares of sound, fair and poor extraction chains that are assumed before anything is measured. On sites new to
/// `webfill-learn`, 83 to 95 % of its learned fields had an F1 of .95 or more (see `docs/explanation/truth.md`).
const SHARES: [f64; 3] = [0.8, 0.12, 0.08];
/// The shares of sound, fair and poor extraction chains among confirmed chains: the share of sound ones is the lower
/// bound, at 95 % confidence, of the measured one (see `docs/explanation/truth.md`). A confirmed chain reads the known
/// values of its field, if only one, and a chain with another kind of anchor reads the same on nearly all pages.
const CONFIRMED: [f64; 3] = [0.978, 0.014, 0.008];
/// The share of pages where another extraction chain must read the same to confirm a chain. For lists, a page counts by
/// its share of equal values. Their limit is higher, because a chain that misses one of five values on half of the
/// pages still agrees to nine tenths.
const AGREEING: f64 = 0.9;
const AGREEING_ON_LISTS: f64 = 0.98;
/// How strongly the assumed [`SHARES`] count against the measured ones of the table: like this many cells.
const SHARES_WEIGH: f64 = 6.0;
/// How strongly the shares of the whole table count against those of one site or field: like this many cells.
const TABLE_WEIGHS: f64 = 3.0;

/// The estimated precision of one layout for one field. Precision is the share of readings that are right.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub site: u32,
    pub layout: u32,
    pub field: u32,
    /// The group of cells of one field whose extraction chains read the same place, as a number.
    pub family: Option<u32>,
    /// How many readings were compared with the truth, and how many of these are probably right. Both may be
    /// fractional.
    pub trials: f64,
    pub right: f64,
    /// The probabilities that the extraction chain is sound, fair or poor before any trial. They depend on how the
    /// chain was chosen.
    expected: [f64; 3],
    /// The probabilities that the extraction chain is sound, fair or poor, given the trials.
    kinds: [f64; 3],
}

impl Cell {
    pub fn new(site: u32, layout: u32, field: u32) -> Cell {
        Cell {
            site,
            layout,
            field,
            family: None,
            trials: 0.0,
            right: 0.0,
            expected: SHARES,
            kinds: SHARES,
        }
    }

    /// Sets the expected probabilities to [`CONFIRMED`] if the extraction chain reads known values and another chain
    /// agrees with it.
    pub fn adjust_expected_kinds(&mut self, shape: FieldShape, chosen: &Chosen) {
        // The extraction chain may miss a quarter of the known values, because records are sometimes wrong.
        let is_read = chosen.reads > 0 && chosen.misses * 3 <= chosen.reads;
        let agreeing = match shape {
            FieldShape::Single => AGREEING,
            FieldShape::Several => AGREEING_ON_LISTS,
        };
        if is_read && chosen.agreement >= agreeing {
            self.expected = CONFIRMED;
            self.kinds = CONFIRMED;
        }
    }

    fn beta_parameters(&self, kind: usize) -> (f64, f64) {
        let (a, b) = KINDS[kind];
        let right = self.right.min(self.trials);
        (a + right, b + self.trials - right)
    }

    /// The expected precision.
    pub fn mean(&self) -> f64 {
        (0..KINDS.len())
            .map(|kind| {
                let (a, b) = self.beta_parameters(kind);
                self.kinds[kind] * a / (a + b)
            })
            .sum()
    }

    /// The probability that the precision is at least `wished`.
    pub fn probability_at_least(&self, wished: f64) -> f64 {
        let below: f64 = (0..KINDS.len())
            .map(|kind| {
                let (a, b) = self.beta_parameters(kind);
                self.kinds[kind] * beta_at_most(wished, a, b)
            })
            .sum();
        1.0 - below
    }

    /// The expected precision, and the bounds that leave 2.5 % of its distribution on each side.
    pub fn interval(&self) -> Interval {
        Interval {
            low: self.quantile(0.025),
            estimate: self.mean(),
            high: self.quantile(0.975),
        }
    }

    fn quantile(&self, share: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if 1.0 - self.probability_at_least(middle) < share {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low + high) / 2.0
    }
}

/// Computes for each cell the probabilities that its extraction chain is sound, fair or poor, from the counts of all
/// cells.
///
/// A cell keeps its expected probabilities if its chain was never tested, no chain with another anchor confirms it, and
/// no tested chain reads the same place. Such a chain was chosen by a single known value, which occurs in many places
/// of a page, so other fields and sites are no evidence for it.
pub(crate) fn weigh_kinds(cells: &mut [Cell], sites: usize, fields: usize) {
    const ROUNDS: usize = 4;
    let likelihoods: Vec<[f64; 3]> = cells.iter().map(kind_likelihoods).collect();
    let families = cells.iter().filter_map(|cell| cell.family).max();
    let families = families.map_or(0, |last| last as usize + 1);
    for _ in 0..ROUNDS {
        let mut table = SHARES.map(|share| share * SHARES_WEIGH);
        let mut by_site = vec![[0.0; 3]; sites];
        let mut by_field = vec![[0.0; 3]; fields];
        let mut by_family = vec![[0.0; 3]; families];
        for cell in cells.iter().filter(|cell| cell.trials > 0.0) {
            for kind in 0..KINDS.len() {
                table[kind] += cell.kinds[kind];
                by_site[cell.site as usize][kind] += cell.kinds[kind];
                by_field[cell.field as usize][kind] += cell.kinds[kind];
                if let Some(family) = cell.family {
                    by_family[family as usize][kind] += cell.kinds[kind];
                }
            }
        }
        let table = normalise(table);
        for (cell, likelihood) in cells.iter_mut().zip(&likelihoods) {
            // The cell's own counts are removed from the sums of its site and field: a cell is no evidence about
            // itself.
            let own = if cell.trials > 0.0 {
                cell.kinds
            } else {
                [0.0; 3]
            };
            let neighbours = |of: &[f64; 3], all: &[f64; 3]| {
                let sum: f64 = of.iter().sum::<f64>() - own.iter().sum::<f64>();
                let share = |kind: usize| {
                    let here = (of[kind] - own[kind]).max(0.0);
                    (here + TABLE_WEIGHS * all[kind]) / (sum + TABLE_WEIGHS)
                };
                std::array::from_fn::<f64, 3, _>(share)
            };
            let site = neighbours(&by_site[cell.site as usize], &table);
            let field = neighbours(&by_field[cell.field as usize], &table);
            let family = match cell.family {
                Some(family) => neighbours(&by_family[family as usize], &field),
                None => field,
            };
            let kinds = std::array::from_fn(|kind| {
                let expected = cell.expected[kind] / SHARES[kind];
                site[kind] * family[kind] / table[kind] * expected * likelihood[kind]
            });
            let family = cell.family.map(|family| &by_family[family as usize]);
            let is_shared = family.is_some_and(|of| of.iter().sum::<f64>() > 0.0);
            let is_vouched = cell.trials > 0.0 || cell.expected == CONFIRMED || is_shared;
            cell.kinds = match is_vouched {
                true => normalise(kinds),
                false => cell.expected,
            };
        }
    }
}

/// How likely the cell's counts are if its extraction chain is sound, fair or poor. Only the ratios of the three
/// numbers matter.
fn kind_likelihoods(cell: &Cell) -> [f64; 3] {
    let mut logarithms = [0.0; 3];
    for (kind, logarithm) in logarithms.iter_mut().enumerate() {
        let (a, b) = cell.beta_parameters(kind);
        *logarithm = ln_beta(a, b) - ln_beta(KINDS[kind].0, KINDS[kind].1);
    }
    let most = logarithms.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    logarithms.map(|logarithm| (logarithm - most).exp())
}

fn normalise(weights: [f64; 3]) -> [f64; 3] {
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}
