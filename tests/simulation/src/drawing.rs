//! Draws the plan of a seed at random. Each part has its own random numbers, so that adding a part does not change the
//! others.

use webfill_wire::Lane;

use crate::dice::Dice;
use crate::faults::NetworkPlan;
use crate::plan::Plan;
use crate::{dead_hosts, drawn_faults, drawn_orders, drawn_sites, group_bounds, sites};

impl Plan {
    /// Draws the plan of an ordinary world from its seed.
    pub(crate) fn from_seed(seed: u64) -> Plan {
        let mut plan = Plan::without_dead_hosts(seed);
        dead_hosts::add_dead_hosts_sometimes(&mut plan, &mut Dice::new(seed ^ 0xDEAD));
        plan
    }

    /// The plan of a seed for sabotages (deliberate faults that must be found). It has no unreachable hosts, because
    /// they would only hide a sabotage.
    pub(crate) fn without_dead_hosts(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let default_delay_ms = dice.one_of(&[0, 0, 0, 200, 1_000, 15_000, 600_000]);
        let longest_request_ms = dice.one_of(&[1_000, 10_000, 60_000]);
        let mut sites = drawn_sites::draw_sites(&mut dice, longest_request_ms);
        drawn_sites::add_robots(&mut Dice::new(seed ^ 0x0B07), &mut sites);
        drawn_sites::add_failures(&mut Dice::new(seed ^ 0xFA11), &mut sites);
        let estimate_ms = sites::estimate_ms(&sites, default_delay_ms);
        // The lease (how long a silent supervisor keeps its tasks) must not be too short. There are ten heartbeats per
        // lease, and it takes time to simulate each of them.
        let shortest_lease_ms = (estimate_ms / 100).clamp(2_000, 3_000_000);
        let lease_ms = dice.log_uniform(shortest_lease_ms, shortest_lease_ms * 10);
        let mut plan = Plan {
            lease_ms,
            longest_request_ms,
            default_delay_ms,
            window_sites: dice.one_of(&[1, 3, 100]),
            supervisors: dice.between(1, 4) as usize,
            workers: dice.between(1, 3) as u16,
            queue: dice.log_uniform(1, 60),
            sites,
            network: NetworkPlan::draw(&mut dice, lease_ms),
            faults: Vec::new(),
            cache_fails: dice.once_in(4),
            deaths_in_turn: dice.one_of(&[0, 0, 300, 3_000]),
            estimate_ms,
            priorities: vec![50],
            crawl_lanes: Vec::new(),
            records: vec![0],
            retries_unreachable: dice.once_in(3),
            backoff: !Dice::new(seed ^ 0x2E57).once_in(3),
            lanes: Vec::new(),
            orders: Vec::new(),
            slow_names: Dice::new(seed ^ 0x510).one_of(&[0, 0, 5]),
            group_bounds: None,
            dead_hosts: None,
            turns_between_checks: 64,
            judges_standstill: true,
            standbys: None,
        };
        let most_faults = dice.one_of(&[0, 1, 4, 20]);
        for _ in 0..dice.between(0, most_faults) {
            let at_ms = dice.between(0, estimate_ms + lease_ms);
            let fault = drawn_faults::draw_fault(&plan, &mut dice);
            plan.faults.push((at_ms, fault));
        }
        if most_faults == 0 {
            plan.network = NetworkPlan::perfect();
            plan.deaths_in_turn = 0;
        }
        // These parts draw from other random numbers, so the parts drawn before are the same with and without them.
        plan.add_demand(&mut Dice::new(seed ^ 0xDE3A));
        plan.add_lanes(&mut Dice::new(seed ^ 0x1A9E));
        if most_faults > 0 {
            drawn_orders::add_unreceived_orders_sometimes(&mut plan, &mut Dice::new(seed ^ 0xDEAF));
            drawn_faults::add_reboot(&mut plan, &mut Dice::new(seed ^ 0xB007));
            drawn_faults::add_egress_losses(&mut plan, &mut Dice::new(seed ^ 0x1057));
        }
        group_bounds::add_group_bounds(&mut plan, &mut Dice::new(seed ^ 0x6011));
        if plan.backoff {
            drawn_sites::add_blocks(&mut plan, &mut Dice::new(seed ^ 0xB10C));
        }
        plan
    }

    /// In some worlds, adds a second crawl, records, and orders of an operator.
    fn add_demand(&mut self, dice: &mut Dice) {
        if dice.once_in(2) {
            self.priorities.push(dice.one_of(&[40, 50, 50, 90]));
        }
        let crawls = 0..self.priorities.len();
        self.records = crawls.map(|_| dice.one_of(&[0, 0, 1, 3])).collect();
        drawn_orders::add_orders(self, dice);
    }

    /// In some worlds, gives browsers to some supervisors, and lets some crawls require browsers. One of these
    /// supervisors has a browser at all times.
    fn add_lanes(&mut self, dice: &mut Dice) {
        let crawls = self.priorities.len();
        if dice.once_in(2) {
            self.crawl_lanes = vec![Lane::Http; crawls];
            self.lanes = vec![[Lane::Http; 2]; self.supervisors];
            return;
        }
        let mut lane = || dice.one_of(&[Lane::Http, Lane::Browser]);
        self.crawl_lanes = (0..crawls).map(|_| lane()).collect();
        self.lanes = (0..self.supervisors).map(|_| [lane(), lane()]).collect();
        let always = dice.between(0, self.supervisors as u64 - 1) as usize;
        self.lanes[always] = [Lane::Browser; 2];
    }
}
