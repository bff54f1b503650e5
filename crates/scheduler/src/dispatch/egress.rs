//! Whether a supervisor's machine has a way out to the web, its *egress*. To tell failures of a machine from those of
//! sites, the recent attempts of all machines are compared. Decisions only: no I/O, no clock.
//!
//! - *open*: the machine gets tasks.
//! - *cut off*: it gets none except a few from time to time, the *probes*. If one is answered, the egress is open
//!   again. Failures that the machine reports meanwhile say nothing about sites.
//!
//! Probes come in rounds. If another machine has a way out, a round is one probe, at a healthy site. Otherwise it is
//! up to [`PROBES_IN_A_ROUND`], at sites drawn at random, because a list of sites may begin with hundreds of dead
//! ones.
//!
//! An egress is cut off when
//!
//! - far more of the sites that it has tried lately have failed than of those that the others have tried (a chance of
//!   less than one in a million, if only sites were to blame), or
//! - healthy sites fail one after another, and none has answered for some seconds, or
//! - the machine has no route, or no answer from its name servers, for one site after another.
//!
//! The last two need no other machine. A series of dead sites, each failing on its own, meets neither condition: they
//! were not healthy before, and a name that is not found shows that the name servers answer. A site is excused once:
//! if it fails again before it has answered, that counts against the site.

use std::collections::{HashSet, VecDeque};

use webfill_wire::{BackoffReason, Evidence, Outcome, TaskDone};

use crate::frontier::{SiteId, Standing, TaskId};

/// The maximum number of sites remembered per machine, and for how long.
const MOST_RECENT: usize = 1_024;
const RECENT_MS: i64 = 300_000;

/// The number of sites that must have been tried before machines are compared.
const ENOUGH_TO_COMPARE: u32 = 8;

/// The number of healthy sites in a row whose failure shows a cut-off machine, if none has answered for this long.
const WELL_IN_A_ROW: usize = 5;
const QUIET_MS: i64 = 3_000;

/// The number of sites in a row without a route that shows a cut-off machine: one that has reached nothing yet, and
/// one that has.
const NO_ROUTE_AT_FIRST: usize = 5;
const NO_ROUTE_LATER: usize = 20;

/// The maximum number of failed tasks remembered per site, and of excused sites.
const MOST_TASKS: usize = 64;
const MOST_EXCUSED: usize = 100_000;

/// The maximum number of simultaneous probes of a machine while no other has a way out.
pub(super) const PROBES_IN_A_ROUND: usize = 16;

/// The wait before the first round of probes. It doubles with each further round, up to the longest wait.
pub(super) const FIRST_PROBE_MS: i64 = 5_000;
const LONGEST_WAIT_MS: i64 = 60_000;

/// After this long without an answered probe the machine counts as open again: the remaining sites may be dead after
/// all.
const LONGEST_CUT_OFF_MS: i64 = 6 * 3_600_000;

/// What an attempt shows about its machine's egress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A server has answered.
    Answered,
    /// A name server has answered that the name does not exist.
    NoSuchName,
    /// Nobody has answered. `no_route`: see [`Evidence`].
    Silence { no_route: bool },
}

impl Reach {
    /// What the result of a task shows; `None` if nothing was requested, or the result shows nothing.
    pub fn of(done: &TaskDone) -> Option<Reach> {
        let Some(evidence) = &done.evidence else {
            return done.status_code.map(|_| Reach::Answered);
        };
        // A worker's finding about a page that it has read may have no status code.
        if evidence.status_code.is_some() || done.outcome == Outcome::Ok {
            return Some(Reach::Answered);
        }
        let no_route = evidence.no_route;
        match done.outcome.site_trouble()?.reason {
            BackoffReason::Dns if !no_route => Some(Reach::NoSuchName),
            BackoffReason::Dns | BackoffReason::Unreachable | BackoffReason::Robots => {
                Some(Reach::Silence { no_route })
            }
            BackoffReason::Tls | BackoffReason::Busy | BackoffReason::Blocked => None,
        }
    }
}

/// One attempt of the machine to reach a site.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    pub(super) task: TaskId,
    pub(super) site: SiteId,
    pub(super) reach: Reach,
    pub(super) before: Standing,
    pub(super) evidence: Option<&'a Evidence>,
    pub(super) at_ms: i64,
}

/// How many sites were tried recently, and how many of them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    sites: u32,
    failed: u32,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.sites += other.sites;
        self.failed += other.failed;
    }

    /// Whether the failures exceed the expected number by five standard deviations (normal approximation of the
    /// binomial distribution). The expected number follows from the share of failures of the others.
    fn stands_out(self, others: Tally) -> bool {
        if self.sites < ENOUGH_TO_COMPARE || others.sites < ENOUGH_TO_COMPARE {
            return false;
        }
        let (sites, failed) = (f64::from(self.sites), f64::from(self.failed));
        let share = (f64::from(others.failed) / f64::from(others.sites)).clamp(0.05, 0.95);
        let expected = sites * share;
        let deviation = (expected * (1.0 - share)).sqrt();
        failed * 2.0 >= sites && failed - expected > 5.0 * deviation
    }
}

/// A change of the egress that an attempt has caused.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The egress is cut off. These failures were the machine's.
    CutOff(MachineFailures),
    /// A probe has failed. The next round comes after this wait.
    StillCutOff { wait_ms: i64 },
    /// The egress is open again.
    Opened,
}

/// Failures that turned out to be a machine's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineFailures {
    pub tasks: Vec<TaskId>,
    /// The sites that failed, and the standing of each before.
    pub sites: Vec<(SiteId, Standing)>,
}

/// What is known about a machine's egress.
#[derive(Debug, Default)]
pub(super) struct Egress {
    /// The latest attempt at each site, oldest first.
    recent: VecDeque<Recent>,
    last_answer_ms: Option<i64>,
    cut_off: Option<CutOff>,
    /// Sites whose failures were the machine's, and that have not answered since.
    excused: HashSet<SiteId>,
    /// The wait after the next failed round.
    wait_ms: i64,
}

#[derive(Debug)]
struct Recent {
    site: SiteId,
    at_ms: i64,
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    tasks: Vec<TaskId>,
    /// The standing of the site before the first of these failures.
    before: Standing,
    /// Whether the site was healthy and not excused recently.
    was_well: bool,
    reach: Reach,
}

/// The state of a machine that is cut off. `sign`: the last evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct CutOff {
    pub since_ms: i64,
    pub sign: String,
    /// When the next probes may be handed out.
    probe_at_ms: i64,
    /// Probes in flight.
    probes: Vec<TaskId>,
}

impl CutOff {
    /// Notes that a task has come back. Returns whether it was a probe.
    fn remove_probe(&mut self, task: TaskId) -> bool {
        let index = self.probes.iter().position(|probe| *probe == task);
        index.map(|index| self.probes.swap_remove(index)).is_some()
    }
}

impl Egress {
    pub(super) fn cut_off(&self) -> Option<&CutOff> {
        self.cut_off.as_ref()
    }

    /// When the next round of probes starts; `None` during a round, or if the egress is open.
    pub(super) fn probe_at_ms(&self) -> Option<i64> {
        let cut_off = self.cut_off.as_ref()?;
        cut_off.probes.is_empty().then_some(cut_off.probe_at_ms)
    }

    /// How many probes may be handed out now, with at most `in_a_round` in flight; `None` if the egress is open.
    pub(super) fn room_for_probes(&self, in_a_round: usize, now_ms: i64) -> Option<usize> {
        let cut_off = self.cut_off.as_ref()?;
        Some(match cut_off.probe_at_ms <= now_ms {
            true => in_a_round.saturating_sub(cut_off.probes.len()),
            false => 0,
        })
    }

    /// Notes that a task was handed out to the machine. If it is cut off, the task is a probe.
    pub(super) fn handed_out(&mut self, task: TaskId) {
        if let Some(cut_off) = &mut self.cut_off {
            cut_off.probes.push(task);
        }
    }

    /// Notes the end of a lease. If it was a probe that has shown nothing, the next one may soon follow.
    pub(super) fn lease_over(&mut self, task: TaskId, now_ms: i64) {
        if let Some(cut_off) = &mut self.cut_off
            && cut_off.remove_probe(task)
        {
            cut_off.probe_at_ms = cut_off.probe_at_ms.max(now_ms + FIRST_PROBE_MS);
        }
    }

    pub(super) fn tally(&self, now_ms: i64) -> Tally {
        let mut tally = Tally::default();
        let recent = self.recent.iter();
        for attempt in recent.filter(|attempt| attempt.at_ms > now_ms - RECENT_MS) {
            tally.sites += 1;
            tally.failed += u32::from(attempt.failure.is_some());
        }
        tally
    }

    /// Notes an attempt of the machine. `others`: the sums over the other machines' attempts.
    pub(super) fn note(&mut self, attempt: &Attempt<'_>, others: Tally) -> Option<Change> {
        if self.cut_off.is_some() {
            return self.note_cut_off(attempt);
        }
        self.remember(attempt);
        if attempt.reach == Reach::Answered {
            self.note_answer(attempt);
            return None;
        }
        let is_lost =
            self.has_lost_its_way(attempt.at_ms) || self.tally(attempt.at_ms).stands_out(others);
        is_lost.then(|| Change::CutOff(self.begin_cut_off(attempt)))
    }

    fn note_cut_off(&mut self, attempt: &Attempt<'_>) -> Option<Change> {
        let cut_off = self.cut_off.as_mut()?;
        if !cut_off.remove_probe(attempt.task) {
            return None;
        }
        let is_over = attempt.at_ms - cut_off.since_ms > LONGEST_CUT_OFF_MS;
        if attempt.reach == Reach::Answered || is_over {
            self.cut_off = None;
            self.note_answer(attempt);
            return Some(Change::Opened);
        }
        let wait_ms = self.wait_ms;
        cut_off.probe_at_ms = attempt.at_ms + wait_ms;
        if cut_off.probes.is_empty() {
            self.wait_ms = (2 * wait_ms).min(LONGEST_WAIT_MS);
        }
        Some(Change::StillCutOff { wait_ms })
    }

    fn note_answer(&mut self, attempt: &Attempt<'_>) {
        self.last_answer_ms = Some(attempt.at_ms);
        self.excused.remove(&attempt.site);
    }

    fn remember(&mut self, attempt: &Attempt<'_>) {
        let before = self
            .recent
            .iter()
            .position(|seen| seen.site == attempt.site);
        let before = before.and_then(|index| self.recent.remove(index));
        let failure = (attempt.reach != Reach::Answered).then(|| {
            let mut failure = before
                .and_then(|before| before.failure)
                .unwrap_or_else(|| Failure {
                    tasks: Vec::new(),
                    before: attempt.before,
                    was_well: attempt.before.is_well() && !self.excused.contains(&attempt.site),
                    reach: attempt.reach,
                });
            failure.tasks.truncate(MOST_TASKS - 1);
            failure.tasks.push(attempt.task);
            failure.reach = attempt.reach;
            failure
        });
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            site: attempt.site,
            at_ms: attempt.at_ms,
            failure,
        });
        let too_old = attempt.at_ms - RECENT_MS;
        while self
            .recent
            .front()
            .is_some_and(|seen| seen.at_ms <= too_old)
        {
            self.recent.pop_front();
        }
    }

    /// Whether the latest failures in a row cannot be the sites' fault.
    fn has_lost_its_way(&self, now_ms: i64) -> bool {
        let (mut well, mut no_route) = (0, 0);
        let latest_first = self.recent.iter().rev();
        for failure in latest_first.map_while(|seen| seen.failure.as_ref()) {
            match failure.reach {
                Reach::NoSuchName if !failure.was_well => break,
                Reach::Silence { no_route: true } => no_route += 1,
                _ => {}
            }
            well += usize::from(failure.was_well);
        }
        let enough = match self.last_answer_ms {
            Some(_) => NO_ROUTE_LATER,
            None => NO_ROUTE_AT_FIRST,
        };
        let is_quiet = self
            .last_answer_ms
            .is_none_or(|at_ms| now_ms - at_ms >= QUIET_MS);
        is_quiet && (well >= WELL_IN_A_ROW || no_route >= enough)
    }

    fn begin_cut_off(&mut self, last: &Attempt<'_>) -> MachineFailures {
        let mut failures = MachineFailures::default();
        for seen in self.recent.drain(..) {
            if let Some(failure) = seen.failure {
                self.excused.insert(seen.site);
                failures.sites.push((seen.site, failure.before));
                failures.tasks.extend(failure.tasks);
            }
        }
        if self.excused.len() > MOST_EXCUSED {
            self.excused.clear();
        }
        self.wait_ms = FIRST_PROBE_MS;
        self.cut_off = Some(CutOff {
            since_ms: last.at_ms,
            sign: last
                .evidence
                .map_or(String::new(), |evidence| evidence.sign.clone()),
            probe_at_ms: last.at_ms + FIRST_PROBE_MS,
            probes: Vec::new(),
        });
        failures
    }
}

#[cfg(test)]
mod tests;
