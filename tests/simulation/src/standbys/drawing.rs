//! Draws the plans of worlds with standbys (dispatchers that take over if the serving one dies). Each plan is that of a
//! world with one dispatcher, plus further dispatchers and their faults.

use crate::dice::Dice;
use crate::faults::Fault;
use crate::plan::Plan;

use super::faults::NodeFault;
use super::plan::StandbyPlan;
use super::sabotage::StandbySabotage;

/// Two wall clocks differ by at most twice this time.
const CLOCKS_DIFFER_MS: u64 = 1_500_000;

impl Plan {
    /// Draws the plan of a seed with two or three dispatchers.
    pub(crate) fn with_standbys(seed: u64) -> Plan {
        let mut plan = Plan::without_dead_hosts(seed);
        let dice = &mut Dice::new(seed ^ 0x57A4);
        // Removes faults that only make sense in worlds with one dispatcher. For some of them, [`NodeFault`] has a
        // similar fault that names the affected dispatcher.
        plan.faults.retain(|(_, fault)| {
            !matches!(
                fault,
                Fault::DispatcherDies { .. }
                    | Fault::DispatcherStops { .. }
                    | Fault::ClockIsSet { .. }
                    | Fault::LosesWay { .. }
            )
        });
        plan.judges_standstill = false;
        let mut standbys = StandbyPlan::draw(dice, &plan);
        // Snapshots draw from other random numbers, so everything else is the same with and without them.
        standbys.add_snapshots(&mut Dice::new(seed ^ 0x5A95), &plan);
        plan.standbys = Some(standbys);
        plan
    }

    /// Draws a world where the sabotage probably causes a fault.
    pub(crate) fn for_standby_sabotage(sabotage: StandbySabotage, seed: u64) -> Plan {
        let mut plan = Plan::with_standbys(seed);
        let dice = &mut Dice::new(seed ^ 0x5AB0);
        let lease_ms = plan.lease_ms;
        let Some(standbys) = &mut plan.standbys else {
            return plan;
        };
        match sabotage {
            // This sabotage is only noticed while the records of commits cannot reach the journal.
            StandbySabotage::EffectsPrecedeTheRecord => {
                standbys.cut_journal_off(dice, plan.estimate_ms);
            }
            // These sabotages are only noticed if renewals of the lease are late, and if records are added after
            // another dispatcher has taken the lease.
            StandbySabotage::TenuresCountFromTheAnswer | StandbySabotage::TheEndIsNotRead => {
                standbys.late_once_in = 4;
                standbys.cut_journal_off(dice, plan.estimate_ms);
            }
            StandbySabotage::CutRecordsCount => standbys.cut_behind_ghosts(dice, plan.estimate_ms),
            StandbySabotage::LateWritesCount => {
                plan.backoff = true;
                for _ in 0..20 {
                    let down_ms = dice.between(20, 200);
                    let at_ms = dice.between(0, plan.estimate_ms + 60_000);
                    let dies = NodeFault::Dies {
                        node: None,
                        down_ms,
                    };
                    standbys.faults.push((at_ms, dies));
                }
            }
            StandbySabotage::NobodyIsAwaited => {
                plan.default_delay_ms = plan.default_delay_ms.max(1_000);
                for _ in 0..6 {
                    let for_ms = dice.between(lease_ms, 4 * lease_ms);
                    let at_ms = dice.between(0, plan.estimate_ms);
                    let fault = NodeFault::CutOffFromFleet { node: None, for_ms };
                    standbys.faults.push((at_ms, fault));
                    let dies = NodeFault::Dies {
                        node: None,
                        down_ms: for_ms,
                    };
                    standbys.faults.push((at_ms + 1, dies));
                }
            }
            _ => {}
        }
        plan
    }
}
impl StandbyPlan {
    fn draw(dice: &mut Dice, plan: &Plan) -> StandbyPlan {
        let lease_ms = dice
            .log_uniform(plan.lease_ms / 4, plan.lease_ms * 2)
            .max(2_000);
        let nodes = dice.between(2, 3) as usize;
        let mut standbys = StandbyPlan {
            nodes,
            lease_ms,
            tick_ms: lease_ms / 5,
            part_bytes: dice.log_uniform(100, 100_000) as usize,
            on_their_way_bytes: dice.log_uniform(200, 1_000_000) as usize,
            keeps_every_ms: dice.log_uniform(20, 5_000),
            way_ms: dice.one_of(&[2, 8, 40]),
            lost_once_in: dice.one_of(&[0, 0, 200, 20]),
            late_once_in: dice.one_of(&[0, 0, 100]),
            cut_short_once_in: dice.one_of(&[0, 50, 10]),
            clocks_ahead_ms: (0..nodes).map(|_| draw_clock(dice)).collect(),
            faults: Vec::new(),
            snapshots: Vec::new(),
        };
        let most_faults = dice.one_of(&[0, 2, 8, 24]);
        for _ in 0..dice.between(0, most_faults) {
            let at_ms = dice.between(0, plan.estimate_ms + lease_ms);
            let fault = standbys.draw_fault(dice, plan);
            standbys.faults.push((at_ms, fault));
        }
        standbys
    }

    fn draw_fault(&self, dice: &mut Dice, plan: &Plan) -> NodeFault {
        // In two of three cases, the fault affects the serving dispatcher, which `None` stands for.
        let node = match dice.once_in(3) {
            true => Some(dice.between(0, self.nodes as u64 - 1) as usize),
            false => None,
        };
        let hand_over_ms = self.lease_ms + plan.lease_ms + plan.longest_request_ms;
        let for_ms = match dice.once_in(2) {
            true => dice.between(self.lease_ms, 3 * hand_over_ms),
            false => dice.log_uniform(20, 2 * hand_over_ms),
        };
        match dice.between(0, 9) {
            0 | 1 => NodeFault::Dies {
                node,
                down_ms: for_ms,
            },
            2 | 3 => NodeFault::Stops { node, for_ms },
            4 => NodeFault::CutOffFromJournal { node, for_ms },
            5 => NodeFault::CutOffFromFleet { node, for_ms },
            6 => NodeFault::CutOff { node, for_ms },
            7 => NodeFault::JournalIsAway {
                for_ms: for_ms.min(3 * self.lease_ms),
            },
            8 => NodeFault::HandsOver,
            _ => NodeFault::ClockIsSet {
                node,
                ahead_ms: draw_clock(dice),
            },
        }
    }
}

fn draw_clock(dice: &mut Dice) -> i64 {
    dice.between(0, CLOCKS_DIFFER_MS) as i64 * dice.one_of(&[0, 1, -1])
}
