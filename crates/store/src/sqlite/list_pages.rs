//! Reads pages of a list from a statement's rows.

use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};

use super::fault::Fault;
use crate::browse::{ListPage, Place, UnfinishedPage};

/// Reads a page from the rows of a statement, which follow an index. `read` returns the place of a row, and the row
/// if the filter accepts it.
pub(super) fn read_list_page<T>(
    mut rows: Rows<'_>,
    wanted: usize,
    mut read: impl FnMut(&Row<'_>) -> Result<(Place, Option<T>), Fault>,
) -> Result<ListPage<T>, Fault> {
    let mut page = UnfinishedPage::begin(wanted);
    while let Some(row) = rows.next()? {
        let bytes = text_bytes(row)?;
        let (place, found) = read(row)?;
        page.add(bytes, found);
        if page.is_full() {
            let next = rows.next()?.map(|_| place);
            return Ok(page.end_at(next));
        }
    }
    Ok(page.end_at(None))
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
