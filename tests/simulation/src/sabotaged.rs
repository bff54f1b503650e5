//! Applies the sabotage (the deliberate fault) of a world.

use webfill_wire::{SupervisorOutcomes, SupervisorToWorker};

use crate::machines;
use crate::sabotage::Sabotage;
use crate::world::World;

/// The number of turns before the sabotage `HandingOutStops` takes effect. By then, all processes are working.
const TURNS_BEFORE_IT_STOPS: u64 = 200;

/// Whether the dispatcher hands out tasks in this turn.
pub(crate) fn may_hand_out(world: &World, turn: u64) -> bool {
    !world.is_sabotaged_by(Sabotage::HandingOutStops) || turn < TURNS_BEFORE_IT_STOPS
}

/// Applies the sabotage to outcomes that are sent to the dispatcher.
pub(crate) fn sabotage_outcomes(
    world: &World,
    mut outcomes: SupervisorOutcomes,
) -> SupervisorOutcomes {
    let is_offline = machines::is_offline(world, &outcomes.supervisor);
    for done in &mut outcomes.done {
        match world.sabotage {
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

/// Applies the sabotage to a message that is sent to a worker.
pub(crate) fn sabotage_message(
    world: &World,
    machine: usize,
    message: SupervisorToWorker,
) -> Option<SupervisorToWorker> {
    let now_ms = world.machines[machine].boot_ms(world.now_ms);
    match (world.sabotage, message) {
        (Some(Sabotage::LeasesAreIgnored), SupervisorToWorker::LeaseUntil { .. }) => {
            Some(SupervisorToWorker::LeaseUntil { boot_ms: u64::MAX })
        }
        (Some(Sabotage::AnswersStretchTheLease), SupervisorToWorker::LeaseUntil { .. }) => {
            let boot_ms = now_ms + world.plan.lease_ms;
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
