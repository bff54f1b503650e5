//! A large fleet whose dispatcher is restarted once. The measurements are the time until all supervisors are connected
//! again, the evenness of the shares of sites, and the number of messages per task. Many machines and short times keep
//! a world within seconds. The world is judged like all other worlds.

use serde_json::Value;
use webfill_wire::Lane;

use crate::dice::Dice;
use crate::faults::{Fault, NetworkPlan};
use crate::plan::Plan;
use crate::robots::RobotsPlan;
use crate::run_with_observer;
use crate::sites::{PageFailure, PagePlan, SitePlan, estimate_ms};
use crate::turns;
use crate::world::World;

const SITES_EACH: usize = 12;
const PAGES: usize = 8;
const DELAY_MS: u64 = 12_000;

/// The dispatcher dies at `DIES_AT_MS` and is down for `AWAY_MS`. Messages are counted from `COUNTED_FROM_MS` until its
/// death.
const DIES_AT_MS: u64 = 30_000;
const AWAY_MS: u64 = 1_000;
const COUNTED_FROM_MS: u64 = 10_000;

const CHECK_EVERY_MS: u64 = 100;

/// The measurements of a large fleet, in simulated time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LargeFleet {
    pub pages: u64,
    /// The time from the first start until the dispatcher has accepted all supervisors.
    pub welcome_ms: u64,
    /// The time from the dispatcher's second start until it has accepted all supervisors again.
    pub welcome_again_ms: u64,
    /// The time from the dispatcher's second start until the number of sites of each machine is within a fifth of the
    /// mean.
    pub even_again_ms: u64,
    /// The fewest and the most sites of any machine, before the restart and after it.
    pub shares_before: (u64, u64),
    pub shares_after: (u64, u64),
    /// The number of messages between supervisors and dispatcher per task, in both directions.
    pub messages_per_task: f64,
    pub messages_per_s: f64,
}

/// Runs a fleet of this many machines. Returns the measurements, or the faults that were found.
pub fn large_fleet(supervisors: usize, seed: u64) -> Result<LargeFleet, Vec<String>> {
    let plan = plan(supervisors, seed);
    let pages = plan.sites.iter().map(|site| site.pages.len() as u64).sum();
    let mut observer = Observer {
        supervisors,
        next_check_ms: 0,
        seen: LargeFleet {
            pages,
            ..LargeFleet::default()
        },
        counted_from: None,
    };
    run_with_observer(World::new(seed, plan, None, false), |world| {
        observer.observe(world);
    })?;
    Ok(observer.seen)
}

fn plan(supervisors: usize, seed: u64) -> Plan {
    let mut plan = Plan::from_seed(seed);
    let mut dice = Dice::new(seed ^ 0x1A56E);
    plan.sites = (0..supervisors * SITES_EACH)
        .map(|number| star_site(number, &mut dice))
        .collect();
    plan.lease_ms = 10_000;
    plan.longest_request_ms = 10_000;
    plan.default_delay_ms = DELAY_MS;
    plan.window_sites = 20_000;
    plan.supervisors = supervisors;
    plan.workers = 1;
    plan.queue = 64;
    plan.network = NetworkPlan::perfect();
    plan.faults = vec![(DIES_AT_MS, Fault::DispatcherDies { down_ms: AWAY_MS })];
    plan.cache_fails = false;
    plan.deaths_in_turn = 0;
    plan.estimate_ms = estimate_ms(&plan.sites, DELAY_MS);
    plan.priorities = vec![50];
    plan.crawl_lanes = vec![Lane::Http];
    plan.records = vec![0];
    plan.lanes = vec![[Lane::Http; 2]; supervisors];
    plan.orders = Vec::new();
    plan.slow_names = 0;
    plan.group_bounds = None;
    plan.dead_hosts = None;
    // Each check reads all tasks. There are many tasks here, so checks are rare.
    plan.turns_between_checks = 20_000;
    plan.judges_standstill = false;
    plan
}

/// A site whose first page links to all of its other pages.
fn star_site(number: usize, dice: &mut Dice) -> SitePlan {
    let page = |page: usize| PagePlan {
        links: match page {
            0 => (1..PAGES).map(|other| (number, other)).collect(),
            _ => Vec::new(),
        },
        kills_its_worker: false,
        fails: 0,
        failure: PageFailure::NoAnswer,
        completes: false,
    };
    SitePlan {
        robots: RobotsPlan::steady_robots(None),
        answers_within_ms: dice.between(20, 800),
        pages: (0..PAGES).map(page).collect(),
        blocks: None,
    }
}

struct Observer {
    supervisors: usize,
    next_check_ms: u64,
    seen: LargeFleet,
    /// The time when the counting of messages begins, and the numbers of messages and of finished tasks at that time.
    counted_from: Option<(u64, u64, u64)>,
}

impl Observer {
    fn observe(&mut self, world: &mut World) {
        let is_all_seen = self.seen.even_again_ms > 0;
        if is_all_seen || world.now_ms < self.next_check_ms {
            return;
        }
        self.next_check_ms = world.now_ms + CHECK_EVERY_MS;
        let asked = turns::send_client_request(world, br#"{"action": "status"}"#);
        if let Some(status) = asked {
            self.check_evenness(world.now_ms, &status);
        }
    }

    fn check_evenness(&mut self, now_ms: u64, status: &Value) {
        let shares = status["supervisors"].as_array().into_iter().flatten();
        let shares: Vec<u64> = shares.filter_map(|one| one["sites"].as_u64()).collect();
        let is_whole = shares.len() == self.supervisors;
        let range = (
            shares.iter().min().copied().unwrap_or(0),
            shares.iter().max().copied().unwrap_or(0),
        );
        let seen = &mut self.seen;
        if now_ms < DIES_AT_MS {
            if is_whole && seen.welcome_ms == 0 {
                seen.welcome_ms = now_ms;
            }
            seen.shares_before = range;
            return self.count_messages(now_ms, status);
        }
        let since_ms = now_ms.saturating_sub(DIES_AT_MS + AWAY_MS);
        if is_whole && seen.welcome_again_ms == 0 {
            seen.welcome_again_ms = since_ms;
        }
        if is_whole && seen.even_again_ms == 0 && is_even(&shares) {
            seen.even_again_ms = since_ms;
            seen.shares_after = range;
        }
    }

    fn count_messages(&mut self, now_ms: u64, status: &Value) {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let messages =
            number(&status["messages"]["received"]) + number(&status["messages"]["sent"]);
        let done = number(&status["done"]);
        match self.counted_from {
            None if now_ms >= COUNTED_FROM_MS => self.counted_from = Some((now_ms, messages, done)),
            Some((from_ms, messages_before, done_before)) if done > done_before => {
                let messages = (messages - messages_before) as f64;
                self.seen.messages_per_task = messages / (done - done_before) as f64;
                self.seen.messages_per_s = messages * 1e3 / (now_ms - from_ms) as f64;
            }
            _ => {}
        }
    }
}

fn is_even(shares: &[u64]) -> bool {
    let mean = shares.iter().sum::<u64>() as f64 / shares.len() as f64;
    mean > 0.0
        && shares
            .iter()
            .all(|share| (*share as f64 - mean).abs() <= mean / 5.0)
}
