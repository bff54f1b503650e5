//! [`Scope`]: the health of fields on a group of pages of a mapping: all its pages, or those of one template (layout).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::good_page::GoodPage;
use crate::has_value;
use crate::series::{Series, Step, Witness};

/// The most fields that are judged in a mapping. Mappings written by hand have fewer.
const MOST_FIELDS: usize = 200;

/// The health of one field on the pages of a [`Scope`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FieldHealth {
    pub fill: Series,
    /// Whether the field's first chain (its main extraction rule) yields the value. `None` until an alternative chain
    /// yields it for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Series>,
}

/// The health of the fields on a group of pages: all pages of a mapping, or those of one template.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scope {
    pub pages: u64,
    pub fields: BTreeMap<String, FieldHealth>,
}

impl Scope {
    /// Judges a page, except for fields where `is_judged` returns false. Returns the fields that fell or recovered.
    pub(crate) fn note_page(
        &mut self,
        values: &Map<String, Value>,
        witness: Witness,
        is_judged: impl Fn(&str, &Series) -> bool,
    ) -> Vec<(String, Step)> {
        for (name, value) in values {
            let is_new = has_value(value) && !self.fields.contains_key(name);
            if is_new && self.fields.len() < MOST_FIELDS {
                let fill = Series::from_empty_pages(self.pages);
                let field = FieldHealth { fill, first: None };
                self.fields.insert(name.clone(), field);
            }
        }
        self.pages += 1;
        let mut steps = Vec::new();
        for (name, field) in &mut self.fields {
            if !is_judged(name, &field.fill) {
                continue;
            }
            let is_filled = values.get(name).is_some_and(has_value);
            let step = field.fill.note_page(is_filled, witness);
            if step != Step::Nothing {
                steps.push((name.clone(), step));
            }
        }
        steps
    }

    /// Adds a field with a series that was made from earlier pages.
    pub(crate) fn add_series(&mut self, name: String, fill: Series) {
        if self.fields.len() < MOST_FIELDS || self.fields.contains_key(&name) {
            self.fields.insert(name, FieldHealth { fill, first: None });
        }
    }

    /// Judges which chains (extraction rules) yielded the values of a page; call it after
    /// [`note_page`](Self::note_page). Only fields where `is_judged` returns true are judged. Returns the fields whose
    /// first chain no longer yields values.
    pub(crate) fn note_chains(
        &mut self,
        page: &GoodPage<'_>,
        witness: Witness,
        is_judged: impl Fn(&str, &Series) -> bool,
    ) -> Vec<String> {
        let mut fell = Vec::new();
        for (name, field) in &mut self.fields {
            let is_first = !page.alternatives.contains_key(name);
            let has_value = page.fields.get(name).is_some_and(has_value);
            if !has_value || is_first && field.first.is_none() {
                continue;
            }
            let fill = &field.fill;
            let from_full_pages = || Series::from_full_pages(fill, witness);
            let first = field.first.get_or_insert_with(from_full_pages);
            if is_judged(name, first) && first.note_page(is_first, witness) == Step::Fell {
                fell.push(name.clone());
            }
        }
        fell
    }

    /// Records new evidence for falls that began before the page's layout first appeared. Such a page shows that the
    /// fall lasts, even if the page itself is not judged.
    pub(crate) fn note_lasting_falls(&mut self, founded: u64, number: u64) {
        for field in self.fields.values_mut() {
            let fall = field.fill.current_fall();
            if fall.is_some_and(|fall| founded >= fall.since) {
                field.fill.note_evidence(number);
            }
        }
    }

    /// Makes all fields fall that have at least half of the evidence for a fall, because another field has fallen.
    /// Returns their names.
    pub(crate) fn complete_imminent_falls(&mut self) -> Vec<String> {
        let fields = self.fields.iter_mut();
        fields
            .filter_map(|(name, field)| field.fill.complete_imminent_fall().then(|| name.clone()))
            .collect()
    }

    pub(crate) fn has_fallen(&self) -> bool {
        self.fields
            .values()
            .any(|field| field.fill.current_fall().is_some())
    }
}
