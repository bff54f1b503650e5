//! Recovery of a frontier when it is opened after a crash or any other end.
//!
//! For the tasks a restart is only a pause. Leases stay in force and belong to the owners of their sites, until a
//! supervisor reports that it no longer holds one, or is lost. Only times need care: they are stored by the wall clock,
//! which may have been set meanwhile.

use rusqlite::{Connection, OptionalExtension, Result, params};

use crate::site_state::UNTIL_WOKEN_MS;

/// The largest assumed adjustment of the wall clock between two runs of the dispatcher.
const CLOCK_JUMP_MS: i64 = 3_600_000;

/// The maximum time that a site with an unknown delay waits after its last request.
const LONGEST_UNKNOWN_DELAY_MS: i64 = 3_600_000;

/// Marks all sites as not in memory, and moves their times to the current clock. Only sites whose times may matter are
/// visited, by means of indexes, because there may be ten million sites.
pub(super) fn reset_window_and_clocks(db: &Connection, now_ms: i64) -> Result<()> {
    db.execute_batch(
        "UPDATE sites INDEXED BY sites_in_window
         SET in_window = iif(queued > 0 AND top_priority = 0, 2, 0) WHERE in_window = 1",
    )?;
    let Some(committed_at_ms) = committed_at_ms(db)? else {
        return Ok(());
    };
    // If the clock was set back, sites that have long been due would otherwise wait until it catches up.
    db.execute(
        "UPDATE sites INDEXED BY sites_due
         SET due_at_ms = min(due_at_ms, ?2), last_start_ms = min(last_start_ms, ?2)
         WHERE due_at_ms BETWEEN ?2 AND ?1 AND due_at_ms > 0
             AND (delay_ms NOT NULL OR last_start_ms IS NULL)",
        [committed_at_ms, now_ms],
    )?;
    // Sites whose backoffs are over but which have not been probed yet must not wait for the clock, either.
    db.execute(
        "UPDATE sites INDEXED BY sites_backing_off SET backoff_until_ms = ?2
         WHERE backoff_until_ms BETWEEN ?2 AND ?1 AND backoff_until_ms > 0",
        [committed_at_ms, now_ms],
    )?;
    // If the clock was set, the time since the last commit is unknown. Sites that waited then wait
    // at least their remaining time: exactly that if the clock was set back, up to CLOCK_JUMP_MS
    // longer if it was set ahead. The same holds for sites with an unknown delay.
    let shift_ms = (now_ms - committed_at_ms).min(CLOCK_JUMP_MS);
    db.execute(
        "UPDATE sites SET due_at_ms = due_at_ms + ?2, last_start_ms = last_start_ms + ?2
         WHERE id IN (
             SELECT id FROM sites INDEXED BY sites_due WHERE due_at_ms > ?1 AND due_at_ms > 0
             UNION SELECT id FROM sites INDEXED BY sites_of_unknown_delay
             WHERE last_start_ms >= ?3 AND delay_ms IS NULL AND last_start_ms NOT NULL)",
        [
            committed_at_ms,
            shift_ms,
            committed_at_ms.min(now_ms) - LONGEST_UNKNOWN_DELAY_MS,
        ],
    )?;
    // Backoffs also last at least their remaining time, except backoffs that only a person ends.
    db.execute(
        "UPDATE sites INDEXED BY sites_backing_off SET backoff_until_ms = backoff_until_ms + ?2
         WHERE backoff_until_ms > ?1 AND backoff_until_ms < ?3 AND backoff_until_ms > 0",
        [committed_at_ms, shift_ms, UNTIL_WOKEN_MS],
    )?;
    Ok(())
}

/// The time of the last commit, by the clock of the dispatcher that wrote it.
pub fn committed_at_ms(db: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE name = 'committed_at_ms'";
    db.query_row(sql, [], |row| row.get(0)).optional()
}

/// The number of the last turn of a crawl at a site, as of the last commit.
pub(super) fn last_turn(db: &Connection) -> Result<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'last_turn'";
    let turn = db.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(turn.unwrap_or(0))
}

pub(super) fn note_commit(db: &Connection, now_ms: i64, last_turn: i64) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO meta VALUES ('committed_at_ms', ?1), ('last_turn', ?2)";
    db.prepare_cached(sql)?
        .execute(params![now_ms, last_turn])?;
    Ok(())
}
