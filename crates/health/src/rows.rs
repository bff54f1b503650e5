//! [`Rows`]: how many rows pages list, and how many rows have a value in each field. Both are judged like fields of
//! pages.
//!
//! A page gives two kinds of evidence about each dataset. `DATASET[]` is normal if the page lists at least half as many
//! rows as usual. `DATASET[].FIELD` is normal if at least half the usual share of rows has a value. Each has a series
//! as a field has, so a listing that loses rows falls like a field that loses its values. A page without rows gives no
//! evidence about the fields of rows.
//!
//! The usual numbers are the medians of the first [`LEARNED_OF`] pages. They stay the same until the version of the
//! mapping changes, because otherwise they would adapt to a slow decline. Rows are not judged until the numbers are
//! known. Then the pages they were learned from are counted as well.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::series::{Series, Witness};
use crate::template::Template;

/// How many pages the usual numbers of rows are learned from. A series has a provisional baseline after as many pages.
const LEARNED_OF: usize = 20;

/// The most datasets of a mapping that are judged, and the most fields of each.
const MOST_DATASETS: usize = 20;
const MOST_FIELDS: usize = 50;

/// A number counts as normal if it is at least this share of the usual number.
const ENOUGH: f64 = 0.5;

/// The rows of one dataset on a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowsOfPage {
    pub dataset: String,
    pub rows: u64,
    /// For each field, how many rows have a value, and how many rows could have one.
    pub filled: BTreeMap<String, (u64, u64)>,
}

/// A page to learn the usual numbers of rows from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LearningPage {
    weight: f64,
    template: usize,
    rows: u64,
    /// For each field, the share of rows with a value.
    shares: BTreeMap<String, f64>,
}

/// The usual numbers of one dataset's rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct DatasetNorms {
    /// The pages to learn the usual numbers from; emptied once the numbers are known.
    learned: Vec<LearningPage>,
    /// The fewest rows of a normal page; `None` if it is not known yet.
    least: Option<f64>,
    /// For each field, the lowest normal share of rows with a value. A field is added when a row has a value of it for
    /// the first time.
    least_shares: BTreeMap<String, f64>,
}

/// The usual numbers of rows, and of their filled fields, for each dataset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Rows {
    datasets: BTreeMap<String, DatasetNorms>,
}

/// The evidence of one page about its fields and its rows.
pub(crate) struct PageEvidence {
    /// The values of fields. Names of rows (`DATASET[]`, `DATASET[].FIELD`) have a value only if their number is normal
    /// on this page.
    pub(crate) values: Map<String, Value>,
    /// The names about which this page gives no evidence.
    pub(crate) silent: BTreeSet<String>,
}

impl PageEvidence {
    pub(crate) fn from_fields(fields: &Map<String, Value>) -> PageEvidence {
        PageEvidence {
            values: fields.clone(),
            silent: BTreeSet::new(),
        }
    }

    /// Like [`PageEvidence::from_fields`], but each name of rows (`DATASET[]`, `DATASET[].FIELD`) has a value too if
    /// its number is above 0, normal or not. Repeated checks of a page are compared in this way.
    pub(crate) fn from_fields_and_rows(
        fields: &Map<String, Value>,
        of_page: &[RowsOfPage],
    ) -> PageEvidence {
        let mut said = PageEvidence::from_fields(fields);
        for page in of_page {
            let dataset = &page.dataset;
            if page.rows > 0 {
                said.values
                    .insert(row_count_name(dataset), page.rows.into());
            }
            for (field, (filled, of)) in &page.filled {
                let name = row_field_name(dataset, field);
                if *filled > 0 {
                    said.values.insert(name, (*filled).into());
                } else if *of == 0 {
                    said.silent.insert(name);
                }
            }
        }
        said
    }
}

/// The name that a dataset's number of rows is judged under. The brackets distinguish it from names of fields.
fn row_count_name(dataset: &str) -> String {
    format!("{dataset}[]")
}

fn row_field_name(dataset: &str, field: &str) -> String {
    format!("{dataset}[].{field}")
}

/// Splits a name that concerns rows into dataset and field: `a[].b` into `a` and `b`. `None` for names of page fields.
pub fn split_rows_name(name: &str) -> Option<(&str, Option<&str>)> {
    let (dataset, rest) = name.rsplit_once("[]")?;
    match rest {
        "" => Some((dataset, None)),
        field => Some((dataset, Some(field.strip_prefix('.')?))),
    }
}

impl Rows {
    /// Adds the evidence that a page gives about rows.
    pub(crate) fn add_evidence(&self, of_page: &[RowsOfPage], said: &mut PageEvidence) {
        for (dataset, known) in &self.datasets {
            let Some(least) = known.least else {
                continue;
            };
            let Some(page) = of_page.iter().find(|page| page.dataset == *dataset) else {
                // The mapping has no rule for this dataset on the page, so the page gives no evidence about the
                // dataset's rows.
                said.silent.insert(row_count_name(dataset));
                let fields = known.least_shares.keys();
                said.silent
                    .extend(fields.map(|field| row_field_name(dataset, field)));
                continue;
            };
            if page.rows > 0 && page.rows as f64 >= least {
                said.values
                    .insert(row_count_name(dataset), page.rows.into());
            }
            for (field, least) in &known.least_shares {
                let name = row_field_name(dataset, field);
                match filled_share(page, field) {
                    Some(share) if share > 0.0 && share >= *least => {
                        said.values.insert(name, page.filled[field].0.into());
                    }
                    Some(_) => {}
                    None => {
                        said.silent.insert(name);
                    }
                }
            }
        }
    }

    /// Learns the usual numbers of rows. Once they are known, the pages they were learned from are counted too, as if
    /// they were judged.
    pub(crate) fn learn_norms(
        &mut self,
        of_page: &[RowsOfPage],
        witness: Witness,
        template: usize,
        all: &mut crate::Scope,
        templates: &mut [Template],
    ) {
        for page in of_page {
            let dataset = &page.dataset;
            let is_room = self.datasets.len() < MOST_DATASETS;
            if !is_room && !self.datasets.contains_key(dataset) {
                continue;
            }
            let known = self.datasets.entry(dataset.clone()).or_default();
            if known.least.is_some() {
                known.note_new_fields(page);
                continue;
            }
            let shares = page.filled.keys().take(MOST_FIELDS);
            let shares =
                shares.filter_map(|field| Some((field.clone(), filled_share(page, field)?)));
            known.learned.push(LearningPage {
                weight: witness.weight,
                template,
                rows: page.rows,
                shares: shares.collect(),
            });
            if known.learned.len() < LEARNED_OF {
                continue;
            }
            known.compute_norms();
            known.seed_scope(dataset, all, None, witness.number);
            for (index, template) in templates.iter_mut().enumerate() {
                known.seed_scope(dataset, &mut template.scope, Some(index), witness.number);
            }
            known.learned.clear();
        }
    }

    /// The lowest normal number of rows for `DATASET[]`, or the lowest normal share of rows with a value for
    /// `DATASET[].FIELD`.
    pub(crate) fn lowest_normal(&self, name: &str) -> Option<f64> {
        let (dataset, field) = split_rows_name(name)?;
        let known = self.datasets.get(dataset)?;
        match field {
            None => known.least.map(|least| least.max(1.0)),
            Some(field) => known.least_shares.get(field).copied(),
        }
    }
}

impl DatasetNorms {
    /// Adds the page's fields that had no value while the usual numbers were learned. For them, any share above 0 is
    /// normal.
    fn note_new_fields(&mut self, page: &RowsOfPage) {
        for (field, (filled, _)) in &page.filled {
            let is_new = *filled > 0 && !self.least_shares.contains_key(field);
            if is_new && self.least_shares.len() < MOST_FIELDS {
                self.least_shares.insert(field.clone(), 0.0);
            }
        }
    }

    fn compute_norms(&mut self) {
        let rows = self.learned.iter().map(|page| page.rows as f64);
        self.least = Some(median(rows.collect()) * ENOUGH);
        let mut shares: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
        for (field, share) in self.learned.iter().flat_map(|page| &page.shares) {
            shares.entry(field).or_default().push(*share);
        }
        // A field without a value in any row cannot lose its values, so it is omitted.
        let filled = shares
            .into_iter()
            .filter(|(_, shares)| shares.iter().any(|share| *share > 0.0));
        let least = filled.map(|(field, shares)| (field.clone(), median(shares) * ENOUGH));
        self.least_shares = least.collect();
    }

    /// Begins the series of a scope (all pages, or one template) with those of its pages that the usual numbers were
    /// learned from.
    fn seed_scope(
        &self,
        dataset: &str,
        scope: &mut crate::Scope,
        template: Option<usize>,
        number: u64,
    ) {
        let of_scope = |page: &&LearningPage| template.is_none_or(|index| page.template == index);
        let pages: Vec<&LearningPage> = self.learned.iter().filter(of_scope).collect();
        let least = self.least.unwrap_or_default();
        let is_full = |page: &LearningPage| Some(page.rows > 0 && page.rows as f64 >= least);
        seed_series(scope, row_count_name(dataset), &pages, is_full, number);
        for (field, least) in &self.least_shares {
            let is_full = |page: &LearningPage| {
                let share = page.shares.get(field)?;
                Some(*share > 0.0 && share >= least)
            };
            seed_series(
                scope,
                row_field_name(dataset, field),
                &pages,
                is_full,
                number,
            );
        }
    }
}

/// Begins the series `name` with these pages if at least one of them is normal. `is_full` returns whether a page is
/// normal, or `None` if it gives no evidence.
fn seed_series(
    scope: &mut crate::Scope,
    name: String,
    pages: &[&LearningPage],
    is_full: impl Fn(&LearningPage) -> Option<bool>,
    number: u64,
) {
    let said = pages
        .iter()
        .filter_map(|page| Some((page.weight, is_full(page)?)));
    let said: Vec<(f64, bool)> = said.collect();
    if said.iter().any(|(_, is_full)| *is_full) {
        scope.add_series(name, Series::from_earlier_pages(&said, number));
    }
}

/// The share of a page's rows that have a value for a field; `None` if no row can have one.
fn filled_share(page: &RowsOfPage, field: &str) -> Option<f64> {
    let (filled, of) = page.filled.get(field)?;
    (*of > 0).then(|| *filled as f64 / *of as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
