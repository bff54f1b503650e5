//! The epochs of this file: each start of a dispatcher on it begins one, and each lease belongs to the epoch it was
//! made in.
//!
//! An epoch is a number that is greater than those of all earlier starts, including starts on other copies of the
//! file. It is the time of the start, by the wall clock, unless the clock was set back. So an outcome of a task that
//! another copy has handed out is never mistaken for an outcome of the task with the same number here. The first
//! epoch of a copy is a year ahead, so it is greater than those of the original since the copy was made, even if this
//! machine's clock is behind.

use rusqlite::{Connection, OptionalExtension, Result, Row};
use webfill_wire::Delivery;

/// One start of a dispatcher on this file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch {
    /// The epoch's number in `tasks`, counted from 1.
    pub(super) id: i64,
    pub(super) number: u64,
}

const YEAR_MS: i64 = 365 * 24 * 3_600_000;

/// Begins an epoch. `is_copy`: the file is a copy of another dispatcher's file.
pub(super) fn begin(db: &Connection, is_copy: bool, now_ms: i64) -> Result<Epoch> {
    let sql = "SELECT max(epoch) FROM epochs";
    let last: Option<i64> = db
        .query_row(sql, [], |row| row.get(0))
        .optional()?
        .flatten();
    let ahead_ms = if is_copy { YEAR_MS } else { 0 };
    let number = now_ms.max(last.unwrap_or(0) + 1) + ahead_ms;
    db.execute("INSERT INTO epochs (epoch) VALUES (?1)", [number])?;
    Ok(Epoch {
        id: db.last_insert_rowid(),
        number: number as u64,
    })
}

/// The columns that identify a task's last delivery (hand-out). They must be the first of a query, for
/// [`read_delivery`].
macro_rules! delivery {
    () => {
        "coalesce((SELECT epochs.epoch FROM epochs WHERE epochs.id = tasks.epoch), 0), attempt"
    };
}
pub(super) use delivery;

pub(super) fn read_delivery(row: &Row<'_>) -> Result<Delivery> {
    Ok(Delivery::new(row.get::<_, i64>(0)? as u64, row.get(1)?))
}
