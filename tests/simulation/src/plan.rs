//! What is simulated under one seed: the web, the fleet, the network and the faults.

use webfill_dispatcher::{RestTable, RetryTable};
use webfill_wire::{Lane, Outcome};
use webfill_worker::PolitenessConfig;

use crate::dice::Dice;
use crate::orders::Order;
use crate::robots::{RobotsPlan, add_robots, retry_after_ms};
use crate::web::Response;

/// Everything that chance decides before the start.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) lease_ms: u64,
    pub(crate) longest_request_ms: u64,
    pub(crate) default_delay_ms: u64,
    pub(crate) window_sites: usize,
    pub(crate) supervisors: usize,
    pub(crate) workers: u16,
    /// Tasks that a supervisor holds at most.
    pub(crate) queue: u64,
    pub(crate) sites: Vec<SitePlan>,
    pub(crate) network: NetworkPlan,
    /// Faults with their times.
    pub(crate) faults: Vec<(u64, Fault)>,
    /// The shared cache is away all the time: each worker requests robots.txt itself.
    pub(crate) cache_fails: bool,
    /// The dispatcher dies once in this many turns, before or after the turn's commit; 0: never.
    pub(crate) deaths_in_turn: u64,
    /// About how long the crawl would take without faults.
    pub(crate) estimate_ms: u64,
    /// The crawls' priorities: one, or two that go to the same sites.
    pub(crate) priorities: Vec<u8>,
    /// What the crawls need.
    pub(crate) crawl_lanes: Vec<Lane>,
    /// To how many records the seeds of each crawl belong; 0: they belong to none.
    pub(crate) records: Vec<usize>,
    /// A page whose robots.txt is unreachable is tried again.
    pub(crate) retries_unreachable: bool,
    /// Sites in trouble rest.
    pub(crate) rests: bool,
    /// What each supervisor can do in its odd and in its even lives.
    pub(crate) lanes: Vec<[Lane; 2]>,
    /// What the operator wants, and when. What takes an order back stands behind it.
    pub(crate) orders: Vec<(u64, Order)>,
}

/// The longest that a server can make the crawler wait (`politeness.max_delay`).
pub(crate) const LONGEST_WAIT_MS: u64 = 21_600_000;

/// How long to wait before the two further attempts that a page gets.
pub(crate) const RETRY_AFTER_S: [f64; 2] = [2.0, 20.0];

/// How long a site rests, and how often in a row.
const REST_S: f64 = 30.0;
const MOST_RESTS: usize = 20;

/// All attempts fail.
pub(crate) const FAILS_FOR_GOOD: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct SitePlan {
    pub(crate) robots: RobotsPlan,
    pub(crate) answers_within_ms: u64,
    pub(crate) pages: Vec<PagePlan>,
}

#[derive(Debug)]
pub(crate) struct PagePlan {
    /// Sites and pages.
    pub(crate) links: Vec<(usize, usize)>,
    pub(crate) kills_its_worker: bool,
    /// How many requests in each crawl fail before one succeeds.
    pub(crate) fails: u32,
    pub(crate) failure: PageFailure,
    /// It completes the records that it serves.
    pub(crate) completes: bool,
}

/// How the requests for a page fail that may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageFailure {
    /// 503 or 429.
    Overloaded {
        status: u16,
        retry_after_ms: Option<u64>,
    },
    NoAnswer,
}

impl PageFailure {
    pub(crate) fn response(self) -> Response {
        match self {
            PageFailure::Overloaded {
                status,
                retry_after_ms,
            } => Response::overloaded(status, retry_after_ms),
            PageFailure::NoAnswer => Response::none(Outcome::Timeout),
        }
    }

    fn of(dice: &mut Dice) -> PageFailure {
        match dice.between(0, 2) {
            0 => PageFailure::NoAnswer,
            _ => PageFailure::Overloaded {
                status: dice.one_of(&[429, 503]),
                retry_after_ms: retry_after_ms(dice),
            },
        }
    }
}

impl PagePlan {
    /// How often each crawl requests it if nothing goes wrong.
    pub(crate) fn attempts(&self) -> u32 {
        1 + self.fails.min(RETRY_AFTER_S.len() as u32)
    }
}

/// How messages travel between supervisors and the dispatcher.
#[derive(Debug, Clone)]
pub(crate) struct NetworkPlan {
    pub(crate) loss_once_in: u64,
    pub(crate) twice_once_in: u64,
    pub(crate) late_once_in: u64,
    pub(crate) latest_ms: u64,
    pub(crate) reorders: bool,
}

/// Something that goes wrong. Times are how long it lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    DispatcherDies {
        down_ms: u64,
    },
    SupervisorDies {
        supervisor: usize,
        down_ms: u64,
    },
    /// Is told to drain, and comes again later.
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
    CutOff {
        supervisor: usize,
        up: bool,
        down: bool,
        for_ms: u64,
    },
    /// The connection breaks, with what is on its way, and is made again.
    Reconnects {
        supervisor: usize,
    },
    /// The wall clock of the dispatcher's machine is set, to this much ahead of the true time.
    ClockIsSet {
        ahead_ms: i64,
    },
    /// Another supervisor of this one's name starts elsewhere.
    Namesake {
        supervisor: usize,
        for_ms: u64,
    },
}

const HOUR_MS: i64 = 3_600_000;

impl Plan {
    pub(crate) fn of(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let default_delay_ms = dice.one_of(&[0, 0, 0, 200, 1_000, 15_000, 600_000]);
        let longest_request_ms = dice.one_of(&[1_000, 10_000, 60_000]);
        let mut sites = sites(&mut dice, longest_request_ms);
        add_robots(&mut Dice::new(seed ^ 0x0B07), &mut sites);
        add_failures(&mut Dice::new(seed ^ 0xFA11), &mut sites);
        let estimate_ms = estimate_ms(&sites, default_delay_ms);
        // Heartbeats come in tenths of it, and each costs time to simulate.
        let shortest_lease_ms = (estimate_ms / 100).clamp(2_000, 3_000_000);
        let lease_ms = dice.magnitude(shortest_lease_ms, shortest_lease_ms * 10);
        let mut plan = Plan {
            lease_ms,
            longest_request_ms,
            default_delay_ms,
            window_sites: dice.one_of(&[1, 3, 100]),
            supervisors: dice.between(1, 4) as usize,
            workers: dice.between(1, 3) as u16,
            queue: dice.magnitude(1, 60),
            sites,
            network: network(&mut dice, lease_ms),
            faults: Vec::new(),
            cache_fails: dice.once_in(4),
            deaths_in_turn: dice.one_of(&[0, 0, 300, 3_000]),
            estimate_ms,
            priorities: vec![50],
            crawl_lanes: Vec::new(),
            records: vec![0],
            retries_unreachable: dice.once_in(3),
            rests: !Dice::new(seed ^ 0x2E57).once_in(3),
            lanes: Vec::new(),
            orders: Vec::new(),
        };
        let most_faults = dice.one_of(&[0, 1, 4, 20]);
        for _ in 0..dice.between(0, most_faults) {
            let at_ms = dice.between(0, estimate_ms + lease_ms);
            let fault = plan.fault(&mut dice);
            plan.faults.push((at_ms, fault));
        }
        if most_faults == 0 {
            plan.network = NetworkPlan::perfect();
            plan.deaths_in_turn = 0;
        }
        // Thrown apart, so that what stands above is the same with and without.
        plan.add_demand(&mut Dice::new(seed ^ 0xDE3A));
        plan.add_lanes(&mut Dice::new(seed ^ 0x1A9E));
        if most_faults > 0 {
            plan.add_orders_to_the_deaf(&mut Dice::new(seed ^ 0xDEAF));
        }
        plan
    }

    /// A second crawl, records, orders of an operator.
    fn add_demand(&mut self, dice: &mut Dice) {
        if dice.once_in(2) {
            self.priorities.push(dice.one_of(&[40, 50, 50, 90]));
        }
        let crawls = 0..self.priorities.len();
        self.records = crawls.map(|_| dice.one_of(&[0, 0, 1, 3])).collect();
        self.add_orders(dice);
    }

    /// The records that a seed serves: the first page of a site in a crawl.
    pub(crate) fn seed_records(&self, crawl: usize, site: usize) -> Vec<String> {
        match self.records[crawl] {
            0 => Vec::new(),
            count => vec![format!("record {}", site % count)],
        }
    }

    /// Some have browsers, one of them always, and some crawls need them.
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

    /// Whether a crawl is stopped at some time.
    pub(crate) fn stops(&self, crawl: usize) -> bool {
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

    /// What is tried again, and when.
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

    /// Long enough that no site is given up whose trouble passes.
    pub(crate) fn rest_table(&self) -> RestTable {
        let rests = match self.rests {
            true => vec![REST_S; MOST_RESTS],
            false => Vec::new(),
        };
        RestTable {
            robots: rests.clone(),
            unreachable: rests.clone(),
            dns: rests.clone(),
            busy: rests.clone(),
            blocked: rests,
        }
    }

    /// Nothing goes wrong, so nothing may be asked twice.
    pub(crate) fn is_peaceful(&self) -> bool {
        let network = &self.network;
        self.faults.is_empty()
            && self.deaths_in_turn == 0
            && (network.loss_once_in, network.late_once_in) == (0, 0)
            && !self.sites.iter().any(SitePlan::has_killers)
    }

    /// Whether the wall clock is set at some time.
    pub(crate) fn sets_clocks(&self) -> bool {
        let sets = |(_, fault): &(u64, Fault)| matches!(fault, Fault::ClockIsSet { .. });
        self.faults.iter().any(sets)
    }

    fn fault(&self, dice: &mut Dice) -> Fault {
        let supervisor = dice.between(0, self.supervisors as u64 - 1) as usize;
        let slot = dice.between(0, u64::from(self.workers) - 1) as u16;
        // A blink, or long enough for the sites to be given to others.
        let hand_over_ms = self.lease_ms + self.longest_request_ms;
        let for_ms = match dice.once_in(3) {
            true => dice.between(hand_over_ms, 4 * hand_over_ms),
            false => dice.magnitude(20, hand_over_ms),
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
                Fault::CutOff {
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

impl SitePlan {
    fn has_killers(&self) -> bool {
        self.pages.iter().any(|page| page.kills_its_worker)
    }
}

impl NetworkPlan {
    fn perfect() -> NetworkPlan {
        NetworkPlan {
            loss_once_in: 0,
            twice_once_in: 0,
            late_once_in: 0,
            latest_ms: 0,
            reorders: false,
        }
    }
}

fn network(dice: &mut Dice, lease_ms: u64) -> NetworkPlan {
    NetworkPlan {
        loss_once_in: dice.one_of(&[0, 0, 1_000, 50]),
        twice_once_in: dice.one_of(&[0, 100]),
        late_once_in: dice.one_of(&[0, 0, 300]),
        latest_ms: dice.magnitude(100, 3 * lease_ms),
        reorders: dice.once_in(3),
    }
}

fn sites(dice: &mut Dice, longest_request_ms: u64) -> Vec<SitePlan> {
    let count = dice.between(1, 7) as usize;
    let sizes: Vec<usize> = (0..count).map(|_| dice.magnitude(1, 20) as usize).collect();
    let crawl_delays = dice.one_of(&[500, 20_000, 600_000, 3_600_000, 20_000_000]);
    let killers = dice.one_of(&[0, 0, 40]);
    let completing = dice.one_of(&[0, 4, 20]);
    let site = |pages: &usize| SitePlan {
        robots: RobotsPlan::steady(
            (!dice.once_in(3)).then(|| exact_ms(dice.magnitude(20, crawl_delays))),
        ),
        answers_within_ms: dice.magnitude(5, longest_request_ms),
        pages: (0..*pages)
            .map(|_| page(dice, &sizes, killers, completing))
            .collect(),
    };
    sizes.iter().map(site).collect()
}

fn page(dice: &mut Dice, sizes: &[usize], killers: u64, completing: u64) -> PagePlan {
    let links = dice.between(0, 5);
    let mut link = |_| {
        let site = dice.between(0, sizes.len() as u64 - 1) as usize;
        (site, dice.between(0, sizes[site] as u64 - 1) as usize)
    };
    PagePlan {
        links: (0..links).map(&mut link).collect(),
        kills_its_worker: dice.once_in(killers),
        fails: 0,
        failure: PageFailure::NoAnswer,
        completes: dice.once_in(completing),
    }
}

/// In some worlds pages fail for a while, or for good.
fn add_failures(dice: &mut Dice, sites: &mut [SitePlan]) {
    let failing = dice.one_of(&[0, 0, 5]);
    for page in sites.iter_mut().flat_map(|site| &mut site.pages) {
        if dice.once_in(failing) {
            page.fails = dice.one_of(&[1, 2, FAILS_FOR_GOOD]);
            page.failure = PageFailure::of(dice);
        }
    }
}

/// A delay that robots.txt can say exactly: it is read as a number of seconds in single precision.
fn exact_ms(delay_ms: u64) -> u64 {
    match delay_ms {
        0..1_000_000 => delay_ms,
        _ => delay_ms / 1_000 * 1_000,
    }
}

fn estimate_ms(sites: &[SitePlan], default_delay_ms: u64) -> u64 {
    let longest = sites.iter().map(|site| {
        let delays = site.robots.states();
        let delays = delays.map(|state| state.crawl_delay_ms().unwrap_or(default_delay_ms));
        let delay_ms = delays.fold(default_delay_ms, u64::max);
        // Each page may wait for an answer of robots.txt.
        let back_off_ms = match site.robots.fails() {
            true => (8 * default_delay_ms).clamp(60_000, LONGEST_WAIT_MS),
            false => 0,
        };
        let pages = site.pages.len() as u64;
        let failing = site.pages.iter().filter(|page| page.fails > 0).count() as u64;
        let failures_ms = failing * (8 * delay_ms.max(1_000)).min(LONGEST_WAIT_MS);
        pages * (delay_ms + back_off_ms + site.answers_within_ms) + failures_ms
    });
    longest.max().unwrap_or(0) + 10_000
}
