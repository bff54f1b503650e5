//! Evidence that a slot (a place that the pages of a site share) holds a field that is known on other sites.

use std::collections::BTreeSet;

use super::profile::Profile;
use super::slots::{Slot, words};

/// The weight of each kind of evidence, in the order of [`Evidence::new`].
///
/// The weights were estimated by a regression on generated sites, with subjects that the benchmarks do not use.
const WEIGHTS: [f64; KINDS] = [
    -5.02, 2.37, 2.85, -0.26, 3.27, 2.2, -3.87, 0.11, 1.7, 1.84, 0.29, 1.46, 0.47, 1.62, -1.87,
    0.44, -0.33, 2.65, -4.01, 1.41,
];

pub(super) const KINDS: usize = 20;

/// What is learned about a field from the sites with known values.
#[derive(Default)]
pub(super) struct FieldModel<'s> {
    /// The words of the field's title.
    pub(super) title: BTreeSet<String>,
    /// The slots (places that the pages of a site share) that hold the field.
    pub(super) right: Vec<&'s Slot>,
    /// The labels and properties of other slots (shared places) of the same sites.
    pub(super) wrong: BTreeSet<String>,
    /// What the known values look like, and what the values look like in each slot (shared place) that holds the field.
    pub(super) profiles: Vec<Profile>,
    /// The number of distinct values divided by the number of values.
    pub(super) distinct: f64,
    pub(super) is_list: bool,
}

/// How strongly each kind of evidence supports a slot (shared place), in the order of `WEIGHTS`.
pub(super) struct Evidence(pub(super) [f64; KINDS]);

impl Evidence {
    pub(super) fn new(
        slot: &Slot,
        profile: &Profile,
        pages: usize,
        field: &FieldModel<'_>,
    ) -> Evidence {
        let label = slot.label.as_deref().unwrap_or_default();
        let of_label = words(label);
        let most = |of: &dyn Fn(&Slot) -> f64| {
            let all = field.right.iter().map(|right| of(right));
            all.fold(0.0, f64::max)
        };
        let same_label = most(&|right| match right.label.as_deref() {
            Some(other) if !label.is_empty() && other == label => 1.0,
            Some(other) => overlap(&words(other), &of_label) * 0.7,
            None => 0.0,
        });
        let label_in_title = overlap(&of_label, &field.title);
        let same_names = most(&|right| overlap(&right.names, &slot.names));
        let names_in_title = share_in(&field.title, &slot.names);
        let property = slot.property.as_deref().map(str::to_lowercase);
        let same_property = most(&|right| {
            let other = right.property.as_deref().map(str::to_lowercase);
            f64::from(u8::from(property.is_some() && other == property))
        });
        let is_right = same_label >= 1.0 || same_property >= 1.0;
        let is_wrong = [slot.label.as_deref(), slot.property.as_deref()]
            .into_iter()
            .flatten()
            .any(|name| field.wrong.contains(name));
        let most_profile = |of: &dyn Fn(&Profile) -> f64| {
            let all = field.profiles.iter().map(of);
            all.fold(0.0, f64::max)
        };
        let shapes = most_profile(&|other| profile.shape_similarity(other));
        let kinds = most_profile(&|other| profile.kind_similarity(other));
        let is_heading = most(&|right| f64::from(u8::from(right.is_heading)));
        let in_title = most(&|right| right.in_title);
        let named = [
            same_label,
            label_in_title,
            same_names,
            names_in_title,
            same_property,
        ];
        let named = named.into_iter().fold(0.0, f64::max);
        let several = slot.mean_values_per_page() - 1.0;
        Evidence([
            1.0,
            same_label,
            label_in_title,
            same_names,
            names_in_title,
            same_property,
            f64::from(u8::from(is_wrong && !is_right)),
            most_profile(&|other| profile.value_overlap(other)),
            shapes,
            kinds,
            most_profile(&|other| profile.length_similarity(other)),
            most_profile(&|other| profile.word_overlap(other)),
            most_profile(&|other| profile.range_overlap(other)),
            slot.count_pages_with_values() as f64 / pages.max(1) as f64,
            if field.is_list {
                0.0
            } else {
                several.clamp(0.0, 2.0)
            },
            if slot.is_heading { is_heading } else { 0.0 },
            if slot.is_heading {
                1.0 - is_heading
            } else {
                0.0
            },
            slot.in_title.min(in_title),
            (slot.distinct_share() - field.distinct).abs(),
            named * shapes,
        ])
    }

    /// The logarithm of the odds that this slot (shared place) holds the field, compared with the case that no slot
    /// does.
    pub(super) fn log_odds(&self) -> f64 {
        self.0
            .iter()
            .zip(&WEIGHTS)
            .map(|(one, weight)| one * weight)
            .sum()
    }

    /// Whether both a name and the values support the slot (shared place). One of them alone is too little to fill a
    /// table.
    pub(super) fn has_name_and_values(&self) -> bool {
        let named = self.0[1..6].iter().chain(&self.0[15..16]);
        named.fold(0.0, |most: f64, one| most.max(*one)) >= 0.5 && self.0[8].max(self.0[7]) >= 0.5
    }
}

/// The number of words in both sets divided by the number of words in either set.
fn overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let both = one.intersection(other).count();
    both as f64 / (one.len() + other.len() - both).max(1) as f64
}

/// The share of the words in the first set that the second set has too.
fn share_in(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    one.intersection(other).count() as f64 / one.len().max(1) as f64
}
