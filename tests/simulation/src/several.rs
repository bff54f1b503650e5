//! Four dispatchers that divide the sites among themselves, following the design in
//! `docs/explanation/several-dispatchers.md`: a prototype beside the real core, which shows that the design works. None
//! of it is in the product.
//!
//! # What is real
//!
//! Each dispatcher is the real core with its real frontier, and each has a supervisor with its real core.
//!
//! # What is the prototype
//!
//! - sites belong to slots, slots to dispatchers ([`slots`]);
//! - links to sites of others go through an outbox in the frontier's file ([`links`], [`tables`]);
//! - crawls are opened and stopped by versions ([`crawl_versions`]);
//! - a crawl's page limit is divided into shares ([`shares`]);
//! - the end of a crawl is detected by waves ([`ending`]).
//!
//! # What is simulated
//!
//! Time; the network between dispatchers, which loses, delays, repeats, reorders, and is cut; dispatchers that die,
//! between turns and within them, before or after the commit. Supervisors do not die here, and their network works:
//! those faults are tested in the worlds with one dispatcher. Slots do not move.
//!
//! # What is judged
//!
//! No page is requested twice, by another than its site's owner, beyond the crawl's page limit, or after the answer
//! to a stop. Outboxes stay within their bounds. Every crawl ends, and not too early: all reachable pages are done
//! then, every link was judged at one dispatcher, and the counters of each file add up. [`Sabotage`] lists deliberate
//! faults. Each of them must be found.

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

/// The measurements of a world where no fault was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The duration of the world, in simulated time.
    pub ms: u64,
    pub pages: u64,
    /// The number of requests that repeat a page. They are made if a dispatcher has died and then counted its
    /// supervisor as lost.
    pub repeats: u64,
    /// The number of links that were sent from one dispatcher to another, and the number of messages with links. Both
    /// include repetitions.
    pub sent: u64,
    pub messages: u64,
    /// The number of links to other dispatchers' sites that were found again and not sent a second time.
    pub spared: u64,
    /// The most links that were in the outbox of one dispatcher.
    pub longest_outbox: u64,
}

/// Runs the world of a seed to its end. Returns its measurements, or the faults that were found. `traces` prints the
/// events.
pub fn run(seed: u64, traces: bool) -> Result<Passed, Vec<String>> {
    run_plan(World::new(seed, Plan::from_seed(seed), None, traces))
}

/// Whether the sabotage (a deliberate fault) is found in a suitable world of this seed. The same world must have no
/// faults without the sabotage.
pub fn is_found(sabotage: Sabotage, seed: u64) -> bool {
    let passes = |sabotaged| {
        let plan = Plan::for_sabotage(sabotage, seed);
        run_plan(World::new(seed, plan, sabotaged, false)).is_ok()
    };
    !passes(Some(sabotage)) && passes(None)
}

/// Measures a world without faults. It has `sites` sites with `pages` pages each. Each page has `links` links to random
/// pages.
pub fn measure(sites: usize, pages: usize, links: usize) -> Result<Passed, Vec<String>> {
    let plan = Plan::for_measuring(sites, pages, links);
    run_plan(World::new(1, plan, None, false))
}

/// The longest time that a world may take. It is longer than any crawl here should take, whatever goes wrong.
const PATIENCE_MS: u64 = 1_200_000;

fn run_plan(mut world: World) -> Result<Passed, Vec<String>> {
    while world.run_next_event() {
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
