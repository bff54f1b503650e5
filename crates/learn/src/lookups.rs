//! Look-up tables: pages and records have different words for the same few things, such as `In stock` for `1` and
//! `Sold out` for `0`, or `English` for `en`.
//!
//! Known values show which word means which value. A pair of them counts if several records have it and hardly any
//! contradicts it. A word without a pair yields no value.
//!
//! If a field has few different values, some word of the pages may agree with them by chance. So the known values are
//! also dealt out to the pages at random, many times. A table is used only if hardly any deal gives a table as good.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, json};
use webfill_document::NodeRef;

use crate::candidates::{Candidate, Candidates};
use crate::evaluate::Reading;
use crate::page_group::Group;
use crate::places::{PlaceKind, Places};
use crate::score::Label;

/// The longest word or phrase of a page, in bytes.
const LONGEST: usize = 60;

/// The most different values of a field.
const MOST_VALUES: usize = 30;

/// A pair of word and value must be shown by at least this many records.
const SHOWN_BY: usize = 2;

/// For each record that contradicts a pair, this many records must show it.
const SHOWN_FOR_EACH: usize = 3;

/// How often the known values are dealt out at random, and how many of these deals may give a table as good.
const DEALS: usize = 199;
const AS_GOOD: usize = 1;

/// If a chain without a table reads this share of the known values, and hardly anything but values of the field, no
/// table is needed. The share is low, because records may be wrong.
const READ: f64 = 0.6;
const OF_FIELD: f64 = 0.9;

/// The most kinds of places whose words are considered, and the most places of one kind on a page.
const MOST_KINDS: usize = 40;
const MOST_PLACES: usize = 8;

/// The most chains that are tried, and the most that get a table.
const MOST_CHAINS: usize = 300;
const MOST_TABLES: usize = 24;

/// The burden of a table. It is a little more than that of a conversion, because only known values justify it.
const BURDEN: f64 = 0.35;

/// The known values of a field with few different values.
struct Column {
    /// For each known value, its page and the number of the value.
    pages: Vec<usize>,
    values: Vec<usize>,
    /// The different values, as the records write them.
    texts: Vec<String>,
    folded: Vec<String>,
}

impl Column {
    /// `None` if the field has too many different values, or too few known ones.
    fn new(labels: &[Label]) -> Option<Column> {
        let mut column = Column {
            pages: Vec::new(),
            values: Vec::new(),
            texts: Vec::new(),
            folded: Vec::new(),
        };
        for label in labels {
            let [wanted] = label.wanted.as_slice() else {
                continue;
            };
            let place = column.folded.iter().position(|one| *one == wanted.folded);
            let value = place.unwrap_or(column.texts.len());
            if place.is_none() {
                column.texts.push(wanted.text.clone());
                column.folded.push(wanted.folded.clone());
            }
            column.pages.push(label.page);
            column.values.push(value);
        }
        let times = |value: usize| column.values.iter().filter(|one| **one == value).count();
        let different = column.texts.len();
        let shown = (0..different).filter(|value| times(*value) >= SHOWN_BY);
        let is_small = different <= MOST_VALUES && different * 2 <= column.values.len();
        (is_small && shown.count() > 1).then_some(column)
    }
}

impl Column {
    /// Whether a chain reads the values of the field as the records write them.
    fn is_read_by(&self, readings: &[Reading]) -> bool {
        let read = self
            .pages
            .iter()
            .zip(&self.values)
            .filter_map(|(page, value)| {
                let read = &readings[*page].values.first()?.folded;
                Some((self.folded.iter().position(|one| one == read), *value))
            });
        let read: Vec<(Option<usize>, usize)> = read.collect();
        let right = read.iter().filter(|(read, known)| *read == Some(*known));
        let of_field: Vec<usize> = read.iter().filter_map(|(read, _)| *read).collect();
        let different: BTreeSet<&usize> = of_field.iter().collect();
        different.len() > 1
            && right.count() as f64 >= READ * self.pages.len() as f64
            && of_field.len() as f64 >= OF_FIELD * read.len() as f64
    }
}

/// The words that a chain reads on the pages of a column, as numbers. Equal words have equal numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Words {
    of_pages: Vec<Option<usize>>,
    different: usize,
}

impl Words {
    /// Also returns the different words, as they are written where they are read first.
    fn new<'r>(readings: &'r [Reading], column: &Column) -> (Words, Vec<&'r str>) {
        let (mut folded, mut texts): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        let number = |page: &usize| {
            let word = readings[*page].values.first()?;
            if word.text.len() > LONGEST {
                return None;
            }
            let place = folded.iter().position(|one| *one == word.folded);
            Some(place.unwrap_or_else(|| {
                folded.push(&word.folded);
                texts.push(&word.text);
                texts.len() - 1
            }))
        };
        let of_pages: Vec<Option<usize>> = column.pages.iter().map(number).collect();
        let different = texts.len();
        (
            Words {
                of_pages,
                different,
            },
            texts,
        )
    }

    /// The value that each word means, if these are the values of the pages; `None` for a word that has no pair. Also
    /// returns how good this table is: by how much its words make the values likelier.
    fn pair_with(&self, values: &[usize], different: usize) -> (Vec<Option<usize>>, f64) {
        let mut counts = vec![0usize; self.different * different];
        let mut of_all = vec![0usize; different];
        for (word, value) in self.of_pages.iter().zip(values) {
            of_all[*value] += 1;
            if let Some(word) = word {
                counts[word * different + value] += 1;
            }
        }
        let all = values.len() as f64;
        // Each word costs something, because with more words, more agree by chance. This is the cost of a parameter in
        // the Bayesian information criterion.
        let cost = all.ln() / 2.0;
        let mut quality = 0.0;
        let mut shown = BTreeSet::new();
        let of_word = |counts: &[usize]| {
            let most = counts.iter().copied().max().unwrap_or_default();
            let sum: usize = counts.iter().sum();
            if most < SHOWN_BY || most < (sum - most) * SHOWN_FOR_EACH {
                return None;
            }
            let value = counts.iter().position(|count| *count == most)?;
            let gain = counts.iter().zip(&of_all).filter(|(count, _)| **count > 0);
            let gain = gain.map(|(count, of_all)| {
                let (count, of_all) = (*count as f64, *of_all as f64);
                count * (count / sum as f64 / (of_all / all)).ln()
            });
            quality += gain.sum::<f64>() - cost;
            shown.insert(value);
            Some(value)
        };
        let pairs = counts.chunks(different).map(of_word).collect();
        // One value alone would be a constant, which any word gives.
        (pairs, if shown.len() > 1 { quality } else { 0.0 })
    }
}

/// Chains that read words of the pages, and convert them to the field's values by a table. Empty if the field has many
/// different values, or if another chain reads them as they are.
pub(crate) fn chains_with_tables(
    group: &Group<'_>,
    labels: &[Label],
    readings: &[Vec<Reading>],
) -> Vec<Candidate> {
    let Some(column) = Column::new(labels).filter(|_| group.rows.is_none()) else {
        return Vec::new();
    };
    if readings.iter().any(|readings| column.is_read_by(readings)) {
        return Vec::new();
    }
    let plain = chains_of_words(group, &column);
    let readings = group.read_all(&plain);
    let words: Vec<(Words, Vec<&str>)> = readings
        .iter()
        .map(|readings| Words::new(readings, &column))
        .collect();
    let by_chance = quality_by_chance(words.iter().map(|(words, _)| words), &column);
    let mut found: Vec<(f64, Candidate)> = Vec::new();
    for (plain, (words, texts)) in plain.iter().zip(&words) {
        let (pairs, quality) = words.pair_with(&column.values, column.texts.len());
        if quality <= by_chance {
            continue;
        }
        let chain = with_table(plain, &column, words, texts, &pairs);
        found.extend(chain.map(|chain| (quality, chain)));
    }
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.truncate(MOST_TABLES);
    found.into_iter().map(|(_, chain)| chain).collect()
}

/// Adds a table to a chain. `None` if it reads fewer than half of the known values right, or if the page has the
/// record's own words.
fn with_table(
    plain: &Candidate,
    column: &Column,
    words: &Words,
    texts: &[&str],
    pairs: &[Option<usize>],
) -> Option<Candidate> {
    let mut table = Map::new();
    let mut own = 0;
    for (text, value) in texts.iter().zip(pairs) {
        let Some(value) = *value else { continue };
        own += usize::from(crate::fold::fold_text(text) == column.folded[value]);
        table.insert((*text).to_owned(), column.texts[value].clone().into());
    }
    let known = column.pages.iter().zip(&column.values);
    let right = known.zip(&words.of_pages).filter(|((_, value), word)| {
        word.and_then(|word| pairs[word])
            .is_some_and(|meant| meant == **value)
    });
    let found_on: Vec<usize> = right.map(|((page, _), _)| *page).collect();
    if found_on.len() * 2 < column.pages.len() || own * 2 > table.len() {
        return None;
    }
    let mut chain = plain.clone();
    chain.processors.push(
        json!({"type": "map", "parameters": {"table": table, "others": "drop", "ignore_case": true}}),
    );
    chain.burden += BURDEN;
    chain.found_on = found_on;
    chain.is_formed = true;
    Some(chain)
}

/// The quality that a table must exceed, so that hardly any deal of the known values gives one as good by any chain.
fn quality_by_chance<'w>(words: impl Iterator<Item = &'w Words>, column: &Column) -> f64 {
    let different: BTreeSet<&Words> = words.collect();
    let mut values = column.values.clone();
    // The deals look random but are always the same, so that learning twice gives the same mapping.
    let mut state: u64 = 1;
    let mut deal = |values: &mut Vec<usize>| {
        for last in (1..values.len()).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            values.swap(last, (state >> 33) as usize % (last + 1));
        }
    };
    let mut best: Vec<f64> = (0..DEALS)
        .map(|_| {
            deal(&mut values);
            let qualities = different
                .iter()
                .map(|words| words.pair_with(&values, column.texts.len()).1);
            qualities.fold(0.0, f64::max)
        })
        .collect();
    best.sort_by(|one, other| other.total_cmp(one));
    // Equal qualities may differ in their last digits.
    best[AS_GOOD] + 1e-6
}

/// A place with a word that recurs on the pages of a column.
struct WordPlace {
    page: usize,
    place: usize,
}

/// Chains that read words that recur on some of the pages. Known values have no influence on this choice, because
/// [`quality_by_chance`] must judge it, too.
fn chains_of_words(group: &Group<'_>, column: &Column) -> Vec<Candidate> {
    let mut places: BTreeMap<(String, &str), Vec<WordPlace>> = BTreeMap::new();
    for &page in &column.pages {
        let of_page = &group.pages[page];
        for (text, all) in of_page.short_texts(LONGEST) {
            for &place in all.iter().take(MOST_PLACES) {
                let Some(kind) = kind_of_place(of_page, place) else {
                    continue;
                };
                let recurring = places.entry((kind, text)).or_default();
                recurring.push(WordPlace { page, place });
            }
        }
    }
    let mut by_kind: BTreeMap<String, Vec<WordPlace>> = BTreeMap::new();
    for ((kind, _), places) in places {
        let pages: BTreeSet<usize> = places.iter().map(|one| one.page).collect();
        if (SHOWN_BY..column.pages.len()).contains(&pages.len()) {
            by_kind.entry(kind).or_default().extend(places);
        }
    }
    let coverage = |places: &[WordPlace]| {
        let pages: BTreeSet<usize> = places.iter().map(|one| one.page).collect();
        pages.len()
    };
    let mut kinds: Vec<Vec<WordPlace>> = by_kind.into_values().collect();
    // The sort is stable, so equal kinds stay in the order of their names.
    kinds.sort_by_key(|places| std::cmp::Reverse(coverage(places)));
    let mut made = Candidates::default();
    for mut places in kinds.into_iter().take(MOST_KINDS) {
        places.sort_by_key(|one| (one.page, one.place));
        for of_page in places.chunk_by(|one, other| one.page == other.page) {
            for WordPlace { page, place } in of_page.iter().take(MOST_PLACES) {
                let (labels, leaks) = (&group.labels, &group.leaks);
                made.add_best_routes(*page, &group.pages[*page], *place, labels, leaks);
            }
        }
    }
    made.select_likeliest(MOST_CHAINS)
}

/// The kind of a place: the tag and class of its element, or its path. Places of one kind mean the same on all pages.
/// `None` for places that no table is learned for.
fn kind_of_place(page: &Places<'_>, place: usize) -> Option<String> {
    let of_element = |node: NodeRef<'_>| {
        let class = node.attribute("class").unwrap_or_default();
        Some(format!("{}.{class}", node.tag()?))
    };
    match &page.all[place].at {
        PlaceKind::Text(text) => of_element(text.parent()?),
        PlaceKind::Element(element) => of_element(*element),
        PlaceKind::Attribute(owner, name) => Some(format!("{}@{name}", of_element(*owner)?)),
        PlaceKind::JsonLd(kind, path) => Some(format!("{kind} {path}")),
        PlaceKind::Json(path) | PlaceKind::ParsedJson(path, _) => Some(path.clone()),
        PlaceKind::ScriptKey(key, ..) => Some(key.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(of_pages: &[usize]) -> Words {
        Words {
            different: of_pages.iter().max().map_or(0, |last| last + 1),
            of_pages: of_pages.iter().map(|word| Some(*word)).collect(),
        }
    }

    #[test]
    fn a_pair_needs_several_records_and_hardly_any_contradiction() {
        let pairs = |of_pages: &[usize], values: &[usize]| words(of_pages).pair_with(values, 3).0;
        assert_eq!(
            pairs(&[0, 0, 1, 1, 1, 2], &[0, 0, 1, 1, 1, 2]),
            [Some(0), Some(1), None]
        );
        assert_eq!(
            pairs(&[0, 0, 0, 0, 1, 1, 1], &[0, 0, 0, 1, 1, 1, 0]),
            [Some(0), None]
        );
    }

    #[test]
    fn agreement_that_chance_gives_too_is_not_enough() {
        let judge = |words: &[Words], values: &[usize]| {
            let column = Column {
                pages: (0..values.len()).collect(),
                values: values.to_vec(),
                texts: vec![String::from("yes"), String::from("no")],
                folded: vec![String::from("yes"), String::from("no")],
            };
            let quality = words[0].pair_with(values, 2).1;
            quality > quality_by_chance(words.iter(), &column)
        };
        let values = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1];
        assert!(judge(&[words(&values)], &values));
        assert!(!judge(&[words(&values[..6])], &values[..6]));
        // If pages have many words, one of them agrees with the values more easily.
        let others = (0..60).map(|one| {
            let word = |page: usize| (one * 7_919 + page * page * (one + 3)) / 5 % 2;
            words(&(0..8).map(word).collect::<Vec<_>>())
        });
        let all: Vec<Words> = std::iter::once(words(&values[..8])).chain(others).collect();
        assert!(!judge(&all, &values[..8]));
    }
}
