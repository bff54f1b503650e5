//! The planned faults of processes and of the network between them.

use crate::dice::Dice;
use crate::lost_ways::EgressFailure;
use crate::plan::Plan;

/// How messages travel between supervisors and the dispatcher.
#[derive(Debug, Clone)]
pub(crate) struct NetworkPlan {
    pub(crate) loss_once_in: u64,
    pub(crate) twice_once_in: u64,
    pub(crate) late_once_in: u64,
    pub(crate) latest_ms: u64,
    pub(crate) reorders: bool,
}

/// A fault. The time in it is its duration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    DispatcherDies {
        down_ms: u64,
    },
    SupervisorDies {
        supervisor: usize,
        down_ms: u64,
    },
    /// The supervisor is asked to drain, and comes back later.
    SupervisorLeaves {
        supervisor: usize,
        down_ms: u64,
    },
    WorkerDies {
        supervisor: usize,
        slot: u16,
    },
    DispatcherStops {
        for_ms: u64,
    },
    SupervisorStops {
        supervisor: usize,
        for_ms: u64,
    },
    WorkerStops {
        supervisor: usize,
        slot: u16,
        for_ms: u64,
    },
    /// Messages are lost: upwards, downwards, or both.
    Offline {
        supervisor: usize,
        up: bool,
        down: bool,
        for_ms: u64,
    },
    /// The connection breaks, with all messages in transit, and is made again.
    Reconnects {
        supervisor: usize,
    },
    /// The wall clock of the dispatcher's machine is set this far ahead of the true time.
    ClockIsSet {
        ahead_ms: i64,
    },
    /// No request of the machine's workers leaves it.
    LosesWay {
        supervisor: usize,
        loss: EgressFailure,
        for_ms: u64,
    },
    /// Another supervisor with the same name starts elsewhere.
    Namesake {
        supervisor: usize,
        for_ms: u64,
    },
}

const HOUR_MS: i64 = 3_600_000;

impl Plan {
    /// In some worlds, restarts the machine on which everything runs, and sets its clock. Without a shared cache,
    /// only the dispatcher's stored state is known after that.
    pub(crate) fn add_reboot(&mut self, dice: &mut Dice) {
        if !dice.once_in(4) {
            return;
        }
        self.cache_fails = true;
        let at_ms = dice.between(0, self.estimate_ms);
        let down_ms = dice.log_uniform(1_000, 300_000);
        let ahead_ms = HOUR_MS;
        self.faults.push((at_ms, Fault::ClockIsSet { ahead_ms }));
        self.faults.push((at_ms, Fault::DispatcherDies { down_ms }));
        for supervisor in 0..self.supervisors {
            let dies = Fault::SupervisorDies {
                supervisor,
                down_ms,
            };
            self.faults.push((at_ms, dies));
        }
    }

    pub(crate) fn draw_fault(&self, dice: &mut Dice) -> Fault {
        let supervisor = dice.between(0, self.supervisors as u64 - 1) as usize;
        let slot = dice.between(0, u64::from(self.workers) - 1) as u16;
        // Either a short moment, or long enough for the sites to be given to others.
        let hand_over_ms = self.lease_ms + self.longest_request_ms;
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
}

impl NetworkPlan {
    pub(crate) fn draw(dice: &mut Dice, lease_ms: u64) -> NetworkPlan {
        NetworkPlan {
            loss_once_in: dice.one_of(&[0, 0, 1_000, 50]),
            twice_once_in: dice.one_of(&[0, 100]),
            late_once_in: dice.one_of(&[0, 0, 300]),
            latest_ms: dice.log_uniform(100, 3 * lease_ms),
            reorders: dice.once_in(3),
        }
    }

    pub(crate) fn perfect() -> NetworkPlan {
        NetworkPlan {
            loss_once_in: 0,
            twice_once_in: 0,
            late_once_in: 0,
            latest_ms: 0,
            reorders: false,
        }
    }
}
