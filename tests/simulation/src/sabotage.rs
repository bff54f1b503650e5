//! Faults that are put in on purpose, to show that the simulation finds faults. Each takes away one
//! of the things that protect sites, or that make an operator's orders hold.

use webfill_wire::{SupervisorOutcomes, SupervisorToWorker};

use crate::world::World;

/// Each has a test in `tests/worlds.rs` that notes a seed which finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Workers start requests without a lease.
    LeasesAreIgnored,
    /// The lease counts from the arrival of an answer, not from what was answered.
    AnswersStretchTheLease,
    /// Workers keep what was handed out under a lost lease.
    RecallsAreIgnored,
    /// A worker does not hear which sites the one before was asking.
    NothingIsInherited,
    /// Workers do not hear when another asked last.
    LastRequestsAreNotTold,
    /// The database does not say whose the sites are.
    OwnersAreForgotten,
    /// Two supervisors of one name cannot be told apart.
    NamesakesShareAHome,
    /// The wall clock jumps farther than is allowed for.
    TheClockIsSetByADay,
    /// The database does not say which crawls need browsers.
    LanesAreForgotten,
    /// Answers wait a second for supervisors, and not until their leases are over.
    AnswersDoNotWaitForLeases,
    /// Workers forget the back-off of a site after each answer.
    BackOffIsForgotten,
    /// A robots.txt that cannot be fetched allows everything.
    FailuresOfRobotsAllowEverything,
    /// What the shared cache knows of robots.txt does not expire.
    CachedRobotsDoNotExpire,
    /// A robots.txt that was requested in vain moves no clock.
    RefusalsMoveNoClock,
    /// A redirect of robots.txt is followed at once.
    RobotsHopsTakeNoTurn,
    /// A site does not rest after a block, which ends the task that met it.
    BlocksEndTasks,
    /// The database does not say which sites back off.
    BackoffsAreForgotten,
    /// What workers saw of failures is not told, so that a machine's are taken for its sites'.
    FailuresEndTasks,
    /// Failures of a machine that is cut off count as answers, so that it gets its sites again.
    CutOffMachinesKeepTheirSites,
    /// The dispatcher hears that the store has the states of sites before that is so.
    StatesAreConfirmedUnwritten,
    /// Workers do not tell at which address a site is.
    AddressesAreNotTold,
    /// The dispatcher hands nothing out any more, from some turn on.
    HandingOutStops,
    /// A site that was unreachable lets its crawls have their turns, as it did once, so that its older tasks wait
    /// behind newer ones.
    UnreachableSitesGoByTurns,
}

/// A fleet is under way by then.
const TURNS_BEFORE_IT_STOPS: u64 = 200;

impl World {
    /// Whether the dispatcher hands out what may be handed out, in its turn of this number.
    pub(crate) fn hands_out(&self, turn: u64) -> bool {
        !self.suffers(Sabotage::HandingOutStops) || turn < TURNS_BEFORE_IT_STOPS
    }

    pub(crate) fn suffers(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// What becomes of outcomes on their way to the dispatcher.
    pub(crate) fn sabotaged_outcomes(
        &self,
        mut outcomes: SupervisorOutcomes,
    ) -> SupervisorOutcomes {
        let is_cut_off = self.is_cut_off(&outcomes.supervisor);
        for done in &mut outcomes.done {
            match self.sabotage {
                Some(Sabotage::FailuresEndTasks) => done.evidence = None,
                Some(Sabotage::CutOffMachinesKeepTheirSites) if is_cut_off => {
                    let evidence = done.evidence.iter_mut();
                    evidence.for_each(|seen| seen.status_code = Some(200));
                }
                _ => {}
            }
        }
        outcomes
    }

    /// What becomes of a message to a worker.
    pub(crate) fn sabotaged(
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
            (Some(Sabotage::LastRequestsAreNotTold), SupervisorToWorker::Tasks(mut tasks)) => {
                for task in &mut tasks {
                    task.last_request_ago_ms = None;
                }
                Some(SupervisorToWorker::Tasks(tasks))
            }
            (_, message) => Some(message),
        }
    }
}
