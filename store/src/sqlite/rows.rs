//! Rows of pages become records.

use rusqlite::Connection;

use super::fault::Fault;
use super::records;
use crate::listing::RowPage;
use crate::record::{FillRules, RowValues};

/// Takes the rows of a page into their records. Those without a key are left out.
pub(super) fn put(conn: &Connection, page: &RowPage<'_>, rules: &FillRules) -> Result<(), Fault> {
    for listing in page.listings {
        let mut of_page = Vec::with_capacity(page.records.len());
        for key in page.records {
            let stored = match listing.needs_record() {
                true => records::load(conn, key)?,
                false => None,
            };
            of_page.push((key.clone(), stored));
        }
        for row in listing.keyed(&of_page) {
            records::take_row(conn, &row.key, &RowValues::of(page, &row), rules)?;
        }
    }
    Ok(())
}
