//! Whether a supervisor's machine has a way out to the web, its *egress*. It compares the attempts of all machines at
//! the same time, because a failure belongs to a site or to a machine. Decisions only: no I/O, no clock.
//!
//! - *open*: it gets tasks.
//! - *cut off*: it gets none but some from time to time, the *probes*; if one is answered, the egress is
//!   open again. Failures that it reports say nothing about sites.
//!
//! Probes come in rounds. Where another machine has a way out, a round is one probe, at a site that is well. Otherwise
//! it is up to [`PROBES_IN_A_ROUND`], at sites drawn at random, because a list of sites may begin with hundreds of dead
//! ones.
//!
//! An egress is cut off when
//!
//! - far more of the sites that it has tried lately have failed than of those that the others have
//!   tried (a chance of less than one in a million, if sites alone were to blame), or
//! - sites that were well fail one after another, and none has answered for some seconds, or
//! - the machine has no route, or no answer from its name servers, for one site after another.
//!
//! The last two need no other machine. A series of dead sites, each failing on its own, meets neither: they were not
//! healthy before, and if one name is not found, the name servers have answered. A site is excused once: if it fails
//! again before it has answered, that counts against the site.

use std::collections::{HashSet, VecDeque};

use webfill_wire::{BackoffReason, Evidence, Outcome, TaskDone};

use crate::frontier::{SiteId, Standing, TaskId};

/// How many sites are remembered, and for how long.
const MOST_RECENT: usize = 1_024;
const RECENT_MS: i64 = 300_000;

/// Sites that must have been tried before machines are compared.
const ENOUGH_TO_COMPARE: u32 = 8;

/// Healthy sites that failed in a row, while none has answered for this long.
const WELL_IN_A_ROW: usize = 5;
const QUIET_MS: i64 = 3_000;

/// Sites in a row without a route to them: on a machine that has reached nothing yet, and on one that has.
const NO_ROUTE_AT_FIRST: usize = 5;
const NO_ROUTE_LATER: usize = 20;

/// At most this many failed tasks of one site are remembered, and this many excused sites.
const MOST_TASKS: usize = 64;
const MOST_EXCUSED: usize = 100_000;

/// Maximum number of probes of a machine at the same time while no other has a way out.
pub(super) const PROBES_IN_A_ROUND: usize = 16;

/// The first round of probes comes after this time, each further one after twice the time.
pub(super) const FIRST_PROBE_MS: i64 = 5_000;
const LONGEST_WAIT_MS: i64 = 60_000;

/// If all probes have failed for this long, the remaining sites may be dead after all.
const LONGEST_CUT_OFF_MS: i64 = 6 * 3_600_000;

/// The evidence of an attempt about its machine's egress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A server has answered.
    Answered,
    /// A name server has answered that there is no such name.
    NoSuchName,
    /// Nobody has answered. `no_route`: see [`Evidence`].
    Silence { no_route: bool },
}

impl Reach {
    /// `None` if nothing was requested, or the result shows nothing.
    pub fn of(done: &TaskDone) -> Option<Reach> {
        let Some(evidence) = &done.evidence else {
            return done.status_code.map(|_| Reach::Answered);
        };
        // A worker's finding about a page that it has read may have no status.
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

/// One attempt.
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

    /// Whether the failures exceed the number expected from the others' share of failures by five standard deviations
    /// (normal approximation of the binomial distribution).
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

/// The changes after an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// These failures were the machine's.
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
    /// Sites, and how each stood before.
    pub sites: Vec<(SiteId, Standing)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Egress {
    /// The latest attempt at each site, in their order.
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
    /// How the site stood before the first of them.
    before: Standing,
    /// It was healthy, and not excused recently.
    was_well: bool,
    reach: Reach,
}

/// Since when, and the last evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct CutOff {
    pub since_ms: i64,
    pub sign: String,
    /// From when on probes may be handed out.
    probe_at_ms: i64,
    /// Probes in flight.
    probes: Vec<TaskId>,
}

impl CutOff {
    /// A task has come back. Returns whether it was a probe.
    fn end(&mut self, task: TaskId) -> bool {
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

    /// How many probes may be handed out now, within this maximum; `None` if the egress is open.
    pub(super) fn room_for_probes(&self, in_a_round: usize, now_ms: i64) -> Option<usize> {
        let cut_off = self.cut_off.as_ref()?;
        Some(match cut_off.probe_at_ms <= now_ms {
            true => in_a_round.saturating_sub(cut_off.probes.len()),
            false => 0,
        })
    }

    /// A task was handed out to the machine: if it is cut off, that is a probe.
    pub(super) fn handed_out(&mut self, task: TaskId) {
        if let Some(cut_off) = &mut self.cut_off {
            cut_off.probes.push(task);
        }
    }

    /// A lease has ended. If it was a probe, and has shown nothing, there may soon be others.
    pub(super) fn lease_over(&mut self, task: TaskId, now_ms: i64) {
        if let Some(cut_off) = &mut self.cut_off
            && cut_off.end(task)
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

    /// Notes an attempt of the machine. `others`: what those of the other machines show.
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
        is_lost.then(|| Change::CutOff(self.begin(attempt)))
    }

    fn note_cut_off(&mut self, attempt: &Attempt<'_>) -> Option<Change> {
        let cut_off = self.cut_off.as_mut()?;
        if !cut_off.end(attempt.task) {
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

    /// Whether the failures in a row cannot be the sites' fault.
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

    fn begin(&mut self, last: &Attempt<'_>) -> MachineFailures {
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
