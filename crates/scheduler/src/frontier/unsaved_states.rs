//! Notes of sites whose states the store has not got yet. The store keeps a copy of the states of sites in trouble,
//! for people's queries.
//!
//! A note is added in the same transaction whenever the state of a site changes, and removed once the store has a
//! state that was read later. So the copy becomes right in the end, whichever process dies and however long the store
//! is unavailable, and nothing waits in memory. At a start all states are noted: the ends of backoffs have moved, and
//! anything that the store has lost is written again.

use rusqlite::{Connection, Result, params};

use super::context::Context;
use super::model::SiteId;
use super::parts::SiteStates;
use super::site_states::{COLUMNS, read_report};
use super::{FrontierError, SiteReport};

/// A site whose state is to be copied to the store.
#[derive(Debug, Clone, PartialEq)]
pub struct UnsavedState {
    /// The number of the note, in ascending order.
    pub number: i64,
    pub report: SiteReport,
}

/// Notes every site that has a state.
pub(super) fn mark_all_unsaved(db: &Connection) -> Result<()> {
    db.execute_batch(
        "INSERT OR REPLACE INTO unsaved_site_states (site) SELECT site FROM site_states",
    )
}

impl SiteStates<'_> {
    /// The first sites whose states the store lacks, with notes after a number.
    pub fn list_unsaved(
        &mut self,
        after: i64,
        limit: usize,
    ) -> std::result::Result<Vec<UnsavedState>, FrontierError> {
        self.0.run("look for states that are not saved", |cx| {
            let sql = format!(
                "SELECT {COLUMNS}, number FROM unsaved_site_states AS unsaved
                 JOIN sites ON sites.id = unsaved.site
                 LEFT JOIN site_states ON site_states.site = sites.id
                 WHERE number > ?1 ORDER BY number LIMIT ?2"
            );
            let mut select = cx.db.prepare_cached(&sql)?;
            let unsaved = select.query_map(params![after, limit as i64], |row| {
                Ok(UnsavedState {
                    number: row.get("number")?,
                    report: read_report(row)?,
                })
            })?;
            unsaved.collect()
        })
    }

    /// Removes the notes up to this number, because the store has these states. A state that has changed since has a
    /// later note.
    pub fn delete_notes_up_to(&mut self, last: i64) -> std::result::Result<(), FrontierError> {
        self.0.run("cross out saved states", |cx| {
            let sql = "DELETE FROM unsaved_site_states WHERE number <= ?1";
            cx.db.prepare_cached(sql)?.execute([last])?;
            Ok(())
        })
    }
}

/// Notes that the state of a site changes.
pub(super) fn mark_unsaved(cx: &Context, site: SiteId) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO unsaved_site_states (site) VALUES (?1)";
    cx.db.prepare_cached(sql)?.execute([site])?;
    Ok(())
}
