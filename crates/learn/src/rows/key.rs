//! Finds the key of learned rows: the fewest fields that together distinguish all rows.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Words in the names of fields that often identify a thing, the likeliest first.
const KEY_WORDS: [&str; 14] = [
    "id", "url", "link", "href", "sku", "isbn", "asin", "code", "number", "item", "name", "title",
    "user", "key",
];

/// The rows of one page, as the learned rule extracts them.
pub(super) type Rows = Vec<Map<String, Value>>;

/// The fewest fields, at most three, that distinguish all rows, or else as many rows as possible. `fields` has the
/// fields that are not lists.
pub(super) fn find_key(pages: &[Rows], fields: &[String]) -> Vec<String> {
    let mut fields: Vec<&String> = fields.iter().collect();
    fields.sort_by_key(|field| rank(field));
    let mut best: Option<(usize, usize, Vec<&String>)> = None;
    for count in 1..=fields.len().min(3) {
        for (number, chosen) in combinations(&fields, count).into_iter().enumerate() {
            let faults = count_ambiguous(pages, &chosen);
            if faults == 0 {
                return chosen.into_iter().cloned().collect();
            }
            if best.as_ref().is_none_or(|(least, ..)| faults < *least) {
                best = Some((faults, number, chosen));
            }
        }
    }
    best.map(|(_, _, chosen)| chosen.into_iter().cloned().collect())
        .unwrap_or_default()
}

fn rank(field: &str) -> usize {
    let is_called = |word: &&str| field.split('_').any(|part| part == *word);
    KEY_WORDS
        .iter()
        .position(is_called)
        .unwrap_or(KEY_WORDS.len())
}

fn combinations<'f>(fields: &[&'f String], count: usize) -> Vec<Vec<&'f String>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..fields.len() {
        for mut rest in combinations(&fields[at + 1..], count - 1) {
            rest.insert(0, fields[at]);
            all.push(rest);
        }
    }
    all
}

/// The number of rows whose key is missing or not unique. A row whose key also occurs on an earlier page does not count
/// if that page has an identical row.
fn count_ambiguous(pages: &[Rows], key: &[&String]) -> usize {
    let mut faults = 0;
    let mut seen: Vec<BTreeSet<String>> = vec![BTreeSet::new(); pages.len()];
    for (page, rows) in pages.iter().enumerate() {
        for row in rows {
            let values: Option<Vec<&Value>> = key
                .iter()
                .map(|name| row.get(*name).filter(|value| !value.is_null()))
                .collect();
            let Some(values) = values else {
                faults += 1;
                continue;
            };
            let text = format!("{values:?}");
            let is_elsewhere = seen[..page]
                .iter()
                .zip(pages)
                .any(|(keys, rows)| keys.contains(&text) && !rows.contains(row));
            faults += usize::from(is_elsewhere || !seen[page].insert(text));
        }
    }
    faults
}
