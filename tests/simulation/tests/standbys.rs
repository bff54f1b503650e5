//! Tests worlds with two or three dispatchers. One of them serves. The environment selects the seeds of the worlds:
//!
//! ```text
//! cargo nextest run -p webfill-simulation --test standbys                  # a few
//! WEBFILL_SIMULATION_SEED=4711 cargo test -p webfill-simulation --test standbys -- whoever --nocapture    # one, traced
//! WEBFILL_SIMULATION_RUNS=4096 cargo test -p webfill-simulation --test standbys -- whoever --nocapture    # many
//! ```

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use webfill_simulation::{
    StandbySabotage, StandbysReport, is_found_with_standbys, run_with_standbys,
};

/// The default number of seeds.
const RUNS: u64 = 12;

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
    let passed: Mutex<Vec<StandbysReport>> = Mutex::default();
    let failed: Mutex<Vec<(u64, Vec<String>)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    match run_with_standbys(*seed, false) {
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
    let sum = |figure: fn(&StandbysReport) -> u64| passed.iter().map(figure).sum::<u64>();
    println!(
        "{} runs, {} simulated hours in {:.1} s: {} tasks, {} takeovers, {} ghosts, {} lost answers, {} commits that \
         stayed unfinished, {} snapshots that {} dispatchers began with, {} records of {} bytes",
        seeds.len(),
        sum(|world| world.ms) / 3_600_000,
        started.elapsed().as_secs_f64(),
        sum(|world| world.tasks),
        sum(|world| world.takeovers),
        sum(|world| world.ghosts),
        sum(|world| world.lost_answers),
        sum(|world| world.unfinished),
        sum(|world| world.snapshots),
        sum(|world| world.begun_again),
        sum(|world| world.records),
        sum(|world| world.record_bytes),
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
fn whoever_serves_nothing_is_lost_and_no_site_is_harmed() {
    if let Some(seed) = number_from_env("WEBFILL_SIMULATION_SEED") {
        let faults = run_with_standbys(seed, true).err();
        assert_eq!(faults, None, "seed {seed}");
        return;
    }
    let runs = number_from_env("WEBFILL_SIMULATION_RUNS").unwrap_or(RUNS);
    let first = number_from_env("WEBFILL_SIMULATION_FIRST").unwrap_or(1);
    run_all(&(first..first + runs).collect::<Vec<_>>());
}

#[test]
fn the_same_seed_is_the_same_world_with_standbys() {
    for seed in [3, 17] {
        let passed = |seed| run_with_standbys(seed, false);
        assert_eq!(passed(seed), passed(seed));
    }
}

/// Checks that the noted seed, or another one, finds the sabotage (a deliberate fault). The environment may set the
/// seeds to search; then the time is not limited.
fn assert_is_found(sabotage: StandbySabotage, noted: u64) {
    let started = Instant::now();
    let found = match number_from_env("WEBFILL_SIMULATION_RUNS") {
        Some(runs) => {
            let first = number_from_env("WEBFILL_SIMULATION_FIRST").unwrap_or(1);
            (first..first + runs).find(|seed| is_found_with_standbys(sabotage, *seed))
        }
        None => std::iter::once(noted)
            .chain(1..)
            .take_while(|_| started.elapsed() < SEARCH_LASTS)
            .find(|seed| is_found_with_standbys(sabotage, *seed)),
    };
    println!(
        "{sabotage:?}: found by seed {found:?} in {:?}",
        started.elapsed()
    );
    assert!(found.is_some(), "{sabotage:?} was not found");
}

#[test]
fn effects_that_precede_their_record_are_found() {
    assert_is_found(StandbySabotage::EffectsPrecedeTheRecord, 9);
}

#[test]
fn a_dispatcher_that_takes_others_records_for_its_own_is_found() {
    assert_is_found(StandbySabotage::EpochsAreNotCompared, 2);
}

#[test]
fn a_dispatcher_whose_tenure_does_not_end_is_found() {
    assert_is_found(StandbySabotage::TenuresDoNotEnd, 6);
}

#[test]
fn a_tenure_that_counts_from_the_answer_is_found() {
    assert_is_found(StandbySabotage::TenuresCountFromTheAnswer, 2);
}

#[test]
fn wall_clocks_that_decide_are_found() {
    assert_is_found(StandbySabotage::WallClocksDecide, 2);
}

#[test]
fn a_dispatcher_that_awaits_no_supervisors_is_found() {
    assert_is_found(StandbySabotage::NobodyIsAwaited, 4);
}

#[test]
fn lost_answers_that_count_as_done_are_found() {
    assert_is_found(StandbySabotage::LostAnswersCountAsDone, 1);
}

#[test]
fn a_dispatcher_that_does_not_read_to_the_end_is_found() {
    assert_is_found(StandbySabotage::TheEndIsNotRead, 69);
}

#[test]
fn files_that_are_ahead_of_the_journal_are_found() {
    assert_is_found(StandbySabotage::FilesAreAhead, 2);
}

#[test]
fn records_under_cut_numbers_that_are_applied_are_found() {
    assert_is_found(StandbySabotage::CutRecordsCount, 2);
}

#[test]
fn late_writes_of_former_dispatchers_are_found() {
    assert_is_found(StandbySabotage::LateWritesCount, 25);
}
