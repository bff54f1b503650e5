//! The dispatcher in a simulated world: its real decisions and database, real supervisors'
//! decisions, and around them simulated workers, sites, connections and clocks, on which anything
//! may go wrong. Chance comes from a seed alone, so that a run that fails can be repeated:
//!
//! ```text
//! WEBFILL_SIMULATION_SEED=4711 cargo nextest run -p webfill-simulation --no-capture  # one run, traced
//! WEBFILL_SIMULATION_RUNS=100000 cargo nextest run -p webfill-simulation --no-capture # many
//! ```
//!
//! Judged are the sites, which see every request, and the database as another program sees it.

use crate::end::check_end;
use crate::plan::Plan;
pub use crate::sabotage::Sabotage;
use crate::world::World;

mod cache;
mod client;
mod coordinator;
mod dice;
mod end;
mod fleet;
mod judge;
mod operator;
mod orders;
mod plan;
mod robots;
mod sabotage;
mod store;
mod supervisors;
mod trouble;
mod web;
mod witness;
mod worker;
mod workers;
mod world;

/// Simulated time, in milliseconds.
#[derive(Debug)]
pub struct Passed(pub u64);

/// Runs one world to its end. The faults that were found, or how long it took.
pub fn run(seed: u64, sabotage: Option<Sabotage>, traces: bool) -> Result<Passed, Vec<String>> {
    let mut world = World::new(seed, sabotage, traces);
    let limit_ms = patience_ms(&world.plan);
    while world.step() {
        if !world.web.judge.faults.is_empty() || !world.faults.is_empty() {
            break;
        }
        if world.now_ms > limit_ms {
            let status = world.coordinator.witness().counters();
            world
                .faults
                .push(format!("not finished in {limit_ms} ms: {status:?}"));
            break;
        }
    }
    world.check_conservation();
    check_end(&mut world);
    let mut faults = std::mem::take(&mut world.web.judge.faults);
    faults.append(&mut world.faults);
    if faults.is_empty() {
        Ok(Passed(world.now_ms))
    } else {
        Err(faults)
    }
}

/// How long a run may take: far longer than it should with all that goes wrong in it.
fn patience_ms(plan: &Plan) -> u64 {
    let hand_over_ms = plan.lease_ms + plan.longest_request_ms;
    let sites = plan.sites.len() as u64;
    let shares = (1 + plan.priorities.len() + plan.orders.len()) as u64;
    50 * shares * sites * plan.estimate_ms
        + (100 + 20 * plan.faults.len() as u64) * hand_over_ms
        + 3_600_000
}
