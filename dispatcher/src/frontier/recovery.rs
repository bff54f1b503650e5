//! What opening a frontier puts right after a crash, or after any other end.
//!
//! A restart is nothing but a pause: what was leased stays leased, to the owner of its site, until
//! that supervisor tells that it does not hold it any more, or is lost. Only the times need care,
//! because they are kept by the wall clock, which may have been set meanwhile.

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::answers::{HeldLease, SiteDue};
use super::{Frontier, FrontierError, sites};

/// A wall clock is off by so much at most.
const CLOCK_JUMP_MS: i64 = 3_600_000;

impl Frontier {
    /// All leases in force, oldest task first.
    pub fn leases(&mut self) -> std::result::Result<Vec<HeldLease>, FrontierError> {
        self.guarded("list the leases", |frontier| {
            let sql = "SELECT id, attempt, site, priority FROM tasks WHERE state = 1 ORDER BY id";
            let mut select = frontier.db.prepare_cached(sql)?;
            let leases = select.query_map([], |row| {
                Ok(HeldLease {
                    task: row.get::<_, i64>(0)? as u64,
                    delivery: row.get(1)?,
                    site: row.get(2)?,
                    priority: row.get(3)?,
                })
            })?;
            leases.collect()
        })
    }

    /// The sites that have something leased. They are inside the window from now on.
    pub fn leased_sites(&mut self) -> std::result::Result<Vec<SiteDue>, FrontierError> {
        self.guarded("list the leased sites", |frontier| {
            let sql = format!(
                "UPDATE sites SET in_window = 1
                 WHERE id IN (SELECT site FROM tasks WHERE state = 1) RETURNING {}",
                sites::COLUMNS
            );
            let mut select = frontier.db.prepare_cached(&sql)?;
            let kept = select.query_map([], sites::read)?.collect::<Result<_>>()?;
            frontier.add_turns(kept)
        })
    }
}

/// Empties the window, and brings the times of the sites to the clock of now.
pub(super) fn reset_window_and_clocks(db: &Connection, now_ms: i64) -> Result<()> {
    db.execute_batch(
        "UPDATE sites SET in_window = iif(queued > 0 AND top_priority = 0, 2, 0)
         WHERE in_window = 1",
    )?;
    let Some(committed_at_ms) = committed_at_ms(db)? else {
        return Ok(());
    };
    // By a clock that runs behind, what was long due would be far ahead.
    db.execute(
        "UPDATE sites SET due_at_ms = min(due_at_ms, ?2), last_start_ms = min(last_start_ms, ?2)
         WHERE due_at_ms BETWEEN ?2 AND ?1 AND (delay_ms NOT NULL OR last_start_ms IS NULL)",
        [committed_at_ms, now_ms],
    )?;
    // How much time really passed since the last commit is not known if the clock was set. What
    // waited then still waits: all of its rest if the clock runs behind, up to the largest jump
    // longer if it runs ahead. And so does what nobody knows the delay of.
    let shift_ms = (now_ms - committed_at_ms).min(CLOCK_JUMP_MS);
    db.execute(
        "UPDATE sites SET due_at_ms = due_at_ms + ?2, last_start_ms = last_start_ms + ?2
         WHERE due_at_ms > ?1 OR (delay_ms IS NULL AND last_start_ms IS NOT NULL)",
        [committed_at_ms, shift_ms],
    )?;
    Ok(())
}

/// By the clock of the dispatcher that wrote the last commit.
fn committed_at_ms(db: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE name = 'committed_at_ms'";
    db.query_row(sql, [], |row| row.get(0)).optional()
}

/// The last turn that a crawl had at a site, as of the last commit.
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
