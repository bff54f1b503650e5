//! [`Profile`]: how the values of a field look, and whether that has changed.
//!
//! Values are sorted into bins by length, by the kinds of characters in them, and, if they are numbers, by size. A
//! window of 100 values is compared with the earlier values by the share of the commonest value, and by the population
//! stability index (PSI). The PSI is a distance between distributions. With few values, the index is noisy. So there
//! are few bins, at least 300 earlier values are required, and two windows in a row must differ in the same property.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash;

/// The size of a window: how many new values are compared with the earlier ones at a time.
const WINDOW: u32 = 100;

/// A window is compared only if there are at least this many earlier values.
const REFERENCE: u32 = 300;

/// When there are this many earlier values, all their counts are halved, so that old values count less.
const REMEMBERED: u32 = 2_000;

/// A population stability index above this means that the values have changed.
const PSI: f64 = 0.25;

/// One value counts as the value of most pages if more than [`EVERYWHERE`] values of a window equal it, and no value
/// had a share of [`RARE`] or more before.
const EVERYWHERE: u32 = WINDOW / 2;
const RARE: f64 = 0.1;

const BINS: usize = 5;

/// The number of counters for the commonest values (algorithm of Misra and Gries). It finds every value with a share
/// above one seventeenth.
const COUNTERS: usize = 16;

/// A change in the values of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// The values look different. `what` is the property that differs, and `index` its population stability index.
    Changed { what: &'static str, index: f64 },
    /// Most pages have the same value. `now` is a lower bound of its share; `before` is an upper bound of the share
    /// that any value had before.
    OneValue { before: f64, now: f64 },
    /// After [`Finding::OneValue`], the values differ again.
    ManyValues,
}

type Bins = [u32; BINS];

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Counts {
    values: u32,
    lengths: Bins,
    characters: Bins,
    sizes: Bins,
}

/// How the values of a field are distributed by length, kinds of characters and size, to detect when that changes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Profile {
    before: Counts,
    window: Counts,
    /// The commonest values of the current window: their hashes and counts.
    commonest: Vec<(u64, u32)>,
    /// An upper bound of the share of any single value in any window so far.
    top: f64,
    /// The upper bounds of the bins: of numbers by size, and of texts by length. They are quantiles of the first
    /// values.
    size_edges: Vec<f64>,
    length_edges: Vec<f64>,
    /// The first numbers and lengths, kept until the bounds of bins are computed from them.
    first_sizes: Vec<f64>,
    first_lengths: Vec<f64>,
    /// The properties that looked different in the previous window.
    suspected: Vec<String>,
    is_one_value: bool,
}

impl Profile {
    /// Counts a value. If it completes a window that shows a change, returns the change.
    pub fn note_value(&mut self, value: &Value) -> Option<Finding> {
        let text = first_text(value);
        let number = parse_number(&text);
        let length = text.chars().count() as f64;
        if self.first_lengths.len() < WINDOW as usize && self.length_edges.is_empty() {
            self.first_lengths.push(length);
            self.first_sizes.extend(number);
            if self.first_lengths.len() == WINDOW as usize {
                self.length_edges = bin_edges(std::mem::take(&mut self.first_lengths));
                self.size_edges = bin_edges(std::mem::take(&mut self.first_sizes));
            }
            return None;
        }
        self.window.values += 1;
        self.window.lengths[bin_index(&self.length_edges, length)] += 1;
        self.window.characters[character_bin(&text)] += 1;
        if let Some(number) = number {
            self.window.sizes[bin_index(&self.size_edges, number)] += 1;
        }
        self.count_common_value(hash(&text));
        (self.window.values >= WINDOW).then(|| self.close_window())?
    }

    fn count_common_value(&mut self, value: u64) {
        if let Some((_, count)) = self.commonest.iter_mut().find(|(one, _)| *one == value) {
            *count += 1;
        } else if self.commonest.len() < COUNTERS {
            self.commonest.push((value, 1));
        } else {
            self.commonest.iter_mut().for_each(|(_, count)| *count -= 1);
            self.commonest.retain(|(_, count)| *count > 0);
        }
    }

    /// Compares the full window with the earlier values. If it resembles them, its values are added to them.
    fn close_window(&mut self) -> Option<Finding> {
        let window = std::mem::take(&mut self.window);
        let commonest = std::mem::take(&mut self.commonest);
        let least = commonest.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let counted: u32 = commonest.iter().map(|(_, count)| *count).sum();
        // The most occurrences of one value that the counters may have missed.
        let missed = (WINDOW - counted.min(WINDOW)) / (COUNTERS as u32 + 1);
        let most = f64::from(least + missed) / f64::from(WINDOW);
        if self.before.values < REFERENCE {
            self.before.add(&window);
            self.top = self.top.max(most);
            return None;
        }
        if least > EVERYWHERE && self.top < RARE {
            let now = f64::from(least) / f64::from(WINDOW);
            // The window is not added to the earlier values, so that the next window of this kind differs from them
            // too.
            let is_known = std::mem::replace(&mut self.is_one_value, true);
            let before = self.top;
            return (!is_known).then_some(Finding::OneValue { before, now });
        }
        if std::mem::take(&mut self.is_one_value) {
            return Some(Finding::ManyValues);
        }
        let found = self.before.changed_measures(&window);
        let suspected = found.iter().map(|(what, _)| (*what).to_owned()).collect();
        let before = std::mem::replace(&mut self.suspected, suspected);
        let again = found
            .into_iter()
            .find(|(what, _)| before.iter().any(|one| one == what));
        self.top = self.top.max(most);
        if let Some((what, index)) = again {
            // The change is reported only once: the profile starts again, so the new values become the normal ones.
            *self = Profile::default();
            return Some(Finding::Changed { what, index });
        }
        if self.suspected.is_empty() {
            self.before.add(&window);
        }
        None
    }

    /// Forgets that most pages have the same value, so that it can be reported again.
    pub(crate) fn forget_common_value(&mut self) {
        self.is_one_value = false;
    }

    /// The number of earlier values to compare with.
    pub fn value_count(&self) -> u32 {
        self.before.values
    }
}

impl Counts {
    fn add(&mut self, window: &Counts) {
        if self.values >= REMEMBERED {
            let bins = [&mut self.lengths, &mut self.characters, &mut self.sizes];
            bins.into_iter().flatten().for_each(|count| *count /= 2);
            self.values /= 2;
        }
        self.values += window.values;
        let pairs = [
            (&mut self.lengths, &window.lengths),
            (&mut self.characters, &window.characters),
            (&mut self.sizes, &window.sizes),
        ];
        for (mine, theirs) in pairs {
            for (count, more) in mine.iter_mut().zip(theirs) {
                *count += more;
            }
        }
    }

    fn changed_measures(&self, window: &Counts) -> Vec<(&'static str, f64)> {
        let all = [
            (
                "length",
                population_stability_index(&self.lengths, &window.lengths),
            ),
            (
                "characters",
                population_stability_index(&self.characters, &window.characters),
            ),
            (
                "size",
                population_stability_index(&self.sizes, &window.sizes),
            ),
        ];
        all.into_iter().filter(|(_, index)| *index > PSI).collect()
    }
}

/// The population stability index of two distributions. An empty bin counts as half a value. With too few values, it is
/// 0.
fn population_stability_index(before: &Bins, now: &Bins) -> f64 {
    let (sum_before, sum_now): (u32, u32) = (before.iter().sum(), now.iter().sum());
    if sum_before < WINDOW || sum_now < WINDOW / 2 {
        return 0.0;
    }
    let share = |count: u32, sum: u32| f64::from(count).max(0.5) / f64::from(sum);
    let pairs = before.iter().zip(now);
    pairs
        .filter(|(before, now)| **before + **now > 0)
        .map(|(before, now)| (share(*before, sum_before), share(*now, sum_now)))
        .map(|(before, now)| (now - before) * (now / before).ln())
        .sum()
}

/// The upper bounds of all bins but the last. They are quantiles of the values.
fn bin_edges(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return vec![0.0];
    }
    let mut edges: Vec<f64> = (1..BINS)
        .map(|part| values[(part * values.len() / BINS).min(values.len() - 1)])
        .collect();
    edges.dedup();
    edges
}

fn bin_index(edges: &[f64], value: f64) -> usize {
    let below = edges.iter().filter(|edge| value > **edge).count();
    below.min(BINS - 1)
}

/// The text that a value is judged by. A list counts as its first value.
fn first_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.first().map(first_text).unwrap_or_default(),
        other => other.to_string(),
    }
}

fn parse_number(text: &str) -> Option<f64> {
    let digits = text.trim().replace(',', "");
    digits
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// The index of the bin for the kinds of characters in a text.
fn character_bin(text: &str) -> usize {
    let mut counts = [0_u32; 3];
    let (mut has_markup, mut length) = (false, 0);
    for char in text.chars().take(1_000) {
        length += 1;
        has_markup |= matches!(char, '<' | '{' | '/');
        let kind = match char {
            '0'..='9' => 0,
            _ if char.is_alphabetic() => 1,
            _ => 2,
        };
        counts[kind] += 1;
    }
    match counts {
        _ if has_markup => 4,
        [digits, 0, _] if digits > 0 => 0,
        [_, letters, _] if letters * 2 > length => 1,
        [digits, letters, _] if digits + letters > 0 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(values: impl Iterator<Item = Value>, profile: &mut Profile) -> Vec<Finding> {
        values
            .filter_map(|value| profile.note_value(&value))
            .collect()
    }

    fn prices(from: u64) -> impl Iterator<Item = Value> {
        (0..1_000).map(move |n: u64| json!(format!("{}.99", from + n * 7919 % 503)))
    }

    #[test]
    fn values_that_change_in_size_or_kind_are_noticed() {
        let mut profile = Profile::default();
        assert_eq!(findings(prices(10), &mut profile), []);
        let found = findings(prices(10).map(|_| json!("out of stock")), &mut profile);
        assert!(!found.is_empty(), "{found:?}");
        let mut profile = Profile::default();
        findings(prices(100), &mut profile);
        let found = findings(prices(5_000).take(300), &mut profile);
        assert!(matches!(found[0], Finding::Changed { .. }), "{found:?}");
    }

    #[test]
    fn a_value_on_most_pages_is_noticed() {
        let names = |n: u64| json!(format!("name {n}"));
        let mut profile = Profile::default();
        assert_eq!(findings((1_000..2_000).map(names), &mut profile), []);
        let mixed = (1_000..1_200).map(|n| match n % 4 {
            0 => names(n),
            _ => json!("page 4711"),
        });
        let found = findings(mixed, &mut profile);
        assert!(matches!(found[0], Finding::OneValue { .. }), "{found:?}");
    }

    #[test]
    fn a_value_constant_from_the_start_is_not_reported() {
        let mut profile = Profile::default();
        assert_eq!(findings((0..5_000).map(|_| json!("EUR")), &mut profile), []);
    }
}
