//! Rests of sites: what attempts say of a site moves its [`SiteState`], which is stored here, with
//! the evidence. While a site rests nothing of it is handed out; a task whose failure is the site's
//! is queued again. The tasks of a site that is given up are handed out once more, to be recorded as
//! failed without a request.
//!
//! What is known of sites is told in [`resting`](super::resting).
//!
//! Rows are kept only of sites that are in trouble, or were lately.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use webfill_wire::{Evidence, Outcome, RestReason, TaskDone};

use super::answers::{RestBegun, SiteId, TaskId, Turn};
use super::give_back::HeldTask;
use super::sites::NextCrawl;
use super::{Frontier, retries, sites};
use crate::rest_table::RestTable;
use crate::site_state::{
    MOST_SUSPECTS, Phase, Sign, SiteState, UNTIL_WOKEN_MS, Verdict, outcome_of,
};

/// The rest table, and the sites that have a state other than the default.
#[derive(Debug)]
pub(super) struct Rests {
    table: RestTable,
    pub(super) known: HashSet<SiteId>,
    /// Sites that were given up: their tasks up to this one end with this outcome.
    pub(super) given_up: HashMap<SiteId, (TaskId, Outcome)>,
    /// Rests that have begun since [`Frontier::take_begun_rests`] returned them.
    begun: Vec<RestBegun>,
    /// Tasks that failed in a row before these rests.
    suspects: Vec<TaskId>,
}

impl Rests {
    pub(super) fn open(db: &Connection, table: RestTable) -> Result<Rests> {
        let mut rests = Rests {
            table,
            known: HashSet::new(),
            given_up: HashMap::new(),
            begun: Vec::new(),
            suspects: Vec::new(),
        };
        let mut select = db.prepare("SELECT site, given_up_to, reason FROM site_states")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let site = row.get(0)?;
            rests.known.insert(site);
            if let Some(task) = row.get::<_, Option<i64>>(1)? {
                let outcome = outcome_of(read_reason(row, 2)?);
                rests.given_up.insert(site, (task as TaskId, outcome));
            }
        }
        Ok(rests)
    }
}

/// What becomes of a task whose attempt has ended, as far as its site decides it.
pub(super) enum Disposition {
    /// Its outcome counts, or the retry table decides.
    Own,
    /// Its outcome counts, whatever the retry table says.
    Ends,
    /// It is queued again, and its site rests.
    SiteRests(Turn),
    /// It is queued again, to be tried after a while.
    Waits,
}

/// Which tasks of a site may be handed out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Leasable {
    All,
    /// One, after a rest.
    Probe,
    /// Those up to this one, and only to end with this outcome, without a request.
    GivenUp {
        last: TaskId,
        outcome: Outcome,
    },
    None,
}

impl Leasable {
    /// The last task that may be handed out.
    pub(super) fn last(self) -> i64 {
        match self {
            Leasable::All | Leasable::Probe => i64::MAX,
            Leasable::GivenUp { last, .. } => last as i64,
            Leasable::None => 0,
        }
    }

    pub(super) fn outcome(self) -> Option<Outcome> {
        match self {
            Leasable::GivenUp { outcome, .. } => Some(outcome),
            Leasable::All | Leasable::Probe | Leasable::None => None,
        }
    }
}

/// A stored state.
pub(super) struct StoredState {
    pub(super) state: SiteState,
    /// Failed tasks of the current run of failures.
    suspects: Vec<TaskId>,
}

impl Frontier {
    /// The rests that have begun since the last call.
    pub fn take_begun_rests(&mut self) -> Vec<RestBegun> {
        std::mem::take(&mut self.rests.begun)
    }

    /// The tasks whose failures turned out to be their sites' since the last call. Those that have
    /// ended are to be reopened.
    pub fn take_suspects(&mut self) -> Vec<TaskId> {
        std::mem::take(&mut self.rests.suspects)
    }

    /// Moves the state of a site by what an attempt at one of its pages says.
    pub(super) fn judge_site(
        &mut self,
        task: &HeldTask,
        report: &TaskDone,
        now_ms: i64,
    ) -> Result<Disposition> {
        match Sign::of(report.outcome, report.status_code) {
            Sign::Nothing => Ok(Disposition::Own),
            Sign::Answered => {
                if self.rests.known.contains(&task.site) {
                    self.note_answer(task.site, now_ms)?;
                }
                Ok(Disposition::Own)
            }
            Sign::Failed { reason, certain } => {
                self.note_failure(task, report, reason, certain, now_ms)
            }
        }
    }

    fn note_answer(&mut self, site: SiteId, now_ms: i64) -> Result<()> {
        let mut stored = self.site_state(site)?;
        if !stored.state.answered(now_ms) {
            return Ok(());
        }
        stored.suspects.clear();
        self.store_phase(site, stored.state.phase)?;
        if stored.state.is_default() {
            return self.forget_state(site);
        }
        self.update_state(site, &stored)
    }

    fn note_failure(
        &mut self,
        task: &HeldTask,
        report: &TaskDone,
        reason: RestReason,
        certain: bool,
        now_ms: i64,
    ) -> Result<Disposition> {
        if self.rests.table.rests(reason).is_empty() {
            return Ok(Disposition::Own);
        }
        let site = task.site;
        let mut stored = self.site_state(site)?;
        let before = stored.state;
        let has_answered = has_answered(&self.db, site)?;
        let table = &self.rests.table;
        let verdict = stored
            .state
            .failed(reason, certain, has_answered, table, now_ms);
        if stored.state != before {
            if before.phase == Phase::Open && before.reason != reason {
                stored.suspects.clear();
            }
            self.keep_failure(task, report, before.phase, &mut stored, now_ms)?;
        }
        self.dispose(task, report, reason, verdict, now_ms)
    }

    /// Stores what a failure has changed, with its evidence.
    fn keep_failure(
        &mut self,
        task: &HeldTask,
        report: &TaskDone,
        before: Phase,
        stored: &mut StoredState,
        now_ms: i64,
    ) -> Result<()> {
        let evidence = evidence_of(task, report);
        let site = task.site;
        match stored.state.phase {
            Phase::Open => {
                stored.suspects.truncate(MOST_SUSPECTS - 1);
                stored.suspects.push(report.task);
            }
            Phase::Resting { .. } => self.rests.suspects.append(&mut stored.suspects),
            Phase::GivenUp => stored.suspects.clear(),
        }
        let was_resting = before != Phase::Open;
        self.insert_state(site, stored, &evidence, was_resting, now_ms)?;
        if stored.state.phase == before {
            return Ok(());
        }
        self.store_phase(site, stored.state.phase)?;
        if let Phase::Resting { until_ms } = stored.state.phase {
            let (name, reason, crawl) =
                (site_name(&self.db, site)?, stored.state.reason, task.crawl);
            self.rests.begun.push(RestBegun {
                site,
                name,
                crawl,
                reason,
                until_ms,
                evidence,
            });
        }
        Ok(())
    }

    /// Carries a verdict out for the task that met the failure.
    fn dispose(
        &mut self,
        task: &HeldTask,
        report: &TaskDone,
        reason: RestReason,
        verdict: Verdict,
        now_ms: i64,
    ) -> Result<Disposition> {
        match verdict {
            Verdict::OwnFailure => return Ok(Disposition::Own),
            Verdict::GivenUp => return Ok(Disposition::Ends),
            Verdict::SiteRests | Verdict::TaskWaits => {}
        }
        if self.known_crawl(task.crawl)?.ending(now_ms).is_some() {
            return Ok(Disposition::Ends);
        }
        let used = retries::retries_used(&self.db, report.task)?;
        if verdict == Verdict::SiteRests {
            // A page that fails again and again while others of its site are answered.
            let is_hopeless = used > self.rests.table.rests(reason).len()
                && !self.rests_until_woken(task.site)?;
            if is_hopeless {
                return Ok(Disposition::Ends);
            }
            self.note_try(report, now_ms)?;
            return self
                .queue_at_resting_site(task, report.task)
                .map(Disposition::SiteRests);
        }
        let Some(wait_ms) = self.rests.table.rest_ms(reason, used) else {
            return Ok(Disposition::Ends);
        };
        self.note_try(report, now_ms)?;
        self.queue_again(task, report.task, task.priority, now_ms + wait_ms.max(1))?;
        Ok(Disposition::Waits)
    }

    fn note_try(&self, report: &TaskDone, now_ms: i64) -> Result<()> {
        let (outcome, status_code) = (report.outcome, report.status_code);
        retries::note_try(&self.db, report.task, now_ms, outcome, status_code)
    }

    fn queue_at_resting_site(&mut self, task: &HeldTask, id: TaskId) -> Result<Turn> {
        let priority = task.priority;
        let sql = "UPDATE tasks SET state = 0 WHERE id = ?1";
        self.db.prepare_cached(sql)?.execute([id as i64])?;
        let crawl = self.known_crawl(task.crawl)?;
        crawl.status.leased -= 1;
        crawl.count_queued(priority, 1);
        sites::count_queued_of(&self.db, task.site, task.crawl, 1, priority)?;
        sites::count_queued(&self.db, task.site, 1, priority)?;
        self.note_lease_over(task.crawl, task.site, false);
        let crawl = task.crawl;
        self.turn(NextCrawl { priority, crawl })
    }

    /// Which tasks of a site may be handed out. When only new tasks are left of a site that was given
    /// up, it begins to rest for them.
    pub(super) fn leasable(&mut self, site: SiteId, now_ms: i64) -> Result<Leasable> {
        let Some((last, outcome)) = self.rests.given_up.get(&site).copied() else {
            let rests = self.rests.known.contains(&site) && is_resting(&self.db, site)?;
            return Ok(match rests {
                true => Leasable::Probe,
                false => Leasable::All,
            });
        };
        let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE site = ?1 AND state = 0
                       AND not_before_ms = 0 AND id <= ?2)";
        let mut select = self.db.prepare_cached(sql)?;
        if select.query_row(params![site, last as i64], |row| row.get(0))? {
            return Ok(Leasable::GivenUp { last, outcome });
        }
        drop(select);
        let mut stored = self.site_state(site)?;
        stored.state.rest_for_new_tasks(&self.rests.table, now_ms);
        self.store_phase(site, stored.state.phase)?;
        self.update_state(site, &stored)?;
        Ok(match stored.state.phase {
            Phase::Resting { .. } => Leasable::None,
            Phase::Open | Phase::GivenUp => Leasable::All,
        })
    }

    /// Makes a phase known to the queue of sites, to the dispatch, and later to the store.
    pub(super) fn store_phase(&mut self, site: SiteId, phase: Phase) -> Result<()> {
        let until_ms = match phase {
            Phase::Resting { until_ms } => until_ms,
            Phase::Open | Phase::GivenUp => 0,
        };
        let sql = "UPDATE sites SET rest_until_ms = ?2 WHERE id = ?1 AND rest_until_ms <> ?2";
        let changed = self
            .db
            .prepare_cached(sql)?
            .execute(params![site, until_ms])?;
        if changed > 0 {
            self.holding.changed_sites.push(site);
        }
        let is_given_up = phase == Phase::GivenUp || self.rests.given_up.contains_key(&site);
        match changed > 0 || is_given_up {
            true => self.note_unsaved(site),
            false => Ok(()),
        }
    }

    pub(super) fn site_state(&self, site: SiteId) -> Result<StoredState> {
        let sql = "SELECT reason, failures, rest_index, given_up_to, suspects, rest_until_ms
                   FROM site_states JOIN sites ON id = site WHERE site = ?1";
        let mut select = self.db.prepare_cached(sql)?;
        let stored = select.query_row([site], read_state).optional()?;
        Ok(stored.unwrap_or(StoredState {
            state: SiteState::default(),
            suspects: Vec::new(),
        }))
    }

    fn insert_state(
        &mut self,
        site: SiteId,
        stored: &StoredState,
        evidence: &Evidence,
        was_resting: bool,
        now_ms: i64,
    ) -> Result<()> {
        let sql = "INSERT INTO site_states
                       (site, reason, failures, rest_index, since_ms, url, status_code, sign)
                   VALUES (?1, '', 0, 0, ?2, ?3, ?4, ?5)
                   ON CONFLICT (site) DO UPDATE SET
                       since_ms = iif(?6, since_ms, ?2), url = ?3, status_code = ?4, sign = ?5";
        let (url, status, sign) = (&evidence.url, evidence.status_code, &evidence.sign);
        let values = params![site, now_ms, url, status, sign, was_resting];
        self.db.prepare_cached(sql)?.execute(values)?;
        self.rests.known.insert(site);
        self.update_state(site, stored)
    }

    pub(super) fn update_state(&mut self, site: SiteId, stored: &StoredState) -> Result<()> {
        let StoredState { state, suspects } = stored;
        let given_up_to = match state.phase {
            Phase::GivenUp => Some(self.last_task()?),
            _ => None,
        };
        let sql = "UPDATE site_states SET reason = ?2, failures = ?3, rest_index = ?4,
                       given_up_to = ?5, suspects = ?6 WHERE site = ?1";
        let values = params![
            site,
            state.reason.as_str(),
            state.failures,
            state.rest_index,
            given_up_to,
            serde_json::to_string(suspects).unwrap_or_default(),
        ];
        self.db.prepare_cached(sql)?.execute(values)?;
        match given_up_to {
            Some(task) => {
                let given_up = (task as TaskId, outcome_of(state.reason));
                self.rests.given_up.insert(site, given_up);
            }
            None => drop(self.rests.given_up.remove(&site)),
        }
        Ok(())
    }

    /// The site is open, and nothing is remembered of its failures.
    pub(super) fn forget_rest(&mut self, site: SiteId) -> Result<()> {
        self.store_phase(site, Phase::Open)?;
        self.forget_state(site)
    }

    fn forget_state(&mut self, site: SiteId) -> Result<()> {
        let sql = "DELETE FROM site_states WHERE site = ?1";
        self.db.prepare_cached(sql)?.execute([site])?;
        self.rests.known.remove(&site);
        self.rests.given_up.remove(&site);
        Ok(())
    }

    /// The newest task there is: none of a site's queued tasks is newer.
    fn last_task(&self) -> Result<i64> {
        let sql = "SELECT coalesce(max(id), 0) FROM tasks";
        self.db.prepare_cached(sql)?.query_row([], |row| row.get(0))
    }

    fn rests_until_woken(&self, site: SiteId) -> Result<bool> {
        let sql = "SELECT rest_until_ms >= ?2 FROM sites WHERE id = ?1";
        let mut select = self.db.prepare_cached(sql)?;
        select.query_row(params![site, UNTIL_WOKEN_MS], |row| row.get(0))
    }
}

/// What shows a failure, as its worker saw it; without a worker's word, what the outcome says.
fn evidence_of(task: &HeldTask, report: &TaskDone) -> Evidence {
    report.evidence.clone().unwrap_or_else(|| Evidence {
        url: task.url.clone(),
        status_code: report.status_code,
        sign: report.outcome.to_string(),
        no_route: false,
    })
}

/// Whether robots.txt, or a page, of the site was read before.
pub(super) fn has_answered(db: &Connection, site: SiteId) -> Result<bool> {
    let sql = "SELECT delay_ms NOT NULL FROM sites WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([site], |row| row.get(0))
}

fn is_resting(db: &Connection, site: SiteId) -> Result<bool> {
    let sql = "SELECT rest_until_ms > 0 FROM sites WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([site], |row| row.get(0))
}

fn site_name(db: &Connection, site: SiteId) -> Result<String> {
    let sql = "SELECT name FROM sites WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([site], |row| row.get(0))
}

fn read_state(row: &Row<'_>) -> Result<StoredState> {
    let given_up_to: Option<i64> = row.get(3)?;
    let suspects: String = row.get(4)?;
    let until_ms: i64 = row.get(5)?;
    let phase = match (given_up_to, until_ms) {
        (Some(_), _) => Phase::GivenUp,
        (None, 0) => Phase::Open,
        (None, until_ms) => Phase::Resting { until_ms },
    };
    Ok(StoredState {
        state: SiteState {
            phase,
            reason: read_reason(row, 0)?,
            failures: row.get(1)?,
            rest_index: row.get(2)?,
        },
        suspects: serde_json::from_str(&suspects).unwrap_or_default(),
    })
}

pub(super) fn read_reason(row: &Row<'_>, column: usize) -> Result<RestReason> {
    let reason: String = row.get(column)?;
    reason.parse().map_err(|error: String| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, kind, error.into())
    })
}
