//! The plan of a seed: the web, the machines, the network and the faults.

use std::collections::BTreeSet;

use webfill_scheduler::{ApplicationLimits, BackoffTable, GroupBounds, RetryTable};
use webfill_wire::Lane;
use webfill_worker::PolitenessConfig;

use crate::faults::{Fault, NetworkPlan};
use crate::orders::Order;
use crate::settings::{LONGEST_WAIT_MS, MOST_BACKOFFS, REST_S, RETRY_AFTER_S};
use crate::sites::SitePlan;
use crate::standbys::StandbyPlan;

/// Everything about a world that is drawn at random before it starts.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) lease_ms: u64,
    pub(crate) longest_request_ms: u64,
    pub(crate) default_delay_ms: u64,
    pub(crate) window_sites: usize,
    pub(crate) supervisors: usize,
    pub(crate) workers: u16,
    /// The most tasks that a supervisor may hold.
    pub(crate) queue: u64,
    pub(crate) sites: Vec<SitePlan>,
    pub(crate) network: NetworkPlan,
    /// The faults, each with the time when it occurs.
    pub(crate) faults: Vec<(u64, Fault)>,
    /// Whether the shared cache is always unavailable, so that each worker requests robots.txt itself.
    pub(crate) cache_fails: bool,
    /// The dispatcher dies once in this many turns, before or after the turn's commit; 0: never.
    pub(crate) deaths_in_turn: u64,
    /// The approximate duration of the crawl without faults, in milliseconds.
    pub(crate) estimate_ms: u64,
    /// The priorities of the crawls. Several crawls go to the same sites.
    pub(crate) priorities: Vec<u8>,
    /// For each crawl, the lane that it requires: `http`, or `browser` for pages that need a browser.
    pub(crate) crawl_lanes: Vec<Lane>,
    /// For each crawl, the number of records that its seeds have; 0: none.
    pub(crate) records: Vec<usize>,
    /// Whether a page is retried if the robots.txt of its site is unreachable.
    pub(crate) retries_unreachable: bool,
    /// Whether sites in trouble back off: they get no requests for a while.
    pub(crate) backoff: bool,
    /// The lanes of each supervisor after an odd and after an even number of its starts.
    pub(crate) lanes: Vec<[Lane; 2]>,
    /// The operator's orders, each with its time. An order that reverts another one directly follows it.
    pub(crate) orders: Vec<(u64, Order)>,
    /// One in this many requests waits long for a name server; 0 means none.
    pub(crate) slow_names: u64,
    /// The limits on the requests to all sites of one hosting provider, or at one address.
    pub(crate) group_bounds: Option<GroupBounds>,
    pub(crate) dead_hosts: Option<DeadHosts>,
    /// The database is checked whenever this many turns have passed.
    pub(crate) turns_between_checks: u64,
    /// Whether the world is checked for standstill (tasks that are due and not handed out). The check reads all sites.
    pub(crate) judges_standstill: bool,
    /// The plan of the dispatchers, if there are several and one of them serves.
    pub(crate) standbys: Option<StandbyPlan>,
}

/// Hosts that never answer, and the crawls that are held back there.
#[derive(Debug)]
pub(crate) struct DeadHosts {
    /// A site becomes unreachable after this many consecutive backoffs.
    pub(crate) most_backoffs: usize,
    /// When each crawl is fed. All crawls are opened at the beginning.
    pub(crate) feeds_at_ms: Vec<u64>,
    /// When each crawl expires; `None` if it does not expire.
    pub(crate) expires_at_ms: Vec<Option<u64>>,
    pub(crate) limits: ApplicationLimits,
}

/// The index of the first crawl that belongs to an application with limits.
const FIRST_LIMITED: usize = 2;

impl Plan {
    /// The records that list the first page of a site. This page is a seed of the crawl.
    pub(crate) fn seed_records(&self, crawl: usize, site: usize) -> Vec<String> {
        match self.records[crawl] {
            0 => Vec::new(),
            count => vec![format!("record {}", site % count)],
        }
    }

    /// Whether an order stops this crawl at any time.
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

    /// The failures that lead to a retry of a page, and the waits before the retries.
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

    /// The waits after consecutive failures of a site. The table is long, so that sites in temporary trouble do not
    /// become unreachable. It is shorter in worlds with dead hosts, but still long enough for a temporary block.
    pub(crate) fn backoff_table(&self) -> BackoffTable {
        let dead_hosts = self.dead_hosts.as_ref();
        // In worlds with several dispatchers, restarts repeat requests, so a robots.txt that fails for a while may use
        // up the shorter table. Then the next failure of a page would make the site unreachable.
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

    /// Whether nothing goes wrong in this world, so that no page may be requested twice.
    pub(crate) fn is_peaceful(&self) -> bool {
        let network = &self.network;
        self.faults.is_empty()
            && self.deaths_in_turn == 0
            && (network.loss_once_in, network.late_once_in) == (0, 0)
            && !self.sites.iter().any(SitePlan::has_killers)
            && self.standbys.as_ref().is_none_or(StandbyPlan::is_peaceful)
    }

    /// Whether an operator ever orders to forget this site, which also ends its backoff.
    pub(crate) fn has_forget_of(&self, site: usize) -> bool {
        let forgets = |order: &Order| matches!(order, Order::Forget { site: forgotten } if *forgotten == site);
        self.orders.iter().any(|(_, order)| forgets(order))
    }

    /// Whether the wall clock is set at any time.
    pub(crate) fn has_clock_fault(&self) -> bool {
        let sets = |(_, fault): &(u64, Fault)| matches!(fault, Fault::ClockIsSet { .. });
        self.standbys.is_some() || self.faults.iter().any(sets)
    }

    /// The id of the application that a crawl belongs to.
    pub(crate) fn app(&self, crawl: usize) -> &'static str {
        match crawl < FIRST_LIMITED {
            true => "app",
            false => "limited",
        }
    }

    pub(crate) fn feeds_at_ms(&self, crawl: usize) -> u64 {
        let dead_hosts = self.dead_hosts.as_ref();
        dead_hosts.map_or(0, |dead_hosts| dead_hosts.feeds_at_ms[crawl])
    }

    pub(crate) fn expires_at_ms(&self, crawl: usize) -> Option<u64> {
        self.dead_hosts.as_ref()?.expires_at_ms[crawl]
    }

    /// Whether a crawl ends before all of its pages were tried.
    pub(crate) fn ends_early(&self, crawl: usize) -> bool {
        self.has_stop_of(crawl) || self.expires_at_ms(crawl).is_some()
    }

    pub(crate) fn loses_egress_twice(&self) -> bool {
        let loses = |(_, fault): &&(u64, Fault)| matches!(fault, Fault::LosesWay { .. });
        let at_ms: BTreeSet<u64> = self
            .faults
            .iter()
            .filter(loses)
            .map(|(at_ms, _)| *at_ms)
            .collect();
        at_ms.len() > 1
    }

    /// Whether a machine ever loses its way to the web.
    pub(crate) fn loses_egress(&self) -> bool {
        let loses = |(_, fault): &(u64, Fault)| matches!(fault, Fault::LosesWay { .. });
        self.faults.iter().any(loses)
    }
}
