//! The values that a crawl has found, counted from its stored pages and records.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::record::reasons_with_mappings;
use crate::row_counts::RowCounts;

/// The fields that mappings extracted from the pages of a crawl, and those that its records still lack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldCounts {
    /// Pages with the outcome `ok`, by the mapping that extracted them.
    pub mappings: BTreeMap<String, MappingCounts>,
    /// Pages with the outcome `ok` that no mapping matched.
    pub unmatched: u64,
    /// For each field, the records whose value is from a page and is not to be refreshed.
    pub resolved: BTreeMap<String, u64>,
    /// For each field, the records that want it and lack it, or want it refreshed.
    pub missing: BTreeMap<String, u64>,
    /// The records with pages that might be about them but did not fill them, by reason (`other_values`,
    /// `other_record`, `rivals`, `gap`) and by the page's mapping.
    pub doubts: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The pages that one mapping has extracted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingCounts {
    pub pages: u64,
    /// For each field, the pages with a value for it. Fields without any value are left out.
    pub filled: BTreeMap<String, u64>,
    /// For each field, the pages that have no value only because their text is ambiguous.
    pub undecided: BTreeMap<String, u64>,
    /// The rows on these pages, by dataset.
    pub rows: BTreeMap<String, RowTotals>,
}

/// The rows of one dataset that one mapping has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowTotals {
    /// How many pages were searched for rows, and how many of these pages have no rows.
    pub pages: u64,
    pub pages_without: u64,
    pub rows: u64,
    /// Rows whose values are in the store.
    pub stored: u64,
    /// Rows without a value for a field of their key; see [`RowCounts`].
    pub without_key: u64,
    pub same_key: u64,
    /// Pages where some rows were left out because of a limit.
    pub cut_pages: u64,
    pub fields: BTreeMap<String, RowFieldCounts>,
}

/// A field of rows: how many rows there are, how many have a value, and how many have none because the text is
/// ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowFieldCounts {
    pub rows: u64,
    pub filled: u64,
    pub undecided: u64,
}

impl RowTotals {
    fn add_row_counts(&mut self, counts: &RowCounts, pages: u64) {
        self.rows += counts.rows * pages;
        self.stored += counts.stored() * pages;
        self.without_key += counts.without_key * pages;
        self.same_key += counts.same_key * pages;
        for (name, filled) in &counts.filled {
            let field = self.fields.entry(name.clone()).or_default();
            field.rows += counts.rows * pages;
            field.filled += filled * pages;
            field.undecided += counts.undecided.get(name).unwrap_or(&0) * pages;
        }
    }
}

impl FieldCounts {
    /// Adds pages that a mapping has extracted, or (`None`) that no mapping matched.
    pub(crate) fn add_pages(&mut self, mapping: Option<String>, pages: u64) {
        match mapping {
            Some(mapping) => self.mappings.entry(mapping).or_default().pages += pages,
            None => self.unmatched += pages,
        }
    }

    /// Counts a record by its doubts: the reasons why pages did not fill it.
    pub(crate) fn add_doubts(&mut self, doubts: &Map<String, Value>) {
        for (why, mapping) in reasons_with_mappings(doubts) {
            *self
                .doubts
                .entry(why)
                .or_default()
                .entry(mapping)
                .or_default() += 1;
        }
    }

    /// Adds pages of a mapping that have a value for this field.
    pub(crate) fn add_filled(&mut self, mapping: &str, field: String, pages: u64) {
        if let Some(counts) = self.mappings.get_mut(mapping) {
            counts.filled.insert(field, pages);
        }
    }

    /// Adds this number of pages of a mapping, each with these counts of rows.
    pub(crate) fn add_rows(&mut self, mapping: &str, counts: &[RowCounts], pages: u64) {
        let Some(of_mapping) = self.mappings.get_mut(mapping) else {
            return;
        };
        let datasets: BTreeSet<&String> = counts.iter().map(|of_rule| &of_rule.dataset).collect();
        for dataset in datasets {
            let totals = of_mapping.rows.entry(dataset.clone()).or_default();
            let of_page = || counts.iter().filter(|of_rule| of_rule.dataset == *dataset);
            totals.pages += pages;
            totals.pages_without += pages * u64::from(of_page().all(|of_rule| of_rule.rows == 0));
            totals.cut_pages += pages * u64::from(of_page().any(|of_rule| of_rule.cut));
            of_page().for_each(|of_rule| totals.add_row_counts(of_rule, pages));
        }
    }

    /// Adds pages of a mapping where the text of this field is ambiguous.
    pub(crate) fn add_undecided(&mut self, mapping: &str, field: String, pages: u64) {
        if let Some(counts) = self.mappings.get_mut(mapping) {
            counts.undecided.insert(field, pages);
        }
    }
}
