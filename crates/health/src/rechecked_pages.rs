//! [`RecheckedPages`]: detects fields that repeatedly checked pages have lost between two checks.
//!
//! A small site has too few pages to learn what is usual, and its pages have few sources. But a page that had a field
//! at the last check and lacks it now is stronger evidence than a page that may never have had the field.
//!
//! A cumulative sum weighs such losses against the pages that have kept the field. It compares two assumptions: half of
//! the pages lose the field, or one in twenty does ([`LOST`], [`KEPT`]). The field falls at [`LIMIT`]. A page that
//! still lacks a lost field counts half as much. So a redesign of 20 pages is noticed on the first night, and a
//! redesign of 6 pages one night later at the latest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::has_value;
use crate::rows::PageEvidence;
use crate::series::LIMIT;

/// The most pages that are remembered. For a further one, the page that was not seen for the longest time is forgotten.
const PAGES: usize = 256;

/// The most fields that are judged. Each field is one bit of a 64-bit number.
const FIELDS: usize = 64;

/// How strongly a page that has lost the field counts for a fall, ln(.5 / .05), and one that has kept it, ln(.5 / .95).
const LOST: f64 = std::f64::consts::LN_10;
const KEPT: f64 = -0.641_853_886_172_394_8;

/// How strongly a page counts for a fall if it still lacks a field that it had lost.
const STILL_LOST: f64 = LOST / 2.0;

/// The tolerance when a sum of logarithms is compared, because such sums are not exact.
const ROUNDED: f64 = 1e-9;

/// A field falls only if at least this many pages have lost it.
const FEWEST: u32 = 3;

/// The highest value of the sum. Without a limit, it could take too long to decrease again.
const MOST: f64 = LIMIT * 2.0;

/// A page that is checked repeatedly, and its fields at the last checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Page {
    key: u64,
    /// The fields with a value, as bits.
    has: u64,
    /// The fields that the page had at an earlier check and lacks now, as bits (`lost`). `fresh` has those that were
    /// lost at the last check, and at the check before it.
    lost: u64,
    fresh: [u64; 2],
}

impl Page {
    fn was_lost_recently(&self, bit: u64) -> bool {
        (self.fresh[0] | self.fresh[1]) & bit != 0
    }
}

/// The evidence that all repeatedly checked pages give about one field.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Field {
    name: String,
    sum: f64,
    /// Counts since `sum` was last 0: the pages that have lost the field, and those that have kept it. `since` is the
    /// number of the first of them.
    lost: u32,
    kept: u32,
    since: u64,
    is_fallen: bool,
    /// How many checks in a row found the field on a page again.
    back: u32,
    /// The number of the last page that gave evidence about the field.
    judged_at: u64,
}

impl Field {
    /// Adds the evidence of one check, `worth`. Returns whether the field falls now.
    fn add_evidence(&mut self, worth: f64, number: u64) -> bool {
        self.judged_at = number;
        if self.sum == 0.0 {
            (self.lost, self.kept, self.since) = (0, 0, number);
        }
        self.sum = (self.sum + worth).clamp(0.0, MOST);
        self.lost += u32::from(worth == LOST);
        self.kept += u32::from(worth == KEPT);
        match worth == KEPT {
            true => self.back += 1,
            false => self.back = 0,
        }
        if self.is_fallen {
            if self.back >= self.lost.max(FEWEST) {
                self.forget_evidence();
            }
            return false;
        }
        self.is_fallen = self.sum >= LIMIT - ROUNDED && self.lost >= FEWEST;
        self.is_fallen
    }

    fn forget_evidence(&mut self) {
        (self.sum, self.is_fallen, self.back) = (0.0, false, 0);
    }
}

/// A field that falls, because pages have lost it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loss {
    pub(crate) field: String,
    /// The share of pages that still have the field, among those that had it.
    pub(crate) after: f64,
    pub(crate) since: u64,
}

/// The pages that are checked repeatedly, and the evidence about their fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct RecheckedPages {
    /// The pages in the order they were last seen.
    pages: Vec<Page>,
    fields: Vec<Field>,
}

impl RecheckedPages {
    /// Judges a check of the page with the hash `key`, and returns the fields that fall now. `number` is the page's
    /// number in the mapping.
    pub(crate) fn note_page(&mut self, key: u64, said: &PageEvidence, number: u64) -> Vec<Loss> {
        let mut has = self.note_fields(&said.values);
        let silent = self.bits_of_names(&said.silent);
        let known = self.pages.iter().position(|page| page.key == key);
        let Some(known) = known else {
            if self.pages.len() >= PAGES {
                self.pages.remove(0);
            }
            self.pages.push(Page {
                key,
                has,
                lost: 0,
                fresh: [0; 2],
            });
            return Vec::new();
        };
        let page = self.pages.remove(known);
        // A field about which this page gives no evidence keeps its earlier state.
        has |= page.has & silent;
        let usual = self.usual_fields(&page);
        let mut losses = Vec::new();
        for (at, field) in self.fields.iter_mut().enumerate() {
            let bit = 1 << at;
            if silent & bit != 0 {
                continue;
            }
            let worth = match (has & bit != 0, page.has & bit != 0, page.lost & bit != 0) {
                (true, true, _) | (true, _, true) => KEPT,
                (false, true, _) if usual & bit != 0 || field.sum > 0.0 => LOST,
                (false, ..) if page.was_lost_recently(bit) => STILL_LOST,
                _ => continue,
            };
            if field.add_evidence(worth, number) {
                losses.push(Loss {
                    field: field.name.clone(),
                    after: f64::from(field.kept) / f64::from((field.kept + field.lost).max(1)),
                    since: field.since,
                });
            }
        }
        self.pages.push(Page {
            key,
            has,
            lost: (page.lost | page.has) & !has,
            fresh: [page.has & !has, page.fresh[0] & !has],
        });
        losses
    }

    /// The fields that have a value, as bits. New fields get a bit of their own, up to [`FIELDS`].
    fn note_fields(&mut self, values: &Map<String, Value>) -> u64 {
        let mut bits = 0;
        for (name, _) in values.iter().filter(|(_, value)| has_value(value)) {
            let known = self.fields.iter().position(|field| field.name == *name);
            let at = known.unwrap_or(self.fields.len());
            if at >= FIELDS {
                continue;
            }
            if known.is_none() {
                self.fields.push(Field {
                    name: name.clone(),
                    ..Field::default()
                });
            }
            bits |= 1 << at;
        }
        bits
    }

    /// The bits of the fields with these names. Unknown names are skipped.
    fn bits_of_names(&self, names: &BTreeSet<String>) -> u64 {
        let fields = self.fields.iter().enumerate();
        let named = fields.filter(|(_, field)| names.contains(&field.name));
        named.fold(0, |bits, (at, _)| bits | 1 << at)
    }

    /// The fields that more than half of the pages have, or had until recently, as bits. A rarer field, such as a
    /// discount, may disappear from all pages on one day without a redesign.
    fn usual_fields(&self, page: &Page) -> u64 {
        let mut usual = 0;
        for at in 0..self.fields.len() {
            let bit = 1 << at;
            let had = self.pages.iter().chain([page]);
            let had = had
                .filter(|page| page.has & bit != 0 || page.was_lost_recently(bit))
                .count();
            if had * 2 > self.pages.len() {
                usual |= bit;
            }
        }
        usual
    }

    pub(crate) fn has_fallen(&self) -> bool {
        self.fields.iter().any(|field| field.is_fallen)
    }

    /// Forgets falls without evidence since page number `before`. Returns whether any were forgotten.
    pub(crate) fn forget_unconfirmed_falls(&mut self, before: u64) -> bool {
        let mut has_forgiven = false;
        for field in &mut self.fields {
            if field.is_fallen && field.judged_at <= before {
                field.forget_evidence();
                has_forgiven = true;
            }
        }
        has_forgiven
    }

    /// Forgets the evidence that fields have fallen.
    pub(crate) fn forget_evidence(&mut self) {
        self.fields.iter_mut().for_each(Field::forget_evidence);
    }
}
