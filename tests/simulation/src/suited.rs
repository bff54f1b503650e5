//! Plans of worlds where a sabotage (a deliberate fault) is likely to be found. In random worlds, only one in thousands
//! of seeds finds some of them, because several things must go wrong together.

use webfill_wire::Lane;

use crate::dice::Dice;
use crate::faults::{EgressFailure, Fault, NetworkPlan};
use crate::plan::Plan;
use crate::robots::RobotsPlan;
use crate::sabotage::Sabotage;
use crate::{dead_hosts, drawn_orders, drawn_sites, sites};

impl Plan {
    /// Draws the world of a seed, and changes it so that the sabotage probably causes a fault.
    pub(crate) fn for_sabotage(sabotage: Sabotage, seed: u64) -> Plan {
        let mut plan = Plan::without_dead_hosts(seed);
        let dice = &mut Dice::new(seed ^ 0x5017);
        match sabotage {
            Sabotage::LeasesAreIgnored | Sabotage::AnswersStretchTheLease => {
                plan.add_supervisor_silences(dice);
            }
            Sabotage::LastRequestsAreNotSent => plan.add_successive_supervisor_deaths(dice),
            Sabotage::FailuresEndTasks => plan.add_long_egress_loss(dice),
            Sabotage::AnswersDoNotWaitForLeases => plan.add_unreceived_orders(dice),
            Sabotage::HandingOutStops => plan.add_dead_hosts_only(dice),
            // This sabotage must be found in a random world.
            Sabotage::UnreachableSitesGoByTurns => plan = Plan::from_seed(seed),
            _ => {}
        }
        plan
    }

    /// Replaces the sites by healthy ones, and removes all faults.
    fn use_healthy_sites_only(&mut self, dice: &mut Dice) {
        self.sites.clear();
        self.supervisors = 2;
        drawn_sites::add_healthy_sites(self, dice, 24);
        (self.window_sites, self.queue) = (100, 60);
        self.network = NetworkPlan::perfect();
        self.deaths_in_turn = 0;
        self.group_bounds = None;
        self.faults.clear();
        self.orders.clear();
        self.crawl_lanes.fill(Lane::Http);
        self.lanes = vec![[Lane::Http; 2]; self.supervisors];
        self.records.fill(0);
        self.longest_request_ms = 1_000;
        self.estimate_ms = sites::estimate_ms(&self.sites, self.default_delay_ms);
    }

    /// Makes supervisors silent for longer than their leases. Messages to them are late.
    fn add_supervisor_silences(&mut self, dice: &mut Dice) {
        self.default_delay_ms = 1_000;
        self.use_healthy_sites_only(dice);
        self.lease_ms = dice.log_uniform(2_000, 5_000);
        self.network.late_once_in = 30;
        self.network.latest_ms = 4 * self.lease_ms;
        let hand_over_ms = self.lease_ms + self.longest_request_ms;
        for _ in 0..12 {
            let fault = Fault::Offline {
                supervisor: dice.between(0, self.supervisors as u64 - 1) as usize,
                up: true,
                down: false,
                for_ms: dice.between(hand_over_ms, 3 * hand_over_ms),
            };
            self.faults.push((dice.between(0, self.estimate_ms), fault));
        }
    }

    /// Makes supervisors die one after the other, most of them before they have reported that sites require long
    /// delays. The supervisors that get these sites can read the delays only in the shared cache.
    fn add_successive_supervisor_deaths(&mut self, dice: &mut Dice) {
        self.default_delay_ms = 0;
        self.use_healthy_sites_only(dice);
        for site in &mut self.sites {
            site.robots = RobotsPlan::steady_robots(Some(60_000));
        }
        self.cache_fails = false;
        self.lease_ms = 2_000;
        for number in 0..12 {
            let fault = Fault::SupervisorDies {
                supervisor: number % self.supervisors,
                down_ms: dice.between(100, 1_000),
            };
            let at_ms = number as u64 * 1_000 + dice.between(0, 1_000);
            self.faults.push((at_ms, fault));
        }
    }

    /// Cuts a machine off from the web for so long that all retries of its tasks fail.
    fn add_long_egress_loss(&mut self, dice: &mut Dice) {
        self.use_healthy_sites_only(dice);
        self.backoff = true;
        let fault = Fault::LosesWay {
            supervisor: 0,
            loss: dice.one_of(&[
                EgressFailure::NoRoute,
                EgressFailure::NoNames,
                EgressFailure::Silence,
            ]),
            for_ms: dice.between(60_000, 150_000),
        };
        self.faults.push((dice.between(500, 8_000), fault));
    }

    /// Adds dead hosts to a world without other faults.
    fn add_dead_hosts_only(&mut self, dice: &mut Dice) {
        self.use_healthy_sites_only(dice);
        self.backoff = true;
        dead_hosts::add_dead_hosts(self, dice);
    }

    /// Gives orders that supervisors and workers do not receive, while they hold waiting tasks that these orders
    /// forbid.
    fn add_unreceived_orders(&mut self, dice: &mut Dice) {
        self.default_delay_ms = 1_000;
        self.use_healthy_sites_only(dice);
        self.lease_ms = dice.log_uniform(5_000, 20_000);
        for _ in 0..6 {
            drawn_orders::add_unreceived_order(self, dice);
        }
    }
}
