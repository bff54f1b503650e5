//! Tests worlds with several dispatchers. Each world has a seed, and the environment selects the seeds:
//!
//! ```text
//! cargo nextest run -p webfill-simulation --test several                  # a few
//! WEBFILL_SIMULATION_SEED=4711 cargo test -p webfill-simulation --test several -- whatever --nocapture    # one, traced
//! WEBFILL_SIMULATION_RUNS=10000 cargo test -p webfill-simulation --test several -- whatever --nocapture   # many
//! ```

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use webfill_simulation::several::{Passed, Sabotage, is_found, measure, run};

/// The default number of seeds.
const RUNS: u64 = 40;

/// How long to search for another seed that finds a sabotage, in case a change of the plans has made the noted seed
/// useless.
const SEARCH_LASTS: Duration = Duration::from_secs(60);

fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

/// Runs seeds on all cores. Prints the first seeds that fail, and panics if there are any.
fn run_all(seeds: &[u64]) {
    let started = Instant::now();
    let next = AtomicU64::new(0);
    let passed: Mutex<Vec<Passed>> = Mutex::default();
    let failed: Mutex<Vec<(u64, Vec<String>)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    match run(*seed, false) {
                        Ok(world) => passed.lock().expect("no thread panicked").push(world),
                        Err(faults) => {
                            let mut failed = failed.lock().expect("no thread panicked");
                            failed.push((*seed, faults));
                        }
                    }
                }
            });
        }
    });
    let passed = passed.into_inner().expect("no thread panicked");
    let sum = |figure: fn(&Passed) -> u64| passed.iter().map(figure).sum::<u64>();
    println!(
        "{} runs, {} simulated minutes in {:.1} s: {} pages, {} requested again, {} links from one dispatcher to another in {} messages",
        seeds.len(),
        sum(|world| world.ms) / 60_000,
        started.elapsed().as_secs_f64(),
        sum(|world| world.pages),
        sum(|world| world.repeats),
        sum(|world| world.sent),
        sum(|world| world.messages),
    );
    let mut failed = failed.into_inner().expect("no thread panicked");
    failed.sort();
    for (seed, faults) in failed.iter().take(20) {
        let first = &faults[..faults.len().min(3)];
        println!("seed {seed}: {}", first.join("\n    "));
    }
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
}

#[test]
fn whatever_goes_wrong_between_them_nothing_is_lost_or_fetched_twice() {
    if let Some(seed) = number_from_env("WEBFILL_SIMULATION_SEED") {
        let faults = run(seed, true).err();
        assert_eq!(faults, None, "seed {seed}");
        return;
    }
    let runs = number_from_env("WEBFILL_SIMULATION_RUNS").unwrap_or(RUNS);
    let first = number_from_env("WEBFILL_SIMULATION_FIRST").unwrap_or(1);
    run_all(&(first..first + runs).collect::<Vec<_>>());
}

/// Prints the measurements in `tests/simulation/several.md`, of worlds without faults.
#[test]
#[ignore = "measures, and takes a minute"]
fn figures_of_several_dispatchers() {
    for links in [5, 20, 80] {
        let (sites, pages) = (400, 10);
        let started = Instant::now();
        let passed = measure(sites, pages, links).expect("nothing goes wrong");
        let (found, found_s) = (passed.pages * links as u64, passed.ms as f64 / 1e3);
        println!(
            "{} pages with {links} links each, in {found_s:.0} simulated seconds: of {found} links {} lead to sites of others; \
             {} of them were sent, {:.0}/s, in {} messages, {} spared; at most {} in an outbox; {:.1} s on this machine",
            passed.pages,
            passed.sent + passed.spared,
            passed.sent,
            passed.sent as f64 / found_s,
            passed.messages,
            passed.spared,
            passed.longest_outbox,
            started.elapsed().as_secs_f64(),
        );
    }
}

#[test]
fn the_same_seed_is_the_same_world_of_several() {
    for seed in [3, 17] {
        let passed = |seed| run(seed, false);
        assert_eq!(passed(seed), passed(seed));
    }
}

/// Checks that the noted seed, or another one, finds the sabotage (a deliberate fault). The environment may set the
/// seeds to search; then the time is not limited.
fn assert_is_found(sabotage: Sabotage, noted: u64) {
    let started = Instant::now();
    let found = match number_from_env("WEBFILL_SIMULATION_RUNS") {
        Some(runs) => (1..=runs).find(|seed| is_found(sabotage, *seed)),
        None => std::iter::once(noted)
            .chain(1..)
            .take_while(|_| started.elapsed() < SEARCH_LASTS)
            .find(|seed| is_found(sabotage, *seed)),
    };
    println!(
        "{sabotage:?}: found by seed {found:?} in {:?}",
        started.elapsed()
    );
    assert!(found.is_some(), "{sabotage:?} was not found");
}

#[test]
fn an_outbox_in_memory_is_found() {
    assert_is_found(Sabotage::OutboxIsNotDurable, 3);
}

#[test]
fn an_outbox_with_commits_of_its_own_is_found() {
    assert_is_found(Sabotage::OutboxIsCommittedLater, 23);
}

#[test]
fn links_that_are_taken_twice_are_found() {
    assert_is_found(Sabotage::ReceiverDoesNotDedupe, 2);
}

#[test]
fn links_that_are_confirmed_before_they_are_committed_are_found() {
    assert_is_found(Sabotage::ConfirmedBeforeCommit, 26);
}

#[test]
fn links_that_come_before_their_crawl_and_are_dropped_are_found() {
    assert_is_found(Sabotage::LinksOfUnknownCrawlsAreDropped, 4);
}

#[test]
fn a_crawl_that_ends_while_links_are_under_way_is_found() {
    assert_is_found(Sabotage::LinksUnderWayAreForgotten, 44);
}

#[test]
fn a_crawl_that_ends_after_one_wave_is_found() {
    assert_is_found(Sabotage::OneWaveIsEnough, 66);
}

#[test]
fn an_opening_that_comes_late_and_undoes_a_stop_is_found() {
    assert_is_found(Sabotage::OlderVersionsCount, 85);
}

#[test]
fn a_stop_that_does_not_wait_for_all_is_found() {
    assert_is_found(Sabotage::StopIsAnsweredEarly, 63);
}

#[test]
fn old_requests_for_shares_that_are_carried_out_are_found() {
    assert_is_found(Sabotage::OldShareRequestsCount, 66);
}

#[test]
fn shares_that_are_used_while_they_are_given_back_are_found() {
    assert_is_found(Sabotage::ReturnedSharesAreUsed, 66);
}

#[test]
fn a_full_outbox_that_holds_nobody_is_found() {
    assert_is_found(Sabotage::FullOutboxesDoNotHold, 40);
}
