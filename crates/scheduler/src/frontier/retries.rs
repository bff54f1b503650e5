//! Retries: failures that may be temporary are retried after a wait, by the [`RetryTable`]. A task that waits for its
//! retry is queued, with `not_before_ms` set, and cannot be handed out until then.

use rusqlite::{Connection, Result};
use webfill_wire::{TaskDone, is_rate_limited};

use super::task_rows::next_retry_ms;
use crate::patience::{Patience, is_unknown_host, nth_wait_ms};
use crate::retry_table::RetryTable;

/// The maximum number of retries of a page that its site refuses because of too many requests, while it answers
/// requests for other pages. Status 429 says so explicitly. Other statuses only make it likely: some servers send
/// `Retry-After` with each refusal.
pub(super) fn max_retries_if_limited(report: &TaskDone) -> usize {
    match report.status_code {
        Some(429) => 20,
        // With these statuses, a server says when its trouble will be over, not how many requests it accepts.
        Some(500..=599) | None => 0,
        Some(_) if is_rate_limited(report) => 5,
        Some(_) => 0,
    }
}

/// The retry table, and when the next retry is due.
#[derive(Debug)]
pub(super) struct Retries {
    table: RetryTable,
    patience: Option<Patience>,
    pub(super) next_ms: Option<i64>,
}

impl Retries {
    pub(super) fn load(
        db: &Connection,
        table: RetryTable,
        patience: Option<Patience>,
    ) -> Result<Retries> {
        Ok(Retries {
            table,
            patience,
            next_ms: next_retry_ms(db)?,
        })
    }

    /// When the next retry is due.
    pub(super) fn next_ms(&self) -> Option<i64> {
        self.next_ms
    }

    /// Notes that some retries are due now.
    pub(super) fn mark_due(&mut self) {
        self.next_ms = Some(1);
    }

    /// The wait before the retry of a task that was retried `used` times before; `None`: it is not retried.
    pub(super) fn wait_ms(
        &self,
        run: Option<Patience>,
        report: &TaskDone,
        used: usize,
    ) -> Option<i64> {
        let waits = self.table.waits_after(report);
        let patience = run.or(self.patience);
        let nth = |index| nth_wait_ms(patience, waits, index);
        let is_brief = patience.is_some_and(|patience| patience.is_shorter_than(waits));
        if used > 0 && is_brief && is_unknown_host(report) {
            return None;
        }
        // The site got too many requests, which says nothing about the page.
        if used < max_retries_if_limited(report) {
            return (0..=used).rev().find_map(nth);
        }
        nth(used)
    }

    pub(super) fn set_table(&mut self, table: RetryTable) {
        self.table = table;
    }
}
