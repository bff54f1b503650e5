//! Many worlds, each under its seed; which ones, the environment says (see the crate's head).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use webfill_simulation::{Sabotage, run};

/// Seeds that found a fault once, a line each, with what it was.
const REGRESSIONS: &str = include_str!("../regressions.txt");

/// Runs by default.
const RUNS: u64 = 1_000;

/// When the plan has changed, a sabotage may need another seed than the noted one. This many are
/// searched for one.
const SEEDS_OF_A_SABOTAGE: u64 = 5_000;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

/// Runs seeds on all cores; panics with the first that fail.
fn run_all(seeds: &[u64]) {
    let started = Instant::now();
    let (next, passed_ms) = (AtomicU64::new(0), AtomicU64::new(0));
    let stale_pages = AtomicU64::new(0);
    let failed = std::sync::Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    match run(*seed, None, false) {
                        Ok(passed) => {
                            passed_ms.fetch_add(passed.ms, Ordering::Relaxed);
                            stale_pages.fetch_add(passed.stale_pages, Ordering::Relaxed);
                        }
                        Err(faults) => {
                            let mut failed = failed.lock().expect("no thread panicked");
                            failed.push((*seed, faults));
                        }
                    }
                }
            });
        }
    });
    let hours = passed_ms.into_inner() / 3_600_000;
    let seconds = started.elapsed().as_secs_f64();
    let stale_pages = stale_pages.into_inner();
    println!(
        "{} runs, {hours} simulated hours in {seconds:.1} s; {stale_pages} pages were fetched under a \
         robots.txt that had expired while they waited for their turn",
        seeds.len()
    );
    let mut failed = failed.into_inner().expect("no thread panicked");
    failed.sort();
    for (seed, faults) in failed.iter().take(20) {
        println!(
            "seed {seed}: {}",
            faults[..faults.len().min(3)].join("\n    ")
        );
    }
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
}

#[test]
fn whatever_goes_wrong_nothing_is_lost_and_no_site_is_harmed() {
    if let Some(seed) = setting("WEBFILL_SIMULATION_SEED") {
        let faults = run(seed, None, true).err();
        assert_eq!(faults, None, "seed {seed}");
        return;
    }
    let runs = setting("WEBFILL_SIMULATION_RUNS").unwrap_or(RUNS);
    let first = setting("WEBFILL_SIMULATION_FIRST").unwrap_or(1);
    run_all(&(first..first + runs).collect::<Vec<_>>());
}

#[test]
fn what_went_wrong_once_does_not_go_wrong_again() {
    let lines = REGRESSIONS.lines().filter(|line| !line.starts_with('#'));
    let seeds = lines.filter_map(|line| line.split_whitespace().next());
    let seeds: Vec<u64> = seeds
        .map(|seed| seed.parse().expect("a seed is a number"))
        .collect();
    assert!(!seeds.is_empty());
    run_all(&seeds);
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [3, 17, 40] {
        let passed = |seed| run(seed, None, false);
        assert_eq!(passed(seed), passed(seed));
    }
}

#[test]
fn what_keeps_sites_from_harm_is_missed_when_it_is_taken_away() {
    for (sabotage, noted) in Sabotage::ALL {
        let mut seeds = std::iter::once(noted).chain(1..=SEEDS_OF_A_SABOTAGE);
        let found = seeds.find(|seed| run(*seed, Some(sabotage), false).is_err());
        println!("{sabotage:?}: found by seed {found:?}");
        assert!(found.is_some(), "{sabotage:?} was not found");
    }
}
