//! Faults of all kinds, generated from a seed: short rounds with fixed seeds, and a long run with any seed.
//!
//! ```text
//! make chaos                          # some minutes, with a random seed
//! make chaos SEED=7 SECONDS=600       # the same faults in the same order, for ten minutes
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use fastrand::Rng;
use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated_if_possible;

use crate::plan::{self, Kind};
use crate::round::{self, Report, Round, Store};

/// Every combination of the kind of crawl and the store.
const SCENES: [(Kind, Store); 4] = [
    (Kind::Crawl, Store::Sqlite),
    (Kind::Fleet, Store::Sqlite),
    (Kind::Crawl, Store::Mongodb),
    (Kind::Fleet, Store::Mongodb),
];

/// Plans round `number` of a seed, with `pages` pages on each site. The plan has so many faults that the crawl ends
/// before the last one.
fn plan_round(seed: u64, number: u64, (kind, store): (Kind, Store), pages: usize) -> Round {
    let mut rng = Rng::with_seed(seed.wrapping_mul(1_000).wrapping_add(number));
    Round {
        kind,
        store,
        // A fleet gets more sites, because a machine counts as the cause of failures only if many of its sites fail.
        sites: match kind {
            Kind::Crawl => 6,
            Kind::Fleet => 12,
        },
        pages,
        gives_up: kind == Kind::Fleet && number % 4 == 1,
        seed: rng.u64(..),
        plan: plan::mixed_plan(kind, 2 * pages, &mut rng),
    }
}

fn assert_no_violations(seed: u64, round: &Round, report: &Report) {
    let plan: Vec<String> = round.plan.iter().map(ToString::to_string).collect();
    assert!(
        report.wrong.is_empty(),
        "seed {seed}, {:?} with {:?}:\n{}\nthe plan:\n{}",
        round.kind,
        round.store,
        report.wrong.join("\n"),
        plan.join("\n")
    );
}

/// Runs each scene with one of the seeds. The scenes run in parallel.
fn run_short_rounds(seeds: [u64; 2], scenes: &[(Kind, Store)]) {
    std::thread::scope(|threads| {
        for (seed, scene) in seeds.into_iter().zip(scenes) {
            threads.spawn(move || {
                let round = plan_round(seed, 0, *scene, 6);
                assert_no_violations(seed, &round, &round::run(&round));
            });
        }
    });
}

#[test]
fn a_crawl_and_a_fleet_survive_a_mix_of_faults() {
    run_short_rounds([1, 2], &SCENES[..2]);
}

#[needs(mongod)]
#[test]
fn a_crawl_and_a_fleet_with_mongodb_survive_a_mix_of_faults() {
    run_short_rounds([3, 4], &SCENES[2..]);
}

/// A number from an environment variable.
fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

#[test]
#[ignore = "runs for minutes: make chaos"]
fn hundreds_of_faults_lose_nothing_and_harm_no_site() {
    let name = "mixed::hundreds_of_faults_lose_nothing_and_harm_no_site";
    match std::env::var_os("MONGODB_URI") {
        None => run_isolated_if_possible(name, run_hundreds_of_faults),
        // A MongoDB server outside of the isolated network could not be reached, so the network is not isolated.
        Some(_) => run_hundreds_of_faults(),
    }
}

fn run_hundreds_of_faults() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = number_from_env("CHAOS_SEED").unwrap_or_else(|| now.expect("after 1970").as_secs());
    let limit = Duration::from_secs(number_from_env("CHAOS_SECONDS").unwrap_or(300));
    eprintln!("chaos with SEED={seed}");
    let started = Instant::now();
    let (mut totals, mut wrong) = (BTreeMap::new(), Vec::new());
    let (mut pages, mut requests, mut repeated, mut rounds) = (0, 0, 0, 0);
    let scenes = if webfill_test_mongod::is_available() {
        &SCENES[..]
    } else {
        eprintln!("without MongoDB, because there is no server");
        &SCENES[..2]
    };
    // The first condition makes each scene run at least once.
    while rounds < scenes.len() as u64 || started.elapsed() < limit {
        let scene = scenes[rounds as usize % scenes.len()];
        let round = plan_round(seed, rounds, scene, 20);
        rounds += 1;
        let report = round::run(&round);
        eprintln!(
            "round {rounds}: {:?}, {:?}: {} faults, {} pages, {} requests ({} again), {} without a way, \
             {:.0} s, {} wrong",
            scene.0,
            scene.1,
            report.faults.values().sum::<usize>(),
            report.pages,
            report.requests,
            report.repeated,
            report.without_route,
            report.elapsed.as_secs_f64(),
            report.wrong.len()
        );
        for sentence in &report.wrong {
            eprintln!("    {sentence}");
        }
        for (fault, count) in report.faults {
            *totals.entry(fault).or_insert(0) += count;
        }
        pages += report.pages;
        requests += report.requests;
        repeated += report.repeated;
        wrong.extend(report.wrong.into_iter().map(|what| (rounds, what)));
    }
    let faults: usize = totals.values().sum();
    eprintln!(
        "{rounds} rounds, {faults} faults in {:.0} s: {pages} pages by {requests} requests, of which {repeated} came again after a fault",
        started.elapsed().as_secs_f64()
    );
    eprintln!("{totals:?}");
    assert!(wrong.is_empty(), "SEED={seed}: {wrong:#?}");
}
