//! Finds pages that show only the first values of a list, with the others behind a button.
//!
//! Known lists reveal such pages. The known lists that are longer are all cut off at the same length, and no page
//! yields more values than that.

use std::collections::BTreeMap;

use super::deciding::{Cell, State};
use super::reading::contains_value;
use super::table::Table;

/// At least this many known lists must be cut off at the same length.
const SHOWN_BY: usize = 2;

/// The confidence in a list that is probably cut off. It is so low that the list is never filled in.
const CONFIDENCE: f64 = 0.3;

/// The lists of a column that are read on the pages of a site.
#[derive(Default)]
struct Lists {
    longest: usize,
    /// The lengths read for lists whose known list is longer.
    shortened: Vec<usize>,
    /// The positions of the cells that are to be filled.
    filling: Vec<usize>,
}

/// Withdraws the lists that have the greatest length of their column and site, if known lists are cut off at that
/// length.
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
