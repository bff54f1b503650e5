//! The plan of a seed: the web, the fleet, the network and the faults.

use webfill_scheduler::{BackoffTable, GroupBounds, RetryTable};
use webfill_wire::Lane;
use webfill_worker::PolitenessConfig;

use crate::dead_hosts::DeadHosts;
use crate::dice::Dice;
use crate::faults::{Fault, NetworkPlan};
use crate::orders::Order;
use crate::robots::add_robots;
use crate::sites::{self, SitePlan};
use crate::standbys::StandbyPlan;

/// Everything decided by chance before the start.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) lease_ms: u64,
    pub(crate) longest_request_ms: u64,
    pub(crate) default_delay_ms: u64,
    pub(crate) window_sites: usize,
    pub(crate) supervisors: usize,
    pub(crate) workers: u16,
    /// The maximum number of tasks held by a supervisor.
    pub(crate) queue: u64,
    pub(crate) sites: Vec<SitePlan>,
    pub(crate) network: NetworkPlan,
    /// The faults, with their times.
    pub(crate) faults: Vec<(u64, Fault)>,
    /// Whether the shared cache is always unavailable, so that each worker requests robots.txt itself.
    pub(crate) cache_fails: bool,
    /// The dispatcher dies once in this many turns, before or after the turn's commit; 0: never.
    pub(crate) deaths_in_turn: u64,
    /// The approximate duration of the crawl without faults.
    pub(crate) estimate_ms: u64,
    /// The priorities of the crawls: one crawl, or several that go to the same sites.
    pub(crate) priorities: Vec<u8>,
    /// The lane that each crawl requires.
    pub(crate) crawl_lanes: Vec<Lane>,
    /// The number of records that the seeds of each crawl have; 0: none.
    pub(crate) records: Vec<usize>,
    /// Whether a page is retried if its robots.txt is unreachable.
    pub(crate) retries_unreachable: bool,
    /// Whether sites in trouble back off.
    pub(crate) backoff: bool,
    /// The lanes of each supervisor in its odd and in its even lives.
    pub(crate) lanes: Vec<[Lane; 2]>,
    /// The operator's orders, with their times. An order that reverts another one follows it.
    pub(crate) orders: Vec<(u64, Order)>,
    /// One in this many requests waits long for a name server; 0: none does.
    pub(crate) slow_names: u64,
    /// The limits on the requests to all sites of one provider, or at one address.
    pub(crate) group_bounds: Option<GroupBounds>,
    pub(crate) dead_hosts: Option<DeadHosts>,
    /// The database is checked whenever this many turns have passed.
    pub(crate) turns_between_checks: u64,
    /// Whether standstill is judged, which requires reading all sites.
    pub(crate) judges_standstill: bool,
    /// The dispatchers, if there are several of which one serves.
    pub(crate) standbys: Option<StandbyPlan>,
}

/// The longest wait that a server can demand (`politeness.max_delay`).
pub(crate) const LONGEST_WAIT_MS: u64 = 21_600_000;

/// The waits before the two further attempts of a page.
pub(crate) const RETRY_AFTER_S: [f64; 2] = [2.0, 20.0];

/// The duration of a backoff, and the number of consecutive ones.
pub(crate) const REST_S: f64 = 30.0;
pub(crate) const MOST_BACKOFFS: usize = 20;

impl Plan {
    /// The plan of a seed for ordinary runs.
    pub(crate) fn from_seed(seed: u64) -> Plan {
        let mut plan = Plan::without_dead_hosts(seed);
        plan.add_dead_hosts_sometimes(&mut Dice::new(seed ^ 0xDEAD));
        plan
    }

    /// The plan of a seed for sabotages, which unreachable hosts would only hide.
    pub(crate) fn without_dead_hosts(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let default_delay_ms = dice.one_of(&[0, 0, 0, 200, 1_000, 15_000, 600_000]);
        let longest_request_ms = dice.one_of(&[1_000, 10_000, 60_000]);
        let mut sites = sites::draw_sites(&mut dice, longest_request_ms);
        add_robots(&mut Dice::new(seed ^ 0x0B07), &mut sites);
        sites::add_failures(&mut Dice::new(seed ^ 0xFA11), &mut sites);
        let estimate_ms = sites::estimate_ms(&sites, default_delay_ms);
        // A lease must not be too short: there are ten heartbeats per lease, and each takes time to simulate.
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
            let fault = plan.draw_fault(&mut dice);
            plan.faults.push((at_ms, fault));
        }
        if most_faults == 0 {
            plan.network = NetworkPlan::perfect();
            plan.deaths_in_turn = 0;
        }
        // These use dice of their own, so that everything above is the same with and without them.
        plan.add_demand(&mut Dice::new(seed ^ 0xDE3A));
        plan.add_lanes(&mut Dice::new(seed ^ 0x1A9E));
        if most_faults > 0 {
            plan.add_unreceived_orders_sometimes(&mut Dice::new(seed ^ 0xDEAF));
            plan.add_reboot(&mut Dice::new(seed ^ 0xB007));
            plan.add_egress_losses(&mut Dice::new(seed ^ 0x1057));
        }
        plan.add_group_bounds(&mut Dice::new(seed ^ 0x6011));
        if plan.backoff {
            plan.add_blocks(&mut Dice::new(seed ^ 0xB10C));
        }
        plan
    }

    /// Adds, in some worlds, a second crawl, records, and orders of an operator.
    fn add_demand(&mut self, dice: &mut Dice) {
        if dice.once_in(2) {
            self.priorities.push(dice.one_of(&[40, 50, 50, 90]));
        }
        let crawls = 0..self.priorities.len();
        self.records = crawls.map(|_| dice.one_of(&[0, 0, 1, 3])).collect();
        self.add_orders(dice);
    }

    /// The records that the first page of a site serves, as a seed of a crawl.
    pub(crate) fn seed_records(&self, crawl: usize, site: usize) -> Vec<String> {
        match self.records[crawl] {
            0 => Vec::new(),
            count => vec![format!("record {}", site % count)],
        }
    }

    /// In some worlds, gives browsers to some supervisors, one of which always has them, and lets some crawls require
    /// them.
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

    /// Whether a crawl is stopped at any time.
    pub(crate) fn has_stop_of(&self, crawl: usize) -> bool {
        let stops =
            |order: &Order| matches!(order, Order::Stop { crawl: stopped } if *stopped == crawl);
        self.orders.iter().any(|(_, order)| stops(order))
    }

    pub(crate) fn politeness(&self) -> PolitenessConfig {
        PolitenessConfig {
            delay: self.default_delay_ms as f64 / 1e3,
            max_delay: LONGEST_WAIT_MS as f64 / 1e3,
            ..PolitenessConfig::default()
        }
    }

    /// The failures that are retried, and when.
    pub(crate) fn retry_table(&self) -> RetryTable {
        let waits = RETRY_AFTER_S.to_vec();
        RetryTable {
            timeout: waits.clone(),
            dns_error: waits.clone(),
            http_429: waits.clone(),
            http_503: waits.clone(),
            robots_unreachable: match self.retries_unreachable {
                true => waits,
                false => Vec::new(),
            },
            ..RetryTable::default()
        }
    }

    /// The backoff table. It is long enough that no site with temporary trouble becomes unreachable, except in worlds
    /// with dead hosts. Even there, a site that blocks everyone for a while must not become unreachable, because its
    /// pages would end as blocked.
    pub(crate) fn backoff_table(&self) -> BackoffTable {
        let dead_hosts = self.dead_hosts.as_ref();
        // Restarts give a robots.txt time to use up all of them, and then a page's failure would be the last.
        let most = match self.standbys {
            Some(_) => 2 * MOST_BACKOFFS,
            None => MOST_BACKOFFS,
        };
        let most_backoffs = dead_hosts.map_or(most, |dead_hosts| dead_hosts.most_backoffs);
        let backoff = |most: usize| match self.backoff {
            true => vec![REST_S; most],
            false => Vec::new(),
        };
        BackoffTable {
            robots: backoff(most_backoffs),
            unreachable: backoff(most_backoffs),
            dns: backoff(most_backoffs),
            busy: backoff(most_backoffs),
            blocked: backoff(most),
        }
    }

    /// Whether nothing goes wrong, so that nothing may be requested twice.
    pub(crate) fn is_peaceful(&self) -> bool {
        let network = &self.network;
        self.faults.is_empty()
            && self.deaths_in_turn == 0
            && (network.loss_once_in, network.late_once_in) == (0, 0)
            && !self.sites.iter().any(SitePlan::has_killers)
            && self.standbys.as_ref().is_none_or(StandbyPlan::is_peaceful)
    }

    /// Whether an operator ever orders that a site be forgotten, and its backoff with it.
    pub(crate) fn has_forget_of(&self, site: usize) -> bool {
        let forgets = |order: &Order| matches!(order, Order::Forget { site: forgotten } if *forgotten == site);
        self.orders.iter().any(|(_, order)| forgets(order))
    }

    /// Whether the wall clock is set at any time.
    pub(crate) fn has_clock_fault(&self) -> bool {
        let sets = |(_, fault): &(u64, Fault)| matches!(fault, Fault::ClockIsSet { .. });
        self.standbys.is_some() || self.faults.iter().any(sets)
    }
}
