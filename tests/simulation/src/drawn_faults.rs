//! Draws the faults of a world.

use crate::dice::Dice;
use crate::drawn_sites;
use crate::faults::{EgressFailure, Fault};
use crate::plan::Plan;

const HOUR_MS: i64 = 3_600_000;

/// The longest loss of a machine's connection to the web, in milliseconds. A site that backs off for this whole time
/// does not become unreachable.
const LONGEST_LOSS_MS: u64 = 150_000;

/// In some worlds, restarts the machine that all processes run on, and sets its clock. Without a shared cache, only the
/// state that the dispatcher has stored survives this.
pub(crate) fn add_reboot(plan: &mut Plan, dice: &mut Dice) {
    if !dice.once_in(4) {
        return;
    }
    plan.cache_fails = true;
    let at_ms = dice.between(0, plan.estimate_ms);
    let down_ms = dice.log_uniform(1_000, 300_000);
    let ahead_ms = HOUR_MS;
    plan.faults.push((at_ms, Fault::ClockIsSet { ahead_ms }));
    plan.faults.push((at_ms, Fault::DispatcherDies { down_ms }));
    for supervisor in 0..plan.supervisors {
        let dies = Fault::SupervisorDies {
            supervisor,
            down_ms,
        };
        plan.faults.push((at_ms, dies));
    }
}

pub(crate) fn draw_fault(plan: &Plan, dice: &mut Dice) -> Fault {
    let supervisor = dice.between(0, plan.supervisors as u64 - 1) as usize;
    let slot = dice.between(0, u64::from(plan.workers) - 1) as u16;
    // The duration is either a short moment, or long enough for the sites to be given to other machines.
    let hand_over_ms = plan.lease_ms + plan.longest_request_ms;
    let for_ms = match dice.once_in(3) {
        true => dice.between(hand_over_ms, 4 * hand_over_ms),
        false => dice.log_uniform(20, hand_over_ms),
    };
    let down_ms = for_ms;
    match dice.between(0, 11) {
        0 => Fault::DispatcherDies { down_ms },
        1 => Fault::SupervisorDies {
            supervisor,
            down_ms,
        },
        2 => Fault::SupervisorLeaves {
            supervisor,
            down_ms,
        },
        3 => Fault::WorkerDies { supervisor, slot },
        4 => Fault::DispatcherStops { for_ms },
        5 => Fault::SupervisorStops { supervisor, for_ms },
        6 => Fault::WorkerStops {
            supervisor,
            slot,
            for_ms,
        },
        7 | 8 => {
            let (up, down) = dice.one_of(&[(true, false), (false, true), (true, true)]);
            Fault::Offline {
                supervisor,
                up,
                down,
                for_ms,
            }
        }
        9 => Fault::Reconnects { supervisor },
        10 => Fault::ClockIsSet {
            ahead_ms: dice.one_of(&[0, HOUR_MS]),
        },
        _ => Fault::Namesake { supervisor, for_ms },
    }
}

/// In some worlds, one machine or all machines lose their connection to the web while they have many healthy sites.
pub(crate) fn add_egress_losses(plan: &mut Plan, dice: &mut Dice) {
    if !dice.once_in(8) {
        return;
    }
    // Healthy sites are added, because the dispatcher can only judge a machine that has many of them.
    let healthy = 7 * plan.supervisors;
    drawn_sites::add_healthy_sites(plan, dice, healthy);
    plan.window_sites = plan.window_sites.max(30);
    plan.queue = plan.queue.max(20);
    let affected = match dice.once_in(3) {
        true => 0..plan.supervisors,
        false => {
            let one = dice.between(0, plan.supervisors as u64 - 1) as usize;
            one..one + 1
        }
    };
    let mut at_ms = dice.between(500, 8_000);
    for _ in 0..dice.between(1, 2) {
        let loss = dice.one_of(&[
            EgressFailure::NoRoute,
            EgressFailure::NoNames,
            EgressFailure::Silence,
        ]);
        let for_ms = dice.log_uniform(8_000, LONGEST_LOSS_MS);
        for supervisor in affected.clone() {
            let fault = Fault::LosesWay {
                supervisor,
                loss,
                for_ms,
            };
            plan.faults.push((at_ms, fault));
        }
        at_ms += for_ms + dice.between(1_000, 60_000);
    }
}
