//! Judges whether a supervisor's machine reaches the web: the state of its *egress*. To tell failures of a machine from
//! those of sites, the recent attempts of all machines are compared. Decisions only: no I/O, no clock.
//!
//! - *online*: the machine gets tasks.
//! - *offline*: it gets none except a few from time to time, the *probes*. If one is answered, the egress is online
//!   again. Failures that the machine reports meanwhile say nothing about sites.
//!
//! Probes come in rounds. If another machine reaches the web, a round is one probe, at a healthy site. Otherwise it is
//! up to [`PROBES_IN_A_ROUND`], at sites drawn at random, because a list of sites may begin with hundreds of dead ones.
//!
//! An egress is offline when
//!
//! - far more of the sites that it has recently tried have failed than of the sites that other machines have tried. If
//!   only sites were to blame, the probability would be below one in a million; or
//! - healthy sites fail one after another, and none has answered for some seconds, or
//! - the machine has no route, or no answer from its name servers, for one site after another.
//!
//! The last two conditions need no other machine. A series of dead sites, each failing on its own, meets neither of
//! them. Such sites were not healthy before, and a name that is not found shows that the name servers answer. A site is
//! excused once: if it fails again before it has answered, that counts against the site.

use std::collections::{HashSet, VecDeque};

use webfill_wire::{BackoffReason, Evidence, Outcome, TaskDone};

use crate::frontier::{SiteHealth, SiteId, TaskId};

/// The maximum number of sites remembered per machine, and for how long.
const MOST_RECENT: usize = 1_024;
const RECENT_MS: i64 = 300_000;

/// The number of sites that must have been tried before machines are compared.
const ENOUGH_TO_COMPARE: u32 = 8;

/// The number of healthy sites in a row whose failures show that a machine is offline, if none has answered for this
/// long.
const WELL_IN_A_ROW: usize = 5;
const QUIET_MS: i64 = 3_000;

/// The numbers of sites in a row without a route that show that a machine is offline: one for a machine that has
/// reached nothing yet, and one for a machine that has.
const NO_ROUTE_AT_FIRST: usize = 5;
const NO_ROUTE_LATER: usize = 20;

/// The maximum number of failed tasks remembered per site, and of excused sites.
const MOST_TASKS: usize = 64;
const MOST_EXCUSED: usize = 100_000;

/// The maximum number of simultaneous probes (test tasks) of an offline machine while no other machine reaches the web.
pub(super) const PROBES_IN_A_ROUND: usize = 16;

/// The wait before each of the first two rounds of probes, which test whether an offline machine reaches the web again.
/// The wait then doubles with each further round, up to the longest wait.
pub(super) const FIRST_PROBE_MS: i64 = 5_000;
const LONGEST_WAIT_MS: i64 = 60_000;

/// After this long without an answered probe (test task) the machine counts as online again: the remaining sites may be
/// dead after all.
const LONGEST_OFFLINE_MS: i64 = 6 * 3_600_000;

/// What an attempt to fetch shows about the machine's connection to the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachResult {
    /// A server has answered the request.
    Answered,
    /// A name server has answered that the name does not exist.
    NoSuchName,
    /// Nobody has answered. `no_route`: see [`Evidence`].
    Silence { no_route: bool },
}

impl ReachResult {
    /// What the result of a task shows about the machine's connection. `None` if nothing was requested, or if the
    /// result shows nothing about it.
    pub fn from_task(done: &TaskDone) -> Option<ReachResult> {
        let Some(evidence) = &done.evidence else {
            return done.status_code.map(|_| ReachResult::Answered);
        };
        // A page that was read counts as answered, even if the worker's evidence about it has no status code.
        if evidence.status_code.is_some() || done.outcome == Outcome::Ok {
            return Some(ReachResult::Answered);
        }
        let no_route = evidence.no_route;
        match done.outcome.site_trouble()?.reason {
            BackoffReason::Dns if !no_route => Some(ReachResult::NoSuchName),
            BackoffReason::Dns | BackoffReason::Unreachable | BackoffReason::Robots => {
                Some(ReachResult::Silence { no_route })
            }
            BackoffReason::Tls | BackoffReason::Busy | BackoffReason::Blocked => None,
        }
    }
}

/// One attempt of the machine to reach a site.
#[derive(Debug)]
pub(super) struct ReachAttempt<'a> {
    pub(super) task: TaskId,
    pub(super) site: SiteId,
    pub(super) reach: ReachResult,
    pub(super) before: SiteHealth,
    pub(super) evidence: Option<&'a Evidence>,
    pub(super) at_ms: i64,
}

/// How many sites machines have tried recently, and how many of these sites failed.
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
    /// binomial distribution). The expected number follows from the other machines' share of failures.
    fn fails_significantly_more(self, others: Tally) -> bool {
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

/// A change in whether a machine reaches the web, caused by an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum EgressChange {
    /// The machine is offline now. These failures were its fault.
    Offline(MachineFailures),
    /// A probe (test task) has failed. The next round of probes comes after this wait.
    StillOffline { wait_ms: i64 },
    /// The machine reaches the web again.
    Opened,
}

/// Failures that turned out to be a machine's fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineFailures {
    pub tasks: Vec<TaskId>,
    /// The sites that failed, each with its health before the failure.
    pub sites: Vec<(SiteId, SiteHealth)>,
}

/// The known facts about a machine's connection to the web.
#[derive(Debug, Default)]
pub(super) struct Egress {
    /// The latest attempt at each site, oldest first.
    recent: VecDeque<RecentAttempt>,
    last_answer_ms: Option<i64>,
    offline: Option<Offline>,
    /// Sites whose failures were the machine's fault, and that have not answered since.
    excused: HashSet<SiteId>,
    /// The wait after the next failed round of probes.
    wait_ms: i64,
}

#[derive(Debug)]
struct RecentAttempt {
    site: SiteId,
    at_ms: i64,
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    tasks: Vec<TaskId>,
    /// The health of the site before its first failure in a row.
    before: SiteHealth,
    /// Whether the site was healthy and not excused recently.
    was_well: bool,
    reach: ReachResult,
}

/// The state of a machine that is offline. `sign`: the last evidence for it, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Offline {
    pub since_ms: i64,
    pub sign: String,
    /// When the next probes (tasks that test the connection) may be handed out.
    probe_at_ms: i64,
    /// The tasks that were handed out as probes and have not ended.
    probes: Vec<TaskId>,
}

impl Offline {
    /// Notes that a task has ended or was given back. Returns whether it was a probe.
    fn remove_probe(&mut self, task: TaskId) -> bool {
        let index = self.probes.iter().position(|probe| *probe == task);
        index.map(|index| self.probes.swap_remove(index)).is_some()
    }
}

impl Egress {
    pub(super) fn offline_state(&self) -> Option<&Offline> {
        self.offline.as_ref()
    }

    /// When the next round of probes starts. `None` during a round, or if the machine is online.
    pub(super) fn probe_at_ms(&self) -> Option<i64> {
        let offline = self.offline.as_ref()?;
        offline.probes.is_empty().then_some(offline.probe_at_ms)
    }

    /// How many probes may be handed out now, with at most `in_a_round` of them unfinished. `None` if the machine is
    /// online.
    pub(super) fn free_probes(&self, in_a_round: usize, now_ms: i64) -> Option<usize> {
        let offline = self.offline.as_ref()?;
        Some(match offline.probe_at_ms <= now_ms {
            true => in_a_round.saturating_sub(offline.probes.len()),
            false => 0,
        })
    }

    /// Notes that a task was handed out to the machine. If it is offline, the task is a probe.
    pub(super) fn on_handed_out(&mut self, task: TaskId) {
        if let Some(offline) = &mut self.offline {
            offline.probes.push(task);
        }
    }

    /// Notes the end of a lease. If the task was a probe that has shown nothing, the next probe may soon follow.
    pub(super) fn on_lease_end(&mut self, task: TaskId, now_ms: i64) {
        if let Some(offline) = &mut self.offline
            && offline.remove_probe(task)
        {
            offline.probe_at_ms = offline.probe_at_ms.max(now_ms + FIRST_PROBE_MS);
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
    pub(super) fn record_attempt(
        &mut self,
        attempt: &ReachAttempt<'_>,
        others: Tally,
    ) -> Option<EgressChange> {
        if self.offline.is_some() {
            return self.record_attempt_while_offline(attempt);
        }
        self.push_recent(attempt);
        if attempt.reach == ReachResult::Answered {
            self.record_answer(attempt);
            return None;
        }
        let is_lost = self.has_lost_egress(attempt.at_ms)
            || self.tally(attempt.at_ms).fails_significantly_more(others);
        is_lost.then(|| EgressChange::Offline(self.go_offline(attempt)))
    }

    fn record_attempt_while_offline(&mut self, attempt: &ReachAttempt<'_>) -> Option<EgressChange> {
        let offline = self.offline.as_mut()?;
        if !offline.remove_probe(attempt.task) {
            return None;
        }
        let is_over = attempt.at_ms - offline.since_ms > LONGEST_OFFLINE_MS;
        if attempt.reach == ReachResult::Answered || is_over {
            self.offline = None;
            self.record_answer(attempt);
            return Some(EgressChange::Opened);
        }
        if let Some(evidence) = attempt.evidence {
            offline.sign.clone_from(&evidence.sign);
        }
        let wait_ms = self.wait_ms;
        offline.probe_at_ms = attempt.at_ms + wait_ms;
        if offline.probes.is_empty() {
            self.wait_ms = (2 * wait_ms).min(LONGEST_WAIT_MS);
        }
        Some(EgressChange::StillOffline { wait_ms })
    }

    fn record_answer(&mut self, attempt: &ReachAttempt<'_>) {
        self.last_answer_ms = Some(attempt.at_ms);
        self.excused.remove(&attempt.site);
    }

    fn push_recent(&mut self, attempt: &ReachAttempt<'_>) {
        let before = self
            .recent
            .iter()
            .position(|seen| seen.site == attempt.site);
        let before = before.and_then(|index| self.recent.remove(index));
        let failure = (attempt.reach != ReachResult::Answered).then(|| {
            let mut failure = before
                .and_then(|before| before.failure)
                .unwrap_or_else(|| Failure {
                    tasks: Vec::new(),
                    before: attempt.before,
                    was_well: attempt.before.is_healthy() && !self.excused.contains(&attempt.site),
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
        self.recent.push_back(RecentAttempt {
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
    fn has_lost_egress(&self, now_ms: i64) -> bool {
        let (mut well, mut no_route) = (0, 0);
        let latest_first = self.recent.iter().rev();
        for failure in latest_first.map_while(|seen| seen.failure.as_ref()) {
            match failure.reach {
                ReachResult::NoSuchName if !failure.was_well => break,
                ReachResult::Silence { no_route: true } => no_route += 1,
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

    fn go_offline(&mut self, last: &ReachAttempt<'_>) -> MachineFailures {
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
        self.offline = Some(Offline {
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
