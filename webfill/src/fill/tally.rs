//! Counts of filled and unfilled gaps: in total, by field, by site and by reason.

use std::collections::BTreeMap;

use webfill_truth::{Interval, wilson_interval};
use webfill_urls::{Url, site};

use super::deciding::{Cell, State};
use super::judgement::Verdict;
use super::table::Table;

/// The numbers of filled cells and of gaps, and the sum of the confidences of filled cells.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub filled: usize,
    pub gaps: usize,
    sure: f64,
    /// The number of known values that were held out, and the number of those that were read correctly.
    measured: f64,
    right: f64,
}

impl Tally {
    fn add(&mut self, cell: &Cell) {
        self.gaps += 1;
        if cell.state == State::Filled {
            self.filled += 1;
            self.sure += cell.confidence;
        }
    }

    /// The mean confidence of filled cells; `None` if there are none.
    pub fn mean_confidence(&self) -> Option<f64> {
        (self.filled > 0).then(|| self.sure / self.filled as f64)
    }

    /// The share of held-out known values that were read correctly; `None` if none was held out.
    pub fn held_out_precision(&self) -> Option<Interval> {
        (self.measured > 0.0).then(|| wilson_interval(self.right, self.measured))
    }

    pub fn text(&self) -> String {
        match self.mean_confidence() {
            None => format!("0 of {}", self.gaps),
            Some(expected) => format!("{} of {} ({expected:.3})", self.filled, self.gaps),
        }
    }
}

/// The tallies of a table.
#[derive(Debug, Default)]
pub struct Tallies {
    pub all: Tally,
    pub by_field: BTreeMap<usize, Tally>,
    /// The tally of each site. The site with the most gaps comes first.
    pub by_site: Vec<(String, Tally)>,
    pub why_not: BTreeMap<State, usize>,
    /// The number of gaps in the table, including those in rows without links, which are not judged.
    pub gaps: usize,
}

impl Tallies {
    pub fn from_verdict(table: &Table, verdict: &Verdict) -> Tallies {
        let mut tallies = Tallies {
            gaps: table.gaps(),
            ..Tallies::default()
        };
        let mut by_site: BTreeMap<String, Tally> = BTreeMap::new();
        let is_gap = |cell: &&Cell| !matches!(cell.state, State::Known | State::Contradicted);
        for cell in verdict.cells.iter().filter(is_gap) {
            tallies.all.add(cell);
            tallies.by_field.entry(cell.field).or_default().add(cell);
            by_site.entry(site_of(cell)).or_default().add(cell);
            if cell.state != State::Filled {
                *tallies.why_not.entry(cell.state).or_default() += 1;
            }
        }
        for one in &verdict.judgement.precisions {
            let field = tallies.by_field.get_mut(&(one.field as usize));
            let site = verdict.site_name(one.site);
            let site = site.and_then(|site| by_site.get_mut(site));
            for tally in [Some(&mut tallies.all), field, site].into_iter().flatten() {
                tally.measured += one.measured;
                tally.right += one.right;
            }
        }
        tallies.by_site = by_site.into_iter().collect();
        let order =
            |a: &(String, Tally), b: &(String, Tally)| b.1.gaps.cmp(&a.1.gaps).then(a.0.cmp(&b.0));
        tallies.by_site.sort_by(order);
        tallies
    }

    pub fn gaps_without_link(&self) -> usize {
        self.gaps.saturating_sub(self.all.gaps)
    }

    /// The share of gaps that is filled; 1 if there are none.
    pub fn filled_share(&self) -> f64 {
        match self.gaps {
            0 => 1.0,
            gaps => self.all.filled as f64 / gaps as f64,
        }
    }
}

/// The site of the page that a cell's value was read from or was expected on.
fn site_of(cell: &Cell) -> String {
    let url = cell.url.as_deref().and_then(|url| Url::parse(url).ok());
    url.map_or_else(|| String::from("no site"), |url| site(&url))
}
