//! Plans of worlds with standbys: those of one dispatcher, with more dispatchers and their faults.

use webfill_scheduler::journal::MemberTerms;

use crate::dice::Dice;
use crate::faults::Fault;
use crate::plan::Plan;

use super::faults::NodeFault;
use super::node::MISSED_AFTER_MS;
use super::sabotage::StandbySabotage;

#[derive(Debug, Clone)]
pub(crate) struct StandbyPlan {
    pub(super) nodes: usize,
    /// How long a lease lasts, and how often it is renewed and the journal read.
    pub(super) lease_ms: u64,
    pub(super) tick_ms: u64,
    /// The size of a record, and of all that are on their way.
    pub(super) part_bytes: usize,
    pub(super) on_their_way_bytes: usize,
    /// How often a serving dispatcher commits to its own file.
    pub(super) keeps_every_ms: u64,
    /// The longest way to the journal, and one in how many messages is lost or late.
    pub(super) way_ms: u64,
    pub(super) lost_once_in: u64,
    pub(super) late_once_in: u64,
    /// One in how many commands with several records is carried out in part.
    pub(super) cut_short_once_in: u64,
    /// How far the wall clocks are set.
    pub(super) clocks_ahead_ms: Vec<i64>,
    pub(super) faults: Vec<(u64, NodeFault)>,
}

/// Wall clocks differ by at most twice this much.
const CLOCKS_DIFFER_MS: u64 = 1_500_000;

impl Plan {
    /// The plan of a seed with two or three dispatchers.
    pub(crate) fn with_standbys(seed: u64) -> Plan {
        let mut plan = Plan::without_dead_hosts(seed);
        let dice = &mut Dice::new(seed ^ 0x57A4);
        // These faults have counterparts that say which dispatcher is resolve_node, or are of no interest here.
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
        plan.standbys = Some(StandbyPlan::draw(dice, &plan));
        plan
    }

    /// A world in which the sabotage is likely to show.
    pub(crate) fn for_standby_sabotage(sabotage: StandbySabotage, seed: u64) -> Plan {
        let mut plan = Plan::with_standbys(seed);
        let dice = &mut Dice::new(seed ^ 0x5AB0);
        let lease_ms = plan.lease_ms;
        let Some(standbys) = &mut plan.standbys else {
            return plan;
        };
        match sabotage {
            // Effects leave while their records do not arrive.
            StandbySabotage::EffectsPrecedeTheRecord => {
                standbys.cut_journal_off(dice, plan.estimate_ms);
            }
            // Renewals are late, and records are added after another dispatcher has taken the lease.
            StandbySabotage::TenuresCountFromTheAnswer | StandbySabotage::TheEndIsNotRead => {
                standbys.late_once_in = 4;
                standbys.cut_journal_off(dice, plan.estimate_ms);
            }
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
        // More often than not the one that serves.
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

    /// Adds faults that cut the dispatcher that serves off from the journal, until another one has taken over.
    fn cut_journal_off(&mut self, dice: &mut Dice, estimate_ms: u64) {
        for _ in 0..12 {
            let at_ms = dice.between(0, estimate_ms + 60_000);
            let for_ms = dice.between(2 * self.lease_ms, 4 * self.lease_ms);
            let fault = NodeFault::CutOffFromJournal { node: None, for_ms };
            self.faults.push((at_ms, fault));
        }
    }

    pub(super) fn member_terms(&self) -> MemberTerms {
        MemberTerms {
            lease_ms: self.lease_ms,
            missed_after_ms: MISSED_AFTER_MS,
            part_bytes: self.part_bytes,
            pending_bytes: self.on_their_way_bytes,
        }
    }

    /// How much longer a world may take than without these faults.
    pub(crate) fn patience_ms(&self, hand_over_ms: u64) -> u64 {
        (100 + 20 * self.faults.len() as u64) * (self.lease_ms + hand_over_ms)
    }

    /// Whether no dispatcher is replaced, and nothing about the journal goes wrong.
    pub(crate) fn is_peaceful(&self) -> bool {
        let losses = [self.lost_once_in, self.late_once_in, self.cut_short_once_in];
        self.faults.is_empty() && losses == [0; 3]
    }
}

fn draw_clock(dice: &mut Dice) -> i64 {
    dice.between(0, CLOCKS_DIFFER_MS) as i64 * dice.one_of(&[0, 1, -1])
}
