//! Finds out whether the first row is a header, and names the columns.

use std::collections::BTreeMap;

use super::decode_cells;
use super::split::{Split, split};
use crate::cell::Column;
use crate::format::{Dialect, Encoding};
use crate::kind::Kind;

/// How many rows below the first one it is compared with.
const ROWS: usize = 200;

/// Whether the first row is a header, judged by the kinds of its values. A header has texts: a row with a number above
/// other numbers, or a link above links, is data.
pub(super) fn has_header(beginning: &[u8], dialect: &Dialect, encoding: Encoding) -> bool {
    begins_with_header(&first_rows(beginning, dialect, encoding))
}

/// The number of rows above the table that are notes, such as a title. A note has fewer than two texts, or at most half
/// of the usual number of cells. A header that lacks the name of one column is not a note.
pub(super) fn count_notes(beginning: &[u8], dialect: &Dialect, encoding: Encoding) -> u32 {
    /// Notes are only looked for in a table with at least this many columns and rows.
    const COLUMNS: usize = 3;
    const LEAST_ROWS: usize = 3;
    const MOST_NOTES: usize = 20;
    let rows = first_rows(beginning, dialect, encoding);
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for row in &rows {
        *counts.entry(row.len()).or_default() += 1;
    }
    let usual = counts.iter().max_by_key(|(_, rows)| **rows);
    let columns = usual.map_or(0, |(columns, _)| *columns);
    let is_note = |row: &&Vec<String>| {
        let filled = row.iter().filter(|cell| !cell.trim().is_empty()).count();
        filled < 2 || row.len() < columns && filled * 2 <= columns
    };
    let notes = rows.iter().take_while(is_note).count();
    let table = &rows[notes..];
    let whole = table.iter().filter(|row| row.len() == columns).count();
    let is_table = table.len() >= LEAST_ROWS && whole * 10 >= table.len() * 9;
    // Rows above the table count as notes only if a header follows. Otherwise they may be data rows with a single
    // value.
    match is_table && columns >= COLUMNS && notes <= MOST_NOTES && begins_with_header(table) {
        true => notes as u32,
        false => 0,
    }
}

/// Whether the first of these rows is a header.
pub(crate) fn begins_with_header(rows: &[Vec<String>]) -> bool {
    let Some((first, rest)) = rows.split_first() else {
        return true;
    };
    if first.iter().any(|cell| cell.contains("://")) {
        return false;
    }
    if rest.is_empty() {
        let is_value = |cell: &String| Kind::from_text(cell) != Kind::Text;
        return !first.iter().any(is_value);
    }
    let votes: i32 = first
        .iter()
        .enumerate()
        .map(|(column, cell)| column_vote(cell, column, rest))
        .sum();
    votes >= 0
}

/// The vote of a column on whether the first row is a header: 1 if its first cell differs in kind from the cells below,
/// -1 if not, and 0 if this cannot be judged.
fn column_vote(first: &str, column: usize, rest: &[Vec<String>]) -> i32 {
    let cells = || rest.iter().filter_map(|row| row.get(column));
    let values: Vec<&String> = cells().filter(|cell| !cell.trim().is_empty()).collect();
    let Some(kind) = values.first().map(|value| Kind::from_text(value)) else {
        return 0;
    };
    let is_alike = |value: &&String| Kind::from_text(value) == kind;
    let alike = values.iter().filter(|value| is_alike(value)).count();
    if kind == Kind::Text || alike * 10 < values.len() * 9 || first.trim().is_empty() {
        return 0;
    }
    match Kind::from_text(first) == kind {
        true => -1,
        false => 1,
    }
}

fn first_rows(beginning: &[u8], dialect: &Dialect, encoding: Encoding) -> Vec<Vec<String>> {
    let mut spans = Vec::new();
    let mut rows = Vec::new();
    let mut rest = beginning;
    let mut skip_line = dialect.has_separator_line;
    let mut notes = dialect.notes;
    while rows.len() <= ROWS && !rest.is_empty() {
        let Split::Row(row) = split(rest, true, dialect, &mut spans) else {
            break;
        };
        let is_blank = matches!(spans.as_slice(), [span] if span.start == span.end);
        if !is_blank && !skip_line {
            match notes {
                0 => rows.push(decode_cells(rest, &spans, dialect, encoding).collect()),
                _ => notes -= 1,
            }
        }
        skip_line = false;
        rest = &rest[row.bytes.max(1)..];
    }
    rows
}

/// The columns, named by the given cells if these are a header.
pub(super) fn columns(cells: impl Iterator<Item = String>, has_header: bool) -> Vec<Column> {
    let column = |(at, cell): (usize, String)| Column {
        name: match has_header {
            true => cell,
            false => format!("column{}", at + 1),
        },
    };
    cells.enumerate().map(column).collect()
}
