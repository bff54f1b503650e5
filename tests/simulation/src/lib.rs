//! A simulated world around webfill's real decisions. Hundreds of fleets crawl small webs for thousands of simulated
//! hours within seconds, while everything that can go wrong does. A seed determines each world, so a failed run can
//! be repeated.
//!
//! ```text
//! cargo nextest run -p webfill-simulation                                        # 300 seeds
//! WEBFILL_SIMULATION_SEED=4711 cargo nextest run -p webfill-simulation --no-capture whatever  # one, traced
//! WEBFILL_SIMULATION_RUNS=10000 WEBFILL_SIMULATION_FIRST=1001 cargo test -p webfill-simulation -- whatever --nocapture  # many
//! ```
//!
//! # What is real
//!
//! - the dispatcher's core with its SQLite database, read by a second connection ([`witness`]);
//! - the supervisors' core: queues, sessions, leases, recalls;
//! - the workers' politeness: the sites' queues and clocks, robots.txt (fetching with its redirects, parsing,
//!   memory), whether and with what delay a page may be fetched, permits and leases. It is the code that workers run,
//!   driven step by step ([`worker`]).
//!
//! # What is simulated
//!
//! - time, as one queue of events ([`world`]), and wall clocks; the dispatcher's clock is set at times;
//! - the network between supervisors and the dispatcher: it loses, delays, repeats and reorders;
//! - machines that lose their ways out to the web, one or all, and get them back ([`lost_ways`]);
//! - processes: they die, are stopped and continued, leave and come back, alone or all together when their machine
//!   restarts ([`trouble`]);
//! - the web ([`mod@web`]): pages that fail temporarily or permanently (429, 503, no answer), with and without
//!   `Retry-After`; pages that kill their workers; sites that block everybody for a while; robots.txt files that
//!   change, forbid, redirect in chains or without end, fail temporarily or permanently ([`robots`]);
//! - the shared cache ([`cache`]), the store with its records ([`store`]) and its copy of the states of sites,
//!   written late, or not before the dispatcher dies ([`site_states`]);
//! - servers shared by many sites, with limits on the requests to all of them together ([`shared_servers`]);
//! - a client that feeds crawls ([`client`]) and an operator who pauses, stops, blocks and limits ([`operator`]);
//! - unreachable hosts, with crawls of several priorities held back there ([`dead_hosts`]).
//!
//! Worlds where further dispatchers stand by have the same judges ([`standbys`]). Worlds with several dispatchers that
//! share the sites, a prototype, are separate: [`several`]. So are the worlds of [`large_fleet`], which are measured:
//! many machines, and a restart of their dispatcher.
//!
//! Not simulated: the gate's sockets, extraction, browsers, bodies, several origins at one site, and site clocks that
//! are reserved in the cache (`politeness.clock = "shared"`).
//!
//! # What is judged
//!
//! Each site judges every request ([`judge`]): overlaps, delays, robots.txt, back-off; and no task is requested that
//! was handed out while its site was backing off ([`backoff`]). If a site is due and the supervisors have credit,
//! something is handed out within a bounded number of turns ([`standstill`]). A machine without a way out is noticed,
//! costs no task, and gets probes only, until one is answered ([`machines`]). The database must add up at any time
//! ([`witness`]). At the end each reachable page has ended exactly once, with the right outcome ([`end`]).
//! [`Sabotage`] lists deliberate faults. Each of them must be found.

mod backoff;
mod cache;
mod client;
mod coordinator;
mod dead_hosts;
mod dice;
mod drawing;
mod drawn_faults;
mod drawn_orders;
mod drawn_sites;
mod end;
mod event;
mod events;
mod faults;
mod fleet;
mod group_bounds;
mod judge;
mod large;
mod lost_ways;
mod machines;
mod names;
mod network;
mod observations;
mod operator;
mod orders;
mod plan;
mod request;
mod robots;
mod sabotage;
mod sabotaged;
mod settings;
pub mod several;
mod shared_servers;
mod site_states;
mod sites;
mod standbys;
mod standstill;
mod store;
mod suited;
mod supervisors;
mod trouble;
mod turns;
mod web;
mod witness;
mod worker;
mod workers;
mod world;

use crate::end::check_end;
pub use crate::large::{LargeFleet, large_fleet};
use crate::plan::Plan;
use crate::robots::RobotsState;
pub use crate::sabotage::Sabotage;
use crate::settings::MOST_BACKOFFS;
use crate::standbys::file_checks;
pub use crate::standbys::{StandbySabotage, StandbysReport};
use crate::world::World;

/// The report about a world where no fault was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The duration of the world in simulated milliseconds.
    pub ms: u64,
    /// The number of pages whose robots.txt expired between the decision to fetch them and the request.
    pub stale_pages: u64,
    /// The number of times that the dispatcher has reported a machine as offline.
    pub outages: u64,
}

/// Runs the world of a seed to its end. Returns its measurements, or the faults that were found. `traces` prints the
/// events.
pub fn run(seed: u64, traces: bool) -> Result<Passed, Vec<String>> {
    run_to_end(World::new(seed, Plan::from_seed(seed), None, traces))
}

/// Whether the sabotage (a deliberate fault) is found in a suitable world of this seed. The same world must have no
/// faults without the sabotage.
pub fn is_found(sabotage: Sabotage, seed: u64) -> bool {
    let passes = |sabotaged| {
        let plan = Plan::for_sabotage(sabotage, seed);
        run_to_end(World::new(seed, plan, sabotaged, false)).is_ok()
    };
    !passes(Some(sabotage)) && passes(None)
}

/// Runs the world of a seed with two or three dispatchers to its end. Returns its measurements, or the faults that were
/// found.
pub fn run_with_standbys(seed: u64, traces: bool) -> Result<StandbysReport, Vec<String>> {
    run_standbys(World::new(seed, Plan::with_standbys(seed), None, traces))
}

/// Whether the sabotage of the standby dispatchers is found in a suitable world of this seed. The same world must have
/// no faults without the sabotage.
pub fn is_found_with_standbys(sabotage: StandbySabotage, seed: u64) -> bool {
    let passes = |sabotaged| {
        let plan = Plan::for_standby_sabotage(sabotage, seed);
        let mut world = World::new(seed, plan, None, false);
        world.standbys_mut().set_sabotage(sabotaged);
        run_standbys(world).is_ok()
    };
    !passes(Some(sabotage)) && passes(None)
}

fn run_standbys(mut world: World) -> Result<StandbysReport, Vec<String>> {
    let faults = run_until_fault(&mut world, |_| {});
    match faults.is_empty() {
        true => Ok(file_checks::standbys_report(&mut world)),
        false => Err(faults),
    }
}

fn run_to_end(world: World) -> Result<Passed, Vec<String>> {
    run_with_observer(world, |_| {})
}

/// Runs a world to its end, and calls `watch` after each event.
fn run_with_observer(
    mut world: World,
    watch: impl FnMut(&mut World),
) -> Result<Passed, Vec<String>> {
    let faults = run_until_fault(&mut world, watch);
    if faults.is_empty() {
        Ok(Passed {
            ms: world.now_ms,
            stale_pages: world.web.judge.stale_pages,
            outages: world.machines_seen.outages,
        })
    } else {
        Err(faults)
    }
}

/// Runs a world to its end, or until a fault is found. Returns the faults.
fn run_until_fault(world: &mut World, mut watch: impl FnMut(&mut World)) -> Vec<String> {
    let limit_ms = patience_ms(&world.plan);
    while events::run_next_event(world) {
        watch(world);
        if !world.web.judge.faults.is_empty() || !world.faults.is_empty() {
            break;
        }
        if world.now_ms > limit_ms {
            let status = world.coordinator.open_witness().counters();
            world
                .faults
                .push(format!("not finished in {limit_ms} ms: {status:?}"));
            break;
        }
    }
    turns::check_conservation(world);
    check_end(world);
    file_checks::check_files(world);
    let mut faults = std::mem::take(&mut world.web.judge.faults);
    faults.append(&mut world.faults);
    faults
}

/// The longest time that a world may take, in simulated milliseconds. It is far longer than any world needs, whatever
/// goes wrong.
fn patience_ms(plan: &Plan) -> u64 {
    let hand_over_ms = plan.lease_ms + plan.longest_request_ms;
    let sites = plan.sites.len() as u64;
    let shares = (1 + plan.priorities.len() + plan.orders.len()) as u64;
    // A robots.txt that always fails is requested again until the site is unreachable.
    let states = plan.sites.iter().flat_map(|site| site.robots.states());
    let retry_after_ms = states.filter_map(RobotsState::retry_after_ms).max();
    let backoffs_ms = 2 * MOST_BACKOFFS as u64 * retry_after_ms.unwrap_or(0);
    // A page that is always refused is also retried until its site is unreachable. After each refusal, the crawler
    // waits as long as the refusal demands.
    let backoffs = plan.backoff_table().busy.len();
    let refusals_ms = plan
        .sites
        .iter()
        .map(|site| site.refusals_ms(backoffs))
        .max();
    let refusals_ms = refusals_ms.unwrap_or(0);
    let standbys = plan.standbys.as_ref();
    50 * shares * sites * plan.estimate_ms
        + standbys.map_or(0, |standbys| standbys.patience_ms(hand_over_ms))
        + (100 + 20 * plan.faults.len() as u64) * hand_over_ms
        + backoffs_ms
        + shares * refusals_ms
        + 3_600_000
}
