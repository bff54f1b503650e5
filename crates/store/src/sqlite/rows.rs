//! Turns rows of pages into records.

use rusqlite::Connection;

use super::fault::Fault;
use super::records;
use crate::record::{FillRules, RecordState, RowValues};
use crate::row_page::RowPage;
use crate::store::RowLead;

/// The results of storing the rows of a page as records.
#[derive(Default)]
pub(super) struct PutRowsResult {
    /// The records of rows that lack a wanted field, with the links of these rows.
    pub(super) leads: Vec<RowLead>,
    pub(super) without_key: u64,
}

/// Stores the rows of a page as records. Rows without a key are left out.
pub(super) fn put_rows(
    conn: &Connection,
    page: &RowPage<'_>,
    rules: &FillRules,
) -> Result<PutRowsResult, Fault> {
    let mut put = PutRowsResult::default();
    for listing in page.listings {
        let crawl = match &page.crawl {
            Some(crawl) if !listing.want.is_empty() => Some(crawl.to_string()),
            _ => None,
        };
        let mut of_page = Vec::with_capacity(page.records.len());
        for key in page.records {
            let stored = match listing.needs_record() {
                true => records::load(conn, key)?,
                false => None,
            };
            of_page.push((key.clone(), stored));
        }
        let (keyed, without_key) = listing.rows_with_keys(&of_page);
        put.without_key += without_key;
        for row in keyed {
            let values = RowValues::of(page, &row);
            let state = records::put_row(conn, &row.key, &values, crawl.as_deref(), rules)?;
            if state == RecordState::Open && !row.links.is_empty() {
                put.leads.push(RowLead {
                    record: row.key,
                    urls: row.links,
                });
            }
        }
    }
    Ok(put)
}
