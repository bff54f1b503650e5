//! Placeholders: texts that pages have instead of a value, such as `Please log in`.
//!
//! In a column whose known values are nearly all different, a text on several pages is a placeholder if only rows
//! without a known value have it.

use std::collections::{BTreeMap, BTreeSet};

use webfill_learn::common_form;

use super::deciding::{Cell, State};
use super::table::Table;

/// A placeholder is on the pages of at least this many rows, and the column has at least this many known values.
const ROWS: usize = 3;
const KNOWN: usize = 8;

/// The least share of known values that must be different from each other.
const DIFFERENT: f64 = 0.9;

/// The highest accepted probability that a placeholder is missing, by chance, from the pages of all rows with known
/// values.
const BY_CHANCE: f64 = 0.01;

/// The confidence in a placeholder. It is so low that the text is never filled in.
const CONFIDENCE: f64 = 0.3;

/// The values of a field on the pages of a site.
#[derive(Default)]
struct Values {
    /// The known values of rows. `instead` counts the other values that the pages of these rows have.
    known: Vec<String>,
    instead: BTreeMap<String, usize>,
    /// For each value, the positions of the gaps that it was to fill.
    filling: BTreeMap<String, Vec<usize>>,
}

/// Withdraws placeholders from the cells that they were to fill.
pub fn withdraw_placeholders(table: &Table, cells: &mut [Cell]) {
    let mut columns: BTreeMap<(usize, String), Values> = BTreeMap::new();
    for (at, cell) in cells.iter().enumerate() {
        let Some(url) = &cell.url else { continue };
        if table.fields[cell.field].has_several() {
            continue;
        }
        let site = webfill_urls::Url::parse(url).map(|url| webfill_urls::site(&url));
        let column = columns.entry((cell.field, site.unwrap_or_default()));
        let column = column.or_default();
        let form = || cell.values.first().map(|value| common_form(value));
        match cell.state {
            State::Filled => column
                .filling
                .entry(form().unwrap_or_default())
                .or_default()
                .push(at),
            State::Known | State::Contradicted => {
                let known = table.rows[cell.row as usize].known_values(cell.field);
                column
                    .known
                    .extend(known.first().map(|value| common_form(value)));
                if cell.state == State::Contradicted {
                    *column
                        .instead
                        .entry(form().unwrap_or_default())
                        .or_default() += 1;
                }
            }
            _ => {}
        }
    }
    for column in columns.values() {
        for at in column.find_placeholders() {
            cells[at].state = State::BelowPrecision;
            cells[at].confidence = cells[at].confidence.min(CONFIDENCE);
        }
    }
}

impl Values {
    fn find_placeholders(&self) -> Vec<usize> {
        let different: BTreeSet<&String> = self.known.iter().collect();
        let known = self.known.len();
        if known < KNOWN || (different.len() as f64) < DIFFERENT * known as f64 {
            return Vec::new();
        }
        let gaps: usize = self.filling.values().map(Vec::len).sum();
        let is_one = |(value, places): &(&String, &Vec<usize>)| {
            let instead = self.instead.get(*value).copied().unwrap_or_default();
            places.len() + instead >= ROWS
                && !different.contains(value)
                && (instead > 0 || chance_probability(places.len(), gaps, known) < BY_CHANCE)
        };
        let found = self.filling.iter().filter(is_one);
        found
            .flat_map(|(_, places)| places.iter().copied())
            .collect()
    }
}

/// The probability that this many rows, chosen at random, all have gaps.
fn chance_probability(drawn: usize, gaps: usize, known: usize) -> f64 {
    let each = (0..drawn).map(|one| (gaps - one) as f64 / (gaps + known - one) as f64);
    each.product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(known: &[&str], instead: &[&str], filling: &[(&str, usize)]) -> Values {
        let mut at = 0;
        let mut column = Values {
            known: known.iter().map(|value| (*value).to_owned()).collect(),
            instead: instead
                .iter()
                .map(|value| ((*value).to_owned(), 2))
                .collect(),
            filling: BTreeMap::new(),
        };
        for (value, count) in filling {
            column
                .filling
                .insert((*value).to_owned(), (at..at + count).collect());
            at += count;
        }
        column
    }

    #[test]
    fn a_text_that_only_rows_without_a_value_have_is_none() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let filling = [("log in", 6), ("k", 1), ("l", 1)];
        let found = values(&names, &[], &filling).find_placeholders();
        assert_eq!(found, [0, 1, 2, 3, 4, 5]);
        // With so few rows, the text is no placeholder. It is one if a page also has it in place of a known value.
        let few = [("log in", 3), ("k", 1), ("l", 1), ("m", 5)];
        assert!(!values(&names, &[], &few).find_placeholders().contains(&0));
        assert_eq!(
            values(&names, &["log in"], &few[..3]).find_placeholders(),
            [0, 1, 2]
        );
        assert_eq!(values(&names, &["k"], &few[..3]).find_placeholders(), [3]);
        // No text is a placeholder in a column with few different values or too few known ones, or if it is a known
        // value.
        let kinds = ["a", "a", "b", "b", "c", "c", "a", "b", "c", "a"];
        assert!(values(&kinds, &[], &filling).find_placeholders().is_empty());
        assert!(
            values(&names[..5], &[], &filling)
                .find_placeholders()
                .is_empty()
        );
        let known = [("a", 6), ("k", 1)];
        assert!(values(&names, &[], &known).find_placeholders().is_empty());
    }
}
