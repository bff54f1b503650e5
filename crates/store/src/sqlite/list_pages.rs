//! Reads slices of a statement's rows.

use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};

use super::fault::Fault;
use crate::browse::{ListPage, Place};

/// The most rows that are checked for a slice, the longest time, and the most text.
const MOST_EXAMINED: u64 = 20_000;
pub(super) const SEARCH_TIME: Duration = Duration::from_millis(100);
const MOST_BYTES: usize = 4 << 20;

/// Reads a slice from the rows of a statement, which follow an index. `read` returns the place of a row, and the row
/// if the filter accepts it.
pub(super) fn read_list_page<T>(
    mut rows: Rows<'_>,
    wanted: usize,
    mut read: impl FnMut(&Row<'_>) -> Result<(Place, Option<T>), Fault>,
) -> Result<ListPage<T>, Fault> {
    let began = Instant::now();
    let mut slice = ListPage::end();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        bytes += text_bytes(row)?;
        let (place, found) = read(row)?;
        slice.examined += 1;
        slice.rows.extend(found);
        let is_full = slice.rows.len() >= wanted
            || slice.examined >= MOST_EXAMINED
            || bytes >= MOST_BYTES
            || began.elapsed() >= SEARCH_TIME;
        if is_full {
            slice.next = rows.next()?.map(|_| place);
            break;
        }
    }
    Ok(slice)
}

fn text_bytes(row: &Row<'_>) -> Result<usize, Fault> {
    let mut bytes = 0;
    for column in 0..row.as_ref().column_count() {
        if let ValueRef::Text(text) = row.get_ref(column)? {
            bytes += text.len();
        }
    }
    Ok(bytes)
}
