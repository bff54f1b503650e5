//! Finds the separator of several values in a text cell, such as `;` in `drama; crime`.

use std::collections::{HashMap, HashSet};

use crate::cell::Cell;

/// In which texts a possible separator is used.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// Almost only used in lists.
    Lists,
    /// Used more often in lists than in other texts.
    Often,
    /// Used in any text.
    Any,
}

const CANDIDATES: [(&str, Use); 6] = [
    ("|", Use::Lists),
    (";", Use::Often),
    ("\n", Use::Often),
    (" / ", Use::Any),
    (", ", Use::Any),
    (",", Use::Any),
];

/// Finds the separator of the values if they look like lists of short entries.
pub(super) fn find_separator(values: &[&Cell]) -> Option<String> {
    let texts: Vec<&str> = values.iter().filter_map(|cell| cell.text()).collect();
    let is_list = |(sign, used): &&(&str, Use)| looks_like_lists(&texts, sign, *used);
    let (sign, _) = CANDIDATES.iter().find(is_list)?;
    Some(separator_with_blanks(&texts, sign))
}

fn looks_like_lists(texts: &[&str], sign: &str, used: Use) -> bool {
    let (least_lists, least_different, longest_entry) = match used {
        Use::Lists => (1, 1, 200),
        Use::Often | Use::Any => (3, 2, 60),
    };
    let lists = texts
        .iter()
        .filter(|text| split_entries(text, sign).nth(1).is_some());
    let different: HashSet<&&str> = lists.clone().collect();
    let lists = lists.count();
    if lists < least_lists || lists * 5 < texts.len() || different.len() < least_different {
        return false;
    }
    // Counts for each entry in how many different cells it occurs. Cells with equal texts count once.
    let mut seen = HashSet::new();
    let different = texts.iter().filter(|text| seen.insert(**text));
    let mut cells: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut entries = 0;
    for (number, text) in different.enumerate() {
        for entry in split_entries(text, sign) {
            if entry.len() > longest_entry {
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
    match used {
        Use::Lists => true,
        // Entries of some lists, such as telephone numbers, hardly ever repeat. Then the form of the entries is the
        // evidence.
        Use::Often => again * 10 >= entries || are_alike(texts, sign) || are_names(texts, sign),
        // Most entries must occur in several cells, because `Doe, John` is not a list.
        Use::Any => again * 3 >= entries * 2 && !are_fixed_pairs(texts, sign),
    }
}

fn split_entries<'t>(text: &'t str, sign: &'t str) -> impl Iterator<Item = &'t str> {
    let parts = text.split(sign).map(str::trim);
    parts.filter(|part| !part.is_empty())
}

/// Whether nearly all cells have entries of one form: all with digits, and with the same other kinds of characters.
/// Other texts with the separator have parts of different forms.
fn are_alike(texts: &[&str], sign: &str) -> bool {
    let kinds = |entry: &str| {
        [
            entry.contains(|c: char| c.is_ascii_digit()),
            entry.contains(char::is_alphabetic),
            entry.contains(|c: char| !c.is_alphanumeric() && !" .,-'".contains(c)),
        ]
    };
    let (mut alike, mut all) = (0, 0);
    for text in texts {
        let mut entries = split_entries(text, sign).map(kinds);
        let first = entries.next();
        let rest: Vec<[bool; 3]> = entries.collect();
        if !rest.is_empty() {
            all += 1;
            let is_alike = |kinds: &[bool; 3]| Some(*kinds) == first && kinds[0];
            alike += usize::from(rest.iter().all(is_alike));
        }
    }
    alike * 5 >= all * 4
}

/// Whether nearly all entries are names such as `Doe, John`.
fn are_names(texts: &[&str], sign: &str) -> bool {
    let is_name = |entry: &str| {
        let halves = entry.split_once(", ");
        halves.is_some_and(|(last, first)| {
            let is_word = |text: &str| text.chars().any(char::is_alphabetic);
            is_word(last) && is_word(first) && !first.contains(',')
        })
    };
    let lists = texts
        .iter()
        .filter(|text| split_entries(text, sign).nth(1).is_some());
    let (mut names, mut all) = (0, 0);
    for text in lists {
        all += 1;
        names += usize::from(split_entries(text, sign).all(is_name));
    }
    names * 5 >= all * 4
}

/// Whether nearly all cells have two entries in a fixed order, as in `Doe, John` and `Austin, TX`. In real lists, the
/// same entry may be first or second.
fn are_fixed_pairs(texts: &[&str], sign: &str) -> bool {
    let (mut first, mut second) = (HashSet::new(), HashSet::new());
    let mut pairs = 0;
    for text in texts {
        let entries: Vec<&str> = split_entries(text, sign).collect();
        if let [one, other] = entries[..] {
            pairs += 1;
            first.insert(one);
            second.insert(other);
        }
    }
    let both = first.intersection(&second).count();
    pairs * 10 >= texts.len() * 9 && both * 10 <= first.len() + second.len() - both
}

/// The separator together with the blanks around it in most cells.
fn separator_with_blanks(texts: &[&str], sign: &str) -> String {
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
        find_separator(&cells.iter().collect::<Vec<_>>())
    }

    #[test]
    fn lists_are_distinguished_from_texts_with_signs() {
        let table: [(&[&str], Option<&str>); 20] = [
            (
                &[
                    "(325) 674-2000; (325) 674-2650",
                    "(952) 851-0066; (800) 292-9149",
                    "(1) 2; (3) 4",
                ],
                Some("; "),
            ),
            (
                &["Canon A3 - 10 Megapixel | A3", "Canon S95 | S95", "Nikon"],
                Some(" | "),
            ),
            (
                &[
                    "2477 Arctic Blvd. |",
                    "555 W. Northern Lights Blvd. |",
                    "9 A St |",
                ],
                None,
            ),
            (
                &[
                    "Knopf; First edition (1)",
                    "Ace; Reprint edition (2)",
                    "Tor; 3 edition (3)",
                ],
                None,
            ),
            // Two cells with the same text, for example in two records of one book, are no evidence of a list.
            (
                &[
                    "Knopf; First edition (1)",
                    "Ace; Reprint edition (2)",
                    "Knopf; First edition (1)",
                    "Tor; 3 edition (3)",
                ],
                None,
            ),
            (
                &["drama; crime", "drama; crime", "crime; war", "drama; crime"],
                Some("; "),
            ),
            (&["a | b", "c", "d", "e", "f", "g"], None),
            // A single value is enough evidence for the separator `|`, but not for `;`.
            (&["drama|crime"], Some("|")),
            (&["drama; crime"], None),
            // Cells that repeat another cell are no evidence of a list.
            (
                &["(1) 2; (3) 4", "(1) 2; (3) 4", "(1) 2; (3) 4", "(5) 6"],
                None,
            ),
            (&["a; b", "b; c", "a", "c; a"], Some("; ")),
            (&["drama|crime", "crime|war", "war|drama"], Some("|")),
            (
                &["drama, crime", "crime, war", "war, drama", "war"],
                Some(", "),
            ),
            (&["Doe, John", "Roe, Jane", "Poe, Edgar", "Coe, Ann"], None),
            (&["Doe, John", "Roe, John", "Doe, Ann", "Roe, Ann"], None),
            (&["Austin, TX", "Austin, TX", "Waco, TX", "Waco, TX"], None),
            (&["crime, drama", "drama, war", "crime, war"], Some(", ")),
            (
                &[
                    "Doe, John; Roe, Jane",
                    "Poe, Edgar; Coe, Ann",
                    "Loe, Max; Moe, Eve",
                    "Zoe, Kim",
                ],
                Some("; "),
            ),
            (&["A; story of b", "Another; c", "Third; d", "e"], None),
            (&["one", "two", "three", "four"], None),
        ];
        for (texts, expected) in table {
            assert_eq!(separator(texts).as_deref(), expected, "{texts:?}");
        }
    }
}
