//! Backoffs of sites: an attempt may change its site's state, which is stored with the evidence
//! ([`site_states`](super::site_states)). While a site backs off, none of its tasks is handed out; a task whose
//! failure is the site's is queued again. The tasks of an unreachable site are handed out once more, to be recorded
//! as failed without a request ([`unreachable`](super::unreachable)).
//!
//! [`backing_off`](super::backing_off) reports the states of sites.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Result};
use webfill_wire::{BackoffReason, CrawlKey, Outcome, TaskDone};

use super::model::{BackoffBegun, SiteId, TaskId, Turn};
use super::site_states::read_reason;
use crate::backoff_table::BackoffTable;
use crate::patience::{Patience, is_unknown_host, nth_wait_ms};
use crate::site_state::outcome_if_unreachable;

/// The backoff table, and the sites whose state is not the default.
#[derive(Debug)]
pub(super) struct Backoffs {
    pub(super) table: BackoffTable,
    pub(super) patience: Option<Patience>,
    pub(super) known: HashSet<SiteId>,
    pub(super) unreachable: HashMap<SiteId, Unreachable>,
    /// Tasks of unreachable sites that were handed out only to end without a request. Their outcomes say nothing about
    /// their sites.
    pub(super) ending: HashSet<TaskId>,
    #[cfg(feature = "former-faults")]
    pub(super) unreachable_go_by_turns: bool,
    /// Backoffs that have begun since the last call of [`SiteStates::take_begun_backoffs`].
    pub(super) begun: Vec<BackoffBegun>,
    /// Tasks that failed in a row just before these backoffs, probably because of their sites.
    pub(super) suspects: Vec<TaskId>,
}

impl Backoffs {
    pub(super) fn load(
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
                let outcome = outcome_if_unreachable(read_reason(row, 2)?);
                let unreachable = Unreachable::new(task as TaskId, outcome);
                backoff.unreachable.insert(site, unreachable);
            }
        }
        Ok(backoff)
    }

    pub(super) fn set_table(&mut self, table: BackoffTable) {
        self.table = table;
    }

    /// The wait of a task before its next attempt, after `used` earlier ones, while its site answers other requests.
    /// `None`: the task is not retried.
    pub(super) fn wait_ms(
        &self,
        reason: BackoffReason,
        report: &TaskDone,
        used: usize,
    ) -> Option<i64> {
        let waits = self.table.backoff_seconds(reason);
        let is_brief = self
            .patience
            .is_some_and(|patience| patience.is_shorter_than(waits));
        if used > 0 && is_brief && is_unknown_host(report) {
            return None;
        }
        nth_wait_ms(self.patience, waits, used)
    }

    /// Whether a site is unreachable for a crawl with a patience, so that no more requests are sent to it.
    pub(super) fn ends_without_requests(&self, site: SiteId) -> bool {
        self.patience.is_some() && self.unreachable.contains_key(&site)
    }

    /// Notes tasks whose failures turn out to be their site's fault.
    pub(super) fn add_suspects(&mut self, tasks: Vec<TaskId>) {
        self.suspects.extend(tasks);
    }
}

/// The consequence of the site's state for a task whose attempt has ended.
pub(super) enum Disposition {
    /// The site's state has no influence: the outcome counts, or the retry table decides.
    Own,
    /// The task ends with its outcome, whatever the retry table says.
    Ends,
    /// The task is queued again, and its site backs off.
    SiteBackoffs(Turn),
    /// The task is queued again, and waits for its retry.
    Waits,
}

/// Which tasks of a site may be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leasable {
    All,
    /// A single task after a backoff, to test the site.
    Probe,
    /// Tasks that were queued when the site became unreachable. They end without a request.
    Unreachable,
    /// None, because the site backs off.
    None,
}

/// An unreachable site, and how far the end of its tasks has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unreachable {
    /// Tasks up to this id end without a request.
    pub(super) last: TaskId,
    pub(super) outcome: Outcome,
    /// The last crawl visited to end its tasks at the site; crawls are visited in turn.
    pub(super) visited: CrawlKey,
    /// Whether tasks have ended since the first crawl was visited.
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
