//! What separates several values in a cell of text.

use std::collections::HashMap;

use crate::cell::Cell;

/// Signs that stand in lists more than elsewhere, and those that stand in any text.
const CANDIDATES: [(&str, bool); 6] = [
    ("|", true),
    (";", true),
    ("\n", true),
    (" / ", false),
    (", ", false),
    (",", false),
];

/// The separator of lists, if cells are such: short entries, of which many stand in several cells.
pub(super) fn find(values: &[&Cell]) -> Option<String> {
    let texts: Vec<&str> = values.iter().filter_map(|cell| cell.text()).collect();
    let is_list = |(sign, is_rare): &&(&str, bool)| looks_like_lists(&texts, sign, *is_rare);
    let (sign, _) = CANDIDATES.iter().find(is_list)?;
    Some(as_written(&texts, sign))
}

fn looks_like_lists(texts: &[&str], sign: &str, is_rare: bool) -> bool {
    const LONGEST_ENTRY: usize = 60;
    const LEAST_LISTS: usize = 3;
    let lists = texts.iter().filter(|text| text.contains(sign)).count();
    if lists < LEAST_LISTS || lists * 5 < texts.len() {
        return false;
    }
    // In how many cells each entry stands.
    let mut cells: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut entries = 0;
    for (number, text) in texts.iter().enumerate() {
        for entry in text
            .split(sign)
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            if entry.len() > LONGEST_ENTRY {
                return false;
            }
            entries += 1;
            let (count, last) = cells.entry(entry).or_insert((0, usize::MAX));
            if *last != number {
                (*count, *last) = (*count + 1, number);
            }
        }
    }
    let again: usize = cells
        .values()
        .map(|(count, _)| *count)
        .filter(|count| *count > 1)
        .sum();
    match is_rare {
        true => again * 10 >= entries,
        // "Doe, John" is no list: of lists, most entries come again.
        false => again * 3 >= entries * 2,
    }
}

/// The separator with the blanks that most cells have around it.
fn as_written(texts: &[&str], sign: &str) -> String {
    let sign = sign.trim_matches(' ');
    let mut counts: HashMap<String, usize> = HashMap::new();
    for text in texts {
        let mut rest = *text;
        while let Some((before, behind)) = rest.split_once(sign) {
            let blank = |text: Option<char>| if text == Some(' ') { " " } else { "" };
            let left = blank(before.chars().last());
            let right = blank(behind.chars().next());
            *counts.entry(format!("{left}{sign}{right}")).or_default() += 1;
            rest = behind;
        }
    }
    let most = counts
        .into_iter()
        .max_by_key(|(written, count)| (*count, written.clone()));
    most.map_or_else(|| sign.to_owned(), |(written, _)| written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separator(texts: &[&str]) -> Option<String> {
        let cells: Vec<Cell> = texts
            .iter()
            .map(|text| Cell::Text((*text).to_owned()))
            .collect();
        find(&cells.iter().collect::<Vec<_>>())
    }

    #[test]
    fn lists_are_told_from_texts_with_signs() {
        let table: [(&[&str], Option<&str>); 6] = [
            (&["a; b", "b; c", "a", "c; a"], Some("; ")),
            (&["drama|crime", "crime|war", "war|drama"], Some("|")),
            (
                &["drama, crime", "crime, war", "war, drama", "war"],
                Some(", "),
            ),
            (&["Doe, John", "Roe, Jane", "Poe, Edgar", "Coe, Ann"], None),
            (&["A; story of b", "Another; c", "Third; d", "e"], None),
            (&["one", "two", "three", "four"], None),
        ];
        for (texts, expected) in table {
            assert_eq!(separator(texts).as_deref(), expected, "{texts:?}");
        }
    }
}
