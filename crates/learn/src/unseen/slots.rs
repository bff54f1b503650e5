//! The slots of a site: places that its pages share, with the values there and the words that name the place.

mod identify;

use std::collections::{BTreeMap, BTreeSet};

use webfill_document::Document;

use self::identify::{find_prefixes, identify_place};
use super::profile::Profile;
use crate::fold::{collapse_white_space, fold_text};
use crate::labels::{Labels, Leaks};
use crate::learning::{parse_page, parse_pages};
use crate::places::Places;
use crate::same::common_form;
use crate::types::Page;

/// The longest text that counts as a value. Longer ones cannot be recognised by their form.
const LONGEST: usize = 300;

/// The most values of a slot (shared place) on one page. A slot with more is not a field but a list of other things.
const MOST_ON_PAGE: usize = 30;

/// The most slots (shared places) of a site that are kept. Those found on the most pages come first.
const MOST_SLOTS: usize = 3_000;

/// A place that the pages of a site share, with the values there.
#[derive(Debug, Default, Clone)]
pub(super) struct Slot {
    /// The label before this place, without a colon and folded (in the form for comparison).
    pub(super) label: Option<String>,
    /// Words in classes, ids and keys near this place.
    pub(super) names: BTreeSet<String>,
    /// The name of this place in linked data, microdata or metadata.
    pub(super) property: Option<String>,
    /// Whether this place is the main heading of its pages.
    pub(super) is_heading: bool,
    /// The share of pages whose title contains the value in this place.
    pub(super) in_title: f64,
    /// The values of each page; empty if a page lacks this place.
    pub(super) values: Vec<Vec<Value>>,
    /// The usual forms, lengths and words of the values in this place.
    pub(super) profile: Profile,
}

#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) text: String,
    /// The form that all spellings of the value have in common.
    pub(super) form: String,
}

/// A site, as the slots (shared places) of its pages.
pub(super) struct Site {
    pub(super) pages: usize,
    pub(super) slots: Vec<Slot>,
}

impl Slot {
    pub(super) fn count_pages_with_values(&self) -> usize {
        let with_values = self.values.iter().filter(|values| !values.is_empty());
        with_values.count()
    }

    /// The mean number of values on pages that have any.
    pub(super) fn mean_values_per_page(&self) -> f64 {
        let all: usize = self.values.iter().map(Vec::len).sum();
        all as f64 / self.count_pages_with_values().max(1) as f64
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().flatten()
    }

    /// The number of different values divided by the number of values.
    pub(super) fn distinct_share(&self) -> f64 {
        let forms: BTreeSet<&str> = self.values().map(|value| value.form.as_str()).collect();
        forms.len() as f64 / self.values().count().max(1) as f64
    }

    /// Whether two slots (shared places) have the same values on nearly all pages.
    pub(super) fn has_same_values(&self, other: &Slot) -> bool {
        let (mut both, mut same) = (0, 0);
        for (one, other) in self.values.iter().zip(&other.values) {
            if one.is_empty() || other.is_empty() {
                continue;
            }
            both += 1;
            let forms = |values: &[Value]| -> BTreeSet<String> {
                values.iter().map(|value| value.form.clone()).collect()
            };
            same += usize::from(forms(one) == forms(other));
        }
        let least = self
            .count_pages_with_values()
            .min(other.count_pages_with_values());
        both * 10 >= least * 9 && same * 10 >= both * 9 && both > 0
    }
}

impl Site {
    pub(super) fn from_pages(pages: &[&Page]) -> Site {
        let owned: Vec<Page> = pages.iter().map(|page| (*page).clone()).collect();
        let all: Vec<usize> = (0..owned.len()).collect();
        let documents: Vec<Document> = match owned.as_slice() {
            [page] => vec![parse_page(page, 1)],
            _ => parse_pages(&owned, &all),
        };
        let places: Vec<Places<'_>> = owned
            .iter()
            .zip(&documents)
            .map(|(page, document)| Places::new(page, document))
            .collect();
        let labels = Labels::new(&places, &Leaks::new(std::iter::empty()));
        let prefixes = find_prefixes(&places);
        let mut slots: BTreeMap<String, Slot> = BTreeMap::new();
        let mut titles = Vec::new();
        for (number, page) in places.iter().enumerate() {
            titles.push(fold_text(page.document.title().unwrap_or_default()));
            for place in &page.all {
                if place.text.chars().count() > LONGEST {
                    continue;
                }
                let Some(mut found) = identify_place(&place.at, &place.text, &labels, &prefixes)
                else {
                    continue;
                };
                let text = found.text.take().unwrap_or_else(|| place.text.clone());
                if webfill_values::is_blank(&text) {
                    continue;
                }
                let slot = slots.entry(found.key).or_insert_with(|| Slot {
                    label: found.label,
                    names: found.names,
                    property: found.property,
                    is_heading: found.is_heading,
                    in_title: 0.0,
                    values: vec![Vec::new(); owned.len()],
                    profile: Profile::default(),
                });
                slot.values[number].push(Value {
                    form: String::new(),
                    text,
                });
            }
        }
        let mut slots: Vec<Slot> = slots.into_values().collect();
        let least = (owned.len() / 5).max(2.min(owned.len()));
        slots.retain(|slot| {
            slot.count_pages_with_values() >= least
                && slot.mean_values_per_page() <= MOST_ON_PAGE as f64
        });
        slots.retain(|slot| {
            // A slot (shared place) needs at least two different values, because a text that is the same on all pages
            // is not a field.
            let first = slot.values().next().map(|value| &value.text);
            owned.len() < 3 || slot.values().any(|value| Some(&value.text) != first)
        });
        slots.sort_by_key(|slot| std::cmp::Reverse(slot.count_pages_with_values()));
        slots.truncate(MOST_SLOTS);
        for slot in &mut slots {
            slot.strip_common_words();
            for value in slot.values.iter_mut().flatten() {
                value.form = comparison_form(&value.text);
            }
            let all = slot.values.iter().flatten();
            slot.profile =
                Profile::from_values(all.map(|one| (one.text.as_str(), one.form.as_str())));
            let in_title = slot.values.iter().zip(&titles).filter(|(values, title)| {
                let is_in = |value: &Value| {
                    let text = fold_text(&value.text);
                    text.chars().count() > 2 && title.contains(&text)
                };
                values.iter().any(is_in)
            });
            slot.in_title = in_title.count() as f64 / slot.count_pages_with_values().max(1) as f64;
        }
        slots.retain(|slot| slot.count_pages_with_values() >= least);
        Site {
            pages: owned.len(),
            slots,
        }
    }
}

/// The form that all spellings of a text have in common. For a text without digits, folding is enough.
pub(super) fn comparison_form(text: &str) -> String {
    match text.bytes().any(|byte| byte.is_ascii_digit()) {
        true => common_form(text),
        false => fold_text(text),
    }
}

impl Slot {
    /// Removes words at the beginning of all values, such as `by`, and makes them a name of the slot (shared place).
    /// Words at the end also become names, but are kept in the values, because they may be a unit.
    fn strip_common_words(&mut self) {
        let mut texts: Vec<&str> = self.values().map(|value| value.text.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        if texts.len() < 3 {
            return;
        }
        let begin = common_affix(&texts, false);
        let end = common_affix(&texts, true);
        let is_word = |text: &str| text.chars().any(char::is_alphabetic);
        self.names.extend(words(&fold_text(&end)));
        // A heading or a property already has a name. So first words that its values share belong to the values, unless
        // a colon follows.
        let is_named = self.is_heading || self.property.is_some();
        if !is_word(&begin) || (is_named && !begin.trim_end().ends_with(':')) {
            return;
        }
        for values in &mut self.values {
            for value in values.iter_mut() {
                let rest = value.text.strip_prefix(&begin).unwrap_or(&value.text);
                value.text = collapse_white_space(
                    rest.trim_matches(|c: char| c.is_whitespace() || c == ':'),
                );
            }
            values.retain(|value| !value.text.is_empty());
        }
        let label = bare_label(&begin);
        if !label.is_empty() {
            self.names.extend(words(&label));
            self.label = Some(label);
        }
    }
}

/// The beginning (or end, if `at_end`) that all texts share, up to the last word boundary.
fn common_affix(sorted: &[&str], at_end: bool) -> String {
    let turned = |text: &str| -> Vec<char> {
        match at_end {
            true => text.chars().rev().collect(),
            false => text.chars().collect(),
        }
    };
    let mut shared = turned(sorted[0]);
    for text in sorted {
        let other = turned(text);
        let length = shared
            .iter()
            .zip(&other)
            .take_while(|(a, b)| a == b)
            .count();
        shared.truncate(length);
    }
    // Only whole words are kept, and only if a mark separates them from the value.
    while shared
        .last()
        .is_some_and(|c| !(c.is_whitespace() || *c == ':' || *c == '('))
    {
        shared.pop();
    }
    match at_end {
        true => shared.into_iter().rev().collect(),
        false => shared.into_iter().collect(),
    }
}

fn bare_label(text: &str) -> String {
    let text = fold_text(text);
    text.trim_end_matches(|c: char| c == ':' || c.is_whitespace())
        .trim_start_matches(|c: char| !c.is_alphanumeric())
        .to_owned()
}

/// The words of a name or a label. They are split at marks and before capital letters.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars().chain(std::iter::once(' ')) {
        let begins = c.is_uppercase() && before.is_lowercase();
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            words.insert(stem(&std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| word.chars().any(char::is_alphabetic));
    words
}

/// The word without a plural `s`, so that plural and singular are the same.
fn stem(word: &str) -> String {
    match word.strip_suffix('s') {
        Some(one) if one.len() > 2 && !one.ends_with('s') => one.to_owned(),
        _ => word.to_owned(),
    }
}
