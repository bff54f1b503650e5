//! Deliberate faults, which show that the simulation finds faults. Each disables something that protects sites or
//! enforces an operator's orders.

use webfill_wire::{SupervisorOutcomes, SupervisorToWorker};

use crate::world::World;

/// The deliberate faults. Each has a test in `tests/worlds.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Workers start requests without a lease.
    LeasesAreIgnored,
    /// A lease is extended from the arrival of an answer, not from the message that was answered.
    AnswersStretchTheLease,
    /// Workers keep tasks that were handed out under a lost lease.
    RecallsAreIgnored,
    /// A worker does not learn which sites its predecessor was requesting.
    NothingIsInherited,
    /// Workers do not learn when another worker last sent a request.
    LastRequestsAreNotSent,
    /// The database does not record the owners of sites.
    OwnersAreForgotten,
    /// Two supervisors with one name cannot be told apart.
    NamesakesShareAHome,
    /// The wall clock jumps farther than the tolerance.
    TheClockIsSetByADay,
    /// The database does not record which crawls require browsers.
    LanesAreForgotten,
    /// Answers wait for supervisors only a second, instead of until their leases have expired.
    AnswersDoNotWaitForLeases,
    /// Workers forget the back-off of a site after each answer.
    BackOffIsForgotten,
    /// A robots.txt that cannot be fetched allows everything.
    FailuresOfRobotsAllowEverything,
    /// Entries of robots.txt in the shared cache do not expire.
    CachedRobotsDoNotExpire,
    /// A failed request for robots.txt does not move the clock.
    RefusalsMoveNoClock,
    /// A redirect of robots.txt is followed immediately.
    RobotsHopsTakeNoTurn,
    /// A site does not back off after a block; instead, the task that met it ends.
    BlocksEndTasks,
    /// The database does not record which sites back off.
    BackoffsAreForgotten,
    /// Workers do not report the details of failures, so that a machine's failures are taken for its sites'.
    FailuresEndTasks,
    /// Failures of a cut-off machine count as answers, so that it gets its sites back.
    CutOffMachinesKeepTheirSites,
    /// The dispatcher learns that the store has the states of sites before it has them.
    StatesAreConfirmedUnwritten,
    /// Workers do not report the addresses of sites.
    AddressesAreNotSent,
    /// From some turn on, the dispatcher hands nothing out any more.
    HandingOutStops,
    /// An unreachable site serves its crawls in turns, as in former versions, so that its older tasks wait behind
    /// newer ones.
    UnreachableSitesGoByTurns,
}

/// The number of turns after which handing out stops. By then a fleet is at work.
const TURNS_BEFORE_IT_STOPS: u64 = 200;

impl World {
    /// Whether the dispatcher hands out tasks in this turn.
    pub(crate) fn hands_out(&self, turn: u64) -> bool {
        !self.is_sabotaged_by(Sabotage::HandingOutStops) || turn < TURNS_BEFORE_IT_STOPS
    }

    pub(crate) fn is_sabotaged_by(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// Applies the sabotage to outcomes on their way to the dispatcher.
    pub(crate) fn sabotage_outcomes(&self, mut outcomes: SupervisorOutcomes) -> SupervisorOutcomes {
        let is_offline = self.is_offline(&outcomes.supervisor);
        for done in &mut outcomes.done {
            match self.sabotage {
                Some(Sabotage::FailuresEndTasks) => done.evidence = None,
                Some(Sabotage::CutOffMachinesKeepTheirSites) if is_offline => {
                    let evidence = done.evidence.iter_mut();
                    evidence.for_each(|seen| seen.status_code = Some(200));
                }
                _ => {}
            }
        }
        outcomes
    }

    /// Applies the sabotage to a message to a worker.
    pub(crate) fn sabotage_message(
        &self,
        machine: usize,
        message: SupervisorToWorker,
    ) -> Option<SupervisorToWorker> {
        let now_ms = self.machines[machine].boot_ms(self.now_ms);
        match (self.sabotage, message) {
            (Some(Sabotage::LeasesAreIgnored), SupervisorToWorker::LeaseUntil { .. }) => {
                Some(SupervisorToWorker::LeaseUntil { boot_ms: u64::MAX })
            }
            (Some(Sabotage::AnswersStretchTheLease), SupervisorToWorker::LeaseUntil { .. }) => {
                let boot_ms = now_ms + self.plan.lease_ms;
                Some(SupervisorToWorker::LeaseUntil { boot_ms })
            }
            (Some(Sabotage::RecallsAreIgnored), SupervisorToWorker::Recall { .. })
            | (Some(Sabotage::NothingIsInherited), SupervisorToWorker::Inherited { .. }) => None,
            (Some(Sabotage::LastRequestsAreNotSent), SupervisorToWorker::Tasks(mut tasks)) => {
                for task in &mut tasks {
                    task.last_request_ago_ms = None;
                }
                Some(SupervisorToWorker::Tasks(tasks))
            }
            (_, message) => Some(message),
        }
    }
}
