//! Four dispatchers that share the sites among themselves, as `docs/explanation/scale.md` designs it: a prototype
//! beside the real core, which shows that the design holds. None of it is in the product.
//!
//! # What is real
//!
//! Each dispatcher is the real core with its real frontier, and each has a supervisor with the real
//! core of one.
//!
//! # What is the prototype
//!
//! - sites belong to slots, slots to dispatchers ([`slots`]);
//! - links to sites of others go through an outbox in the frontier's file ([`links`], [`tables`]);
//! - crawls are opened and stopped by versions ([`crawl_versions`]);
//! - a crawl's page limit is given out in shares ([`shares`]);
//! - the end of a crawl is found by waves ([`ending`]).
//!
//! # What is simulated
//!
//! Time; the network between dispatchers, which loses, delays, repeats, reorders, and is cut;
//! dispatchers that die, between turns and within them, before or after the commit. Supervisors do
//! not die here, and their network is in order: what becomes of that is tried in the worlds with one
//! dispatcher. Slots do not move.
//!
//! # What is judged
//!
//! No page is requested twice, by another than its site's owner, beyond the crawl's page limit, or
//! after the answer to a stop. Outboxes stay within their bounds. Every crawl comes to an end, not too
//! early: all that can be reached is done then, every link was judged at one dispatcher, and the
//! counters of each file add up. [`Sabotage`] lists faults that are put in on purpose, each of which
//! must be found.

mod client;
mod crawl_versions;
mod dispatcher;
mod ending;
mod fleet;
mod judge;
mod links;
mod machine;
mod message;
mod plan;
mod sabotage;
mod shares;
mod slots;
mod tables;
mod world;

use self::plan::Plan;
pub use self::sabotage::Sabotage;
use self::world::World;

/// A world in which no fault was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The simulated time that it took.
    pub ms: u64,
    pub pages: u64,
    /// Requests that were repeated, because a dispatcher that had died took its supervisor for lost.
    pub repeats: u64,
    /// Links that went from one dispatcher to another, and messages that carried them, repeated ones
    /// included.
    pub sent: u64,
    pub messages: u64,
    /// Links to others that were not sent, because they had been sent before.
    pub spared: u64,
    /// The most links in the outbox of one dispatcher.
    pub longest_outbox: u64,
}

/// Runs the world of a seed to its end. Returns what was measured, or the faults that were found.
/// `traces` prints what happens.
pub fn run(seed: u64, traces: bool) -> Result<Passed, Vec<String>> {
    run_plan(World::new(seed, Plan::of(seed), None, traces))
}

/// Whether a sabotage is found in the world of a seed that suits it, and nothing without it.
pub fn finds(sabotage: Sabotage, seed: u64) -> bool {
    let passes = |sabotaged| {
        let plan = Plan::suited_to(sabotage, seed);
        run_plan(World::new(seed, plan, sabotaged, false)).is_ok()
    };
    !passes(Some(sabotage)) && passes(None)
}

/// Runs a world in which nothing goes wrong, for its figures: as many sites, with as many pages, with
/// as many links to anywhere.
pub fn measure(sites: usize, pages: usize, links: usize) -> Result<Passed, Vec<String>> {
    let plan = Plan::to_measure(sites, pages, links);
    run_plan(World::new(1, plan, None, false))
}

/// Longer than any crawl here should take, whatever goes wrong.
const PATIENCE_MS: u64 = 1_200_000;

fn run_plan(mut world: World) -> Result<Passed, Vec<String>> {
    while world.step() {
        if !world.judge.faults.is_empty() {
            break;
        }
        if world.now_ms > PATIENCE_MS {
            world.judge.faults.push(String::from("not finished"));
            break;
        }
    }
    let passed = world.check_end();
    match world.judge.faults.is_empty() {
        true => Ok(passed),
        false => Err(std::mem::take(&mut world.judge.faults)),
    }
}
