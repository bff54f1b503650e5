//! What a crawl has found, counted from its stored pages and records.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::record::doubts_of;

/// What the mappings have extracted from the pages of a crawl, and what its records still want.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldCounts {
    /// By the name of the mapping that extracted the page: pages with the outcome `ok`.
    pub mappings: BTreeMap<String, MappingCounts>,
    /// Pages with the outcome `ok` that no mapping matched.
    pub unmatched: u64,
    /// By the name of the field: records for which a page has brought it, and that do not ask for it again.
    pub resolved: BTreeMap<String, u64>,
    /// By the name of the field: records that want it and do not have it, or for which it is asked again.
    pub missing: BTreeMap<String, u64>,
    /// By why a page has not filled a record (`other_values`, `other_record`, `rivals`, `gap`) and by the page's mapping:
    /// records with such pages.
    pub doubts: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The pages that one mapping has extracted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingCounts {
    pub pages: u64,
    /// By the name of the field: pages that have a value for it. A field without any value is not here.
    pub filled: BTreeMap<String, u64>,
    /// By the name of the field: pages that have none only because what they say can be read in two ways.
    pub undecided: BTreeMap<String, u64>,
}

impl FieldCounts {
    /// Notes pages of a mapping, or of none.
    pub(crate) fn add_pages(&mut self, mapping: Option<String>, pages: u64) {
        match mapping {
            Some(mapping) => self.mappings.entry(mapping).or_default().pages += pages,
            None => self.unmatched += pages,
        }
    }

    /// Notes a record by its doubts.
    pub(crate) fn add_doubts(&mut self, doubts: &Map<String, Value>) {
        for (why, mapping) in doubts_of(doubts) {
            *self
                .doubts
                .entry(why)
                .or_default()
                .entry(mapping)
                .or_default() += 1;
        }
    }

    /// Notes pages of a mapping that have a value for a field.
    pub(crate) fn add_filled(&mut self, mapping: &str, field: String, pages: u64) {
        if let Some(counts) = self.mappings.get_mut(mapping) {
            counts.filled.insert(field, pages);
        }
    }

    /// Notes pages of a mapping on which nothing decided how to read a field.
    pub(crate) fn add_undecided(&mut self, mapping: &str, field: String, pages: u64) {
        if let Some(counts) = self.mappings.get_mut(mapping) {
            counts.undecided.insert(field, pages);
        }
    }
}
