//! Finds pages that can be requested conditionally.

use rusqlite::Connection;

use super::columns::from_json;
use super::fault::Fault;
use crate::validators::KnownPage;

/// The pages with these keys that have validators.
pub(super) fn known_pages(conn: &Connection, ids: &[String]) -> Result<Vec<KnownPage>, Fault> {
    let sql = "SELECT _id, mapping, mapping_version, validators FROM pages
        WHERE _id = ?1 AND validators NOT NULL";
    let mut statement = conn.prepare_cached(sql)?;
    let mut known = Vec::new();
    for id in ids {
        let mut rows = statement.query([id])?;
        if let Some(row) = rows.next()? {
            known.push(KnownPage {
                id: row.get(0)?,
                mapping: row.get(1)?,
                mapping_version: row.get(2)?,
                validators: from_json(row, 3)?,
            });
        }
    }
    Ok(known)
}
