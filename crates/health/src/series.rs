//! [`Series`]: for one field, whether page after page has a value, and whether at most half as many pages have one as
//! before. Then the series falls.
//!
//! - The *baseline* is Wilson's lower bound (99 %) of the share of filled pages, which have a value. It is provisional
//!   after 20 pages and computed again after every 100. It stays the same while the series may be falling.
//! - A cumulative sum (Page's CUSUM) compares "half the baseline" with "the baseline": each page adds the logarithm of
//!   the likelihood ratio. The sum never goes below 0, where earlier pages are forgotten. At [`LIMIT`] the series has
//!   *fallen*.
//! - Real pages come in groups of similar pages, such as the pages of one list. So a page counts less the more pages
//!   the same source has led to ([`weight_of_nth_page`]), also for the baseline. While fewer than [`SOURCES`] sources
//!   are evidence against the series, the evidence must be [`ONE_SOURCE`] times as strong.
//! - The same sum in reverse shows that a fallen series has *recovered*.

use serde::{Deserialize, Serialize};

/// The sum that makes a series fall: ln 10^6, which gives about one false alert in a million healthy pages.
pub(crate) const LIMIT: f64 = 13.815_510_557_964_274;

/// A fall needs pages without a value from this many sources (records, seeds or linking pages). With fewer sources, the
/// evidence must be stronger; see [`ONE_SOURCE`].
const SOURCES: usize = 3;

/// How many times as strong the evidence must be if it comes from fewer than [`SOURCES`] sources.
const ONE_SOURCE: f64 = 2.0;

/// The lowest weight of a page, however many pages its source has led to.
const LEAST_WEIGHT: f64 = 0.2;

/// The weight of the n-th page that the same source has led to, counted from 1.
pub fn weight_of_nth_page(nth: u32) -> f64 {
    (1.0 / f64::from(nth.max(1))).max(LEAST_WEIGHT)
}

/// The highest value of a cumulative sum. Without a limit, it could take too long to decrease again.
const MOST: f64 = LIMIT * (ONE_SOURCE + 1.0);

/// From this many pages on, there is a provisional baseline (lowest normal share of pages with a value).
const PROVISIONAL: f64 = 20.0;

/// After this many pages, the baseline (lowest normal share) is no longer provisional. It is computed again each time
/// as many pages have come.
const PAGES: f64 = 100.0;

/// The confidence of a loss is computed only if at least this many pages were judged.
const LEAST_PAGES: u64 = 20;

/// Counts are halved at this many pages, so that old pages count less.
const REMEMBERED: f64 = 1_000.0;

/// A field with a lower baseline (share of pages with a value) is not judged, because it would take thousands of pages
/// to notice that it falls.
const RAREST: f64 = 0.01;

/// The one-sided 99 % quantile of the normal distribution.
const Z: f64 = 2.326_347_874;

/// The current share of filled pages covers about this many of the last pages.
const NOW: f64 = 50.0;

/// A page as evidence: its properties that determine how strongly it counts.
#[derive(Debug, Clone, Copy)]
pub struct Witness {
    /// The source that led to the page, as a hash: its record, the page with the link, or the page itself if it is a
    /// seed.
    pub source: u64,
    /// The number of the page, counted among the pages of its mapping.
    pub number: u64,
    /// The weight of the page; see [`weight_of_nth_page`].
    pub weight: f64,
    /// Whether enough earlier pages have the same layout. If at least a quarter of the pages have known layouts, the
    /// site was not redesigned.
    pub is_known_layout: bool,
}

/// The effect of a page on a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Nothing,
    Fell,
    Recovered,
}

/// A fall of a series: the shares of pages with a value before and after it, and the number of its first page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fall {
    pub before: f64,
    pub after: f64,
    pub since: u64,
}

/// Counts of the pages since the cumulative sum of a series was last 0. They may be the beginning of a fall.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Excursion {
    /// The number of the first of these pages.
    since: u64,
    pages: f64,
    filled: f64,
    of_known_layouts: f64,
    /// The sources of pages without a value, at most [`SOURCES`] of them.
    sources: Vec<u64>,
}

/// The history of one field: on which pages it had a value, its baseline (lowest normal share), and whether it has
/// fallen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// The pages that the baseline (lowest normal share) is computed from, and those of them with a value, as sums of
    /// weights.
    pages: f64,
    filled: f64,
    /// The sum of the weights of pages since the baseline (lowest normal share) was last computed.
    since_baseline: f64,
    /// How many pages were judged.
    total: u64,
    /// How many judged pages had a value, and how many pages in a row up to the last one had none. Unlike in `pages`,
    /// all pages count equally here.
    #[serde(default)]
    with_value: u64,
    #[serde(default)]
    empty_in_row: u64,
    now: f64,
    baseline: Option<f64>,
    sum: f64,
    excursion: Excursion,
    fallen: Option<Fall>,
    recovery: f64,
    /// The number of the last page that gave evidence.
    judged_at: u64,
}

/// Wilson's lower bound of the share `filled` / `pages`.
fn lower_bound(filled: f64, pages: f64) -> f64 {
    let n = pages.max(1.0);
    let share = (filled / n).min(1.0);
    let z2 = Z * Z;
    let spread = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((share + z2 / (2.0 * n) - spread) / (1.0 + z2 / n)).max(0.0)
}

impl Series {
    /// The series of a field that had no value on any of the earlier pages.
    pub(crate) fn from_empty_pages(pages: u64) -> Series {
        let mut series = Series {
            total: pages,
            empty_in_row: pages,
            pages: (pages as f64).min(REMEMBERED),
            ..Series::default()
        };
        if series.pages >= PAGES {
            series.baseline = Some(0.0);
        }
        series
    }

    /// A series made from earlier pages. `said` has the weight of each page, and whether it had a value. `number` is
    /// the number of the last page.
    pub(crate) fn from_earlier_pages(said: &[(f64, bool)], number: u64) -> Series {
        let filled = said.iter().filter(|(_, is_filled)| *is_filled);
        let filled: f64 = filled.map(|(weight, _)| weight).sum();
        let pages: f64 = said.iter().map(|(weight, _)| weight).sum();
        let empty = said.iter().rev().take_while(|(_, is_filled)| !is_filled);
        Series {
            total: said.len() as u64,
            with_value: said.iter().filter(|(_, is_filled)| *is_filled).count() as u64,
            empty_in_row: empty.count() as u64,
            pages,
            filled,
            now: filled / pages,
            baseline: (pages >= PROVISIONAL).then(|| lower_bound(filled, pages)),
            judged_at: number,
            ..Series::default()
        }
    }

    /// A series with every page filled. Its pages are those with a value in the series `fill`, without the last page.
    pub(crate) fn from_full_pages(fill: &Series, last: Witness) -> Series {
        let pages = (fill.filled - last.weight).max(0.0);
        Series {
            total: pages as u64,
            with_value: pages as u64,
            pages,
            filled: pages,
            now: 1.0,
            baseline: (pages >= PROVISIONAL).then(|| lower_bound(pages, pages)),
            ..Series::default()
        }
    }

    /// Counts a page and its evidence. Returns whether the series falls or recovers.
    pub fn note_page(&mut self, is_filled: bool, witness: Witness) -> Step {
        self.total += 1;
        self.note_evidence(witness.number);
        match is_filled {
            true => (self.with_value, self.empty_in_row) = (self.with_value + 1, 0),
            false => self.empty_in_row += 1,
        }
        let value = f64::from(u8::from(is_filled));
        let weight = (self.total as f64).min(NOW);
        self.now += (value - self.now) / weight;
        let step = self.update_sums(is_filled, witness);
        if self.fallen.is_none() {
            self.count_page(is_filled, witness.weight);
        }
        step
    }

    /// Records that the page with this number has given evidence.
    pub(crate) fn note_evidence(&mut self, number: u64) {
        self.judged_at = number;
    }

    /// The number of the last page that gave evidence.
    pub(crate) fn judged_at(&self) -> u64 {
        self.judged_at
    }

    /// The logarithm of the likelihood ratio of a page with or without a value: half the baseline against the baseline.
    /// `None` if the field is too rare to be judged.
    fn log_likelihood_ratio(&self, is_filled: bool) -> Option<f64> {
        let baseline = self.baseline.filter(|baseline| *baseline >= RAREST)?;
        Some(match is_filled {
            true => 0.5_f64.ln(),
            false => ((1.0 - baseline / 2.0) / (1.0 - baseline)).ln(),
        })
    }

    fn update_sums(&mut self, is_filled: bool, witness: Witness) -> Step {
        let Some(ratio) = self.log_likelihood_ratio(is_filled) else {
            return Step::Nothing;
        };
        let ratio = ratio * witness.weight;
        if self.fallen.is_some() {
            self.recovery = (self.recovery - ratio).max(0.0);
            if self.recovery < LIMIT {
                return Step::Nothing;
            }
            self.forget_evidence();
            return Step::Recovered;
        }
        self.sum = (self.sum + ratio).min(MOST);
        if self.sum <= 0.0 {
            self.sum = 0.0;
            self.excursion = Excursion::default();
            return Step::Nothing;
        }
        if self.excursion.pages == 0.0 {
            self.excursion.since = witness.number;
        }
        self.excursion.add_page(is_filled, witness);
        if self.sum < LIMIT * self.excursion.required_multiple() {
            return Step::Nothing;
        }
        self.mark_fallen();
        Step::Fell
    }

    fn mark_fallen(&mut self) {
        let Excursion {
            pages,
            filled,
            since,
            ..
        } = self.excursion;
        // The pages since the fall began are removed from the counts, which then show the share before the fall.
        self.pages = (self.pages - pages).max(0.0);
        self.filled = (self.filled - filled).clamp(0.0, self.pages);
        let after = (filled / pages.max(LEAST_WEIGHT)).min(1.0);
        let before = self.share();
        self.fallen = Some(Fall {
            before: before.max(self.baseline.unwrap_or_default()),
            after,
            since,
        });
        self.recovery = 0.0;
    }

    /// Makes the series fall if it has at least half of the evidence for a fall, because another series has fallen.
    /// Returns whether it falls.
    pub(crate) fn complete_imminent_fall(&mut self) -> bool {
        let falls = self.fallen.is_none() && self.sum >= LIMIT / 2.0;
        let falls = falls && self.excursion.required_multiple() <= ONE_SOURCE;
        if falls {
            self.mark_fallen();
        }
        falls
    }

    /// Forgets the evidence against the series, and its fall.
    pub(crate) fn forget_evidence(&mut self) {
        self.fallen = None;
        self.sum = 0.0;
        self.recovery = 0.0;
        self.excursion = Excursion::default();
    }

    fn count_page(&mut self, is_filled: bool, weight: f64) {
        if self.pages >= REMEMBERED {
            self.pages /= 2.0;
            self.filled /= 2.0;
        }
        let was_provisional = self.pages < PAGES;
        self.pages += weight;
        self.filled += if is_filled { weight } else { 0.0 };
        self.since_baseline += weight;
        let is_due = match self.baseline {
            None => self.pages >= PROVISIONAL,
            Some(_) if was_provisional => self.pages >= PAGES,
            Some(_) => self.since_baseline >= PAGES,
        };
        if is_due && self.sum < LIMIT / 2.0 {
            self.baseline = Some(lower_bound(self.filled, self.pages));
            self.since_baseline = 0.0;
        }
    }

    /// How many pages were judged.
    pub fn page_count(&self) -> u64 {
        self.total
    }

    /// The share of pages with a value among about the last 50 pages.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// The lowest normal share of pages with a value; `None` until there are enough pages.
    pub fn baseline(&self) -> Option<f64> {
        self.baseline
    }

    /// How many pages in a row, up to the last one, had no value.
    pub fn empty_in_row(&self) -> u64 {
        self.empty_in_row
    }

    /// How certain it is that the last pages do not lack the value by chance. It is one minus the probability of so
    /// many empty pages in a row. The probability assumes that the share of pages with a value is still at its former
    /// lower bound. All pages count equally, so it rises long before the series falls, but it is wrong more often:
    /// pages of one list are alike. `None` for fewer than five empty pages in a row.
    pub fn loss_confidence(&self) -> Option<f64> {
        const LEAST_IN_ROW: u64 = 5;
        let before = self.total.saturating_sub(self.empty_in_row);
        if self.total < LEAST_PAGES || self.empty_in_row < LEAST_IN_ROW || before == 0 {
            return None;
        }
        let least = lower_bound(self.with_value as f64, before as f64);
        let in_row = i32::try_from(self.empty_in_row).unwrap_or(i32::MAX);
        Some(1.0 - (1.0 - least).powi(in_row))
    }

    /// Whether the baseline (lowest normal share) was computed from fewer than 100 pages.
    pub fn is_provisional(&self) -> bool {
        self.pages < PAGES
    }

    /// The fall; `None` if the series has not fallen.
    pub fn current_fall(&self) -> Option<Fall> {
        self.fallen
    }

    /// The share of pages with a value, among the pages that the baseline (lowest normal share) is computed from.
    pub(crate) fn share(&self) -> f64 {
        self.filled / self.pages.max(1.0)
    }
}

impl Excursion {
    fn add_page(&mut self, is_filled: bool, witness: Witness) {
        self.pages += witness.weight;
        self.filled += if is_filled { witness.weight } else { 0.0 };
        self.of_known_layouts += if witness.is_known_layout {
            witness.weight
        } else {
            0.0
        };
        let is_new = !is_filled && !self.sources.contains(&witness.source);
        if is_new && self.sources.len() < SOURCES {
            self.sources.push(witness.source);
        }
    }

    /// How many times [`LIMIT`] the sum must reach before the series falls; infinite if the layout has not changed.
    fn required_multiple(&self) -> f64 {
        if self.of_known_layouts * 4.0 >= self.pages {
            return f64::INFINITY;
        }
        match self.sources.len() < SOURCES {
            true => ONE_SOURCE,
            false => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness_of_source(source: u64) -> Witness {
        Witness {
            source,
            number: 0,
            weight: 1.0,
            is_known_layout: false,
        }
    }

    fn healthy_series(pages: u64) -> Series {
        let mut series = Series::default();
        for source in 0..pages {
            assert_eq!(
                series.note_page(true, witness_of_source(source)),
                Step::Nothing
            );
        }
        series
    }

    fn pages_until(step: Step, series: &mut Series, is_filled: bool, sources: u64) -> u64 {
        let mut pages = 0;
        while pages < 100_000 {
            pages += 1;
            if series.note_page(is_filled, witness_of_source(pages % sources)) == step {
                return pages;
            }
        }
        panic!("never {step:?}")
    }

    #[test]
    fn the_lower_bound_matches_wilsons_formula() {
        assert!((lower_bound(100.0, 100.0) - 0.949).abs() < 0.001);
        assert!((lower_bound(50.0, 100.0) - 0.387).abs() < 0.002);
        assert!(lower_bound(0.0, 100.0) < 1e-9);
    }

    #[test]
    fn a_field_that_is_lost_falls_after_few_pages_and_recovers() {
        let mut series = healthy_series(100);
        assert_eq!(pages_until(Step::Fell, &mut series, false, 1_000), 6);
        let fall = series.current_fall().unwrap();
        assert_eq!((fall.before, fall.after), (1.0, 0.0));
        let frozen = series.baseline();
        assert_eq!(pages_until(Step::Recovered, &mut series, true, 1_000), 20);
        assert_eq!((series.current_fall(), series.baseline()), (None, frozen));
    }

    #[test]
    fn the_confidence_of_a_loss_is_known_from_twenty_pages_on() {
        let mut series = Series::default();
        let mut note = |is_filled: bool, pages: u64| {
            for number in 0..pages {
                let weight = weight_of_nth_page(u32::try_from(number + 1).unwrap());
                series.note_page(
                    is_filled,
                    Witness {
                        weight,
                        ..witness_of_source(1)
                    },
                );
            }
            (series.loss_confidence(), series.current_fall())
        };
        assert_eq!(note(true, 12), (None, None), "nothing is lost");
        assert_eq!(note(false, 7), (None, None), "too few pages");
        let (sure, fallen) = note(false, 15);
        assert!(sure > Some(0.999_9), "{sure:?}");
        assert_eq!(fallen, None, "the sums see one source, of little weight");
        assert_eq!(note(true, 1), (None, None), "a value came again");
        let mut large = healthy_series(6_000);
        for empty in 1..=4 {
            large.note_page(false, witness_of_source(empty));
            assert_eq!(large.loss_confidence(), None, "{empty} pages say little");
        }
    }

    #[test]
    fn a_fall_of_one_source_needs_more_evidence() {
        let mut series = healthy_series(100);
        assert!(pages_until(Step::Fell, &mut series, false, 1) > 10);
        let mut series = healthy_series(100);
        assert_eq!(pages_until(Step::Fell, &mut series, false, 3), 6);
    }

    #[test]
    fn no_series_falls_while_pages_of_known_layouts_come() {
        let mut series = healthy_series(100);
        for source in 0..1_000 {
            let is_known_layout = source % 3 == 0;
            let witness = Witness {
                source,
                number: 0,
                weight: 1.0,
                is_known_layout,
            };
            assert_eq!(series.note_page(false, witness), Step::Nothing);
        }
    }

    #[test]
    fn before_twenty_pages_nothing_is_judged() {
        let mut series = healthy_series(19);
        for source in 0..5 {
            assert_eq!(
                series.note_page(false, witness_of_source(source)),
                Step::Nothing
            );
        }
        assert!(series.is_provisional());
    }
}
