//! Pages that show the first few values of a list, and the others only behind a button. You can tell from known lists:
//! the longer ones all lose their end at the same length, and no longer list is ever read.

use std::collections::BTreeMap;

use super::deciding::{Cell, State};
use super::reading::contains_value;
use super::table::Table;

/// The number of known lists that must be cut off at that length.
const SHOWN_BY: usize = 2;

/// How likely a list of the longest length is whole: it is not filled, however little precision is wanted.
const CONFIDENCE: f64 = 0.3;

/// The lists of a column that are read on the pages of a site.
#[derive(Default)]
struct Lists {
    longest: usize,
    /// The lengths of those whose known lists are longer.
    shortened: Vec<usize>,
    /// Those that are to be filled: the places of their cells.
    filling: Vec<usize>,
}

/// Withdraws lists of the longest length, where known ones of that length are shortened.
pub fn withdraw_shortened_lists(table: &Table, cells: &mut [Cell]) {
    let mut columns: BTreeMap<(usize, String), Lists> = BTreeMap::new();
    for (at, cell) in cells.iter().enumerate() {
        let Some(url) = &cell.url else { continue };
        if !table.fields[cell.field].has_several() || cell.values.is_empty() {
            continue;
        }
        let site = webfill_urls::Url::parse(url).map(|url| webfill_urls::site(&url));
        let lists = columns
            .entry((cell.field, site.unwrap_or_default()))
            .or_default();
        lists.longest = lists.longest.max(cell.values.len());
        let known = table.rows[cell.row as usize].known_values(cell.field);
        let is_longer = known.len() > cell.values.len();
        if cell.state == State::Filled {
            lists.filling.push(at);
        } else if is_longer
            && cell
                .values
                .iter()
                .all(|value| contains_value(value, &known))
        {
            lists.shortened.push(cell.values.len());
        }
    }
    for lists in columns.values() {
        let is_shown = lists.shortened.len() >= SHOWN_BY
            && lists
                .shortened
                .iter()
                .all(|length| *length == lists.longest);
        let withdrawn = lists.filling.iter().filter(|_| is_shown);
        for &at in withdrawn {
            let cell = &mut cells[at];
            if cell.values.len() == lists.longest {
                cell.state = State::BelowPrecision;
                cell.confidence = cell.confidence.min(CONFIDENCE);
            }
        }
    }
}
