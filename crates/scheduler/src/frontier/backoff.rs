//! Rests of sites: what attempts say of a site moves its state, which is stored with the evidence
//! ([`site_states`](super::site_states)). While a site backs off nothing of it is handed out; a task whose failure is
//! the site's is queued again. The tasks of a site that is unreachable are handed out once more, to be recorded as
//! failed without a request ([`unreachable`](super::unreachable)).
//!
//! [`backing_off`](super::backing_off) reports the states of sites.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Result};
use webfill_wire::{BackoffReason, CrawlKey, Outcome, TaskDone};

use super::model::{BackoffBegun, SiteId, TaskId, Turn};
use super::site_states::read_reason;
use crate::backoff_table::BackoffTable;
use crate::patience::{Patience, is_no_such_name, nth_wait_ms};
use crate::site_state::outcome_of;

/// The backoff table, and the sites that have a state other than the default.
#[derive(Debug)]
pub(super) struct Backoffs {
    pub(super) table: BackoffTable,
    pub(super) patience: Option<Patience>,
    pub(super) known: HashSet<SiteId>,
    pub(super) unreachable: HashMap<SiteId, Unreachable>,
    /// Tasks that were handed out to end without a request: what comes back says nothing of their sites.
    pub(super) ending: HashSet<TaskId>,
    #[cfg(feature = "former-faults")]
    pub(super) unreachable_go_by_turns: bool,
    /// Rests that have begun since [`SiteStates::take_begun`] returned them.
    pub(super) begun: Vec<BackoffBegun>,
    /// Tasks that failed in a row before these backoffs.
    pub(super) suspects: Vec<TaskId>,
}

impl Backoffs {
    pub(super) fn open(
        db: &Connection,
        table: BackoffTable,
        patience: Option<Patience>,
    ) -> Result<Backoffs> {
        let mut backoff = Backoffs {
            table,
            patience,
            known: HashSet::new(),
            unreachable: HashMap::new(),
            ending: HashSet::new(),
            #[cfg(feature = "former-faults")]
            unreachable_go_by_turns: false,
            begun: Vec::new(),
            suspects: Vec::new(),
        };
        let mut select = db.prepare("SELECT site, unreachable_to, reason FROM site_states")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let site = row.get(0)?;
            backoff.known.insert(site);
            if let Some(task) = row.get::<_, Option<i64>>(1)? {
                let outcome = outcome_of(read_reason(row, 2)?);
                let unreachable = Unreachable::new(task as TaskId, outcome);
                backoff.unreachable.insert(site, unreachable);
            }
        }
        Ok(backoff)
    }

    pub(super) fn set_table(&mut self, table: BackoffTable) {
        self.table = table;
    }

    /// How long a task waits that was tried `used` times before, while its site answers others; `None`: it is
    /// not tried again.
    pub(super) fn wait_ms(
        &self,
        reason: BackoffReason,
        report: &TaskDone,
        used: usize,
    ) -> Option<i64> {
        let waits = self.table.backoff(reason);
        let is_brief = self
            .patience
            .is_some_and(|patience| patience.is_shorter_than(waits));
        if used > 0 && is_brief && is_no_such_name(report) {
            return None;
        }
        nth_wait_ms(self.patience, waits, used)
    }

    /// Whether a site was unreachable by a crawl with a patience: nothing of it is requested any more.
    pub(super) fn ends_without_requests(&self, site: SiteId) -> bool {
        self.patience.is_some() && self.unreachable.contains_key(&site)
    }

    /// The ends of these tasks turn out to be their site's doing.
    pub(super) fn suspect(&mut self, tasks: Vec<TaskId>) {
        self.suspects.extend(tasks);
    }
}

/// The site's decision about a task whose attempt has ended.
pub(super) enum Disposition {
    /// Its outcome counts, or the retry table decides.
    Own,
    /// Its outcome counts, whatever the retry table says.
    Ends,
    /// It is queued again, and its site backs off.
    SiteBackoffs(Turn),
    /// It is queued again, to be tried after a while.
    Waits,
}

/// The tasks of a site that may be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leasable {
    All,
    /// One, after a backoff.
    Probe,
    /// Tasks that were queued when it became unreachable; they end without a request.
    Unreachable,
    /// It backs off.
    None,
}

/// A site that was unreachable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unreachable {
    /// Tasks up to this one end without a request.
    pub(super) last: TaskId,
    pub(super) outcome: Outcome,
    /// The last crawl that was visited.
    pub(super) visited: CrawlKey,
    /// The visits that began with the first crawl have ended tasks.
    pub(super) has_ended_tasks: bool,
}

impl Unreachable {
    pub(super) fn new(last: TaskId, outcome: Outcome) -> Unreachable {
        Unreachable {
            last,
            outcome,
            visited: 0,
            has_ended_tasks: false,
        }
    }
}
