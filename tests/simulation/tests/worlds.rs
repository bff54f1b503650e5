//! Tests many worlds. Each world has a seed, and the environment selects the seeds (see the crate documentation).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use webfill_simulation::{Sabotage, is_found, run};

/// Seeds of worlds where a fault was found, one per line, each with a description.
const REGRESSIONS: &str = include_str!("../regressions.txt");

/// The default number of seeds.
const RUNS: u64 = 300;

/// How long another seed that finds a sabotage (a deliberate fault) is searched. This is needed if the noted seed no
/// longer finds it after a change of the plans.
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
    let (next, passed_ms) = (AtomicU64::new(0), AtomicU64::new(0));
    let (stale_pages, outages) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed = std::sync::Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    match run(*seed, false) {
                        Ok(passed) => {
                            passed_ms.fetch_add(passed.ms, Ordering::Relaxed);
                            stale_pages.fetch_add(passed.stale_pages, Ordering::Relaxed);
                            outages.fetch_add(passed.outages, Ordering::Relaxed);
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
    let (stale_pages, outages) = (stale_pages.into_inner(), outages.into_inner());
    println!(
        "{} runs, {hours} simulated hours in {seconds:.1} s; machines were offline {outages} times; \
         {stale_pages} pages were fetched under a robots.txt that had expired while they waited for \
         their turn",
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
    if let Some(seed) = number_from_env("WEBFILL_SIMULATION_SEED") {
        let faults = run(seed, true).err();
        assert_eq!(faults, None, "seed {seed}");
        return;
    }
    let runs = number_from_env("WEBFILL_SIMULATION_RUNS").unwrap_or(RUNS);
    let first = number_from_env("WEBFILL_SIMULATION_FIRST").unwrap_or(1);
    run_all(&(first..first + runs).collect::<Vec<_>>());
}

#[test]
fn past_faults_do_not_return() {
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
        let passed = |seed| run(seed, false);
        assert_eq!(passed(seed), passed(seed));
    }
}

/// Checks that the noted seed, or another one, finds the sabotage (a deliberate fault). The environment may set the
/// seeds to search; then the time is not limited.
fn assert_is_found(sabotage: Sabotage, noted: u64) {
    let started = Instant::now();
    let (first, runs) = (
        number_from_env("WEBFILL_SIMULATION_FIRST"),
        number_from_env("WEBFILL_SIMULATION_RUNS"),
    );
    let found = match runs {
        Some(runs) => {
            let first = first.unwrap_or(1);
            (first..first + runs).find(|seed| is_found(sabotage, *seed))
        }
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
fn workers_that_ignore_leases_are_found() {
    assert_is_found(Sabotage::LeasesAreIgnored, 5);
}

#[test]
fn a_lease_that_counts_from_the_arrival_of_its_answer_is_found() {
    assert_is_found(Sabotage::AnswersStretchTheLease, 2);
}

#[test]
fn workers_that_ignore_recalls_are_found() {
    assert_is_found(Sabotage::RecallsAreIgnored, 65);
}

/// Seed 528 found this fault when tasks within a lease had another order. Thousands of other seeds do not find it, so
/// the test is ignored.
#[test]
#[ignore = "does no harm in the worlds of chance any more: it needs one that suits it"]
fn a_worker_that_inherits_no_requests_under_way_is_found() {
    assert_is_found(Sabotage::NothingIsInherited, 528);
}

#[test]
fn workers_that_do_not_learn_of_the_last_request_are_found() {
    assert_is_found(Sabotage::LastRequestsAreNotSent, 1);
}

#[test]
fn a_dispatcher_that_forgets_the_owners_of_sites_is_found() {
    assert_is_found(Sabotage::OwnersAreForgotten, 43);
}

#[test]
fn indistinguishable_supervisors_are_found() {
    assert_is_found(Sabotage::NamesakesShareAHome, 167);
}

#[test]
fn a_clock_that_is_set_farther_than_allowed_is_found() {
    assert_is_found(Sabotage::TheClockIsSetByADay, 138);
}

#[test]
fn a_dispatcher_that_forgets_which_crawls_need_browsers_is_found() {
    assert_is_found(Sabotage::LanesAreForgotten, 75);
}

#[test]
fn answers_that_do_not_wait_for_leases_are_found() {
    assert_is_found(Sabotage::AnswersDoNotWaitForLeases, 350);
}

#[test]
fn workers_that_forget_the_back_off_are_found() {
    assert_is_found(Sabotage::BackOffIsForgotten, 1);
}

#[test]
fn workers_that_take_a_failed_robots_txt_for_permission_are_found() {
    assert_is_found(Sabotage::FailuresOfRobotsAllowEverything, 2);
}

#[test]
fn cached_robots_txt_that_never_expires_is_found() {
    assert_is_found(Sabotage::CachedRobotsDoNotExpire, 2);
}

#[test]
fn a_refusal_that_moves_no_clock_is_found() {
    assert_is_found(Sabotage::RefusalsMoveNoClock, 13);
}

#[test]
fn a_redirect_of_robots_txt_that_takes_no_turn_is_found() {
    assert_is_found(Sabotage::RobotsHopsTakeNoTurn, 2);
}

#[test]
fn a_block_that_ends_its_task_is_found() {
    assert_is_found(Sabotage::BlocksEndTasks, 25);
}

#[test]
fn a_dispatcher_that_forgets_backoffs_is_found() {
    assert_is_found(Sabotage::BackoffsAreForgotten, 22);
}

#[test]
fn failures_of_machines_that_end_their_tasks_are_found() {
    assert_is_found(Sabotage::FailuresEndTasks, 1);
}

#[test]
fn machines_that_are_offline_and_keep_their_sites_are_found() {
    assert_is_found(Sabotage::CutOffMachinesKeepTheirSites, 34);
}

#[test]
fn a_store_that_confirms_states_of_sites_too_early_is_found() {
    assert_is_found(Sabotage::StatesAreConfirmedUnwritten, 9);
}

#[test]
fn a_dispatcher_that_stops_handing_out_is_found() {
    assert_is_found(Sabotage::HandingOutStops, 1);
}

#[test]
fn older_tasks_of_an_unreachable_site_that_wait_behind_newer_ones_are_found() {
    assert_is_found(Sabotage::UnreachableSitesGoByTurns, 198);
}

#[test]
fn workers_that_report_no_address_are_found() {
    assert_is_found(Sabotage::AddressesAreNotSent, 14);
}
